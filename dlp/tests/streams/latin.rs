//! Bytes of which each became the character of its number (ISO 8859-1), as text of JSON with
//! its escapes: what begins there may have a long head before its data.

use std::fmt::Write as _;

use outgate_dlp::{ScanPolicy, Stop, UnscannableAction, UnscannedReason};

use crate::archives::zip_stored;
use crate::encode::gzip;
use crate::stage::{Dice, rules, sample_of, send, strict};

/// A text of JSON with only ASCII, as most programs write it, or with letters as they are.
fn latin(bytes: &[u8], is_plain: fn(u8) -> bool) -> Vec<u8> {
    let mut text = "{\"name\": \"f\", \"d\": \"".to_owned();
    for byte in bytes {
        match byte {
            b'"' | b'\\' => write!(text, "\\{}", char::from(*byte)),
            b'\n' => write!(text, "\\n"),
            8 => write!(text, "\\b"),
            byte if is_plain(*byte) => write!(text, "{}", char::from(*byte)),
            byte => write!(text, "\\u{byte:04x}"),
        }
        .expect("a text");
    }
    text.push_str("\"}");
    text.into_bytes()
}

const WRITERS: [fn(u8) -> bool; 2] = [
    |byte| (0x20..0x7f).contains(&byte),
    |byte| byte >= 0x20 && byte != 0x7f,
];

const LENGTHS: [usize; 9] = [0, 50, 120, 200, 240, 300, 700, 1500, 5000];

/// gzip with a name, a comment or a field of so many bytes in its head (RFC 1952 2.3.1).
fn heads(content: &[u8], length: usize) -> [Vec<u8>; 4] {
    let plain = gzip(content);
    let (head, data) = plain.split_at(10);
    let with = |flag: u8, more: &[u8]| {
        let mut head = head.to_vec();
        head[3] = flag;
        [head.as_slice(), more, data].concat()
    };
    let text = [vec![b'n'; length].as_slice(), b"\0"].concat();
    let field = |fill: u8| {
        let bytes = u16::try_from(length).expect("a short field").to_le_bytes();
        [bytes.as_slice(), &vec![fill; length]].concat()
    };
    [
        with(8, &text),
        with(16, &text),
        with(4, &field(b'x')),
        with(4, &field(0)),
    ]
}

#[test]
fn heads_of_any_length_end_no_search() {
    let rules = strict();
    let secret = [&Dice(3).words(300), sample_of("github-token", 3).as_slice()].concat();
    for length in LENGTHS {
        for (kind, file) in heads(&secret, length).iter().enumerate() {
            for (writer, is_plain) in WRITERS.iter().enumerate() {
                let content = latin(file, *is_plain);
                for lengths in [&[70_000][..], &[700], &[97]] {
                    let outcome = send(&rules, None, &content, lengths);
                    let name = format!("{kind} of {length} by {writer} in {lengths:?}");
                    assert!(outcome.found().is_some(), "{name}: {:?}", outcome.stop);
                }
            }
        }
    }
}

/// An entry that is encrypted or of an unknown method, with a name of so many bytes.
fn entry(flags: u8, method: u8, name_bytes: usize) -> Vec<u8> {
    let length = u16::try_from(name_bytes).expect("a short name");
    let [low, high] = length.to_le_bytes();
    let mut made = b"PK\x03\x04\x14\0".to_vec();
    made.extend_from_slice(&[flags, 0, method, 0]);
    made.extend_from_slice(&[
        0x11, 0x5b, 0x7a, 0x5b, 1, 2, 3, 4, 60, 1, 0, 0, 200, 2, 0, 0,
    ]);
    made.extend_from_slice(&[low, high, 0, 0]);
    made.extend(std::iter::repeat_n(b'n', name_bytes));
    made.extend(Dice(9).bytes(316));
    made
}

#[test]
fn entries_with_long_names_are_told() {
    let rules = rules(ScanPolicy::Strict, UnscannableAction::Refuse);
    for length in [1, 5, 50, 120, 200, 240, 300, 700, 1024] {
        for (flags, method, reason) in [
            (1, 8, UnscannedReason::Encrypted),
            (1, 0, UnscannedReason::Encrypted),
            (0, 14, UnscannedReason::UnknownCoding),
        ] {
            let file = entry(flags, method, length);
            for (writer, is_plain) in WRITERS.iter().enumerate() {
                let content = latin(&file, *is_plain);
                for lengths in [&[70_000][..], &[700], &[97]] {
                    let name = format!("{flags} {method}, {length} by {writer} in {lengths:?}");
                    match send(&rules, None, &content, lengths).stop {
                        Some(Stop::Unscannable(unscanned)) => {
                            assert_eq!(unscanned.reason, reason, "{name}");
                        }
                        other => panic!("{name}: {other:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn archives_within_are_looked_into() {
    let rules = strict();
    let secret = [&Dice(3).words(300), sample_of("github-token", 3).as_slice()].concat();
    for length in LENGTHS {
        for file in heads(&secret, length) {
            for is_plain in WRITERS {
                let content = latin(&zip_stored(&file), is_plain);
                // What says that there is a file may be seen before what is in it.
                let outcome = send(&rules, None, &content, &[700]);
                assert!(outcome.stop.is_some(), "{length}: {outcome:?}");
            }
        }
    }
}
