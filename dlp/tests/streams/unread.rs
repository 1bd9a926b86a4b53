//! zlib with a preset dictionary and Brotli with a large window, which no decoder here reads:
//! what leaves in them is told wherever it stands, and no text is taken for them.

use miniz_oxide::deflate::compress_to_vec;
use outgate_dlp::{ScanPolicy, Stop, UnscannableAction, UnscannedReason};

use crate::encode::plain_base64;
use crate::stage::{Dice, rules, send, strict};

/// A token and words, compressed elsewhere with the dictionary "Please keep this with the
/// others, and tell nobody about it: the token is ": with fixed codes, with codes of its own and
/// a small window, with fixed codes only, and stored; then by Brotli with windows of 64 MiB
/// and of 1 GiB.
const MADE: [&str; 6] = [
    "78f9d18b1a150b2060109af2f48c827883444327a364631793545337b374730f8b4c4b2f836c431fa35c633f93\
     7cd300b342f3209cd603006a0b257b",
    "48e6d18b1a150b2060109af2f48c827883444327a364631793545337b374730f8b4c4b2f836c431fa35c633f93\
     7cd300b342f3209cd60f77fb141495945554d5d43534b5b47574f5f40d0c8d8c4d4ccdcc2d2cadac6d6cedec1d\
     1c9d9c5d5cdddc3d3cbdbc7d7cfdfc030283824342c3c22322a3a26362e3e2131293925352d3d23332b3b27372\
     f3f20b0a8b8a4b4acbca2b2aabaa6b6aeb0095328dc0",
    "1838d18b1a150b2060109af2f48c827883444327a364631793545337b374730f8b4c4b2f836c431fa35c633f93\
     7cd300b342f3209cd603006a0b257b",
    "783fd18b1a15012800d7ff506c65617365206b6565702074686973207769746820746865206f74686572733a20\
     74686520746f2bbe0e88",
    "115a40020090ab75a96e4837f87724438100cd3860eeef92c2a10c618cf326decc1f9ece7206950b1723017b71\
     6ae8e03df8b9ea6982652dd6ea97a1edb614e744a125a3b13567f0ad6089bde4e0917874660276e5227e179269\
     7c05b4debe9ffa0b819b1904",
    "115ec8068033528fb5c664a5c975b1ed84b82742b103045439606fd2cc877484ab1d0c0f6eb2d4000c7e463587\
     55fc1893495c0038dff3521fea69be2bd820833b62d381b97c12be5c54083714e383a4f462397f44299bd78134\
     592d3f88c29e0bda00",
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let digits = pairs.map(|pair| str::from_utf8(pair).expect("digits"));
    let bytes = digits.map(|two| u8::from_str_radix(two, 16).expect("hexadecimal"));
    bytes.collect()
}

/// Words of so many bytes with a header that asks for a dictionary, of any window.
fn with_dictionary(seed: u64, length: usize, level: u8) -> Vec<u8> {
    let window = u8::try_from(seed % 8).expect("a window");
    let method = window << 4 | 8;
    let is_right =
        |flags: &u8| flags & 0x20 != 0 && u16::from_be_bytes([method, *flags]).is_multiple_of(31);
    let flags = (0..=255).find(is_right).expect("flags");
    let checksum = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let data = compress_to_vec(&Dice(seed).words(length), level);
    [&[method, flags], &checksum[..4], &data, &checksum[4..]].concat()
}

/// The ways in which content may hold a file.
fn places(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let hex: Vec<String> = file.iter().map(|byte| format!("{byte:02x}")).collect();
    let head: &[u8] = b"--b\r\ncontent-disposition: form-data; name=\"f\"\r\n\r\n";
    vec![
        ("alone", file.to_vec()),
        ("base64", plain_base64(file)),
        (
            "base64 in JSON",
            [b"{\"a\": \"".as_slice(), &plain_base64(file), b"\"}"].concat(),
        ),
        ("hex", hex.concat().into_bytes()),
        ("a part", [head, file, b"\r\n--b--\r\n"].concat()),
    ]
}

#[test]
fn what_no_decoder_reads_is_told_wherever_it_stands() {
    let made = MADE.map(bytes).into_iter();
    let drawn = (0..24).map(|seed| {
        let length = [60, 700, 20_000][usize::try_from(seed % 3).expect("few")];
        with_dictionary(seed, length, if seed % 2 == 0 { 9 } else { 1 })
    });
    for (number, file) in made.chain(drawn).enumerate() {
        for (place, content) in places(&file) {
            // The end of a part is none of what it holds, and its checksum does not end it.
            let is_short = place == "a part" && file.len() < 640 && file[6] >> 1 & 3 == 1;
            for steps in [&[content.len()][..], &[1], &[7, 300]] {
                let outcome = send(&strict(), None, &content, steps);
                let is_told = matches!(&outcome.stop, Some(Stop::Unscannable(_)));
                let name = format!("{number} in {place} by {steps:?}: {:?}", outcome.stop);
                assert!(is_told || is_short, "{name}");
            }
            let tolerant = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
            let outcome = send(&tolerant, None, &content, &[content.len()]);
            assert!(outcome.stop.is_none(), "{number} in {place}");
            let reason = outcome.unscanned.map(|unscanned| unscanned.reason);
            let is_told = reason == Some(UnscannedReason::Unopened);
            assert!(is_told || is_short, "{number} in {place}: {reason:?}");
        }
    }
}

#[test]
fn no_text_and_no_record_is_taken_for_it() {
    let begins = [
        "x = ", "x } ", "hb", "h$", "Hj", "H, ", "(r", "(4", "X ", "8a", "X? ",
    ];
    for seed in 0..2000_u64 {
        let [low, ..] = seed.to_le_bytes();
        let words = Dice(seed).words(200);
        for begin in begins {
            let text = [begin.as_bytes(), &words[..150]].concat();
            let outcome = send(&strict(), None, &text, &[text.len()]);
            assert!(outcome.stop.is_none(), "{seed} {begin}: {:?}", outcome.stop);
        }
        // Messages of protocol buffers that begin with a number, a string behind it.
        for number in [0x3c, 0x7a] {
            let head = [0x08, number, 0x10, low, 0x1a, 60, b'a'];
            let record = [&head[..], &words[..59]].concat();
            let outcome = send(&strict(), None, &record, &[record.len()]);
            assert!(
                outcome.stop.is_none(),
                "{seed} {number}: {:?}",
                outcome.stop
            );
        }
    }
}
