//! Members of a record as they are read: each with its bound, and what is of no known form
//! taken for absent where a record may lack it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::limits::{ITEMS_MAX, LIST_BYTES_MAX, TEXT_BYTES_MAX};
use crate::words::{Alarm, Outcome, Token, Word};

/// The beginning of a text, cut at a character.
pub(crate) fn within(text: &str, bytes: usize) -> &str {
    let end = text.floor_char_boundary(bytes);
    text.get(..end).unwrap_or(text)
}

fn bounded(value: &Value) -> Option<String> {
    // A copy: what is cut would keep the memory of all of it.
    let text = value.as_str()?;
    Some(within(text, TEXT_BYTES_MAX).to_owned())
}

fn list(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    let texts = items.filter_map(Value::as_str);
    let mut room = LIST_BYTES_MAX;
    let mut list = Vec::new();
    for text in texts.take(ITEMS_MAX) {
        let text = within(text, TEXT_BYTES_MAX.min(room));
        room = room.saturating_sub(text.len());
        list.push(text.to_owned());
    }
    list
}

pub(crate) fn text_if<'de, 'a, D>(from: D) -> Result<Option<Cow<'a, str>>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(bounded(&Value::deserialize(from)?).map(Cow::Owned))
}

pub(crate) fn text<'de, 'a, D>(from: D) -> Result<Cow<'a, str>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(text_if(from)?.unwrap_or(Cow::Borrowed("")))
}

pub(crate) fn number_if<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(from)?.as_u64())
}

pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(number_if(from)?.unwrap_or(0))
}

pub(crate) fn narrow_if<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(number_if(from)?.and_then(|number| u32::try_from(number).ok()))
}

pub(crate) fn narrow<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(narrow_if(from)?.unwrap_or(0))
}

pub(crate) fn word_if<'de, 'a, D, T>(from: D) -> Result<Option<Word<'a, T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Token,
{
    Ok(text_if(from)?.map(Word::read))
}

pub(crate) fn word<'de, 'a, D, T>(from: D) -> Result<Word<'a, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Token,
{
    Ok(word_if(from)?.unwrap_or_default())
}

pub(crate) fn outcome<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
    let word = text(from)?;
    Ok(Outcome::of(&word).unwrap_or(Outcome::Note))
}

pub(crate) fn alarm<'de, D: Deserializer<'de>>(from: D) -> Result<Alarm, D::Error> {
    Ok(match Value::deserialize(from)?.as_bool() {
        Some(true) => Alarm::Raised,
        Some(false) | None => Alarm::None,
    })
}

pub(crate) fn texts<'de, 'a, D>(from: D) -> Result<Cow<'a, [String]>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(Cow::Owned(list(&Value::deserialize(from)?)))
}

pub(crate) fn ancestors<'de, 'a, D, P>(from: D) -> Result<Cow<'a, [P]>, D::Error>
where
    D: Deserializer<'de>,
    P: Clone + From<String>,
{
    let texts = list(&Value::deserialize(from)?);
    Ok(Cow::Owned(texts.into_iter().map(P::from).collect()))
}

/// A member with members; an empty one where it is of another kind.
pub(crate) fn nested<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + for<'v> Deserialize<'v>,
{
    Ok(Some(
        T::deserialize(Value::deserialize(from)?).unwrap_or_default(),
    ))
}
