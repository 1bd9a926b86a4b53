//! Runs of an alphabet: a credential among bytes of the input, coded, among others
//! of them. It does not leave, and nothing of it does, wherever it stands.

use std::sync::{Arc, LazyLock};

use crate::detector_sample::expand;
use crate::{
    Description, Detectors, Place, Ruleset, ScanDestination, ScanPolicy, ScanSettings, Stop,
    UnscannableAction,
};

use super::encode::{base32, base64, each};
use super::{pieces, split};

/// Refuses whatever it finds or cannot read.
static STRICT: LazyLock<Arc<Ruleset>> = LazyLock::new(|| {
    let settings = ScanSettings {
        policy: ScanPolicy::Strict,
        unscannable: UnscannableAction::Refuse,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings);
    Arc::new(rules.expect("the shipped detectors"))
});

/// Towards a host that issued nothing.
pub(super) const ELSEWHERE: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

/// Content of which nothing is said.
pub(super) const CONTENT: Description<'static> = Description {
    place: Place::Content,
    media_type: None,
    content_codings: None,
    length: None,
};

/// Sends pieces, and says what was released and what stopped them.
pub(super) fn send(rules: &Arc<Ruleset>, pieces: &[&[u8]]) -> (u64, Option<Stop>) {
    let (mut stream, mut released) = (rules.stream(&ELSEWHERE, &CONTENT), 0);
    for piece in pieces {
        match stream.push(piece) {
            Ok(upto) => released = upto,
            Err(stop) => return (released, Some(stop)),
        }
    }
    match stream.finish() {
        Ok(upto) => (upto, None),
        Err(stop) => (released, Some(stop)),
    }
}

/// Sends content with what these rules refuse from an offset on.
pub(super) fn assert_held(cut: u8, content: &[u8], from: usize) {
    let (released, stop) = send(&STRICT, &pieces(cut, content));
    assert!(stop.is_some(), "it left");
    let from = u64::try_from(from).unwrap_or(u64::MAX);
    assert!(released <= from, "{} bytes of it left", released - from);
}

fn check(input: &[u8], encode: impl Fn(u8, &[u8]) -> Vec<u8>) {
    let (cut, rest) = split(input);
    let (form, rest) = split(rest);
    let (place, rest) = split(rest);
    let rest = rest.get(..2000).unwrap_or(rest);
    let (before, rest) = rest.split_at(usize::from(place).min(rest.len()));
    let (inside, behind) = rest.split_at(rest.len() / 2);
    let token = expand("ghp_{b62:30}{crc62}", u64::from(form));
    let coded = encode(form, &[inside, b" ", &token, b" ", behind].concat());
    let content = [before, b"!", &coded, b"!", behind].concat();
    assert_held(cut, &content, before.len() + 1);
}

/// Lines of a length that a number asks for.
fn lines(form: u8, coded: Vec<u8>) -> Vec<u8> {
    let ends: [&[u8]; 4] = [b"\n", b"\r\n", b"\\n", b"\\r\\n"];
    let end = ends[usize::from(form >> 2 & 3)];
    match form & 3 {
        3 => coded
            .chunks(20 + usize::from(form >> 4))
            .collect::<Vec<_>>()
            .join(end),
        _ => coded,
    }
}

fn base64_lines(form: u8, bytes: &[u8]) -> Vec<u8> {
    let signs = [*b"+/", *b"-_"][usize::from(form & 1)];
    lines(form, base64(bytes, signs))
}

/// base64 in both alphabets, in lines or in one.
pub(super) fn base64_runs(input: &[u8]) {
    check(input, base64_lines);
}

/// Hexadecimal digits with what may stand between them.
pub(super) fn hex(input: &[u8]) {
    check(input, |form, bytes| match form & 7 {
        0 => each(bytes, |byte| format!("{byte:02X}")),
        1 => each(bytes, |byte| format!("{byte:02x}:")),
        2 => each(bytes, |byte| format!("{byte:02x} ")),
        3 => each(bytes, |byte| format!("0x{byte:02x}, ")),
        4 => each(bytes, |byte| format!("{byte:02x}-")),
        _ => each(bytes, |byte| format!("{byte:02x}")),
    });
}

/// base32 in capitals and in small letters.
pub(super) fn base32_runs(input: &[u8]) {
    check(input, |form, bytes| {
        let first = if form & 1 == 0 { b'A' } else { b'a' };
        lines(form, base32(bytes, first))
    });
}
