//! Compressed data that nothing says anything of, and that has no mark: bare deflate and
//! Brotli, at the beginning of content.

use outgate_dlp::{Anchor, Detectors, Policy, Stop, Unscannable, sample};

use crate::encode::{Coding, brotli, deflate, gzip};
use crate::stage::{Dice, rules, sample_of, send, stream, strict};

/// What compresses without a mark.
const UNMARKED: [Coding; 2] = [("deflate", deflate), ("br", brotli)];

#[test]
fn no_sample_leaves_compressed_without_a_mark() {
    let rules = strict();
    let mut dice = Dice(11);
    for detector in Detectors::shipped().iter() {
        if detector.anchor == Anchor::Scan || detector.id == "nested-percent" {
            continue;
        }
        let secret = sample(&detector.samples[0], 7);
        for (name, compress) in UNMARKED {
            let content = compress(&secret);
            let outcome = send(&rules, None, &content, &dice.lengths(30));
            assert!(
                outcome.found().is_some(),
                "{} in {name}: {:?}",
                detector.id,
                outcome.stop
            );
            assert_eq!(outcome.released, 0, "{} in {name}", detector.id);
        }
    }
}

#[test]
fn a_pause_in_what_has_no_mark_hides_nothing() {
    let rules = strict();
    let secret = sample_of("github-token", 5);
    for (name, compress) in UNMARKED {
        let content = compress(&secret);
        for cut in 1..content.len() {
            let mut stream = stream(&rules, None);
            let (before, after) = content.split_at(cut);
            let end = stream
                .push(before)
                .and_then(|_| stream.end_of_message())
                .and_then(|_| stream.push(after))
                .and_then(|_| stream.finish());
            assert!(
                matches!(end, Err(Stop::Found(_))),
                "{name} at {cut}: {end:?}"
            );
        }
    }
}

#[test]
fn what_has_no_mark_is_undone_layer_by_layer() {
    let rules = strict();
    let mut dice = Dice(12);
    let mut words = dice.words(2000);
    words.extend(sample_of("github-token", 6));
    words.extend(dice.words(30_000));
    let stacks: [(&str, Vec<u8>); 5] = [
        ("deflate>github-token", deflate(&words)),
        ("br>github-token", brotli(&words)),
        ("deflate>deflate>github-token", deflate(&deflate(&words))),
        ("br>deflate>github-token", brotli(&deflate(&words))),
        ("gzip>br>github-token", gzip(&brotli(&words))),
    ];
    for (chain, content) in stacks {
        let outcome = send(&rules, None, &content, &dice.lengths(700));
        let found = outcome.found().map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(chain));
    }
}

#[test]
fn content_that_only_looks_compressed_leaves() {
    let rules = rules(Policy::Tiered, Unscannable::Refuse);
    let mut dice = Dice(13);
    for turn in 0..3000 {
        let length = 1 + dice.roll(2000);
        let content = dice.bytes(length);
        let outcome = send(&rules, None, &content, &dice.lengths(1460));
        assert_eq!(
            outcome.stop,
            None,
            "{turn}: {:02x?}",
            &content[..length.min(16)]
        );
        assert_eq!(outcome.unscanned, None, "{turn}");
    }
}
