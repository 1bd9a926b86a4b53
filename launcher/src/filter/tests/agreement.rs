//! The compiled program agrees with the plain evaluator.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{ARCHES, OPTIONS, call};
use crate::filter::interpreter::{self, Data};
use crate::filter::rule::{FilterRule, Test};
use crate::filter::{Arch, FilterAction, FilterOptions, Opens, evaluate, program, table};

/// Numbers beyond the assigned ones, at every edge.
const ODD_NUMBERS: [u32; 10] = [
    0x3fff_ffff,
    0x4000_0000,
    0x4000_0029,
    0x4000_01d5,
    0x7fff_ffff,
    0x8000_0000,
    0xc000_0029,
    0xffff_fffe,
    0xffff_ffff,
    0x0001_002a,
];

/// Per argument, the values a rule asks about and their neighbours.
fn samples(rule: &FilterRule, found: &mut [BTreeSet<u32>; 6]) {
    let FilterRule::Ask { question, yes, no } = rule else {
        return;
    };
    let set = &mut found[question.argument as usize];
    let (values, free) = match &question.test {
        Test::Is { mask, any_of } => (any_of, !mask),
        Test::Has(flags) => (flags, 0),
    };
    for value in *values {
        let bits = value.bits;
        set.extend([bits, bits ^ 1, bits.wrapping_sub(1), bits.wrapping_add(1)]);
        set.extend([bits | 0x0008_0800, bits | free, bits << 8]);
    }
    samples(yes, found);
    samples(no, found);
}

/// Every combination of the sampled arguments, each also with garbage above.
fn arguments(rule: &FilterRule) -> Vec<[u64; 6]> {
    const GARBAGE: [u64; 3] = [0, 0xffff_ffff << 32, 0x0000_0001 << 32];
    let mut found: [BTreeSet<u32>; 6] = Default::default();
    samples(rule, &mut found);
    let mut rows = vec![[0_u64; 6]];
    for (index, set) in found.iter().enumerate() {
        let values: BTreeSet<u32> = set.iter().copied().chain([0, u32::MAX]).collect();
        if set.is_empty() {
            continue;
        }
        rows = rows
            .iter()
            .flat_map(|row| values.iter().map(move |value| (row, value)))
            .map(|(row, value)| {
                let mut row = *row;
                row[index] = u64::from(*value);
                row
            })
            .collect();
    }
    rows.iter()
        .flat_map(|row| GARBAGE.map(|garbage| row.map(|argument| argument | garbage)))
        .collect()
}

fn check(arch: Arch, options: FilterOptions, data: &Data) {
    let program = program(arch, &options).expect("program");
    let outcome = interpreter::run(&program, data).expect("run");
    let expected = evaluate(arch, &options, data);
    assert_eq!(
        outcome.returned,
        expected.returned(),
        "{arch:?} {options:?} {data:x?}: expected {expected}"
    );
}

#[test]
fn program_agrees_with_the_table_for_every_number_and_argument() {
    for arch in ARCHES {
        for options in OPTIONS {
            for nr in (0..1024).chain(ODD_NUMBERS) {
                let rule = table::rows(options)
                    .find(|row| row.numbers.on(arch) == Some(nr))
                    .map_or(&FilterRule::Do(FilterAction::Allow), |row| row.rule);
                for args in arguments(rule) {
                    check(arch, options, &call(arch, nr, args));
                }
            }
        }
    }
}

#[test]
fn calls_of_another_architecture_are_killed() {
    const OTHERS: [u32; 6] = [
        0x4000_0003, // i386
        0x4000_0028, // arm
        0xc000_003e, // x86_64
        0xc000_00b7, // aarch64
        0x8000_00b7, // aarch64, big endian
        0,
    ];
    for arch in ARCHES {
        for other in OTHERS.into_iter().filter(|other| *other != arch.audit()) {
            for options in OPTIONS {
                for nr in (0..1024).chain(ODD_NUMBERS) {
                    let mut data = call(arch, nr, [0; 6]);
                    data.arch = other;
                    assert_eq!(evaluate(arch, &options, &data), FilterAction::Kill);
                    check(arch, options, &data);
                }
            }
        }
    }
}

#[test]
fn x32_calls_are_killed_and_skipped_calls_are_not() {
    let options = FilterOptions { opens: Opens::Pass };
    let action = |arch, nr| evaluate(arch, &options, &call(arch, nr, [0; 6]));
    assert_eq!(action(Arch::X86_64, 0x4000_0000), FilterAction::Kill);
    assert_eq!(action(Arch::X86_64, 0x4000_0000 + 42), FilterAction::Kill);
    assert_eq!(action(Arch::X86_64, 0x7fff_ffff), FilterAction::Kill);
    for (arch, nr) in [
        (Arch::X86_64, u32::MAX),
        (Arch::X86_64, table::NEWEST + 1),
        (Arch::X86_64, 400),
        (Arch::Aarch64, 0x4000_0000 + 203),
        (Arch::Aarch64, u32::MAX),
        (Arch::Aarch64, 250),
    ] {
        assert_eq!(action(arch, nr).returned(), 0x0005_0000 + 38, "{nr:#x}");
    }
}

/// Values that matter to some rule, of any argument of any call.
fn telling() -> Vec<u32> {
    let mut found: [BTreeSet<u32>; 6] = Default::default();
    for row in table::rows(FilterOptions { opens: Opens::Trap }) {
        samples(row.rule, &mut found);
    }
    found.into_iter().flatten().collect()
}

fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (prop::sample::select(telling()), any::<u32>())
            .prop_map(|(low, high)| u64::from(high) << 32 | u64::from(low)),
        prop::sample::select(telling()).prop_map(u64::from),
    ]
}

fn nr() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0..600_u32,
        4 => prop::sample::select(vec![41_u32, 53, 54, 198, 199, 208]),
        1 => any::<u32>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn program_agrees_with_the_table_on_random_calls(
        nr in nr(),
        args in prop::array::uniform6(argument()),
        foreign in prop::option::weighted(0.05, any::<u32>()),
    ) {
        for arch in ARCHES {
            for options in OPTIONS {
                let mut data = call(arch, nr, args);
                data.arch = foreign.unwrap_or(data.arch);
                check(arch, options, &data);
            }
        }
    }

    #[test]
    fn upper_halves_of_arguments_change_nothing(
        nr in nr(),
        args in prop::array::uniform6(argument()),
        garbage in any::<u32>(),
    ) {
        for arch in ARCHES {
            let options = FilterOptions { opens: Opens::Trap };
            let plain = args.map(|argument| argument & 0xffff_ffff);
            let dirty = plain.map(|argument| argument | u64::from(garbage) << 32);
            prop_assert_eq!(
                evaluate(arch, &options, &call(arch, nr, plain)),
                evaluate(arch, &options, &call(arch, nr, dirty))
            );
        }
    }
}
