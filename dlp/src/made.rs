//! The texts that codings of content stand for (gzip, base64, entries of archives), as far as
//! they are short: a sender chooses their values as it does those of plain content, and
//! a credential may be cut into these. Keeps bounded texts.

use crate::limits;
use crate::trail::Trail;

/// Bytes by which a text is told.
const BEGIN_BYTES: usize = 64;

/// Whether what a layer reads is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MadeMark {
    /// Nothing came yet.
    #[default]
    Unknown,
    /// It is no text, or there is no room for more.
    Left,
    /// As the text with this number.
    Kept(usize),
}

/// Whether bytes begin a text, or a name that is filled up with zeros: an archive of short
/// texts (tar(5)), of which zeros are kept once.
fn begins_as_text(bytes: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let is_filled = bytes.first().is_some_and(u8::is_ascii_graphic);
    bytes
        .iter()
        .all(|byte| is_sign(byte) || (is_filled && *byte == 0))
}

/// Texts that were made, in the order in which they began.
#[derive(Default)]
pub(crate) struct MadeTexts {
    texts: Vec<Vec<u8>>,
    bytes: usize,
}

impl MadeTexts {
    /// Takes the next bytes of a layer.
    pub(crate) fn keep(&mut self, mark: &mut MadeMark, trail: &Trail, bytes: &[u8]) {
        if *mark == MadeMark::Unknown {
            let begin = bytes.get(..BEGIN_BYTES).unwrap_or(bytes);
            let has_room = self.texts.len() < limits::MADE_TEXTS_MAX;
            *mark = if trail.is_coded() && has_room && begins_as_text(begin) {
                self.texts.push(Vec::new());
                MadeMark::Kept(self.texts.len().saturating_sub(1))
            } else {
                MadeMark::Left
            };
        }
        let MadeMark::Kept(number) = *mark else {
            return;
        };
        if let Some(text) = self.texts.get_mut(number) {
            let known = text.len();
            let room = limits::MADE_TEXT_BYTES_MAX.saturating_sub(known);
            let room = room.min(limits::MADE_BYTES_MAX.saturating_sub(self.bytes));
            for byte in bytes {
                if text.len() >= known.saturating_add(room) {
                    break;
                }
                if *byte != 0 || text.last() != Some(&0) {
                    text.push(*byte);
                }
            }
            self.bytes = self.bytes.saturating_add(text.len().saturating_sub(known));
        }
    }

    /// All of them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;

    #[test]
    fn short_texts_behind_codings_are_kept_and_nothing_else() {
        let coded = Trail::default().with(Coding::Gzip, None);
        let escaped = Trail::default().with(Coding::Json, None);
        let mut made = MadeTexts::default();
        let mut marks = [MadeMark::default(); 4];
        let [one, two, three, four] = &mut marks;
        made.keep(one, &coded, b"{\"a\":");
        made.keep(two, &coded, b"\x00\x01");
        made.keep(three, &Trail::default(), b"plain");
        made.keep(four, &escaped, b"plain");
        made.keep(one, &coded, b"1}");
        made.keep(two, &coded, b"text");
        assert_eq!(made.texts().collect::<Vec<_>>(), [b"{\"a\":1}"]);
        // A tar(5), of which nobody needs the zeros.
        let mut archive = MadeMark::default();
        for part in [&b"xaa\0\0\0\0"[..], &[0; 500], b"text", &[0; 500]] {
            made.keep(&mut archive, &coded, part);
        }
        assert_eq!(made.texts().last(), Some(&b"xaa\0text\0"[..]));
        for _ in 0..limits::MADE_TEXTS_MAX * 2 {
            let mut mark = MadeMark::default();
            made.keep(
                &mut mark,
                &coded,
                &vec![b'a'; limits::MADE_TEXT_BYTES_MAX * 2],
            );
        }
        assert!(made.texts().count() <= limits::MADE_TEXTS_MAX);
        let bytes: usize = made.texts().map(<[u8]>::len).sum();
        assert_eq!(bytes, limits::MADE_BYTES_MAX);
    }
}
