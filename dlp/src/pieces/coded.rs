//! Words of values that are coded each by itself, as in `Basic dTpnaHBf`: what they say, as
//! pieces of a stream. Pure.

use std::borrow::Cow;

use super::StreamEntry;
use super::codings;
use super::forms::{self, Part};
use super::words::{self, Begins};

/// What words say that are coded, in the forms in which pieces are put together; the last
/// where a checksum or a known value has to confirm it. Other words are left out, but for
/// that one.
pub(super) fn forms<'a>(
    words: &[StreamEntry<'a>],
    begins: Begins<'_>,
) -> (Vec<Vec<Part<'a>>>, Option<Vec<Part<'a>>>) {
    let said: Vec<Option<Vec<u8>>> = words.iter().map(|word| codings::said(word.bytes)).collect();
    let texts: Vec<Part<'a>> = said.iter().flatten().cloned().map(Cow::Owned).collect();
    if texts.is_empty() {
        return (Vec::new(), None);
    }
    let within = |text: &Part<'a>| -> Vec<Part<'a>> {
        let parts = words::parts(text, begins);
        parts.map(|part| Cow::Owned(part.to_vec())).collect()
    };
    let parts: Vec<Part<'a>> = texts.iter().flat_map(within).collect();
    let fields = |text: &Part<'a>| -> Vec<Part<'a>> {
        let fields = text.split(|byte| forms::separates(*byte));
        fields.map(|field| Cow::Owned(field.to_vec())).collect()
    };
    let all: Vec<Part<'a>> = texts.iter().flat_map(fields).collect();
    let bare = forms::bare(&texts);
    // The halves of what Basic authentication says may be coded as well.
    let halves = [&texts, &parts, &all, bare.as_ref().unwrap_or(&all)];
    let halves: Vec<_> = halves
        .into_iter()
        .filter_map(|form| forms::changed(form, codings::said))
        .collect();
    let among = words.iter().zip(said).map(|(word, said)| match said {
        Some(said) => Cow::Owned(said),
        None => Cow::Borrowed(word.bytes),
    });
    let among = among.collect();
    let alone = [Some(texts), Some(parts), Some(all), bare];
    let alone = alone.into_iter().flatten().chain(halves);
    (alone.collect(), Some(among))
}
