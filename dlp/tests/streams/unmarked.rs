//! Compressed data that nothing says anything of, and that has no mark: bare deflate and
//! Brotli, at the beginning of content.

use std::sync::Arc;

use miniz_oxide::deflate::compress_to_vec_zlib;
use outgate_dlp::{Anchor, Detectors, Ruleset, ScanPolicy, Stop, UnscannableAction, sample};

use crate::encode::{
    Coding, STANDARD, base64, brotli, brotli_of_64_kib, brotli_stored, deflate, flushed, gzip,
};
use crate::stage::{Dice, rules, sample_of, send, stream, strict};

/// All of a run goes through layers with the first, only what begins with the second.
fn both() -> [Arc<Ruleset>; 2] {
    [
        strict(),
        rules(ScanPolicy::Tiered, UnscannableAction::Refuse),
    ]
}

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
    for rules in both() {
        let secret = sample_of("github-token", 5);
        for (name, compress) in UNMARKED {
            let content = compress(&secret);
            for cut in 1..content.len() {
                assert_found_with_pause(&rules, &content, cut, name);
            }
        }
    }
}

#[test]
fn what_has_no_mark_is_undone_layer_by_layer() {
    for rules in both() {
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
}

/// How many bytes of a secret left that came in pieces of so many, each followed by a
/// pause, `pieces` as they stand in the content.
fn left(rules: &Arc<Ruleset>, codings: Option<&str>, pieces: &[Vec<u8>], each: usize) -> usize {
    let mut stream = stream(rules, codings);
    let mut ends = Vec::new();
    let mut released = 0;
    for piece in pieces {
        let before = ends.last().copied().unwrap_or(0);
        ends.push(before + piece.len() as u64);
        let upto = stream.push(piece).and_then(|_| stream.end_of_message());
        match upto {
            Ok(upto) => released = upto,
            Err(_) => break,
        }
    }
    ends.iter().filter(|end| **end <= released).count() * each
}

#[test]
fn what_is_sent_piece_by_piece_leaves_no_more_for_being_compressed() {
    let rules = strict();
    for detector in Detectors::shipped().iter() {
        if detector.anchor == Anchor::Scan || detector.id == "nested-percent" {
            continue;
        }
        let secret = sample(&detector.samples[0], 9);
        for each in [1, 3, 7] {
            let pieces: Vec<Vec<u8>> = secret.chunks(each).map(<[u8]>::to_vec).collect();
            let plain = left(&rules, None, &pieces, each);
            let mut coded = flushed(secret.chunks(each));
            let bare = left(&rules, None, &coded, each);
            let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
            coded[0].splice(0..0, head);
            for (name, out) in [
                ("deflate", bare),
                ("gzip", left(&rules, None, &coded, each)),
                ("gzip as it says", left(&rules, Some("gzip"), &coded, each)),
            ] {
                // Behind the first bytes it cannot be told what they are.
                assert!(
                    out <= plain.max(16),
                    "{} in {name} by {each}: {out} bytes, {plain} plain",
                    detector.id
                );
            }
        }
    }
}

#[test]
fn a_first_block_of_any_kind_hides_nothing() {
    for rules in both() {
        let secret = sample_of("github-token", 8);
        let (small, long) = (&b"a"[..], &[b'\0'; 300][..]);
        let mut among_words = Dice(16).bytes(3000);
        among_words.splice(2000..2000, [b" ", secret.as_slice(), b" "].concat());
        for first in [small, long, b"\x01\x02\xff\xfe"] {
            let pieces = flushed([first, &secret, b" and more"].into_iter());
            let content = pieces.concat();
            assert_found(&rules, &content);
        }
        for content in [
            deflate(&deflate(&secret)),
            deflate(&gzip(&secret)),
            brotli_stored(&deflate(&secret)),
            brotli_stored(&deflate(&among_words)),
            // Something to be skipped, text in it.
            [&[0x2c, 0x20], &[b'x'; 65][..], &brotli_of_64_kib(&secret)].concat(),
        ] {
            assert_found(&rules, &content);
        }
    }
}

#[test]
fn a_long_first_block_that_stands_as_it_is_hides_nothing_behind_it() {
    for rules in both() {
        let mut dice = Dice(15);
        let secret = sample_of("github-token", 11);
        let mut noise = dice.bytes(40_000);
        noise.splice(0..1, *b"\xff");
        let mut text = dice.words(250_000);
        text.splice(200_000..200_000, secret.iter().copied());
        let behind_others = [&noise[..100], &gzip(&text)].concat();
        let compressed = [
            gzip(&text),
            behind_others,
            deflate(&text),
            brotli(&text[190_000..250_000]),
        ];
        let [gzip, behind_others, deflate, brotli] =
            compressed.each_ref().map(|all| all.split_at(20_000));
        let (begun, rest) = secret.split_at(3);
        let spread = [&noise, begun].concat();
        for (first, second) in [
            (noise.as_slice(), secret.as_slice()),
            (&spread, rest),
            gzip,
            behind_others,
            deflate,
            brotli,
        ] {
            let content = [brotli_stored(first), brotli_of_64_kib(second)].concat();
            assert_found(&rules, &content);
        }
    }
}

/// Found where the bytes before `cut` come before a pause.
fn assert_found_with_pause(rules: &Arc<Ruleset>, content: &[u8], cut: usize, name: &str) {
    let mut stream = stream(rules, None);
    let (before, after) = content.split_at(cut);
    let end = stream
        .push(before)
        .and_then(|_| stream.end_of_message())
        .and_then(|_| stream.push(after))
        .and_then(|_| stream.finish());
    let is_found = matches!(end, Err(Stop::Found(_)));
    assert!(is_found, "{name} at {cut}: {end:?}");
}

fn assert_found(rules: &Arc<Ruleset>, content: &[u8]) {
    for content in [
        content.to_vec(),
        base64(content, STANDARD, "="),
        [&b"data\n"[..], &base64(content, STANDARD, "=")].concat(),
    ] {
        for pieces in [13, 1460] {
            let outcome = send(rules, None, &content, &[pieces]);
            let head = &content[..content.len().min(16)];
            assert!(outcome.found().is_some(), "{head:02x?}: {:?}", outcome.stop);
        }
    }
}

#[test]
fn names_and_blanks_around_it_hide_nothing() {
    for rules in both() {
        let secret = sample_of("github-token", 12);
        let long = "letters".repeat(12);
        for (_, compress) in UNMARKED {
            let run = base64(&compress(&secret), STANDARD, "");
            let mut around = vec![
                (String::new(), long.clone()),
                (String::new(), format!("\n{long}")),
                ("\n".repeat(70), String::new()),
                ("\\n".repeat(70), String::new()),
            ];
            for lines in [
                format!("Hello\r\n\r\n{}\r\n", "letters".repeat(9)),
                format!("a\r\nb\r\n{}\r\n", "-".repeat(64)),
                format!("a\nb\n\nc\n{}\n", "-".repeat(64)),
                format!("name{}", "\n".repeat(60)),
            ] {
                around.push((lines, String::new()));
            }
            for name in ["name", "aNameOfSomeLength", &long] {
                for between in ["\n", "\r\n", "\\n", "\n\n", "\nshort\n", "\\nshort\\n"] {
                    around.push((format!("{name}{between}"), String::new()));
                }
            }
            for (before, behind) in around {
                let content = [before.as_bytes(), &run, behind.as_bytes()].concat();
                let outcome = send(&rules, None, &content, &[1460]);
                let text = content.escape_ascii();
                assert!(outcome.found().is_some(), "{text}: {:?}", outcome.stop);
            }
        }
    }
}

#[test]
fn a_run_that_is_cut_anywhere_hides_nothing() {
    for rules in both() {
        let secret = sample_of("github-token", 13);
        for (name, compress) in UNMARKED {
            let run = base64(&compress(&secret), STANDARD, "");
            for cut in 1..run.len() {
                assert_found_with_pause(&rules, &run, cut, name);
            }
            // Some of it before content is looked at for the first time.
            for ahead in 0..64 {
                let content = [vec![b' '; 16 * 1024 - ahead], run.clone()].concat();
                let outcome = send(&rules, None, &content, &[1 << 20]);
                assert!(outcome.found().is_some(), "{name} {ahead} ahead");
            }
        }
    }
}

#[test]
fn a_run_that_was_too_deep_is_looked_at_where_it_is_not() {
    let run = base64(&deflate(&sample_of("aws-access-key-id", 3)), STANDARD, "");
    assert!(run.len() < 32, "one that is remembered: {}", run.len());
    let piece = [b"{ ", run.as_slice(), b" } "].concat();
    let deep = (0..4).fold(piece.clone(), |all, _| deflate(&all));
    for rules in both() {
        let content = [&deep, b" ; ".as_slice(), &piece].concat();
        let outcome = send(&rules, None, &content, &[1460]);
        assert!(outcome.found().is_some(), "{:?}", outcome.stop);
    }
}

#[test]
fn zeros_at_the_beginning_hide_nothing() {
    let secret = sample_of("github-token", 8);
    let mut long = Dice(4).words(3000);
    long.splice(1500..1500, secret.iter().copied());
    for rules in both() {
        for content in [
            [&[0x2c, 0x20][..], &[0; 65], &brotli_of_64_kib(&secret)].concat(),
            [&[0, 90, 0, !90_u8, 255][..], &[0; 90], &deflate(&long)].concat(),
        ] {
            assert_found(&rules, &content);
        }
    }
}

#[test]
fn a_stored_block_without_an_end_hides_nothing() {
    let mut long = Dice(5).words(20_000);
    long.splice(15_000..15_000, sample_of("github-token", 8));
    for rules in both() {
        for inner in [
            deflate(&long),
            brotli(&long),
            compress_to_vec_zlib(&long, 6),
        ] {
            let run = base64(&brotli_stored(&inner), STANDARD, "=");
            let content = [b"{ ", run.as_slice(), b" } "].concat();
            let outcome = send(&rules, None, &content, &[1460]);
            assert!(outcome.found().is_some(), "{:?}", outcome.stop);
        }
    }
}

#[test]
fn what_goes_on_across_blocks_hides_nothing() {
    let mut dice = Dice(77);
    let mut long = dice.words(250_000);
    long.splice(200_000..200_000, sample_of("github-token", 8));
    let run = base64(&deflate(&long), STANDARD, "");
    let percents: Vec<u8> = gzip(&long)
        .iter()
        .flat_map(|byte| format!("%{byte:02x}").into_bytes())
        .collect();
    let (begun, rest) = run.split_at(20_000);
    let begun = [b"\xff", dice.bytes(10_000).as_slice(), b" \n", begun].concat();
    let (text, behind) = percents.split_at(60_000);
    let text = [b"\xff\xff\xff", text].concat();
    for rules in both() {
        for (first, second) in [(&begun, rest), (&text, behind)] {
            let content = [brotli_stored(first), brotli_of_64_kib(second)].concat();
            let outcome = send(&rules, None, &content, &[1460]);
            assert!(outcome.found().is_some(), "{:?}", outcome.stop);
        }
    }
}

#[test]
fn zlib_is_undone_however_often_it_was_made() {
    for rules in both() {
        let mut text = Dice(14).words(2000);
        text.extend(sample_of("github-token", 10));
        let content = (0..7).fold(text, |all, _| compress_to_vec_zlib(&all, 6));
        let outcome = send(&rules, None, &content, &[13]);
        let chain = outcome.found().map(ToString::to_string);
        let expected = format!("{}github-token", "zlib>".repeat(7));
        assert_eq!(chain.as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn content_that_only_looks_compressed_leaves() {
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Refuse);
    let mut dice = Dice(13);
    for turn in 0..3000 {
        let length = 1 + dice.roll(2000);
        let bytes = dice.bytes(length);
        let content = match turn % 4 {
            0 => bytes,
            1 => base64(&bytes, STANDARD, "="),
            2 => bytes
                .iter()
                .flat_map(|byte| format!("{byte:02x}").into_bytes())
                .collect(),
            _ => [
                &b"\"integrity\": \"sha512-"[..],
                &base64(&bytes, STANDARD, "="),
                b"\",\n",
            ]
            .concat(),
        };
        let outcome = send(&rules, None, &content, &dice.lengths(1460));
        assert_eq!(
            outcome.stop,
            None,
            "{turn}: {:02x?}",
            &content[..content.len().min(16)]
        );
        assert_eq!(outcome.unscanned, None, "{turn}");
        let mut stream = stream(&rules, None);
        let pause = 1 + dice.roll(50);
        for piece in content.chunks(pause) {
            let end = stream.push(piece).and_then(|_| stream.end_of_message());
            assert!(end.is_ok(), "{turn} by {pause}: {end:?}");
        }
        assert!(stream.finish().is_ok(), "{turn} by {pause}");
    }
}
