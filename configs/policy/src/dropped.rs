//! What some servers drop from a decoded path before they look at its segments: bytes
//! that are no UTF-8 (`bytes.decode(errors="ignore")`, as Bottle does), and characters
//! that show nothing (byte order marks, zero-width characters, soft hyphens, the control
//! characters C1), as file systems and whoever cleans names does. Others put U+FFFD for
//! the bytes. ASCII's control characters are refused and never come here. Nothing here
//! knows readings or rules.

/// What of a path is dropped, or put for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropping {
    /// Bytes that are no UTF-8.
    Bytes,
    /// They, and characters that show nothing.
    Invisible,
    /// Nothing: U+FFFD stands for such bytes.
    Marked,
}

impl Dropping {
    pub(crate) const ALL: [Self; 3] = [Self::Bytes, Self::Invisible, Self::Marked];

    /// The segments without what is dropped; `None` where that is nothing.
    pub(crate) fn of(self, segments: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        if segments.iter().all(|segment| segment.is_ascii()) {
            return None;
        }
        let without: Vec<Vec<u8>> = segments.iter().map(|one| self.without(one)).collect();
        (without != segments).then_some(without)
    }

    fn without(self, segment: &[u8]) -> Vec<u8> {
        if segment.is_ascii() {
            return segment.to_vec();
        }
        let mut out = Vec::with_capacity(segment.len());
        for chunk in segment.utf8_chunks() {
            let valid = chunk.valid();
            if self == Self::Invisible {
                let shown = valid.chars().filter(|character| !is_invisible(*character));
                out.extend_from_slice(shown.collect::<String>().as_bytes());
            } else {
                out.extend_from_slice(valid.as_bytes());
            }
            if self == Self::Marked && !chunk.invalid().is_empty() {
                out.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
        out
    }
}

/// Whether other segments exist without what was dropped from these: one that is empty
/// now, of dots, or that may hold an escape. All others are only called otherwise, which
/// leads nowhere else.
pub(crate) fn changes_segments(before: &[Vec<u8>], without: &[Vec<u8>]) -> bool {
    let is_sign = |byte: &u8| b"/\\;?#".contains(byte);
    let mut pairs = before.iter().zip(without);
    pairs.any(|(before, without)| {
        let is_step = |part: &[u8]| part.iter().all(|byte| *byte == b'.');
        before != without && (without.contains(&b'%') || without.split(is_sign).any(is_step))
    })
}

/// Whether a character shows nothing: a control character of C1, or one that Unicode
/// calls default ignorable (`DerivedCoreProperties.txt`; HFS+ ignores most of them), a line
/// or a paragraph separator, or a mark of interlinear text.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_no_text_or_shows_nothing() {
        for (segment, bytes, invisible, marked) in [
            (&b"\xffadmin"[..], "admin", "admin", "\u{fffd}admin"),
            (b".\xff.", "..", "..", ".\u{fffd}."),
            (b"a\xe2\x80", "a", "a", "a\u{fffd}"),
            (b"\xed\xa0\x80a", "a", "a", "\u{fffd}\u{fffd}\u{fffd}a"),
            ("\u{feff}ä".as_bytes(), "\u{feff}ä", "ä", "\u{feff}ä"),
            (".\u{200b}.".as_bytes(), ".\u{200b}.", "..", ".\u{200b}."),
            (
                "ad\u{ad}m\u{85}in".as_bytes(),
                "ad\u{ad}m\u{85}in",
                "admin",
                "ad\u{ad}m\u{85}in",
            ),
        ] {
            let segments = [segment.to_vec()];
            for (dropping, want) in Dropping::ALL.into_iter().zip([bytes, invisible, marked]) {
                let found = dropping.of(&segments);
                let found = found.as_deref().unwrap_or(&segments);
                assert_eq!(
                    found,
                    [want.as_bytes()],
                    "{dropping:?} {}",
                    segment.escape_ascii()
                );
            }
        }
        assert_eq!(Dropping::Invisible.of(&["äöü-x".as_bytes().to_vec()]), None);
    }

    #[test]
    fn a_name_that_is_only_shorter_leads_nowhere_else() {
        for (before, without, changes) in [
            (&b"\xffadmin"[..], &b"admin"[..], false),
            (b"caf\xe9", b"caf", false),
            (b"\xff", b"", true),
            (b".\xff.", b"..", true),
            (b"a/\xff", b"a/", true),
            (b"a\\.\xff", b"a\\.", true),
            (b"..\xff;x", b"..;x", true),
            (b"%\xff41", b"%41", true),
        ] {
            let found = changes_segments(&[before.to_vec()], &[without.to_vec()]);
            assert_eq!(found, changes, "{}", before.escape_ascii());
        }
    }
}
