//! Texts as other programs read them.

use std::fmt::Write as _;

/// A text as a TOML string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for sign in text.chars() {
        match sign {
            '"' | '\\' => out.extend(['\\', sign]),
            _ if sign.is_control() => {
                let code = u32::from(sign);
                // Writing to a text never fails.
                let _ = write!(out, "\\u{code:04X}");
            }
            _ => out.push(sign),
        }
    }
    out.push('"');
    out
}

/// A printable path as a shell takes it.
pub fn shell_word(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:,".contains(&byte);
    if path.bytes().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Cuts a text to a number of bytes, at a character.
pub(crate) fn cut(mut text: String, bytes_max: usize) -> String {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    text
}
