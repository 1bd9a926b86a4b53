//! The texts in documents that are no text: of CBOR (RFC 8949) by its own rules, of all others
//! (MessagePack, BSON, frames of gRPC-Web, what an application made up) as `strings` finds them.
//! Reads only; bounded in depth and in count.

use super::ContentValue;
use crate::limits;

/// Shortest text that is told apart from bytes that look like one by chance, in bytes.
const RUN_BYTES_MIN: usize = 4;
/// Before the name of a run.
const RUN_MARK: &[u8] = b"\0";
/// Longest text that may be the name of what follows, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// Whether content has bytes that stand in no text.
pub(super) fn is_binary(content: &[u8]) -> bool {
    let is_odd = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    content.iter().any(is_odd) || std::str::from_utf8(content).is_err()
}

/// Whether most of it is text all the same: of what chance made little is.
pub(super) fn is_mostly_text(content: &[u8]) -> bool {
    let letters = content.iter().filter(|byte| is_of_text(**byte)).count();
    letters.saturating_mul(2) >= content.len()
}

fn is_of_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}

/// The texts of a document that is no text. What may be CBOR may be something else to whom it
/// goes, so that it is read both ways.
pub(super) fn values(content: &[u8]) -> Vec<ContentValue> {
    let mut values = cbor(content).unwrap_or_default();
    values.extend(runs(content));
    values
}

/// What looks like text, one run after the other: under the name that stands before it, where
/// that is a word.
fn runs(content: &[u8]) -> Vec<ContentValue> {
    let mut values: Vec<ContentValue> = Vec::new();
    let mut name: &[u8] = b"";
    for run in content.split(|byte| !is_of_text(*byte)) {
        if run.is_empty() {
            continue;
        }
        let is_name = run.len() <= NAME_BYTES_MAX && run.iter().all(u8::is_ascii_lowercase);
        if run.len() >= RUN_BYTES_MIN || !is_name {
            // Under names that nothing has that is read in another way: what is coded stands
            // beside what it stands for, and pieces of both follow each other.
            values.push(ContentValue::new(&[RUN_MARK, name].concat(), run));
        }
        name = if is_name { run } else { b"" };
    }
    values
}

/// The texts of a sequence of CBOR items, if all of it is one and it holds more than a number.
fn cbor(content: &[u8]) -> Option<Vec<ContentValue>> {
    let mut reader = CborReader {
        rest: content,
        values: Vec::new(),
        items: 0,
    };
    while !reader.rest.is_empty() {
        reader.item(b"", limits::SCAN_MESSAGE_DEPTH_MAX)?;
    }
    (!reader.values.is_empty()).then_some(reader.values)
}

struct CborReader<'a> {
    rest: &'a [u8],
    values: Vec<ContentValue>,
    items: usize,
}

/// What stands at the head of an item.
#[derive(Clone, Copy)]
enum CborCount {
    /// So many bytes or items, or the number itself.
    Of(u64),
    /// As many as come before a break (RFC 8949 3.2.1).
    Open,
}

/// The byte that ends an item of unknown length.
const CBOR_BREAK: u8 = 0xff;

impl<'a> CborReader<'a> {
    /// Reads an item that stands under this name; nothing where it is none.
    fn item(&mut self, name: &[u8], depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.items = self.items.checked_add(1)?;
        if self.items > limits::SCAN_VALUES_BYTES_MAX {
            return None;
        }
        let (kind, count) = self.head()?;
        match (kind, count) {
            (0 | 1 | 7, CborCount::Of(_)) => Some(()),
            (2 | 3, count) => {
                let text = self.text(kind, count)?;
                self.values.push(ContentValue::new(name, &text));
                Some(())
            }
            (4, count) => self.each(count, |own| own.item(name, depth)),
            (5, count) => self.each(count, |own| {
                let key = own.name(depth)?;
                own.item(&key, depth)
            }),
            (6, CborCount::Of(_)) => self.item(name, depth),
            _ => None,
        }
    }

    /// The key of a pair. What somebody may have chosen counts as well.
    fn name(&mut self, depth: usize) -> Option<Vec<u8>> {
        let before = self.rest;
        if let (kind @ (2 | 3), count) = self.head()? {
            let name = self.text(kind, count)?;
            if super::is_chosen(&name) {
                self.values.push(ContentValue::name(&name));
            }
            Some(name)
        } else {
            self.rest = before;
            self.item(b"", depth)?;
            let length = before.len().checked_sub(self.rest.len())?;
            before.get(..length).map(<[u8]>::to_vec)
        }
    }

