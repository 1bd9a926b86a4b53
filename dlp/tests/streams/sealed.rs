//! What nobody here opens, as its own programs write it: told wherever the scan looks, never
//! taken for something else, and only counted where rules do not ask for more.

use std::fmt::Write as _;

use outgate_dlp::{ScanPolicy, Stop, UnscannableAction, UnscannedReason};

use crate::archives::zip_stored;
use crate::encode::{gzip, plain_base64};
use crate::stage::{Dice, Outcome, rules, send};

use UnscannedReason::{Damaged, Encrypted, Unopened};

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
            "7z",
            Unopened,
            file(
                "377abcaf271c00040108b73b2300000000000000140000000000000078563412",
                3,
            ),
        ),
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

/// A packet of OpenPGP in the new format (RFC 9580 4.2.1), its length in four bytes.
fn packet(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a short packet");
    [
        &[0xc0 | tag, 0xff],
        length.to_be_bytes().as_slice(),
        content,
    ]
    .concat()
}

/// Messages with what readers leave out before and between packets, and with keys of other
/// algorithms and versions.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let chance = |count: usize| Dice(21).bytes(count);
    let marker = packet(10, b"PGP");
    let short_marker = b"\xca\x03PGP".to_vec();
    let old_marker = b"\xa8\x03PGP".to_vec();
    let padding = packet(21, &chance(30));
    let by_password = packet(3, &[&[4, 9, 3, 8], chance(8).as_slice(), &[0xff]].concat());
    let data = packet(18, &[&[1], chance(400).as_slice()].concat());
    let sent_to = |begin: &[u8], count: usize| packet(1, &[begin, &chance(count)].concat());
    let key =
        |algorithm: u8, more: &[u8]| [&[3], chance(8).as_slice(), &[algorithm], more].concat();
    let all = |packets: &[&Vec<u8>]| packets.iter().copied().flatten().copied().collect();
    vec![
        ("a marker", all(&[&marker, &by_password, &data])),
        ("a short marker", all(&[&short_marker, &by_password, &data])),
        ("an old marker", all(&[&old_marker, &by_password, &data])),
        ("a marker and data", all(&[&short_marker, &data])),
        ("two markers", all(&[&marker, &marker, &by_password, &data])),
        ("padding", all(&[&padding, &by_password, &data])),
        (
            "padding and a marker",
            all(&[&padding, &marker, &by_password, &data]),
        ),
        ("a marker between", all(&[&by_password, &marker, &data])),
        ("padding between", all(&[&by_password, &padding, &data])),
        (
            "RSA of 16384 bits",
            all(&[&sent_to(&key(1, &[0x40, 0]), 2048), &data]),
        ),
        ("a lattice", all(&[&sent_to(&key(8, &[]), 1200), &data])),
        (
            "a lattice of the standard",
            all(&[&sent_to(&key(35, &[]), 1200), &data]),
        ),
        (
            "an elliptic curve",
            all(&[&sent_to(&key(18, &[1, 7, 0x40]), 81), &data]),
        ),
        ("version 6", all(&[&sent_to(&[6, 21, 4], 100), &data])),
    ]
}

#[test]
fn messages_are_told_whatever_stands_before_their_data() {
    for (name, message) in messages() {
        assert_told(name, Encrypted, &message);
        assert_told(
            &format!("{name} in a part"),
            Encrypted,
            &multipart(&message),
        );
        let coded = [b"{\"file\":\"", plain_base64(&message).as_slice(), b"\"}"].concat();
        assert_told(&format!("{name} in base 64"), Encrypted, &coded);
    }
}

#[test]
fn armour_with_many_fields_is_told() {
    let text = String::from_utf8(armoured()).expect("text");
    let (first, rest) = text.split_once("\n\n").expect("an empty line");
    let many = format!("Comment: {}\n", "x".repeat(100)).repeat(11);
    let long = format!("Comment: {}\n", "x".repeat(2000));
    for fields in [many, long] {
        let text = format!("{first}\n{fields}\n{rest}");
        assert_told("as it is", Encrypted, text.as_bytes());
        let quoted = text.replace('\n', "\n> ");
        assert_told("quoted", Encrypted, quoted.as_bytes());
        let escaped = format!("{{\"text\":\"{}\"}}", text.replace('\n', "\\n"));
        assert_told("in JSON", Encrypted, escaped.as_bytes());
    }
    let prose = format!(
        "-----BEGIN PGP MESSAGE----- is how it begins: {}",
        "words ".repeat(300)
    );
    assert_eq!(strict(prose.as_bytes()).stop, None);
}

/// An entry with an ordinary header, and one in the directory that says otherwise.
fn zip_of_two(flags: u8, method: u8) -> Vec<u8> {
    let (name, data) = (b"f.txt", Dice(31).bytes(300));
    let sizes =
        [data.len(), data.len()].map(|size| u32::try_from(size).expect("few").to_le_bytes());
    let sizes = [[0; 4], sizes[0], sizes[1]].concat();
    let common = |flags, method| {
        [
            &[20, 0, flags, 0, method, 0, 0, 0, 0, 0][..],
            &sizes,
            &[5, 0, 0, 0],
        ]
        .concat()
    };
    let local = [b"PK\x03\x04".as_slice(), &common(0, 0), name, &data].concat();
    let central = [
        b"PK\x01\x02\x14\0".as_slice(),
        &common(flags, method),
        &[0; 14],
        name,
    ]
    .concat();
    let end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0";
    [
        local.as_slice(),
        &central,
        end,
        &[51, 0, 0, 0, 0x4f, 1, 0, 0, 0, 0],
    ]
    .concat()
}

