//! What a sender chooses freely in short content: the texts of a JSON document,
//! the values of a form, or all of it. A credential could be split over these,
//! from one request to the next. Reads only.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::limits;

/// The end of content, as far as the next may continue it, and all of it while
/// it is short.
#[derive(Debug, Default)]
pub(super) struct Seen {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Seen {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let most = limits::SCAN_VALUES_BYTES_MAX;
        let keep = bytes.len().saturating_sub(most);
        self.bytes
            .extend_from_slice(bytes.get(keep..).unwrap_or_default());
        let excess = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..excess);
        self.is_cut |= keep > 0 || excess > 0;
    }

    /// Its values as far as it came.
    pub(super) fn values(&self) -> Vec<Vec<u8>> {
        if self.is_cut {
            return vec![self.bytes.clone()];
        }
        of(self.bytes.clone())
    }

    /// Its values, and nothing kept of it.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        let own = std::mem::take(self);
        own.values()
    }
}

/// The values of whole content.
fn of(content: Vec<u8>) -> Vec<Vec<u8>> {
    if let [b'{' | b'[' | b'"', ..] = content.trim_ascii_start()
        && let Some(texts) = texts(&content)
    {
        return texts;
    }
    let is_form = |byte: &u8| byte.is_ascii_alphanumeric() || b"+%&=-_.~*[]".contains(byte);
    if content.contains(&b'=') && content.iter().all(is_form) {
        let pairs = content.split(|byte| *byte == b'&');
        let values = pairs.filter_map(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1));
        return values.map(<[u8]>::to_vec).collect();
    }
    vec![content]
}

/// The texts of a document; nothing where it is none.
fn texts(content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    let mut document = serde_json::Deserializer::from_slice(content);
    Texts(&mut texts).deserialize(&mut document).ok()?;
    document.end().ok()?;
    Some(texts)
}

/// Collects the texts of a document in its order, names left out; a name that
/// stands twice counts twice.
struct Texts<'a>(&'a mut Vec<Vec<u8>>);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a document")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(text.as_bytes().to_vec());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(Texts(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key::<IgnoredAny>()?.is_some() {
            members.next_value_seed(Texts(self.0))?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(content: &str) -> Vec<String> {
        let mut seen = Seen::default();
        for byte in content.as_bytes() {
            seen.push(&[*byte]);
        }
        let texts = seen.take().into_iter().map(String::from_utf8);
        texts.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn values_are_those_a_sender_chooses() {
        for (content, expected) in [
            ("plain words", &["plain words"][..]),
            (
                r#"{"a":"x","b":[1,"y",{"c":"z"}],"d":true}"#,
                &["x", "y", "z"],
            ),
            (r#"{"b":"x","a":"y","b":"z"}"#, &["x", "y", "z"]),
            (r#""\u0067hp_""#, &["ghp_"]),
            ("a=x&b=y&c", &["x", "y"]),
            ("a=x==&b=", &["x==", ""]),
            (r#"{"a":"x""#, &[r#"{"a":"x""#]),
        ] {
            assert_eq!(values(content), expected, "{content}");
        }
    }

    #[test]
    fn of_long_content_the_end_counts() {
        let most = limits::SCAN_VALUES_BYTES_MAX;
        let mut seen = Seen::default();
        seen.push(&vec![b'a'; most]);
        seen.push(b"end");
        let values = seen.take();
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].len(), most);
        assert!(values[0].ends_with(b"aend"));
        assert_eq!(seen.take(), [b""]);
    }

    #[test]
    fn a_document_too_deep_is_plain_content() {
        let deep = "[".repeat(4000);
        assert_eq!(values(&deep), [deep]);
    }
}
