//! Random bytes in base64: chance makes forms without a checksum in them, and nobody is to
//! be refused for that; what is certain does not leave in them.

use std::sync::Arc;

use outgate_dlp::{Ruleset, ScanPolicy, UnscannableAction};

use crate::encode::{STANDARD, URL, base64};
use crate::stage::{Dice, rules, sample_of, send};

type Form = fn(&[u8]) -> Vec<u8>;

/// Random bytes as base64 that somebody sends.
const FORMS: [Form; 4] = [
    |bytes| base64(bytes, STANDARD, "="),
    |bytes| base64(bytes, URL, ""),
    |bytes| lines(&base64(bytes, STANDARD, "="), "\r\n"),
    |bytes| lines(&base64(bytes, STANDARD, "="), "\\n"),
];

fn lines(text: &[u8], end: &str) -> Vec<u8> {
    text.chunks(76).collect::<Vec<_>>().join(end.as_bytes())
}

/// Random bytes, eight at a time.
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length / 8).flat_map(|_| next()).collect()
}

fn document(text: &[u8]) -> Vec<u8> {
    [b"{\"data\": \"", text, b"\"}"].concat()
}

#[test]
fn a_hundred_megabytes_of_random_base64_leave() {
    let tiered = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let strict = rules(ScanPolicy::Strict, UnscannableAction::Refuse);
    let mut refused = Vec::new();
    for seed in 1..=26 {
        let form = FORMS[usize::try_from(seed).expect("a number") % FORMS.len()];
        let content = document(&form(&random(seed, 3 << 20)));
        for (name, rules) in [("tiered", &tiered), ("strict", &strict)] {
            let outcome = send(rules, None, &content, &[64 << 10]);
            if let Some(stop) = outcome.stop {
                refused.push(format!("{seed} {name}: {stop}"));
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

fn is_refused(rules: &Arc<Ruleset>, content: &[u8]) -> bool {
    send(rules, None, content, &[4096]).found().is_some()
}

#[test]
fn what_is_certain_does_not_leave_among_random_base64() {
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let mut dice = Dice(31);
    for form in FORMS {
        let noise = form(&random(7, 60_000));
        // With a checksum, and one that is read out of what the run stands for.
        for id in ["github-token", "npm-token"] {
            let secret = sample_of(id, 5);
            let place = dice.roll(noise.len());
            let (before, behind) = noise.split_at(place);
            let content = document(&[before, &secret, behind].concat());
            assert!(is_refused(&rules, &content), "{id} at {place}");
        }
        let secret = sample_of("gcp-api-key", 5);
        let inner = [
            &random(8, 30_000),
            secret.as_slice(),
            b" ",
            &random(9, 30_000),
        ]
        .concat();
        assert!(is_refused(&rules, &document(&form(&inner))), "inside");
        // By itself, beside a run, and in a short one.
        for around in [&b""[..], b"\", \"", &noise[..500]] {
            let content = document(&[around, b" ", &secret, b" ", around].concat());
            assert!(is_refused(&rules, &content), "{}", around.escape_ascii());
        }
    }
}
