//! Where in content something stands, in words: which value of a document, which part of
//! a form. Told of content as it came; of what was decoded, only where no coding makes
//! that uncertain. Where it is uncertain, nothing is told rather than something wrong.

use std::fmt::Write;

use crate::budget::wide;
use crate::coding::Coding;
use crate::limits;
use crate::trail::Trail;

mod multipart;
mod path;

use multipart::MultipartParts;
use path::Document;

/// Whether a name may be shown.
pub(crate) type IsClean<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Follows content, as far as it has a form that is followed.
#[derive(Default)]
pub(crate) enum ContentPosition {
    /// Nothing is told.
    #[default]
    Unknown,
    /// The next offset, and the document as far as it came.
    Document(u64, Box<Document>),
    /// The same of parts.
    Parts(u64, Box<MultipartParts>),
}

/// Where in the outermost stream something begins, as exactly as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Somewhere from the first offset to the last.
    Between(u64, u64),
    /// In a run of an alphabet that goes over this offset, or, where it is a long one,
    /// over that which is [`limits::RUN_LAG_BYTES`] further.
    Run(u64),
    /// Nowhere alone.
    Unknown,
}

impl Spread {
    /// Where that begins which lies behind this trail: `offset` is what is known of any
    /// place, and `reach` where it begins if escapes were removed.
    pub(crate) fn of(trail: &Trail, offset: u64, (first, last): (u64, Option<u64>)) -> Self {
        let Some(coding) = trail.first() else {
            return Self::Between(first, last.unwrap_or(first));
        };
        match coding {
            Coding::Percent
            | Coding::Json
            | Coding::Html
            | Coding::QuotedPrintable
            | Coding::Terminal
            | Coding::Utf16
            | Coding::Latin1
            | Coding::Lines
            | Coding::Folded => match last.filter(|_| trail.depth() == 1) {
                Some(last) => Self::Between(first, last),
                None => Self::Between(offset, offset.saturating_add(limits::NESTED_REACH_BYTES)),
            },
            Coding::Base64 | Coding::Hex | Coding::Base32 => Self::Run(offset),
            Coding::Gzip
            | Coding::Zlib
            | Coding::Deflate
            | Coding::Brotli
            | Coding::Zstd
            | Coding::Bzip2
            | Coding::Xz
            | Coding::Lzip
            | Coding::Lzma
            | Coding::Lz4
            | Coding::Multipart
            | Coding::Numbers
            | Coding::Zip
            | Coding::Tar
            | Coding::GitPack => Self::Between(offset, offset),
            Coding::Joined | Coding::Reversed | Coding::Rot13 | Coding::Swapped => Self::Unknown,
        }
    }
}

impl ContentPosition {
    /// Of content that says to be of this media type: nothing of it came yet.
    pub(crate) fn of(media_type: &[u8]) -> Self {
        match MultipartParts::of(media_type) {
            Some(parts) => Self::Parts(0, Box::new(parts)),
            None => Self::Document(0, Box::default()),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Unknown => {}
            Self::Document(at, document) => {
                document.push(*at, bytes);
                *at = at.saturating_add(wide(bytes.len()));
            }
            Self::Parts(at, parts) => {
                parts.push(*at, bytes);
                *at = at.saturating_add(wide(bytes.len()));
            }
        }
    }

    /// What holds the place, in words on one line.
    pub(crate) fn inside(&self, spread: Spread, is_clean: IsClean<'_>) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Document(_, document) => document.inside(spread, is_clean),
            Self::Parts(_, parts) => parts.inside(spread, is_clean),
        }
    }
}

/// A name as it is shown: with escapes for what would end the line, steer a terminal, or
/// end the quotes around it. Nothing where it is no text, too long, or not clean.
pub(crate) fn shown(name: &[u8], quote: char, is_clean: IsClean<'_>) -> Option<String> {
    if name.len() > limits::NAME_BYTES_SHOWN || !is_clean(name) {
        return None;
    }
    let mut text = String::new();
    for letter in std::str::from_utf8(name).ok()?.chars() {
        if letter.is_control() || is_unseen(letter) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            if letter == quote || letter == '\\' {
                text.push('\\');
            }
            text.push(letter);
        }
    }
    Some(text)
}

/// The names in what is shown of a place, one after the other: the steps of a path, and what
/// stands in quotes.
pub(crate) fn names(text: &str) -> Vec<u8> {
    let mut names = String::new();
    let mut letters = text.chars();
    let (mut quote, mut is_step) = (None, false);
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (Some(_), '\\') => names.extend(letters.next()),
            (Some(_), _) => names.push(letter),
            (None, '\'' | '`') => {
                quote = Some(letter);
                is_step = false;
            }
            (None, '.') => is_step = true,
            (None, _) if is_step && (letter == '_' || letter.is_alphanumeric()) => {
                names.push(letter);
            }
            (None, _) => is_step = false,
        }
    }
    names.into_bytes()
}

/// Whether a character does not show, or turns around what stands beside it: those that may
/// be ignored where they are not known (Unicode, `Default_Ignorable_Code_Point`), ends of
/// lines and marks of annotations.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_out_of_what_is_shown() {
        for (text, expected) in [
            ("$.a['b c'].d[12]['e\\'f']", "ab cde'f"),
            ("part `x`, file `y.z`, $[3].a", "xy.za"),
            ("the header of part 3", ""),
            ("$", ""),
        ] {
            assert_eq!(names(text), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn names_stay_on_one_line_and_steer_nothing() {
        let all = |_: &[u8]| true;
        for (name, expected) in [
            ("plain", Some("plain")),
            ("naïve 文件", Some("naïve 文件")),
            (
                "a\x1b[2Jb\nc\u{202e}d\u{2028}",
                Some("a\\u001b[2Jb\\u000ac\\u202ed\\u2028"),
            ),
            ("it's `\\`", Some("it's \\`\\\\\\`")),
            ("", Some("")),
        ] {
            assert_eq!(shown(name.as_bytes(), '`', &all).as_deref(), expected);
        }
        let longest = [b'a'; limits::NAME_BYTES_SHOWN];
        assert!(shown(&longest, '`', &all).is_some());
        assert_eq!(
            shown(&[b'a'; limits::NAME_BYTES_SHOWN + 1], '`', &all),
            None
        );
        assert_eq!(shown(b"\xff", '`', &all), None);
        assert_eq!(shown(b"plain", '`', &|_| false), None);
    }
}
