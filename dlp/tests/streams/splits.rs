//! However content is cut, the scan says the same.

use std::sync::Arc;

use proptest::prelude::*;

use outgate_dlp::{Ruleset, ScanPolicy, UnscannableAction};

use crate::encode::CODINGS;
use crate::stage::{Dice, rules, sample_of, send};

/// Text with some samples in some codings.
fn content(seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut content = Vec::new();
    for _ in 0..4 {
        let length = dice.roll(12_000);
        content.extend(dice.words(length));
        let ids = [
            "github-token",
            "jwt",
            "stripe-key",
            "gcp-api-key",
            "basic-auth",
        ];
        let secret = sample_of(ids[dice.roll(ids.len())], seed);
        let (_, encode) = CODINGS[dice.roll(CODINGS.len())];
        content.extend(encode(&secret));
        content.push(b'\n');
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn splits_change_nothing(seed in 0_u64..1_000_000, lengths in proptest::collection::vec(1_usize..3000, 1..20)) {
        let content = content(seed);
        for policy in [ScanPolicy::Tiered, ScanPolicy::Monitor] {
            let rules = rules(policy, UnscannableAction::Record);
            let whole = send(&rules, None, &content, &[content.len()]);
            let cut = send(&rules, None, &content, &lengths);
            prop_assert_eq!(&whole.stop, &cut.stop);
            prop_assert_eq!(&whole.warnings, &cut.warnings);
            prop_assert_eq!(&whole.unscanned, &cut.unscanned);
        }
    }
}

#[test]
fn one_byte_at_a_time_is_the_same() {
    let rules = rules(ScanPolicy::Monitor, UnscannableAction::Record);
    for seed in 0..4 {
        let content = content(seed);
        let whole = send(&rules, None, &content, &[content.len()]);
        let cut = send(&rules, None, &content, &[1]);
        assert_eq!(whole.warnings, cut.warnings);
        assert!(!whole.warnings.is_empty());
    }
}

#[test]
fn a_pause_in_a_run_hides_nothing() {
    let rules = rules(ScanPolicy::Strict, UnscannableAction::Record);
    let secret = sample_of("github-token", 3);
    for name in [
        "plain",
        "zero width",
        "full width",
        "percent of every third",
    ] {
        let (_, encode) = CODINGS
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a coding");
        for noise in [300, 3000] {
            let mut dice = Dice(noise as u64);
            let inner = [
                dice.bytes(noise),
                b"\n".to_vec(),
                encode(&secret),
                dice.bytes(400),
            ]
            .concat();
            let content = crate::encode::plain_base64(&inner);
            let middle = content.len() - 540 - encode(&secret).len() * 4 / 3;
            for pause in (middle - 60..content.len() - 400).step_by(3) {
                assert!(
                    is_stopped(&rules, content.split_at(pause)),
                    "{name} after {noise}: left with a pause at {pause} ({middle})"
                );
            }
        }
    }
}

/// Whether content that pauses between its two parts is stopped.
fn is_stopped(rules: &Arc<Ruleset>, (first, second): (&[u8], &[u8])) -> bool {
    let mut stream = crate::stage::stream(rules, None);
    let stop = stream.push(first).and_then(|_| stream.end_of_message());
    let stop = stop.and_then(|_| stream.push(second));
    stop.and_then(|_| stream.finish()).is_err()
}

#[test]
fn a_pause_in_a_literal_of_a_run_hides_nothing() {
    let rules = rules(ScanPolicy::Strict, UnscannableAction::Record);
    for id in ["gitlab-token", "dockerhub-token", "github-pat-fine"] {
        let secret = sample_of(id, 3);
        for noise in 300..303 {
            let mut dice = Dice(noise as u64);
            let inner = [dice.bytes(noise), b"\n".to_vec(), secret.clone()].concat();
            let content = crate::encode::plain_base64(&inner);
            let begin = noise * 4 / 3;
            for pause in begin - 20..(begin + 40).min(content.len()) {
                assert!(
                    is_stopped(&rules, content.split_at(pause)),
                    "{id} after {noise}: left with a pause at {pause}"
                );
            }
        }
    }
}

#[test]
fn what_a_message_ends_with_is_found_at_its_end() {
    let rules = rules(ScanPolicy::Strict, UnscannableAction::Record);
    let secret = sample_of("gitlab-token", 3);
    for noise in [30, 31, 32, 3000, 3001, 3002] {
        let mut dice = Dice(noise as u64);
        let inner = [dice.bytes(noise), b"\n".to_vec(), secret.clone()].concat();
        let mut content = crate::encode::plain_base64(&inner);
        content.retain(|byte| *byte != b'=');
        let mut stream = crate::stage::stream(&rules, None);
        let stop = stream.push(&content).and_then(|_| stream.end_of_message());
        assert!(stop.is_err(), "nothing was said of it after {noise}");
    }
}