    fn each(
        &mut self,
        count: CborCount,
        mut read: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        match count {
            CborCount::Of(count) => {
                for _ in 0..count {
                    read(self)?;
                }
            }
            CborCount::Open => {
                while !self.is_over()? {
                    read(self)?;
                }
            }
        }
        Some(())
    }

    /// Whether the break is next, which is taken.
    fn is_over(&mut self) -> Option<bool> {
        let (first, behind) = self.rest.split_first()?;
        let is_over = *first == CBOR_BREAK;
        if is_over {
            self.rest = behind;
        }
        Some(is_over)
    }

    /// The bytes of a text, of all its parts; a text string (3) is UTF-8.
    fn text(&mut self, kind: u8, count: CborCount) -> Option<Vec<u8>> {
        let text = self.parts(kind, count)?;
        (kind != 3 || std::str::from_utf8(&text).is_ok()).then_some(text)
    }

    fn parts(&mut self, kind: u8, count: CborCount) -> Option<Vec<u8>> {
        match count {
            CborCount::Of(length) => self.take(length).map(<[u8]>::to_vec),
            CborCount::Open => {
                let mut text = Vec::new();
                while !self.is_over()? {
                    match self.head()? {
                        (own, CborCount::Of(length)) if own == kind => {
                            text.extend_from_slice(self.take(length)?);
                        }
                        _ => return None,
                    }
                }
                Some(text)
            }
        }
    }

    /// The kind of the next item, and its count.
    fn head(&mut self) -> Option<(u8, CborCount)> {
        let (first, behind) = self.rest.split_first()?;
        self.rest = behind;
        let (kind, low) = (first >> 5, first & 0x1f);
        let wide = match low {
            ..24 => return Some((kind, CborCount::Of(u64::from(low)))),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            31 if (2..=5).contains(&kind) => return Some((kind, CborCount::Open)),
            _ => return None,
        };
        let number = self.take(wide)?.iter();
        let number = number.fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some((kind, CborCount::Of(number)))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let (taken, behind) = self.rest.split_at_checked(length)?;
        self.rest = behind;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: Vec<ContentValue>) -> Vec<String> {
        let values = values.into_iter();
        let texts = values.map(|value| String::from_utf8_lossy(&value.bytes).into_owned());
        texts.collect()
    }

    #[test]
    fn texts_of_cbor_stand_without_its_heads() {
        for (content, expected) in [
            // {"i": 0, "d": "piece-01"}
            (&b"\xa2\x61i\x00\x61d\x68piece-01"[..], &["piece-01"][..]),
            (b"\x82\x63one\x63two", &["one", "two"]),
            (b"\x9f\x63one\x43two\xff", &["one", "two"]),
            (b"\x7f\x63one\x63two\xff", &["onetwo"]),
            // A tag, and a sequence.
            (b"\xc0\x63one\x63two", &["one", "two"]),
            // A number for a name.
            (b"\xa1\x01\x63one", &["one"]),
        ] {
            let found = cbor(content).map(texts);
            assert_eq!(
                found.as_deref(),
                Some(expected)
                    .map(|all| all
                        .iter()
                        .map(|text| (*text).to_owned())
                        .collect::<Vec<_>>())
                    .as_deref()
            );
        }
        let long = [b"\x78\x20".as_slice(), &[b'x'; 32]].concat();
        assert_eq!(cbor(&long).map(texts), Some(vec!["x".repeat(32)]));
    }

    #[test]
    fn what_is_none_of_it_is_read_by_runs() {
        for content in [
            // MessagePack.
            &b"\x82\xa1i\x05\xa1d\xa8piece-01"[..],
            // BSON.
            b"\x1b\0\0\0\x02d\0\x09\0\0\0piece-01\0\0",
            // A message in a frame of gRPC.
            b"\0\0\0\0\x0a\x0a\x08piece-01",
        ] {
            assert_eq!(texts(values(content)), ["piece-01"], "{content:?}");
        }
        assert_eq!(texts(values(b"\x9f\x63one")), ["cone"], "cut short");
    }

    #[test]
    fn no_bytes_make_it_deep_or_endless() {
        for content in [
            vec![0x81; 100_000].as_slice(),
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x5b\xff\xff\xff\xff\xff\xff\xff\xffab",
            &[b"\x9f".as_slice(), &vec![0; 100_000], b"\xff"].concat(),
        ] {
            assert!(cbor(content).is_none());
        }
    }

    proptest::proptest! {
        #[test]
        fn all_that_is_told_stood_there(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            for value in runs(&content) {
                assert!(memchr::memmem::find(&content, &value.bytes).is_some());
            }
            cbor(&content);
        }
    }
}
