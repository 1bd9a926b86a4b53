//! The scan beside an engine that has all of the content, asks every detector about
//! all of it, and decodes everything everywhere: what that one finds, the scan finds,
//! however the content is cut. The scan finds more: it knows more codings.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::confirm::{Borders, MatchJudgement};
use crate::detector_sample::expand;
use crate::mark::mark;
use crate::place::PlaceKind;
use crate::{
    Anchor, DetectorMode, Detectors, Ruleset, ScanPolicy, ScanSettings, UnscannableAction,
};

use super::encode::ENCODE;
use super::runs::{CONTENT, ELSEWHERE, assert_held};
use super::{pieces, split};

/// Stands in an input for a credential; which one follows from the next byte.
const SAMPLE: u8 = 0xfe;

/// Stands in an input for a coding of all that follows; which one follows from the
/// next byte.
const CODING: u8 = 0xfd;

/// Codings on top of each other that an input may ask for, and that are removed.
const DEPTH: usize = 3;

/// Longest content, in bytes.
const CONTENT_BYTES_MAX: usize = 1 << 16;

/// Goes on behind what it finds or cannot read.
static RULES: LazyLock<Arc<Ruleset>> = LazyLock::new(|| {
    let settings = ScanSettings {
        policy: ScanPolicy::Monitor,
        unscannable: UnscannableAction::Record,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings);
    Arc::new(rules.expect("the shipped detectors"))
});

static SAMPLES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let detectors = Detectors::shipped();
    let samples = detectors.iter().flat_map(|one| one.samples.iter());
    samples.map(ToString::to_string).collect()
});

/// What was found: which detector, and the mark of the value.
type Found = BTreeSet<(String, String)>;

/// The scan of content that an input describes.
pub(super) fn scanner(input: &[u8]) {
    let (cut, rest) = split(input);
    let content = content(rest, DEPTH);
    if content.len() > CONTENT_BYTES_MAX {
        return;
    }
    let mut naive = Found::new();
    let first = look(&content, DEPTH, &mut naive);
    let Some(whole) = scan(&[&content]) else {
        return;
    };
    let Some(cut_up) = scan(&pieces(cut, &content)) else {
        return;
    };
    assert_eq!(whole, cut_up, "cut and whole");
    let missed: Vec<_> = naive.difference(&whole).collect();
    assert!(missed.is_empty(), "{missed:?} left in {content:02x?}");
    if let Some(first) = first {
        assert_held(cut, &content, first);
    }
}

fn content(mut input: &[u8], depth: usize) -> Vec<u8> {
    let mut made = Vec::new();
    while let Some((byte, rest)) = input.split_first() {
        input = rest.get(1..).unwrap_or_default();
        match (*byte, rest.first()) {
            (SAMPLE, Some(number)) => {
                let number = usize::from(*number);
                let template = &SAMPLES[number % SAMPLES.len()];
                made.extend(expand(template, 1 + number as u64));
            }
            (CODING, Some(number)) if depth > 0 => {
                let encode = ENCODE[usize::from(*number) % ENCODE.len()];
                made.extend(encode(&content(input, depth - 1)));
                return made;
            }
            _ => {
                made.push(*byte);
                input = rest;
            }
        }
    }
    made
}

/// What the scan finds; nothing where it says that it did not look at everything.
fn scan(pieces: &[&[u8]]) -> Option<Found> {
    let mut stream = RULES.stream(&ELSEWHERE, &CONTENT);
    let mut found = Found::new();
    let pushed = pieces.iter().try_for_each(|piece| {
        stream.push(piece)?;
        found.extend(
            stream
                .warnings()
                .into_iter()
                .map(|one| (one.detector.to_string(), one.mark)),
        );
        Ok(())
    });
    let ended: Result<(), crate::Stop> = pushed.and_then(|()| stream.finish().map(drop));
    assert_eq!(ended, Ok(()), "only recorded");
    found.extend(
        stream
            .warnings()
            .into_iter()
            .map(|one| (one.detector.to_string(), one.mark)),
    );
    stream.unscanned().is_none().then_some(found)
}

