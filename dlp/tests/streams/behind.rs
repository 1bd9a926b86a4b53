//! zlib and bare deflate that begin behind other bytes: in parts of a form, behind each
//! other, in documents and pictures, and anywhere else.

use std::sync::Arc;

use miniz_oxide::deflate::compress_to_vec_zlib;
use outgate_dlp::{
    KnownBuilder, KnownNature, KnownValue, Ruleset, ScanPolicy, SecretBytes, Tier,
    UnscannableAction, UnscannedReason,
};

use crate::archives::{zip, zip_stored};
use crate::encode::{deflate, gzip, zstd};
use crate::stage::{Dice, rules, sample_of, send, stream, strict};

/// What a place makes of compressed bytes.
type Place = fn(&[u8]) -> Vec<u8>;

fn both() -> [Arc<Ruleset>; 2] {
    [
        strict(),
        rules(ScanPolicy::Tiered, UnscannableAction::Record),
    ]
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec_zlib(bytes, 6)
}

/// A part of multipart content (RFC 2046 5.1).
fn part(bytes: &[u8]) -> Vec<u8> {
    let head = b"--boundary\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\
        Content-Type: application/octet-stream\r\n\r\n";
    [head.as_slice(), bytes, b"\r\n--boundary--\r\n"].concat()
}

/// A second part.
fn second_part(bytes: &[u8]) -> Vec<u8> {
    let first = part(b"words of a value");
    let first = first.strip_suffix(b"--boundary--\r\n").expect("an end");
    [first, &part(bytes)].concat()
}

/// A stream of a document (ISO 32000-1 7.3.8).
fn pdf(bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "%PDF-1.7\n4 0 obj\n<</Length {}/Filter/FlateDecode>>\nstream\r\n",
        bytes.len()
    );
    [head.as_bytes(), bytes, b"\r\nendstream\nendobj\n"].concat()
}

/// A chunk of a picture (PNG 5.3), whose text is compressed (11.3.4).
fn png(bytes: &[u8]) -> Vec<u8> {
    let content = [b"Comment\0\0", bytes].concat();
    let length = u32::try_from(content.len()).expect("a length");
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55",
        length.to_be_bytes().as_slice(),
        b"zTXt",
        &content,
        b"\x01\x02\x03\x04\0\0\0\0IEND\xae\x42\x60\x82",
    ]
    .concat()
}

fn blob(bytes: &[u8]) -> Vec<u8> {
    [b"BLOB:", bytes].concat()
}

fn behind_zlib(bytes: &[u8]) -> Vec<u8> {
    [&zlib(b"words that come first, some of them"), bytes].concat()
}

fn behind_gzip(bytes: &[u8]) -> Vec<u8> {
    [&gzip(b"words that come first, some of them"), bytes].concat()
}

fn behind_zstd(bytes: &[u8]) -> Vec<u8> {
    [&zstd(b"words that come first, some of them"), bytes].concat()
}

fn behind_zip(bytes: &[u8]) -> Vec<u8> {
    [&zip(b"words that come first, some of them"), bytes].concat()
}

fn behind_deflate(bytes: &[u8]) -> Vec<u8> {
    [&deflate(b"words that come first, some of them"), bytes].concat()
}

/// Where zlib may begin.
const PLACES: [(&str, Place); 9] = [
    ("a part", part),
    ("a second part", second_part),
    ("a document", pdf),
    ("a picture", png),
    ("a blob", blob),
    ("behind zlib", behind_zlib),
    ("behind gzip", behind_gzip),
    ("behind zstd", behind_zstd),
    ("behind zip", behind_zip),
];

/// Where bare deflate may.
const BARE_PLACES: [(&str, Place); 5] = [
    ("a part", part),
    ("a second part", second_part),
    ("behind zlib", behind_zlib),
    ("behind gzip", behind_gzip),
    ("behind deflate", behind_deflate),
];

/// What must not leave, and rules under which it does not: a token, a value of the user's
/// own and a canary.
fn secrets() -> [(Vec<u8>, Arc<Ruleset>); 3] {
    let own = b"correct-Horse7battery-Staple91".to_vec();
    let planted = b"pl4nted-Value82kQ-never-sent55".to_vec();
    let token = sample_of("github-token", 30);
    [
        (token, rules(ScanPolicy::Tiered, UnscannableAction::Record)),
        (own.clone(), knowing(&own, KnownNature::Sent)),
        (planted.clone(), knowing(&planted, KnownNature::Canary)),
    ]
}

/// Rules that know a value.
fn knowing(value: &[u8], nature: KnownNature) -> Arc<Ruleset> {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        others: Vec::new(),
        issuers: Vec::new(),
        tier: Tier::Strong,
        nature,
    };
    let added = builder.add(&SecretBytes::new(value.to_vec()), about);
    added.expect("a value");
    let rules = Arc::into_inner(rules(ScanPolicy::Tiered, UnscannableAction::Record));
    let rules = rules.expect("nobody else has them");
    Arc::new(rules.with_known(Arc::new(builder.build()), Vec::new()))
}

