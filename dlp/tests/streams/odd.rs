//! Formats with a header that few programs write and others read: opened all the same, or told.

use std::sync::Arc;

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
use outgate_dlp::{Ruleset, ScanPolicy, Stop, UnscannableAction, UnscannedReason};

use crate::archives::{zip, zip_stored};
use crate::encode::{gzip, plain_base64};
use crate::stage::{Dice, rules, sample_of, send};

const CUTS: [&[usize]; 3] = [&[5000], &[1], &[700]];

fn strict() -> Arc<Ruleset> {
    rules(ScanPolicy::Strict, UnscannableAction::Refuse)
}

/// A text with a token in it.
fn text(seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let length = 40 + dice.roll(300);
    [
        dice.words(length).as_slice(),
        b"token: ",
        &sample_of("github-token", seed),
        b"\nend\n",
    ]
    .concat()
}

fn assert_found(name: &str, content: &[u8]) {
    for lengths in CUTS {
        let outcome = send(
            &rules(ScanPolicy::Tiered, UnscannableAction::Record),
            None,
            content,
            lengths,
        );
        assert!(
            outcome.found().is_some(),
            "{name} by {lengths:?}: {:?}",
            outcome.stop
        );
    }
}

fn assert_told(name: &str, reason: UnscannedReason, content: &[u8]) {
    match send(&strict(), None, content, &[700]).stop {
        Some(Stop::Unscannable(unscanned)) => assert_eq!(unscanned.reason, reason, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
}

fn with(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes.splice(at..at + new.len(), new.iter().copied());
    bytes
}

#[test]
fn gzip_is_opened_whatever_its_header_says_of_its_maker() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let (flags, extra, system) = (dice.byte(256) & 0xe1, dice.byte(256), dice.byte(256));
        let plain = gzip(&text(seed));
        let odd = with(with(plain, 3, &[flags]), 8, &[extra, system]);
        assert_found(&format!("gzip {flags} {extra} {system}"), &odd);
    }
}

#[test]
fn zip_is_opened_whatever_version_it_needs_and_however_long_its_names_are() {
    for version in [64_u16, 100, 255, 0x0a40, 0xffff] {
        for pack in [zip, zip_stored] {
            let odd = pack(&text(u64::from(version)));
            let starts: Vec<usize> = (0..odd.len())
                .filter(|at| odd[*at..].starts_with(b"PK\x03\x04"))
                .collect();
            let odd = starts
                .iter()
                .fold(odd, |odd, at| with(odd, at + 4, &version.to_le_bytes()));
            assert_found(&format!("version {version}"), &odd);
        }
    }
    for length in [0_u16, 1025, 1500, 5000, 65_535] {
        let data = compress_to_vec(&text(9), 6);
        let mut odd = b"PK\x03\x04\x14\0\x08\0\x08\0".to_vec();
        odd.extend_from_slice(&[0; 16]);
        odd.extend_from_slice(&length.to_le_bytes());
        odd.extend_from_slice(&[0; 2]);
        odd.extend((0..length).map(|_| b'n'));
        odd.extend_from_slice(&data);
        assert_found(&format!("a name of {length} bytes"), &odd);
    }
    for method in [21_u16, 22, 50, 92, 100, 1000] {
        let odd = with(zip_stored(&Dice(3).bytes(400)), 8, &method.to_le_bytes());
        assert_told(
            &format!("method {method}"),
            UnscannedReason::UnknownCoding,
            &odd,
        );
    }
}

/// A packet with what compresses its content: the length in each of its forms.
fn packets(algorithm: u8, data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let length = data.len() + 1;
    let four = u32::try_from(length).expect("short").to_be_bytes();
    let [_, _, two @ ..] = four;
    let head = |head: &[u8]| [head, &[algorithm], data].concat();
    let mut all = vec![
        ("of no length", head(&[0xa3])),
        ("old, two bytes", head(&[&[0xa1][..], &two].concat())),
        ("old, four bytes", head(&[&[0xa2][..], &four].concat())),
        (
            "new, five bytes",
            head(&[&[0xc8, 0xff][..], &four].concat()),
        ),
    ];
    if let Ok(short @ 0..192) = u8::try_from(length) {
        all.push(("old, one byte", head(&[0xa0, short])));
        all.push(("new, one byte", head(&[0xc8, short])));
    }
    all
}

fn multipart(file: &[u8]) -> Vec<u8> {
    let head = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n";
    [head.as_slice(), file, b"\r\n--b--\r\n"].concat()
}

/// A file in a tar archive.
fn tar(file: &[u8], mark: [u8; 8]) -> Vec<u8> {
    let mut head = vec![0; 512];
    head.splice(0..5, *b"x.bin");
    head.splice(124..135, format!("{:011o}", file.len()).into_bytes());
    head.splice(257..265, mark);
    let rest = 512 - file.len() % 512;
    [head, file.to_vec(), vec![0; rest + 1024]].concat()
}

#[test]
fn compressed_packets_of_openpgp_are_opened() {
    type Pack = fn(&[u8]) -> Vec<u8>;
    let packs: [(u8, Pack); 2] = [
        (1, |bytes| compress_to_vec(bytes, 6)),
        (2, |bytes| compress_to_vec_zlib(bytes, 6)),
    ];
    for seed in 0..20 {
        for (algorithm, pack) in packs {
            for (name, packet) in packets(algorithm, &pack(&text(seed))) {
                let name = format!("{algorithm} {name}");
                assert_found(&name, &packet);
                assert_found(&format!("{name} in a part"), &multipart(&packet));
                assert_found(&format!("{name} in base64"), &plain_base64(&packet));
                assert_found(&format!("{name} in tar"), &tar(&packet, *b"ustar\x0000"));
            }
            let partial = [&[0xc8, 0xe9, algorithm][..], &pack(&text(seed))].concat();
            assert_told("in pieces", UnscannedReason::Unopened, &partial);
        }
    }
}

#[test]
fn what_has_no_mark_is_told_in_parts_and_in_tar() {
    for properties in [0x5d_u8, 0x00, 0x2c, 0x5e, 0xe0] {
        for dictionary in [0x1000_u32, 0x1_0000, 0x60_0000, 0x80_0000] {
            let head = [
                &[properties][..],
                &dictionary.to_le_bytes(),
                &[0xff; 8],
                &[0],
            ]
            .concat();
            let file = [head, vec![0x3a], Dice(7).bytes(900)].concat();
            let name = format!("{properties:x} {dictionary:x}");
            for file in [
                multipart(&file),
                tar(&file, *b"ustar\x0000"),
                tar(&file, *b"ustar  \0"),
            ] {
                assert_told(&name, UnscannedReason::Damaged, &file);
            }
        }
    }
}