/// Asks every detector about all of the bytes, and about all they may be codings of.
/// Says where in them the first begins that no coding hides.
fn look(bytes: &[u8], depth: usize, found: &mut Found) -> Option<usize> {
    let mut first: Option<usize> = None;
    for rule in (0..).map_while(|place| RULES.rule(place)) {
        let is_asked = rule.detector.anchor != Anchor::Scan && rule.mode != Some(DetectorMode::Off);
        let (mut from, mut taken) = (0, 0);
        while let Some(place) = rule
            .search(bytes, from, Borders::default())
            .filter(|_| is_asked)
        {
            // Of matches that begin before their literal and lie over each other the scan
            // says one for each literal, and which one is its own affair.
            let is_over = place.whole.start < taken;
            taken = place.whole.end.max(taken);
            from = match rule.detector.anchor {
                Anchor::Inside => place.whole.start + 1,
                Anchor::Start | Anchor::Scan => place.whole.end.max(from + 1),
            };
            if is_over {
                continue;
            }
            let secret = bytes.get(place.secret.clone()).unwrap_or_default();
            if let MatchJudgement::Found(_) = rule.judge(
                secret,
                (ELSEWHERE.host, PlaceKind::Content),
                ScanPolicy::Monitor,
            ) {
                let least = first.map_or(place.whole.start, |first| first.min(place.whole.start));
                first = Some(least);
                found.insert((rule.detector.id.to_string(), mark(RULES.key(), secret)));
            }
        }
    }
    if depth > 0 {
        for inner in decoded(bytes) {
            look(&inner, depth - 1, found);
        }
    }
    first
}

/// Everything that the bytes may be the coding of, each place and phase by itself.
fn decoded(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    for run in bytes
        .split(|byte| !is_base64(byte))
        .filter(|run| run.len() >= 20)
    {
        let symbols: Vec<u32> = run.iter().map(|byte| base64(*byte)).collect();
        all.extend((0..4).map(|skip| bits(symbols.get(skip..).unwrap_or_default(), 6)));
    }
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    for run in bytes
        .split(|byte| !is_hex(byte))
        .filter(|run| run.len() >= 32)
    {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let symbols: Vec<u32> = run.iter().filter_map(digit).collect();
        all.extend((0..2).map(|skip| bits(symbols.get(skip..).unwrap_or_default(), 4)));
    }
    for at in 0..bytes.len() {
        if let Some([0x1f, 0x8b, 8, 0, .., 3]) = bytes.get(at..at + 10) {
            let body = bytes.get(at + 10..).unwrap_or_default();
            all.extend(decompress_to_vec_with_limit(body, CONTENT_BYTES_MAX).ok());
        }
    }
    all
}

fn base64(byte: u8) -> u32 {
    u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    })
}

fn bits(symbols: &[u32], width: u32) -> Vec<u8> {
    let (mut rest, mut filled, mut made) = (0_u32, 0, Vec::new());
    for symbol in symbols {
        rest = (rest << width) | symbol;
        filled += width;
        if filled >= 8 {
            filled -= 8;
            made.extend((rest >> filled).to_be_bytes().last());
            rest &= (1 << filled) - 1;
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outgate_harness::fuzz::corpus;

    use super::*;

    #[test]
    fn matches_that_lie_over_each_other_are_said_once() {
        let key = expand("MIIEogIBAAKCAQEA{b64:40}", 1);
        scanner(&[&b"\x00 "[..], &key, &key, &key].concat());
    }

    #[test]
    fn the_corpus_shows_the_naive_engine_what_there_is_to_find() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        let (mut plain, mut coded, mut looked_at) = (0, 0, 0);
        for (_, input) in corpus(&folder, "scanner") {
            let content = content(split(&input).1, DEPTH);
            let (mut found, mut here) = (Found::new(), Found::new());
            look(&content, DEPTH, &mut found);
            look(&content, 0, &mut here);
            plain += usize::from(!here.is_empty());
            coded += usize::from(found.len() > here.len());
            looked_at += usize::from(scan(&[&content]).is_some());
        }
        let counts = (plain, coded, looked_at);
        assert!(plain >= 10 && coded >= 5 && looked_at >= 20, "{counts:?}");
    }
}