/// Found however it is cut, and never let out whole.
fn assert_found(rules: &Arc<Ruleset>, content: &[u8], about: &str) {
    let mut dice = Dice(21);
    for lengths in [
        vec![1],
        vec![7],
        vec![1460],
        vec![1 << 20],
        dice.lengths(90),
    ] {
        let outcome = send(rules, None, content, &lengths);
        assert!(
            outcome.found().is_some(),
            "{about} by {lengths:?}: {:?}, {:?}",
            outcome.stop,
            outcome.unscanned
        );
    }
}

/// A text with a token, short and long.
fn texts() -> [Vec<u8>; 3] {
    let token = sample_of("github-token", 31);
    let mut long = Dice(32).words(40_000);
    long.splice(30_000..30_000, token.iter().copied());
    [
        token.clone(),
        [b"token=", token.as_slice(), b"\n"].concat(),
        long,
    ]
}

#[test]
fn zlib_behind_other_bytes_is_undone() {
    for rules in both() {
        for text in texts() {
            for level in [0, 1, 6, 9] {
                let inner = compress_to_vec_zlib(&text, level);
                for (name, place) in PLACES {
                    assert_found(&rules, &place(&inner), name);
                }
            }
        }
    }
}

#[test]
fn bare_deflate_in_parts_and_behind_containers_is_undone() {
    for rules in both() {
        for text in texts() {
            for (name, place) in BARE_PLACES {
                assert_found(&rules, &place(&deflate(&text)), name);
            }
        }
    }
}

#[test]
fn no_kind_of_secret_leaves_behind_other_bytes() {
    for (secret, rules) in secrets() {
        let text = [b"words, and ", secret.as_slice(), b" among them\n"].concat();
        for (name, place) in PLACES {
            assert_found(&rules, &place(&zlib(&text)), name);
        }
        for (name, place) in BARE_PLACES {
            assert_found(&rules, &place(&deflate(&text)), name);
        }
    }
}

#[test]
fn zlib_at_every_offset_is_undone() {
    let token = sample_of("github-token", 33);
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let inner = zlib(&[b"a few words and ", token.as_slice()].concat());
    let mut dice = Dice(34);
    let mut offsets: Vec<usize> = (1..200).collect();
    // Around the ends of steps.
    offsets.extend((16_384 - 90)..(16_384 + 10));
    for offset in offsets {
        for before in [dice.bytes(offset), dice.words(offset)] {
            let content = [&before[..offset], &inner, dice.bytes(70).as_slice()].concat();
            for lengths in [vec![offset], vec![offset + 1], vec![997]] {
                let outcome = send(&rules, None, &content, &lengths);
                assert!(outcome.found().is_some(), "{offset} by {lengths:?}");
            }
        }
    }
}

#[test]
fn zlib_of_every_header_is_undone() {
    let token = sample_of("github-token", 35);
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let bare = deflate(&token);
    let mut tried = 0;
    for method in (0..8_u8).map(|window| window << 4 | 8) {
        for flags in 0..=255_u8 {
            let is_valid = u16::from_be_bytes([method, flags]) % 31 == 0 && flags & 0x20 == 0;
            if is_valid {
                let content = [b"BLOB:", [method, flags].as_slice(), &bare, b"\0\0\0\0"].concat();
                assert!(send(&rules, None, &content, &[11]).found().is_some());
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 32);
}

#[test]
fn many_streams_behind_each_other_hide_nothing() {
    let token = sample_of("github-token", 36);
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let mut dice = Dice(37);
    for count in [2, 20, 300] {
        for compress in [zlib as Place, deflate] {
            let mut content = Vec::new();
            for _ in 0..count {
                content.extend(compress(&dice.words(2000)));
            }
            content.extend(compress(&token));
            assert_found(&rules, &content, "behind many");
        }
    }
}

#[test]
fn zlib_in_what_was_undone_is_undone() {
    let token = sample_of("github-token", 38);
    for rules in both() {
        for outer in [gzip as Place, zlib, zip, zip_stored, zstd] {
            for inner in [part as Place, pdf, png, blob, behind_zlib] {
                let content = blob(&outer(&inner(&zlib(&token))));
                // Brotli and bare deflate have no mark; these have.
                assert_found(&rules, &content, "in a container");
            }
        }
    }
}

#[test]
fn a_pause_behind_a_header_hides_nothing() {
    let token = sample_of("github-token", 39);
    for rules in both() {
        let content = blob(&zlib(&token));
        for cut in 1..content.len() {
            let mut stream = stream(&rules, None);
            let (before, after) = content.split_at(cut);
            let end = stream
                .push(before)
                .and_then(|_| stream.end_of_message())
                .and_then(|_| stream.push(after))
                .and_then(|_| stream.finish());
            assert!(end.is_err(), "{cut}: {end:?}");
        }
    }
}

#[test]
fn more_than_are_opened_are_counted() {
    // Blocks as they are that go on: none of them ends.
    let open = [b"\x78\x9c\0\xff\xff\0\0".as_slice(), &[b'.'; 57]].concat();
    let content = open.repeat(400);
    let outcome = send(
        &rules(ScanPolicy::Tiered, UnscannableAction::Record),
        None,
        &content,
        &[1460],
    );
    let reason = outcome.unscanned.map(|unscanned| unscanned.reason);
    assert!(reason.is_some_and(UnscannedReason::is_limit), "{reason:?}");
}
