//! What nobody here opens, as its own programs write it: told wherever the scan looks, never
//! taken for something else, and only counted where rules do not ask for more.

use std::fmt::Write as _;

use outgate_dlp::{Policy, Stop, Unscannable, UnscannedReason};

use crate::archives::zip_stored;
use crate::encode::{gzip, plain_base64};
use crate::stage::{Dice, Outcome, rules, send};

use UnscannedReason::{Encrypted, Unopened};

const LINE: &[u8] = b"words and more words, as many as make a line of it, and then some\n";

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16);
    pairs.map(|pair| byte(pair).expect("hex")).collect()
}

/// A beginning as a program wrote it, and more that looks like chance.
fn file(begin: &str, seed: u64) -> Vec<u8> {
    [unhex(begin), Dice(seed).bytes(900)].concat()
}

/// The key of a session for an RSA key of 3072 bits, and encrypted data (GnuPG 2.2).
fn pgp(begin: &str, key_bytes: usize) -> Vec<u8> {
    let key = Dice(5).bytes(key_bytes);
    [
        unhex(begin),
        key,
        unhex("d2bd01a3d5ee10"),
        Dice(6).bytes(400),
    ]
    .concat()
}

fn files() -> Vec<(&'static str, UnscannedReason, Vec<u8>)> {
    vec![
        (
            "bzip2",
            Unopened,
            file("425a6839314159265359af47451400001bd9", 1),
        ),
        (
            "bzip2 of nothing",
            Unopened,
            unhex("425a683917724538509000000000"),
        ),
        (
            "xz",
            Unopened,
            file("fd377a585a000004e6d6b4460200210116000000", 2),
        ),
        (
            "7z",
            Unopened,
            file(
                "377abcaf271c00040108b73b2300000000000000140000000000000078563412",
                3,
            ),
        ),
        ("lz4", Unopened, file("04224d186440a738000000f207", 4)),
        ("lz4 -l", Unopened, file("02214c1838000000f207", 5)),
        (
            "lzma",
            Unopened,
            file("5d00008000ffffffffffffffff003a1bc9a93f24", 6),
        ),
        (
            "lzma -9",
            Unopened,
            file("5d00000004003000000000000000003a1bc9", 7),
        ),
        ("lzip", Unopened, file("4c5a495001170032", 8)),
        ("rar 4", Unopened, file("526172211a0700cf9073", 9)),
        ("rar 5", Unopened, file("526172211a070100", 10)),
        (
            "gpg -c",
            Encrypted,
            file("8c0d040903021b5c4cb47d7efce0ffd2680111a3f1d347", 11),
        ),
        (
            "gpg -e",
            Encrypted,
            pgp("85018c0303a631272e134fdc010bff", 384),
        ),
        (
            "gpg -e, new format",
            Encrypted,
            pgp("c1c0cc0303a631272e134fdc010bff", 384),
        ),
        (
            "age",
            Encrypted,
            [
                b"age-encryption.org/v1\n-> X25519 ".as_slice(),
                &Dice(12).bytes(300),
            ]
            .concat(),
        ),
        ("gpg -ac", Encrypted, armoured()),
    ]
}

fn armoured() -> Vec<u8> {
    let data = file("8c0d040903021b5c4cb47d7efce0ffd2680111a3f1d347", 13);
    let lines: Vec<String> = plain_base64(&data)
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN PGP MESSAGE-----\n\n{lines}\n=jxox\n-----END PGP MESSAGE-----\n")
        .into_bytes()
}

fn strict(content: &[u8]) -> Outcome {
    send(
        &rules(Policy::Strict, Unscannable::Refuse),
        None,
        content,
        &[700],
    )
}

fn assert_told(name: &str, reason: UnscannedReason, content: &[u8]) {
    match strict(content).stop {
        Some(Stop::Unscannable(unscanned)) => assert_eq!(unscanned.reason, reason, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
    for policy in [Policy::Tiered, Policy::Monitor] {
        let counting = rules(policy, Unscannable::Record);
        let outcome = send(&counting, None, content, &[700]);
        assert_eq!(outcome.stop, None, "{name}");
        let unscanned = outcome.unscanned.expect(name);
        assert_eq!(unscanned.reason, reason, "{name}");
    }
}

fn multipart(file: &[u8]) -> Vec<u8> {
    let head = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\nContent-Type: application/octet-stream\r\n\r\n";
    [head.as_slice(), file, b"\r\n--b--\r\n"].concat()
}

#[test]
fn what_nobody_opens_is_told_wherever_it_stands() {
    for (name, reason, file) in files() {
        assert_told(name, reason, &file);
        assert_told(&format!("{name} in a part"), reason, &multipart(&file));
        assert_told(&format!("{name} compressed"), reason, &gzip(&file));
        assert_told(&format!("{name} in an archive"), reason, &zip_stored(&file));
        // Of what holds nothing the scan undoes no coding.
        if file.len() < 100 {
            continue;
        }
        let coded = [b"{\"file\":\"", plain_base64(&file).as_slice(), b"\"}"].concat();
        assert_told(&format!("{name} in base 64"), reason, &coded);
        let mut hex = String::new();
        for byte in &file {
            write!(hex, "{byte:02x}").expect("a text");
        }
        assert_told(
            &format!("{name} in hexadecimal"),
            reason,
            format!("f={hex}").as_bytes(),
        );
        let coded = plain_base64(&gzip(&file));
        assert_told(&format!("{name} compressed in base 64"), reason, &coded);
        // What has no mark is looked for where something begins.
        let has_mark = !name.starts_with("lzma") && !name.starts_with("gpg -e") && name != "gpg -c";
        if has_mark {
            let behind = [LINE, &file].concat();
            assert_told(&format!("{name} behind a line"), reason, &behind);
        }
    }
}

#[test]
fn what_only_looks_like_it_is_not_told() {
    let mut all = vec![
        b"BZh9 is how it begins, BZh1AY&SY not".to_vec(),
        b"7z\xbc\xaf\x27\x1c and forty bytes that are no header at all, or are they".to_vec(),
        b"-----BEGIN PGP MESSAGE-----\n\nis what stands there, and no data\n".to_vec(),
        b"the line is `-----BEGIN PGP MESSAGE-----`, and it ends with another".to_vec(),
        b"age-encryption.org/v1 is a format\n".to_vec(),
        b"LZIP\x01\x00 of no size, Rar! of none".to_vec(),
        [b"]\0\0\x01\0".as_slice(), &[1; 400]].concat(),
        [b"\x04\x22\x4d\x18\x64\x40\xa8".as_slice(), &[7; 400]].concat(),
        [b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x47".as_slice(), &[7; 400]].concat(),
    ];
    // A key that is public is no message.
    all.push([unhex("99018d0463"), Dice(3).bytes(600)].concat());
    for content in &all {
        let outcome = strict(content);
        assert_eq!(outcome.stop, None, "{:?}", String::from_utf8_lossy(content));
        assert!(outcome.unscanned.is_none(), "{:?}", outcome.unscanned);
    }
    for seed in 0..400 {
        let chance = Dice(seed).bytes(3000);
        for content in [chance.clone(), plain_base64(&chance), multipart(&chance)] {
            let outcome = strict(&content);
            assert!(
                outcome.unscanned.is_none(),
                "{seed}: {:?}",
                outcome.unscanned
            );
        }
    }
}
