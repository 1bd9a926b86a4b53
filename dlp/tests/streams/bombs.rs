//! What wants to exhaust the scan: it ends with a refusal, soon and without
//! memory.

use std::time::{Duration, Instant};

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use outgate_dlp::{ScanPolicy, Stop, UnscannableAction, UnscannedReason};

use crate::archives::zip;
use crate::encode::{gzip, plain_base64, zstd};
use crate::packers::{bzip2, lz4_legacy, lzip, xz_of};
use crate::stage::{Dice, Outcome, rules, sample_of, send};

/// What one request may take, with room for builds without optimisation.
const TIME_MAX: Duration = Duration::from_secs(30);

fn attack(codings: Option<&str>, content: &[u8]) -> Outcome {
    let begin = Instant::now();
    let outcome = send(
        &rules(ScanPolicy::Tiered, UnscannableAction::Refuse),
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

/// Small to send, and far larger than what one may make.
fn bombs() -> [(&'static str, Vec<u8>); 8] {
    let zeros = vec![0; 40 << 20];
    [
        ("gzip", gzip(&zeros)),
        ("zlib", compress_to_vec_zlib(&zeros, 6)),
        ("zip", zip(&zeros)),
        ("zstd", zstd(&zeros)),
        ("bzip2", bzip2(&zeros, 9)),
        ("xz", xz_of(&zeros, 1)),
        ("lzip", lzip(&zeros)),
        ("lz4", lz4_legacy(&zeros)),
    ]
}

/// What makes other bytes of some.
type Pack = fn(&[u8]) -> Vec<u8>;

#[test]
fn a_secret_behind_bombs_is_found() {
    let token = sample_of("github-token", 41);
    let mut among_words = Dice(42).words(20_000);
    among_words.splice(15_000..15_000, token.iter().copied());
    let packs: [(&str, Pack); 6] = [
        ("as it is", <[u8]>::to_vec),
        ("gzip", gzip),
        ("zlib", |bytes| compress_to_vec_zlib(bytes, 6)),
        ("zip", zip),
        ("zstd", zstd),
        ("base64", plain_base64),
    ];
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    for (bomb_name, bomb) in bombs() {
        for times in [1, 12] {
            for (name, pack) in packs {
                let behind = [b"\n", pack(&among_words).as_slice()].concat();
                let content = [bomb.repeat(times), behind].concat();
                let outcome = send(&rules, None, &content, &[16384]);
                assert!(
                    outcome.found().is_some(),
                    "{name} behind {times} of {bomb_name}: {:?}, {:?}",
                    outcome.stop,
                    outcome.unscanned
                );
            }
        }
    }
}

#[test]
fn what_the_limits_end_is_refused_by_default() {
    let token = sample_of("github-token", 43);
    let rounds = (0..20).fold(token.clone(), |all, _| plain_base64(&all));
    let layers = (0..40).fold(vec![b'.'; 40_000], |all, _| gzip(&all));
    // Blocks that are stored and go on: none of them ends.
    let open = [b"\x78\x9c\0\xff\xff\0\0".as_slice(), &[b'.'; 57]].concat();
    let mut words = Dice(45).words(4000);
    words.splice(2000..2000, token.iter().copied());
    let crowd = [open.repeat(40), compress_to_vec_zlib(&words, 6)].concat();
    for (name, content, reason) in [
        ("base64", rounds, UnscannedReason::Depth),
        ("gzip", layers, UnscannedReason::Depth),
        ("zlib at once", crowd, UnscannedReason::Depth),
    ] {
        let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
        match send(&default, None, &content, &[997]).stop {
            Some(Stop::Unscannable(unscanned)) => assert_eq!(unscanned.reason, reason, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        let recording = rules(ScanPolicy::Tiered, UnscannableAction::Record);
        let outcome = send(&recording, None, &content, &[997]);
        // What goes on is looked at as far as it goes.
        let told = outcome.unscanned.as_ref().map(|unscanned| unscanned.reason);
        assert!(
            outcome.found().is_some() || outcome.stop.is_none(),
            "{name}"
        );
        assert!(
            told.is_some_and(UnscannedReason::is_limit),
            "{name}: {told:?}"
        );
    }
}

#[test]
fn what_only_expands_leaves_by_default_and_is_counted() {
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    // A sparse image of a disk, some of them in an archive, and one in a coding.
    for (name, bomb) in bombs() {
        for content in [bomb.clone(), bomb.repeat(40)] {
            let outcome = send(&rules, None, &content, &[16384]);
            assert_eq!(outcome.stop, None, "{name}");
            let reason = outcome.unscanned.map(|unscanned| unscanned.reason);
            assert_eq!(reason, Some(UnscannedReason::Expansion), "{name}");
        }
    }
    let xz = [
        b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01\x16\0\0\0".as_slice(),
        &Dice(44).bytes(9000),
    ]
    .concat();
    let outcome = send(&rules, None, &xz, &[16384]);
    assert_eq!(outcome.stop, None);
    assert!(outcome.unscanned.is_some(), "it is counted");
}
