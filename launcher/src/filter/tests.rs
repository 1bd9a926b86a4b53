//! Tests of the filter as a whole: that program and plain evaluator agree, that
//! both agree with an independent compiler, and that they say what we mean.

mod agreement;
mod cases;
mod files;
mod format;
mod oracle;
mod table;

use super::interpreter::{self, Data};
use super::{Arch, FilterOptions, Opens};

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
const OPTIONS: [FilterOptions; 2] = [
    FilterOptions { opens: Opens::Pass },
    FilterOptions { opens: Opens::Trap },
];

/// A call with these arguments, made natively.
fn call(arch: Arch, nr: u32, args: [u64; 6]) -> Data {
    Data {
        nr,
        arch: arch.audit(),
        instruction_pointer: 0x7f12_3456_789a_bcde,
        args,
    }
}

/// What the program returns, and in how many steps.
fn run(arch: Arch, options: FilterOptions, data: &Data) -> interpreter::ProgramOutcome {
    let program = super::program(arch, &options).expect("program");
    interpreter::run(&program, data).expect("run")
}

/// The number of a call by the name in the table.
fn number(arch: Arch, name: &str) -> u32 {
    let options = FilterOptions { opens: Opens::Trap };
    super::table::rows(options)
        .find(|row| row.name == name)
        .and_then(|row| row.numbers.on(arch))
        .unwrap_or_else(|| panic!("no {name} on {}", arch.name()))
}
