//! Targets for fuzzers: every decoder beside one that is slow and obvious, and the
//! scan beside an engine that looks at everything at once. There is none of this
//! in a program: it is built for tests, which replay the corpora and change them a
//! little, and for `fuzz/`, where a fuzzer is in front of it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is missing is a fault of the target"
)]

mod encode;
mod runs;
mod scanner;

use crate::decode::containers::fuzz as containers;
use crate::decode::filters::fuzz as filters;
use crate::values::Values;

/// A target: it panics on bytes that show a fault.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its corpus.
pub const TARGETS: [(&str, Target); 22] = [
    ("gzip", containers::gzip),
    ("zlib", containers::zlib),
    ("deflate", containers::deflate),
    ("brotli", containers::brotli),
    ("zstd", containers::zstd),
    ("pack", containers::pack),
    ("zip", containers::zip),
    ("beginnings", containers::beginnings),
    ("percent", filters::percent),
    ("escapes", filters::escapes),
    ("references", filters::references),
    ("quoted", filters::quoted),
    ("wide", filters::wide),
    ("latin", filters::latin),
    ("fold", filters::fold),
    ("lines", filters::lines),
    ("form", filters::form),
    ("base64", runs::base64_runs),
    ("hex", runs::hex),
    ("base32", runs::base32_runs),
    ("values", values),
    ("scanner", scanner::scanner),
];

/// Shows a target some bytes.
///
/// # Panics
/// When they show a fault, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let target = found.map(|(_, target)| *target);
    assert!(target.is_some(), "no target `{name}`");
    if let Some(target) = target {
        target(bytes);
    }
}

/// Takes the first byte of an input for how the others are cut.
pub(crate) fn split(input: &[u8]) -> (u8, &[u8]) {
    input
        .split_first()
        .map_or((0, &[]), |(cut, rest)| (*cut, rest))
}

/// Bytes cut into pieces whose lengths follow from a number.
pub(crate) fn pieces(cut: u8, bytes: &[u8]) -> Vec<&[u8]> {
    let most = [1, 5, 61, 700][usize::from(cut & 3)];
    let (mut state, mut rest, mut pieces) = (u32::from(cut), bytes, Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(0x41c6_4e6d).wrapping_add(0x3039);
        let length = 1 + usize::from(state.to_be_bytes()[0]) % most;
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// The texts of a document, beside a reader that has all of it.
fn values(input: &[u8]) {
    let (cut, document) = split(input);
    let read = |pieces: &[&[u8]]| {
        let (mut reader, mut values) = (Values::default(), Vec::new());
        for piece in pieces {
            reader.push(piece, &mut values);
        }
        reader.finish(&mut values);
        values
    };
    let found = read(&pieces(cut, document));
    assert_eq!(found, read(&[document]), "cut and whole");
    let Ok(naive) = serde_json::from_slice(document) else {
        return;
    };
    let mut texts = Vec::new();
    gather(&naive, &mut texts);
    for text in texts {
        // Of long texts ends are kept, and of other letters nothing.
        let is_plain = text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if is_plain && !text.is_empty() && text.len() <= 256 {
            assert!(found.contains(&text.as_bytes().to_vec()), "{text:?}");
        }
    }
}

fn gather<'a>(value: &'a serde_json::Value, texts: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::String(text) => texts.push(text),
        serde_json::Value::Array(all) => all.iter().for_each(|one| gather(one, texts)),
        serde_json::Value::Object(all) => all.values().for_each(|one| gather(one, texts)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    outgate_harness::fuzz_tests!(TARGETS, Duration::from_millis(250), 20_000);
}
