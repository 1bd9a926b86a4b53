//! What wants to exhaust the scan, and what it takes to say no: memory and time,
//! alone in its process so that both can be measured.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::fs;
use std::sync::Arc;

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use outgate_dlp::{Description, Destination, Detectors, Place, Ruleset, Settings, Unscannable};

/// Memory beyond what was there before, in KiB.
const MEMORY_KIB_MAX: u64 = 64 << 10;

/// Processor time of one attack with optimisation, in milliseconds.
const TIME_MAX: u128 = 1000;

/// How much slower a build without it may be, on a machine that others use.
const SLOWER: u128 = if cfg!(debug_assertions) { 30 } else { 4 };

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    made.extend(compress_to_vec(bytes, 6));
    made.extend_from_slice(&[0; 8]);
    made
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Names, content codings and contents.
fn attacks() -> Vec<(&'static str, Option<&'static str>, Vec<u8>)> {
    let zeros = vec![0; 100 << 20];
    let bomb = gzip(&zeros);
    let mut gzips = b"nothing".to_vec();
    for _ in 0..40 {
        gzips = gzip(&gzips);
    }
    let full = |piece: &str| piece.repeat((1 << 20) / piece.len()).into_bytes();
    vec![
        ("gzip", Some("gzip"), bomb.clone()),
        ("gzip, not declared", None, bomb.clone()),
        ("gzip twice", Some("gzip, gzip"), gzip(&bomb)),
        ("gzip forty times", None, gzips),
        ("zlib", None, compress_to_vec_zlib(&zeros, 6)),
        ("deflate", Some("deflate"), compress_to_vec(&zeros, 6)),
        ("zstd", Some("zstd"), zstd(&zeros)),
        ("beginnings of a web token", None, full("eyJ")),
        ("beginnings of a token", None, full("glpat-")),
        ("an end without a beginning", None, full("AZDO")),
        ("addresses without an end", None, full("postgres://a")),
        (
            "percent of percent",
            None,
            [b"%".as_slice(), &full("25")].concat(),
        ),
        ("backslashes", None, full("\\")),
        ("references of references", None, full("&#38;")),
        ("escapes of all kinds", None, full("%41\\u0041&#65;=41")),
        (
            "base64 of base64",
            None,
            full("Vm0wd2QyUXlVWGxWV0d4V1YwZDRWMVl3WkRSV01WbDNX"),
        ),
        ("short runs", None, full("QUJDREVGR0hJSktMTU5PUFFS ")),
        ("hexadecimal", None, full("67687067 ")),
    ]
}

#[test]
fn what_wants_to_exhaust_the_scan_ends_soon_and_small() {
    let settings = Settings {
        unscannable: Unscannable::Refuse,
        ..Settings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings);
    let rules = Arc::new(rules.expect("the shipped detectors"));
    let attacks = attacks();
    for (name, codings, content) in attacks {
        let before = resident();
        let begin = processor_milliseconds();
        let mut stream = rules.stream(
            &Destination {
                host: "elsewhere.test",
                port: 443,
            },
            &Description {
                place: Place::Content,
                media_type: None,
                content_codings: codings.map(str::as_bytes),
                length: None,
            },
        );
        let sent = content
            .chunks(16 << 10)
            .try_for_each(|piece| stream.push(piece).map(drop));
        let end = sent.and_then(|()| stream.finish().map(drop));
        let took = processor_milliseconds() - begin;
        let more = resident().saturating_sub(before);
        eprintln!(
            "{name}: {} bytes, {took} ms, {more} KiB, {end:?}",
            content.len()
        );
        assert!(took < TIME_MAX * SLOWER, "{name}: {took} ms");
        assert!(more < MEMORY_KIB_MAX, "{name}: {more} KiB");
    }
}

/// Processor time of this thread.
fn processor_milliseconds() -> u128 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("times");
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|text| text.parse::<u128>().ok());
    nanoseconds.expect("a number") / 1_000_000
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).expect("a number")
}
