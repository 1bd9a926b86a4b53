//! Fuzz targets as ordinary tests: a corpus is replayed, and a short run changes
//! what is in it by numbers that are the same every time. Finding new ways into a
//! target is the work of a fuzzer that sees which code runs; what it found lies in
//! the corpus.

use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A name, which is that of its corpus, and what panics on bytes that show a fault.
pub type Target = (&'static str, fn(&[u8]));

/// Longest input that is made, in bytes.
const INPUT_BYTES_MAX: usize = 4096;

/// Values at the borders of what bytes mean.
const VALUES: [u8; 10] = [0, 1, 0x7d, 0x7e, 0x7f, 0x80, 0xfd, 0xfe, 0xff, b'\\'];

/// What every crate with targets tests of them: the corpus of each, a short run, and that
/// each has a front for a fuzzer.
///
/// # Panics
/// When a target finds a fault, or has no front.
#[macro_export]
macro_rules! fuzz_tests {
    ($targets:expr, $time:expr, $turns:expr) => {
        fn crate_folder() -> &'static ::std::path::Path {
            ::std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        }

        #[test]
        fn no_target_finds_a_fault_in_its_corpus() {
            $crate::fuzz::replay(&crate_folder().join("fuzz/corpus"), &$targets);
        }

        #[test]
        fn no_target_finds_a_fault_in_a_short_run() {
            $crate::fuzz::smoke(
                &crate_folder().join("fuzz/corpus"),
                &$targets,
                $time,
                $turns,
            );
        }

        #[test]
        fn every_target_has_a_front() {
            $crate::fuzz::has_fronts(crate_folder(), &$targets);
        }
    };
}

/// Whether each target has a front for a fuzzer, and each front a target.
///
/// # Panics
/// When one has none.
pub fn has_fronts(folder: &Path, targets: &[Target]) {
    let path = folder.join("fuzz/Cargo.toml");
    let fronts = fs::read_to_string(path).expect("the fronts");
    for (name, _) in targets {
        assert!(fronts.contains(&format!("name = \"{name}\"\n")), "{name}");
    }
    assert_eq!(fronts.matches("[[bin]]").count(), targets.len());
}

/// The inputs of a target, in order of their names.
///
/// # Panics
/// When there is no corpus, or an empty one.
pub fn corpus(folder: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder.join(name);
    let entries = fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry of a corpus").path();
            let bytes = fs::read(&path).expect("an input");
            (path.display().to_string(), bytes)
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{}: empty", folder.display());
    inputs
}

/// Shows every target what lies in its corpus.
///
/// # Panics
/// When one finds a fault; the input is named.
pub fn replay(folder: &Path, targets: &[Target]) {
    for (name, target) in targets {
        for (path, bytes) in corpus(folder, name) {
            try_one(*target, &bytes, &path);
        }
    }
}

/// Shows every target changed inputs, for so long each but no more than so many.
///
/// # Panics
/// When one finds a fault; the input is written out.
pub fn smoke(folder: &Path, targets: &[Target], time: Duration, turns: u64) {
    for (name, target) in targets {
        let inputs = corpus(folder, name);
        let begin = Instant::now();
        let mut turn = 0;
        while turn < turns && begin.elapsed() < time {
            turn += 1;
            let mut dice = Dice(turn);
            let mut bytes = pick(&mut dice, &inputs).to_vec();
            for _ in 0..=dice.roll(4) {
                let other = pick(&mut dice, &inputs);
                change(&mut dice, &mut bytes, other);
            }
            bytes.truncate(INPUT_BYTES_MAX);
            try_one(
                *target,
                &bytes,
                &format!("{name}, turn {turn}: {bytes:02x?}"),
            );
        }
        eprintln!("{name}: {turn} changed inputs");
        assert!(turn > 0, "{name}: no time");
    }
}

fn try_one(target: impl Fn(&[u8]) + RefUnwindSafe, bytes: &[u8], what: &str) {
    let is_sound = catch_unwind(|| target(bytes)).is_ok();
    assert!(is_sound, "a fault: {what}");
}

fn pick<'a>(dice: &mut Dice, inputs: &'a [(String, Vec<u8>)]) -> &'a [u8] {
    let place = dice.roll(inputs.len());
    inputs.get(place).map_or(&[], |(_, bytes)| bytes)
}

/// One change of a kind that finds faults in decoders.
fn change(dice: &mut Dice, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = dice.roll(bytes.len() + 1).min(bytes.len());
    let end = (at + 1 + dice.roll(32)).min(bytes.len());
    let value = VALUES.get(dice.roll(VALUES.len())).copied();
    let value = value.unwrap_or_default();
    match dice.roll(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.roll(8);
            }
        }
        1 => bytes.insert(at, value),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let piece = bytes.get(at..end).unwrap_or_default().to_vec();
            bytes.splice(at..at, piece);
        }
        5 => {
            let from = dice.roll(other.len() + 1).min(other.len());
            let piece = other.get(from..).unwrap_or_default();
            bytes.splice(at..end, piece.iter().copied().take(300));
        }
        _ => {
            if let Some(some) = bytes.get_mut(at..end) {
                some.fill(value);
            }
        }
    }
}

/// Numbers that look random and are the same every time (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let value = usize::try_from((value ^ (value >> 31)) >> 33).unwrap_or_default();
        value % below.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault in one input of many, three changes away from the corpus.
    fn brittle(bytes: &[u8]) {
        let is_long = bytes.len() > 40;
        assert!(!(is_long && bytes.starts_with(b"ok") && bytes.contains(&0x80)));
    }

    #[test]
    fn a_fault_is_found_and_named() {
        let folder = std::env::temp_dir().join(format!("outgate-fuzz-{}", std::process::id()));
        let inputs = folder.join("brittle");
        fs::create_dir_all(&inputs).unwrap();
        fs::write(inputs.join("one"), b"ok, and not long").unwrap();
        let targets: [Target; 1] = [("brittle", brittle)];
        let run = || smoke(&folder, &targets, Duration::from_mins(1), 100_000);
        let shown = |result: std::thread::Result<()>| {
            let fault = result.expect_err("a fault");
            fault.downcast_ref::<String>().cloned().unwrap_or_default()
        };
        let first = shown(catch_unwind(run));
        assert!(first.starts_with("a fault: brittle, turn "), "{first}");
        assert_eq!(shown(catch_unwind(run)), first, "the same every time");
        replay(&folder, &targets);
        fs::write(inputs.join("two"), [b"ok".repeat(30), vec![0x80]].concat()).unwrap();
        let named = shown(catch_unwind(|| replay(&folder, &targets)));
        assert!(named.ends_with("brittle/two"), "{named}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
