//! Literals of programming languages: escapes, and texts that a program joins. Also texts with
//! a sign behind each letter.

use crate::dice::Dice;

fn quoted(text: &str, quote: char) -> String {
    let mut made = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            '\\' => made.push_str("\\\\"),
            own if own == quote => {
                made.push('\\');
                made.push(own);
            }
            own => made.push(own),
        }
    }
    made.push(quote);
    made
}

/// Pieces of a text, of a few letters each.
fn pieces(dice: &mut Dice, text: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(text).expect("text");
    let mut pieces = Vec::new();
    let mut rest = text;
    let most = dice.pick(&[1, 3, 6, 12, 20]);
    while !rest.is_empty() {
        let length = (1 + dice.roll(most)).min(rest.len());
        let (now, later) = rest.split_at(length);
        pieces.push(now.to_owned());
        rest = later;
    }
    pieces
}

/// A text as an expression that joins literals.
pub(crate) fn joined(dice: &mut Dice, text: &[u8], between: &str) -> Vec<u8> {
    let quote = dice.pick(&['"', '\'']);
    let pieces: Vec<String> = pieces(dice, text)
        .iter()
        .map(|piece| quoted(piece, quote))
        .collect();
    format!("x = {};\n", pieces.join(between)).into_bytes()
}

/// A list of texts that a script joins.
pub(crate) fn array(dice: &mut Dice, text: &[u8]) -> Vec<u8> {
    let pieces: Vec<String> = pieces(dice, text)
        .iter()
        .map(|piece| quoted(piece, '"'))
        .collect();
    format!("[{}].join(\"\")\n", pieces.join(", ")).into_bytes()
}

/// A literal in which each byte is an escape.
pub(crate) fn escaped(bytes: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    let inner: String = bytes.iter().map(|byte| form(*byte)).collect();
    format!("\"{inner}\"").into_bytes()
}

/// A sign behind each byte.
pub(crate) fn separated(bytes: &[u8], sign: &str) -> Vec<u8> {
    let mut made = Vec::new();
    for (place, byte) in bytes.iter().enumerate() {
        if place > 0 {
            made.extend_from_slice(sign.as_bytes());
        }
        made.push(*byte);
    }
    made
}

/// Letters moved by thirteen.
pub(crate) fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte + 13,
        b'n'..=b'z' | b'N'..=b'Z' => byte - 13,
        other => other,
    }
}
