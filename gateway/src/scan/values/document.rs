//! The texts of a JSON document in its order, each under its name, and the names; what lists
//! of numbers say that are the bytes of a text is one of them. Reads only.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::ContentValue;

/// Fewest numbers of a list that are a text, in count.
const NUMBERS_MIN: usize = 2;

/// The same of an object, whose members mostly are something else.
const MEMBERS_MIN: usize = 4;

/// The texts of a document, or of several, one behind the other, also of one that is not at
/// its end; nothing where it is none.
pub(super) fn texts(content: &[u8]) -> Option<Vec<ContentValue>> {
    let mut found = Found::default();
    let mut documents = serde_json::Deserializer::from_slice(content);
    loop {
        let texts = Texts {
            found: &mut found,
            slot: b"",
        };
        match texts.deserialize(&mut documents) {
            Err(error) if !error.is_eof() => return None,
            // What the last text has begun with.
            Err(_) => {
                found.end(b"", NUMBERS_MIN);
                let mut rest = content.rsplit(|byte| *byte == b'"');
                let begun = rest.next().filter(|text| !text.is_empty());
                let begun = begun.map(|text| ContentValue::new(b"", text));
                found.values.extend(begun);
                return Some(found.values);
            }
            Ok(()) if documents.end().is_ok() => return Some(found.values),
            Ok(()) => {}
        }
    }
}

/// What was found in a document.
#[derive(Default)]
struct Found {
    values: Vec<ContentValue>,
    /// Numbers that could be the bytes of a text.
    numbers: Vec<u8>,
}

impl Found {
    /// No more numbers belong to those before: enough of them are a text.
    fn end(&mut self, slot: &[u8], least: usize) {
        if self.numbers.len() >= least {
            self.values.push(ContentValue::new(slot, &self.numbers));
        }
        self.numbers.clear();
    }

    /// The numbers behind so many are all of a list or an object: fewer than enough may stand
    /// for some among those around.
    fn end_from(&mut self, from: usize, slot: &[u8], least: usize) {
        if let Some(own) = self.numbers.get(from..)
            && own.len() >= least
        {
            self.values.push(ContentValue::new(slot, own));
            self.numbers.truncate(from);
        }
    }
}

/// Collects the texts of a document; one that stands twice counts twice.
struct Texts<'a> {
    found: &'a mut Found,
    slot: &'a [u8],
}

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
        self.found.end(self.slot, MEMBERS_MIN);
        self.found
            .values
            .push(ContentValue::new(self.slot, text.as_bytes()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { found, slot } = self;
        let from = found.numbers.len();
        while items
            .next_element_seed(Texts {
                found: &mut *found,
                slot,
            })?
            .is_some()
        {}
        found.end_from(from, slot, NUMBERS_MIN);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { found, slot } = self;
        let from = found.numbers.len();
        while let Some(name) = members.next_key::<String>()? {
            found.values.push(ContentValue::name(name.as_bytes()));
            members.next_value_seed(Texts {
                found: &mut *found,
                slot: name.as_bytes(),
            })?;
        }
        found.end_from(from, slot, MEMBERS_MIN);
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

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        match u8::try_from(number) {
            Ok(byte) if byte.is_ascii_graphic() => self.found.numbers.push(byte),
            _ => self.found.end(self.slot, NUMBERS_MIN),
        }
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}