#[test]
fn what_the_directory_of_an_archive_says_counts_too() {
    use UnscannedReason::UnknownCoding;

    for (flags, method, reason) in [
        (1, 8, Encrypted),
        (1, 0, Encrypted),
        (1, 99, Encrypted),
        (0, 14, UnknownCoding),
        (0, 19, UnknownCoding),
        (0, 98, UnknownCoding),
    ] {
        let archive = zip_of_two(flags, method);
        let name = format!("{flags} {method}");
        assert_told(&name, reason, &archive);
        assert_told(&format!("{name} in a part"), reason, &multipart(&archive));
        assert_told(
            &format!("{name} in base 64"),
            reason,
            &plain_base64(&archive),
        );
    }
    for method in [0, 8, 12, 93, 95] {
        let outcome = strict(&zip_of_two(0, method));
        assert!(
            outcome.unscanned.is_none(),
            "{method}: {:?}",
            outcome.unscanned
        );
    }
}

#[test]
fn age_is_told_in_a_text_of_json() {
    let text = "{\"file\":\"age-encryption.org/v1\\n-> X25519 aGVsbG8\\nd29ybGQ\\n--- x\"}";
    assert_told("age", Encrypted, text.as_bytes());
}

/// Tables of small numbers, as programs print them, and bytes that begin like gzip.
#[test]
fn tables_of_small_numbers_are_none() {
    let mut dice = Dice(77);
    for round in 0..60 {
        let numbers: Vec<String> = (0..600).map(|_| dice.roll(100).to_string()).collect();
        let padded: Vec<String> = (0..600).map(|_| format!("{:02}", dice.roll(100))).collect();
        for text in [
            format!("[{}]", numbers.join(", ")),
            numbers.join(" "),
            padded.join(" "),
            padded.concat(),
        ] {
            let outcome = strict(text.as_bytes());
            assert!(
                outcome.unscanned.is_none(),
                "{round}: {:?} {text}",
                outcome.unscanned
            );
        }
        let chance = dice.bytes(600);
        let is_block = chance[0] & 6 != 6;
        let like = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x07".as_slice(), &chance].concat();
        let outcome = strict(&plain_base64(&like));
        assert!(
            is_block || outcome.unscanned.is_none(),
            "{round}: {:?}",
            outcome.unscanned
        );
    }
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
        &rules(ScanPolicy::Strict, UnscannableAction::Refuse),
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
    for policy in [ScanPolicy::Tiered, ScanPolicy::Monitor] {
        let counting = rules(policy, UnscannableAction::Record);
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

/// Those without a mark of their own, as programs write them and as readers take them.
fn unmarked() -> Vec<(&'static str, UnscannedReason, Vec<u8>)> {
    let lzma = |head: &str| [unhex(head), vec![0, 0x3a], Dice(17).bytes(700)].concat();
    let unsized_ones = "ffffffffffffffff";
    let mut all: Vec<_> = messages()
        .into_iter()
        .map(|(name, message)| (name, Encrypted, message))
        .collect();
    all.push((
        "gpg -c",
        Encrypted,
        file("8c0d040903021b5c4cb47d7efce0ffd2680111a3f1d347", 11),
    ));
    all.push((
        "gpg -e",
        Encrypted,
        pgp("85018c0303a631272e134fdc010bff", 384),
    ));
    for (name, head) in [
        ("lzma", "5d00008000"),
        ("lzma of 5000", "5d88130000"),
        ("lzma of none", "5d00000000"),
        ("lzma of 2^20 + 1", "5d01001000"),
        ("lzma of 4096", "5d00100000"),
        ("lzma with other properties", "1200000100"),
    ] {
        // It is opened, and no more than a beginning.
        all.push((name, Damaged, lzma(&format!("{head}{unsized_ones}"))));
    }
    all
}

fn places(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let each = |form: &dyn Fn(u8) -> String| file.iter().map(|byte| form(*byte)).collect();
    let percent: String = each(&|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let json: String = each(&|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..0x7f => char::from(byte).to_string(),
        byte => format!("\\u{byte:04x}"),
    });
    let numbers: Vec<String> = file.iter().map(u8::to_string).collect();
    let lf = b"--XX\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\n\n";
    let mut header = vec![0; 512];
    header[..5].copy_from_slice(b"x.bin");
    header[257..265].copy_from_slice(b"ustar\x0000");
    vec![
        ("a form", format!("a=1&d={percent}").into_bytes()),
        ("JSON", format!("{{\"d\": \"{json}\"}}").into_bytes()),
        (
            "a list",
            format!("{{\"type\":\"Buffer\",\"data\":[{}]}}", numbers.join(",")).into_bytes(),
        ),
        (
            "a list with spaces",
            format!("[{}]", numbers.join(", ")).into_bytes(),
        ),
        ("a part behind LF", [lf, file, b"\n--XX--\n"].concat()),
        ("tar", [header.as_slice(), file, &[0; 1024]].concat()),
    ]
}

#[test]
fn what_has_no_mark_is_told_where_values_begin() {
    for (name, reason, file) in unmarked() {
        for (place, content) in places(&file) {
            assert_told(&format!("{name} in {place}"), reason, &content);
        }
    }
}

#[test]
fn arrays_of_numbers_are_no_lzma() {
    let mut dice = Dice(91);
    for round in 0..300 {
        let bits = [8, 16, 33, 47][round % 4];
        let mut all = Vec::new();
        while all.len() < 4000 {
            let some = u64::try_from(dice.roll(1 << 30)).expect("a number");
            let number = match dice.roll(4) {
                0 => u64::MAX,
                _ => (some << 17) & ((1 << bits) - 1),
            };
            all.extend_from_slice(&number.to_le_bytes());
        }
        let outcome = strict(&all);
        assert!(outcome.unscanned.is_none(), "{round}: {outcome:?}");
    }
}
