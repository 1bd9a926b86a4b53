//! Targets: every decoder of escapes. What comes out is the same however the bytes
//! are cut, nothing is lost that is no escape, and what was escaped is what it was.

use crate::fuzz::{pieces, split};

use crate::escapes::{EscapeDecoder, EscapeKind};

/// The most that may wait: what stands between two lines, which is longer than any escape.
const WAITING_MAX: u64 = 130;

fn decoded(kind: EscapeKind, pieces: &[&[u8]]) -> Vec<u8> {
    let (mut decoder, mut made) = (EscapeDecoder::new(kind), Vec::new());
    for piece in pieces {
        decoder.push(piece, &mut made, &mut Vec::new());
        assert!(
            decoder.waiting() < WAITING_MAX,
            "{} wait",
            decoder.waiting()
        );
        assert_eq!(decoder.is_open(), decoder.waiting() > 0);
    }
    decoder.finish(&mut made);
    made
}

/// Holds a decoder against itself, and against what was escaped: `encode` may leave
/// out what cannot be.
fn check(kind: EscapeKind, input: &[u8], encode: impl Fn(&[u8]) -> (Vec<u8>, Vec<u8>)) {
    let (cut, bytes) = split(input);
    let made = decoded(kind, &pieces(cut, bytes));
    assert_eq!(made, decoded(kind, &[bytes]), "cut and whole");
    assert!(made.len() <= bytes.len(), "escapes are longer");
    let (plain, coded) = encode(bytes);
    let decoded = decoded(kind, &pieces(cut, &coded));
    assert_eq!(decoded, plain, "there and back");
}

fn each(bytes: &[u8], form: impl Fn(u8) -> String) -> (Vec<u8>, Vec<u8>) {
    let coded = bytes.iter().flat_map(|byte| form(*byte).into_bytes());
    (bytes.to_vec(), coded.collect())
}

/// `%41`.
pub(crate) fn percent(input: &[u8]) {
    check(EscapeKind::Percent, input, |bytes| {
        each(bytes, |byte| format!("%{byte:02x}"))
    });
}

/// `\u0041`, `\x41`, `\101`.
pub(crate) fn escapes(input: &[u8]) {
    check(EscapeKind::Escape, input, |bytes| {
        each(bytes, |byte| match byte {
            0x80.. => format!("\\x{byte:02x}"),
            _ if byte % 4 == 0 => format!("\\u{byte:04X}"),
            _ if byte % 4 == 1 => format!("\\u{{{byte:x}}}"),
            _ if byte % 4 == 2 => format!("\\{byte:03o}"),
            _ => format!("\\U{byte:08x}"),
        })
    });
}

/// `&#65;`.
pub(crate) fn references(input: &[u8]) {
    check(EscapeKind::Reference, input, |bytes| {
        let ascii: Vec<u8> = bytes.iter().map(|byte| byte & 0x7f).collect();
        each(&ascii, |byte| match byte {
            b'_' => "&lowbar;".to_owned(),
            b'&' => "&amp;".to_owned(),
            _ if byte % 3 == 0 => format!("&#{byte};"),
            _ if byte % 3 == 1 => format!("&#x{byte:x};"),
            _ => format!("&#X00{byte:X};"),
        })
    });
}

/// `=41`, and lines that go on.
pub(crate) fn quoted(input: &[u8]) {
    check(EscapeKind::Quoted, input, |bytes| {
        each(bytes, |byte| match byte % 3 {
            0 => format!("={byte:02X}=\r\n"),
            1 => format!("={byte:02x}=\n"),
            _ => format!("={byte:02X}"),
        })
    });
}

/// Characters two bytes wide, of which any may be zero.
pub(crate) fn wide(input: &[u8]) {
    let is_big = input.len().is_multiple_of(2);
    check(EscapeKind::Wide, input, |bytes| {
        let wide = |byte: &u8| if is_big { [0, *byte] } else { [*byte, 0] };
        (bytes.to_vec(), bytes.iter().flat_map(wide).collect())
    });
}

/// Bytes that were each made a character.
pub(crate) fn latin(input: &[u8]) {
    check(EscapeKind::Latin, input, |bytes| {
        let text: String = bytes.iter().copied().map(char::from).collect();
        (bytes.to_vec(), text.into_bytes())
    });
}

/// Characters that look like a letter, and characters that do not show.
pub(crate) fn fold(input: &[u8]) {
    check(EscapeKind::Fold, input, |bytes| {
        let graphic = bytes.iter().map(|byte| b'!' + byte % 94);
        let coded: String = graphic
            .clone()
            .flat_map(|byte| {
                let wide = char::from_u32(0xfee0 + u32::from(byte));
                [wide.unwrap_or('?'), '\u{200b}']
            })
            .collect();
        (graphic.collect(), coded.into_bytes())
    });
}

/// The values of a form.
pub(crate) fn form(input: &[u8]) {
    check(EscapeKind::Form, input, |bytes| {
        let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'&').collect();
        let values = plain.chunks(7).map(|value| [b"name=", value].concat());
        let coded = values.collect::<Vec<_>>().join(&b'&');
        (plain, coded)
    });
}

/// Lines of base64 with something around each.
pub(crate) fn lines(input: &[u8]) {
    const AROUND: [&str; 5] = ["\n  ", "\r\n\t", "\\n    ", "\n> ", "\" +\n \""];
    let (cut, bytes) = split(input);
    let made = decoded(EscapeKind::Lines, &pieces(cut, bytes));
    assert_eq!(made, decoded(EscapeKind::Lines, &[bytes]), "cut and whole");
    assert!(made.len() <= bytes.len(), "nothing is added");
    let plain: Vec<u8> = bytes.iter().map(|byte| b'a' + byte % 26).collect();
    let around = AROUND.iter().cycle().nth(usize::from(cut));
    let around = around.copied().unwrap_or_default();
    let lines: Vec<&[u8]> = plain.chunks(20 + usize::from(cut) % 60).collect();
    let coded = lines.join(around.as_bytes());
    assert_eq!(
        decoded(EscapeKind::Lines, &pieces(cut, &coded)),
        plain,
        "there and back"
    );
}
