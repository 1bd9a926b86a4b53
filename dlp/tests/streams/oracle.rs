//! A scan that is slow and obvious, against which the other is held: it has all
//! of the content, decodes everything at every place, and looks for the sample
//! byte by byte. Where it sees one, the stream must have stopped before.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use outgate_dlp::{ScanPolicy, UnscannableAction};

use crate::encode::{CODINGS, plain_base64};
use crate::stage::{Dice, rules, sample_of, send};

/// Codings on top of each other that are removed.
const DEPTH: usize = 3;

/// Contents that are tried.
const TURNS: u64 = 400;

const SAMPLES: [&str; 6] = [
    "github-token",
    "stripe-key",
    "gcp-api-key",
    "npm-token",
    "telegram-bot-token",
    "pem-private-key",
];

/// Whether the sample stands in the content, in any of these codings.
fn sees(content: &[u8], sample: &[u8], depth: usize) -> bool {
    stands_alone(content, sample)
        || (depth > 0
            && decoded(content)
                .iter()
                .any(|inner| inner.len() >= sample.len() && sees(inner, sample, depth - 1)))
}

fn stands_alone(content: &[u8], sample: &[u8]) -> bool {
    let is_border = |byte: Option<&u8>| byte.is_none_or(|byte| b" \n\"".contains(byte));
    let mut places = content.windows(sample.len()).enumerate();
    places.any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|place| content.get(place));
        window == sample && is_border(before) && is_border(content.get(at + sample.len()))
    })
}

/// Everything that the content may be the coding of.
fn decoded(content: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    if content.contains(&b'%') {
        all.push(percent(content));
    }
    for run in runs(content, 20, |byte| {
        byte.is_ascii_alphanumeric() || b"+/-_\r\n".contains(&byte)
    }) {
        let symbols: Vec<u32> = run.iter().filter_map(|byte| base64(*byte)).collect();
        all.extend((0..4).map(|skip| bits(symbols.get(skip..).unwrap_or_default(), 6)));
    }
    for run in runs(content, 32, |byte| byte.is_ascii_hexdigit()) {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let symbols: Vec<u32> = run.iter().filter_map(digit).collect();
        all.extend((0..2).map(|skip| bits(symbols.get(skip..).unwrap_or_default(), 4)));
    }
    for at in 0..content.len() {
        if content[at..].starts_with(&[0x1f, 0x8b, 8, 0]) {
            let body = content.get(at + 10..).unwrap_or_default();
            all.extend(decompress_to_vec_with_limit(body, 1 << 20).ok());
        }
    }
    all
}

fn runs(content: &[u8], least: usize, test: fn(u8) -> bool) -> Vec<&[u8]> {
    let runs = content.split(|byte| !test(*byte));
    runs.filter(|run| run.len() >= least).collect()
}

fn base64(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

fn bits(symbols: &[u32], width: u32) -> Vec<u8> {
    let bit = |symbol: &u32, place: u32| *symbol >> (width - 1 - place) & 1 == 1;
    let all: Vec<bool> = symbols
        .iter()
        .flat_map(|symbol| (0..width).map(move |place| bit(symbol, place)))
        .collect();
    let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    all.chunks_exact(8).map(byte).collect()
}

fn percent(content: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    let mut rest = content;
    while let Some((first, others)) = rest.split_first() {
        let digits = others
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                made.push(byte);
                rest = &others[2..];
            }
            _ => {
                made.push(*first);
                rest = others;
            }
        }
    }
    made
}

fn noise(dice: &mut Dice, most: usize) -> Vec<u8> {
    let length = dice.roll(most);
    match dice.roll(4) {
        0 => dice.bytes(length),
        1 => vec![0; length],
        2 => (0..length).map(|_| b'!' + dice.byte(90)).collect(),
        _ => dice.words(length),
    }
}

/// A sample between noise, coded once or more; and some of it changed.
fn content(dice: &mut Dice, sample: &[u8]) -> Vec<u8> {
    const NAMES: [&str; 9] = [
        "plain",
        "percent",
        "percent of every third",
        "base64",
        "base64url",
        "base64 after two",
        "base64 in lines of 76",
        "hex",
        "gzip",
    ];
    let mut inner = sample.to_vec();
    for _ in 0..=dice.roll(DEPTH) {
        let name = NAMES[dice.roll(NAMES.len())];
        let coding = CODINGS.iter().find(|(known, _)| *known == name);
        inner = coding.expect("a coding").1(&inner);
        let mut whole = noise(dice, 3000);
        whole.push(b'\n');
        whole.extend(inner);
        whole.push(b' ');
        whole.extend(noise(dice, 300));
        inner = whole;
    }
    if dice.roll(2) == 0 {
        inner = plain_base64(&inner);
    }
    for _ in 0..dice.roll(4) {
        let at = dice.roll(inner.len());
        inner[at] = dice.byte(256);
    }
    inner
}

#[test]
fn what_a_slow_scan_sees_does_not_leave() {
    let rules = rules(ScanPolicy::Strict, UnscannableAction::Record);
    let mut seen = 0;
    for seed in 0..TURNS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let id = SAMPLES[dice.roll(SAMPLES.len())];
        let sample = sample_of(id, seed);
        let content = content(&mut dice, &sample);
        let outcome = send(&rules, None, &content, &dice.lengths(4000));
        if sees(&content, &sample, DEPTH + 1) {
            seen += 1;
            assert!(outcome.found().is_some(), "seed {seed}: {id} left");
        }
    }
    assert!(seen > TURNS / 2, "only {seen} of {TURNS} could be seen");
}
