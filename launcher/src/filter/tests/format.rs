//! Far jumps, the interpreter's refusals, and the listing as text.

use super::call;
use crate::filter::assembler::assemble;
use crate::filter::errno::Errno;
use crate::filter::interpreter::{self, ProgramFault};
use crate::filter::limits::INTERPRETED_MAX;
use crate::filter::rule::{FilterAction, FilterRule};
use crate::filter::spans::{Span, Spans};
use crate::filter::{Arch, FilterError, FilterOptions, Instruction, Opens, listing};

/// Every number up to `count` has an errno of its own.
fn distinct(count: u32) -> Spans {
    let mut spans = Spans::new();
    for number in 0..count {
        let rule = FilterRule::Do(FilterAction::Refuse(Errno { name: "", number }));
        let last = if number + 1 == count {
            u32::MAX
        } else {
            number
        };
        spans.add(Span {
            first: number,
            last,
            rule: Box::leak(Box::new(rule)),
            name: "",
        });
    }
    spans
}

#[test]
fn jumps_further_than_a_comparison_reaches_arrive() {
    let arch = Arch::X86_64;
    let made = assemble::<2048>(arch, &distinct(300)).expect("program");
    let program = made.instructions();
    assert!(program.len() > 600);
    assert!(program.iter().any(|step| step.code == interpreter::JUMP));
    for number in 0..400 {
        let outcome = interpreter::run(program, &call(arch, number, [0; 6])).expect("run");
        assert_eq!(outcome.returned, 0x0005_0000 | number.min(299));
    }
}

#[test]
fn a_program_without_room_is_an_error() {
    let error = assemble::<64>(Arch::X86_64, &distinct(300)).expect_err("too long");
    let FilterError::TooLong { instructions, max } = error else {
        panic!("{error}");
    };
    assert!(instructions > 600 && max == 64);
}

const fn step(code: u16, k: u32) -> Instruction {
    let (jt, jf) = (0, 0);
    Instruction { code, jt, jf, k }
}

#[test]
fn malformed_programs_are_refused() {
    let data = call(Arch::X86_64, 1, [0x1122_3344_5566_7788; 6]);
    let run = |program: &[Instruction]| interpreter::run(program, &data);
    assert_eq!(run(&[]), Err(ProgramFault::End { at: 0 }));
    assert_eq!(
        run(&[step(interpreter::LOAD, 0)]),
        Err(ProgramFault::End { at: 1 })
    );
    assert_eq!(
        run(&[step(interpreter::JUMP, 7), step(interpreter::RETURN, 1)]),
        Err(ProgramFault::End { at: 8 })
    );
    for offset in [1, 2, 17, 64, 68, u32::MAX] {
        let fault = ProgramFault::Offset { at: 0, offset };
        assert_eq!(run(&[step(interpreter::LOAD, offset)]), Err(fault));
    }
    assert_eq!(
        run(&[step(0x07, 0)]),
        Err(ProgramFault::Operation { at: 0, code: 0x07 })
    );
    let long = vec![step(interpreter::LOAD, 0); INTERPRETED_MAX + 1];
    assert_eq!(run(&long), Err(ProgramFault::Length(INTERPRETED_MAX + 1)));
}

#[test]
fn words_are_little_endian_halves() {
    let mut data = call(Arch::Aarch64, 0x0102_0304, [0; 6]);
    data.instruction_pointer = 0xaaaa_bbbb_cccc_dddd;
    data.args[5] = 0x1122_3344_5566_7788;
    for (offset, expected) in [
        (0, 0x0102_0304),
        (4, 0xc000_00b7),
        (8, 0xcccc_dddd),
        (12, 0xaaaa_bbbb),
        (56, 0x5566_7788),
        (60, 0x1122_3344),
    ] {
        let compared = Instruction {
            code: interpreter::JUMP_EQUAL,
            jt: 1,
            jf: 0,
            k: expected,
        };
        let (no, yes) = (step(interpreter::RETURN, 0), step(interpreter::RETURN, 1));
        let program = [step(interpreter::LOAD, offset), compared, no, yes];
        let outcome = interpreter::run(&program, &data).expect("run");
        assert_eq!((outcome.returned, outcome.steps), (1, 3), "{offset}");
    }
}

#[test]
fn the_listing_is_the_reviewed_one() {
    for (arch, opens, reviewed) in [
        (
            Arch::X86_64,
            Opens::Trap,
            include_str!("listing-x86_64-trap.txt"),
        ),
        (
            Arch::Aarch64,
            Opens::Pass,
            include_str!("listing-aarch64.txt"),
        ),
    ] {
        let text = listing(arch, &FilterOptions { opens });
        assert_eq!(text, reviewed, "new listing of {}:\n{text}", arch.name());
    }
}
