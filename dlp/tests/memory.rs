//! What a stream keeps, alone in its process so that it can be measured.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use outgate_dlp::{Description, Destination, Detectors, Place, Ruleset, Settings};

#[test]
fn a_long_stream_takes_no_more_memory_than_a_short_one() {
    let rules = Ruleset::new(&Detectors::shipped(), &Settings::default());
    let rules = Arc::new(rules.expect("the shipped detectors"));
    let mut stream = rules.stream(
        &Destination {
            host: "elsewhere.test",
            port: 443,
        },
        &Description {
            place: Place::Content,
            media_type: None,
            content_codings: None,
            length: None,
        },
    );
    let piece = b"words and words, base64 Zm9vYmFyYmF6cXV4Zm9vYmFy, %41 and \\u0041; ".repeat(200);
    let before = resident();
    let mut sent = 0;
    while sent < 8 << 20 {
        sent += u64::try_from(piece.len()).expect("a length");
        let released = stream.push(&piece).expect("nothing to find");
        assert!(sent - released < 64 * 1024, "{} held", sent - released);
    }
    let more = resident().saturating_sub(before);
    assert!(more < 16 << 10, "{more} KiB more than before");
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a number")
}
