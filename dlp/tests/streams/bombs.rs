//! What wants to exhaust the scan: it ends with a refusal, soon and without
//! memory.

use std::time::{Duration, Instant};

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use outgate_dlp::{Policy, Stop, Unscannable, UnscannedReason};

use crate::encode::{gzip, plain_base64, zip, zstd};
use crate::stage::{Outcome, rules, send};

/// What one request may take, with room for builds without optimisation.
const TIME_MAX: Duration = Duration::from_secs(30);

fn attack(codings: Option<&str>, content: &[u8]) -> Outcome {
    let begin = Instant::now();
    let outcome = send(
        &rules(Policy::Tiered, Unscannable::Refuse),
        codings,
        content,
        &[16384],
    );
    assert!(begin.elapsed() < TIME_MAX, "{:?}", begin.elapsed());
    outcome
}

fn assert_refused(codings: Option<&str>, content: &[u8], reason: UnscannedReason) {
    match attack(codings, content).stop {
        Some(Stop::Unscannable(unscanned)) => assert_eq!(
            unscanned.reason,
            reason,
            "{codings:?} {} bytes",
            content.len()
        ),
        other => panic!("{codings:?} {} bytes: {other:?}", content.len()),
    }
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 100 << 20];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 1 << 20);
    assert_refused(Some("gzip"), &bomb, UnscannedReason::Expansion);
    assert_refused(None, &bomb, UnscannedReason::Expansion);
    assert_refused(Some("gzip, gzip"), &gzip(&bomb), UnscannedReason::Expansion);
    assert_refused(
        None,
        &plain_base64(&gzip(&bomb)),
        UnscannedReason::Expansion,
    );
    assert_refused(
        None,
        &compress_to_vec_zlib(&zeros, 6),
        UnscannedReason::Expansion,
    );
    assert_refused(
        Some("deflate"),
        &compress_to_vec(&zeros, 6),
        UnscannedReason::Expansion,
    );
    assert_refused(None, &zip(&zeros), UnscannedReason::Expansion);
    assert_refused(Some("zstd"), &zstd(&zeros), UnscannedReason::Expansion);
}

#[test]
fn a_frame_that_wants_a_large_window_is_refused() {
    // A window of 2 GiB, in five bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 1, 0, 0];
    assert_refused(Some("zstd"), &frame, UnscannedReason::Memory);
    // One larger than browsers read.
    assert_refused(Some("br"), &[0x11, 0, 0, 0], UnscannedReason::Memory);
}

#[test]
fn layers_without_end_are_refused() {
    let mut content = b"nothing".to_vec();
    for _ in 0..40 {
        content = gzip(&content);
    }
    assert_refused(None, &content, UnscannedReason::Depth);
}

#[test]
fn beginnings_without_end_are_bounded() {
    for piece in [
        "eyJ",
        "glpat-",
        "sk-aaaaaaaaaaaaaaaaT3BlbkFJ",
        "xoxb-1-",
        "postgres://a",
        "eyJghp_",
        "AZDO",
    ] {
        let content = piece.repeat((1 << 17) / piece.len());
        let outcome = attack(None, content.as_bytes());
        // Refused or passed: the time was looked at.
        assert!(outcome.found().is_none(), "{piece}: {:?}", outcome.stop);
    }
}

#[test]
fn escapes_of_escapes_are_bounded() {
    let mut content = "%".to_owned();
    content.push_str(&"25".repeat(200_000));
    attack(None, content.as_bytes());
    attack(None, "\\".repeat(400_000).as_bytes());
    attack(None, "&#38;".repeat(80_000).as_bytes());
    attack(None, "%41\\u0041&#65;=41".repeat(20_000).as_bytes());
}

#[test]
fn archives_beside_archives_are_bounded() {
    let mut content = Vec::new();
    for _ in 0..64 {
        content.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        // A stored block that is long enough for all others.
        content.extend_from_slice(&[0, 0xff, 0xff, 0, 0]);
    }
    content.resize(8000, b'x');
    let outcome = attack(None, &content);
    assert!(
        matches!(outcome.stop, Some(Stop::Unscannable(_))),
        "{:?}",
        outcome.stop
    );
}
