//! Files of every format that is decoded, as they are and damaged in every way:
//! however they are cut, the scan ends, and says the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outgate_dlp::{Ruleset, ScanPolicy, UnscannableAction};

use crate::stage::{Dice, rules, send};

/// How long damage is tried.
const TIME: Duration = Duration::from_secs(5);

/// What a content may be said to be.
const CODINGS: [Option<&str>; 7] = [
    None,
    None,
    Some("gzip"),
    Some("deflate"),
    Some("br"),
    Some("zstd"),
    Some("gzip, deflate"),
];

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = fs::read_dir(&folder).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

fn check(
    rules: &Arc<Ruleset>,
    coding: Option<&str>,
    content: &[u8],
    lengths: &[usize],
    what: &str,
) {
    let whole = send(rules, coding, content, &[content.len().max(1)]);
    let cut = send(rules, coding, content, lengths);
    assert_eq!(whole.stop, cut.stop, "{what}");
    assert_eq!(whole.warnings, cut.warnings, "{what}");
    assert_eq!(whole.unscanned, cut.unscanned, "{what}");
}

#[test]
fn every_file_of_the_corpus_is_the_same_however_it_is_cut() {
    let rules = rules(ScanPolicy::Monitor, UnscannableAction::Record);
    let corpus = corpus();
    assert!(corpus.len() >= 20, "only {} files", corpus.len());
    for (path, content) in corpus {
        for coding in CODINGS {
            for lengths in [&[1][..], &[7, 64, 3], &[500]] {
                check(
                    &rules,
                    coding,
                    &content,
                    lengths,
                    &path.display().to_string(),
                );
            }
        }
    }
}

/// One change of a kind that finds faults in decoders.
fn damage(dice: &mut Dice, content: &mut Vec<u8>, other: &[u8]) {
    const VALUES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'%', b'\\', b'='];
    if content.is_empty() {
        content.push(dice.byte(256));
    }
    let (at, length) = (dice.roll(content.len()), 1 + dice.roll(64));
    let end = (at + length).min(content.len());
    match dice.roll(7) {
        0 => content[at] ^= 1 << dice.roll(8),
        1 => content[at] = VALUES[dice.roll(VALUES.len())],
        2 => drop(content.drain(at..end)),
        3 => content.truncate(at),
        4 => {
            let piece = content[at..end].to_vec();
            for _ in 0..=dice.roll(20) {
                content.splice(at..at, piece.iter().copied());
            }
        }
        5 => {
            let from = dice.roll(other.len());
            content.splice(at..end, other[from..].iter().take(600).copied());
        }
        _ => content[at..end].fill(VALUES[dice.roll(VALUES.len())]),
    }
}

#[test]
fn damaged_files_are_the_same_however_they_are_cut() {
    let corpus = corpus();
    let both = [UnscannableAction::Record, UnscannableAction::Refuse]
        .map(|one| rules(ScanPolicy::Tiered, one));
    let begin = Instant::now();
    let mut seed = 0;
    while begin.elapsed() < TIME {
        seed += 1;
        let mut dice = Dice(seed * 0x9e37_79b9 + 1);
        let (path, content) = &corpus[dice.roll(corpus.len())];
        let mut content = content.clone();
        for _ in 0..=dice.roll(8) {
            let (_, other) = &corpus[dice.roll(corpus.len())];
            damage(&mut dice, &mut content, other);
        }
        let rules = &both[dice.roll(2)];
        let coding = CODINGS[dice.roll(CODINGS.len())];
        let lengths = dice.lengths(300);
        let what = format!("seed {seed}: {} as {coding:?}", path.display());
        check(rules, coding, &content, &lengths, &what);
    }
    eprintln!("{seed} damaged files");
    assert!(seed > 20, "only {seed} in {TIME:?}");
}
