//! Credentials back to front and with letters moved: a right checksum decides, or a literal of
//! which chance makes no form back to front.

use outgate_dlp::{
    Action, Anchor, Checked, Coding, Detector, Detectors, Finding, MessagePart, Place, ScanPolicy,
    Stop, Tier, UnscannableAction, UnscannedReason,
};

use crate::encode::{base32_capitals, base64, deflate, gzip, plain_base64, zstd};
use crate::stage::{Dice, ELSEWHERE, rules, sample_of, send};

/// Back to front, and with letters moved by thirteen.
fn transformed(plain: &[u8]) -> [(Vec<u8>, Coding); 2] {
    let reversed: Vec<u8> = plain.iter().rev().copied().collect();
    let moved = plain.iter().map(|byte| match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte + 13,
        b'n'..=b'z' | b'N'..=b'Z' => byte - 13,
        other => *other,
    });
    [
        (reversed, Coding::Reversed),
        (moved.collect(), Coding::Rot13),
    ]
}

/// Whether chance makes no form of a text in this coding: its literal is long.
fn is_certain(detector: &Detector, plain: &[u8], coding: Coding) -> bool {
    let mut literals = detector.literals.iter();
    coding == Coding::Reversed
        && literals.any(|own| own.len() >= 5 && plain.starts_with(own.as_bytes()))
}

#[test]
fn back_to_front_and_with_letters_moved_a_right_checksum_decides() {
    let default = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let strict = rules(ScanPolicy::Strict, UnscannableAction::Record);
    let monitor = rules(ScanPolicy::Monitor, UnscannableAction::Record);
    let mut count = 0;
    for detector in Detectors::shipped().iter() {
        let is_long = |literal: &outgate_dlp::Text| literal.len() >= 4;
        let is_transformed = detector.tier == Tier::Strong && detector.anchor == Anchor::Start;
        if !is_transformed || !detector.literals.iter().all(is_long) {
            continue;
        }
        let plain = sample_of(&detector.id, 7);
        let as_is = send(&default, None, &plain, &[plain.len()]);
        let checked = as_is.found().expect("a finding").checked;
        // Without letters in its literal a form is itself when its letters are moved.
        let has_letters =
            |literal: &outgate_dlp::Text| literal.bytes().any(|b| b.is_ascii_alphabetic());
        let moves = detector.literals.iter().all(has_letters);
        let forms = transformed(&plain)
            .into_iter()
            .filter(|(_, coding)| moves || *coding != Coding::Rot13);
        for (bytes, coding) in forms {
            let before = Dice(3).words(5000);
            let content = [before.as_slice(), b"-- ", &bytes, b" -- words"].concat();
            for lengths in [&[1][..], &[700], &[16_384], &[content.len()]] {
                for (rules, is_refused) in [
                    (
                        &default,
                        checked == Checked::Passed || is_certain(detector, &plain, coding),
                    ),
                    (&strict, true),
                    (&monitor, false),
                ] {
                    let what = format!("{} {coding} {lengths:?}", detector.id);
                    let outcome = send(rules, None, &content, lengths);
                    let own = |finding: &&Finding| {
                        finding.detector == detector.id && finding.chain == [coding]
                    };
                    if is_refused {
                        let found = outcome.found().unwrap_or_else(|| panic!("{what}"));
                        assert_eq!(found.action, Action::Block, "{what}");
                        let start = before.len() + 3;
                        let most = start + bytes.len().saturating_sub(2048);
                        let released = usize::try_from(outcome.released).expect("a length");
                        assert!(released <= most, "{what}: {released} of {start}");
                    } else {
                        assert_eq!(outcome.stop, None, "{what}: told, not stopped");
                        let warning = outcome.warnings.iter().find(own);
                        assert_eq!(warning.expect(&what).action, Action::Warn, "{what}");
                    }
                }
            }
            count += usize::from(checked == Checked::Passed);
        }
        // In fields the same.
        for (bytes, coding) in transformed(&plain) {
            let place = Place::Field("x-note".to_owned());
            let part = [MessagePart {
                place,
                bytes: &bytes,
            }];
            let report = default.head(&ELSEWHERE, &part);
            let is_refused = report.block().is_some();
            assert!(
                is_refused || checked != Checked::Passed && !is_certain(detector, &plain, coding),
                "{} {coding}",
                detector.id
            );
            let report = strict.head(&ELSEWHERE, &part);
            assert!(report.block().is_some(), "{} {coding}", detector.id);
        }
    }
    assert!(count >= 8, "{count}");
}

/// The letters of each line the other way round, as `rev` prints them.
fn turned_lines(plain: &[u8]) -> Vec<u8> {
    let lines = plain.split(|byte| *byte == b'\n');
    let lines: Vec<Vec<u8>> = lines
        .map(|line| line.iter().rev().copied().collect())
        .collect();
    lines.join(&b'\n')
}

#[test]
fn forms_with_a_long_literal_hide_nothing_back_to_front() {
    let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let mut count = 0;
    for detector in Detectors::shipped().iter() {
        let is_sought = detector.tier != Tier::Context && detector.anchor != Anchor::Scan;
        let is_long = |literal: &outgate_dlp::Text| literal.len() >= 7;
        if !is_sought || !detector.literals.iter().all(is_long) {
            continue;
        }
        let plain = sample_of(&detector.id, 7);
        let alone = [b"a line\n", plain.as_slice(), b"\nof several\n"].concat();
        let as_is = send(&default, None, &alone, &[alone.len()]);
        if as_is.found().is_none() {
            continue;
        }
        count += 1;
        for text in [alone, [b"A=", plain.as_slice()].concat()] {
            let whole: Vec<u8> = text.iter().rev().copied().collect();
            for (how, turned) in [("all", whole), ("lines", turned_lines(&text))] {
                let words = Dice(5).words(5000);
                let within = [words.as_slice(), b"\n", &turned, b"\n", &words].concat();
                for content in [turned, within] {
                    for lengths in [&[1][..], &[700], &[content.len()]] {
                        let outcome = send(&default, None, &content, lengths);
                        assert!(
                            outcome.found().is_some(),
                            "{} {how} {lengths:?}",
                            detector.id
                        );
                    }
                }
            }
        }
    }
    assert!(count > 20, "{count}");
}

/// What is compressed in zlib (RFC 1950): the scan reads no checksum.
fn zlib(plain: &[u8]) -> Vec<u8> {
    [b"\x78\x9c", deflate(plain).as_slice(), &[0; 4]].concat()
}

#[test]
fn base64_of_what_is_compressed_hides_nothing_back_to_front() {
    const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let strict = rules(ScanPolicy::Strict, UnscannableAction::Refuse);
    let token = sample_of("github-token", 5);
    for before in [0, 300, 20_000] {
        let plain = [Dice(9).words(before).as_slice(), b" ", &token, b" words"].concat();
        for (name, packed) in [
            ("gzip", gzip(&plain)),
            ("zlib", zlib(&plain)),
            ("zstd", zstd(&plain)),
        ] {
            let lines: Vec<u8> = plain_base64(&packed)
                .chunks(76)
                .collect::<Vec<_>>()
                .join(&b'\n');
            for text in [plain_base64(&packed), base64(&packed, URL, ""), lines] {
                let turned: Vec<u8> = text.iter().rev().copied().collect();
                let json = [b"{\"a\":\"", turned.as_slice(), b"\"}"].concat();
                for content in [turned, json] {
                    for lengths in [&[700][..], &[16_384], &[content.len()]] {
                        for rules in [&default, &strict] {
                            let outcome = send(rules, None, &content, lengths);
                            let what = format!("{name} {before} {lengths:?}");
                            let found = outcome.found().unwrap_or_else(|| panic!("{what}"));
                            let chain = [Coding::Reversed, Coding::Base64];
                            assert!(found.chain.starts_with(&chain), "{what}: {found}");
                        }
                    }
                }
            }
        }
    }
}

fn hex(plain: &[u8]) -> Vec<u8> {
    let digits = plain.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().concat().into_bytes()
}

/// What a coding makes.
type Coded = dyn Fn(&[u8]) -> Vec<u8>;

#[test]
fn codings_of_a_text_hide_nothing_back_to_front() {
    let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let codings: [(&str, &Coded); 5] = [
        ("base64", &plain_base64),
        ("hex", &hex),
        ("base32", &base32_capitals),
        ("base64 twice", &|plain| plain_base64(&plain_base64(plain))),
        ("base64 of hex", &|plain| plain_base64(&hex(plain))),
    ];
    for id in [
        "github-token",
        "npm-token",
        "slack-token",
        "gitlab-token",
        "pem-private-key",
    ] {
        let token = sample_of(id, 5);
        for before in [&b""[..], b"A=b\nTOKEN=", b"{\"words\": 12, \"token\": \""] {
            let plain = [before, &token, b"\n"].concat();
            for (name, coded) in codings {
                let turned: Vec<u8> = coded(&plain).into_iter().rev().collect();
                let form = [b"a=1&t=", turned.as_slice(), b"&b=2"].concat();
                for content in [turned, form] {
                    for lengths in [&[1][..], &[700], &[content.len()]] {
                        let outcome = send(&default, None, &content, lengths);
                        assert!(outcome.found().is_some(), "{id} {name} {lengths:?}");
                    }
                }
            }
        }
    }
}

/// The end of what is compressed came first, and is gone.
#[test]
fn what_is_too_long_to_be_turned_is_told() {
    let strict = rules(ScanPolicy::Strict, UnscannableAction::Refuse);
    let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let plain = Dice(4).bytes(600_000);
    for packed in [gzip(&plain), zlib(&plain), zstd(&plain)] {
        let turned: Vec<u8> = plain_base64(&packed).iter().rev().copied().collect();
        let content = [turned.as_slice(), b" words"].concat();
        let outcome = send(&strict, None, &content, &[16_384]);
        let is_told = |stop: &Stop| matches!(stop, Stop::Unscannable(missed) if missed.reason == UnscannedReason::Unopened);
        assert!(
            outcome.stop.as_ref().is_some_and(is_told),
            "{:?}",
            outcome.stop
        );
        assert_eq!(send(&default, None, &content, &[16_384]).stop, None);
    }
    // Chance makes no such end.
    for seed in 0..20 {
        let text = plain_base64(&Dice(seed).bytes(200_000));
        assert_eq!(send(&strict, None, &text, &[16_384]).stop, None, "{seed}");
    }
}
