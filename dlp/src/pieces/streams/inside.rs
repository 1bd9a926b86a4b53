//! What stands within values: their words, what those say that are coded, and values without
//! what is woven into them, each as texts beside the streams of whole values. Pure.

use std::borrow::Cow;

use super::super::words::{self, Begins};
use super::super::woven::{self, Seam};
use super::super::{Age, PieceLook, PieceSource, StreamEntry, coded, forms};
use super::{
    OwnStream, SideTexts, add_last, add_reversed, is_mixed, last, of, once_each, recent, side,
};

/// Adds the words that values hold: of each source and slot, of all heads, and of all.
pub(super) fn within(
    head: &mut SideTexts,
    content: &mut SideTexts,
    (own, entries): (&[OwnStream<'_>], &[StreamEntry<'_>]),
    begins: Begins<'_>,
) {
    let mut sources: Vec<PieceSource> = Vec::new();
    for entry in entries {
        if !sources.contains(&entry.source) {
            sources.push(entry.source);
        }
    }
    let of_source = |source| of(entries, |entry| entry.source == source);
    let words = sources.into_iter().map(of_source);
    let mut all: Vec<StreamEntry<'_>> = words
        .flat_map(|values| words::of(&values, begins))
        .collect();
    let words = of(&all, |word| word.age != Age::Constant);
    if words.iter().all(|word| word.age != Age::New) || !words::is_more(&all, begins) {
        return;
    }
    for own in own {
        let stream = of(&words, |word| own.holds(word));
        within_one(side(&own.stream, head, content), &stream, begins);
    }
    // As they were sent: sources come one after the other in each message.
    all.sort_by_key(|word| word.place);
    let words = of(&all, |word| word.age != Age::Constant);
    let heads = of(&words, |word| word.source.is_head());
    if is_mixed(&heads) {
        within_one(head, &heads, begins);
    }
    let has_head = |words: &[StreamEntry<'_>]| words.iter().any(|word| word.source.is_head());
    if heads.len() < words.len() && is_mixed(&all) {
        within_one(content, &words, begins);
        // What the head says in every message, it may have said first.
        if has_head(&all) && words.len() < all.len() {
            within_one(content, &all, begins);
        }
    }
}

/// Adds new values without what is woven into each.
pub(super) fn unwoven(
    head: &mut SideTexts,
    content: &mut SideTexts,
    varied: &[StreamEntry<'_>],
    begins: Begins<'_>,
) {
    let new = varied.iter().filter(|entry| entry.age == Age::New);
    let mut left = woven::BYTES_MAX;
    for entry in new.rev() {
        let Some(rest) = left.checked_sub(entry.bytes.len()) else {
            return;
        };
        left = rest;
        let texts = side(std::slice::from_ref(entry), head, content);
        for (seam, parts) in woven::forms(entry.bytes, begins) {
            let parts: Vec<Cow<'_, [u8]>> = parts.into_iter().map(Cow::Borrowed).collect();
            match seam {
                Seam::Sure => texts.woven.add(&parts),
                Seam::Perhaps => texts.words_confirmed.add(&parts),
            }
        }
    }
}

/// Whether a word looks like chance, or like the beginning of a credential and more of it.
fn is_of_chance(word: &StreamEntry<'_>, begins: Begins<'_>) -> bool {
    word.look == PieceLook::Chance || words::is_begun(word.bytes, begins)
}

/// Adds the words of a stream: those that chance made and whole values, and, to be
/// confirmed, all of them, and without signs around and between them.
fn within_one(texts: &mut SideTexts, words: &[StreamEntry<'_>], begins: Begins<'_>) {
    if words.iter().all(|word| word.age != Age::New) || !words::is_more(words, begins) {
        return;
    }
    let words = recent(words);
    let once = once_each(words);
    let again = (once.len() < words.len()).then_some(words);
    for words in [Some(once.as_slice()), again].into_iter().flatten() {
        add_coded(texts, words, begins);
        let chance = of(words, |word| is_of_chance(word, begins));
        let whole = of(words, |word| {
            word.look == PieceLook::Chance || word.look == PieceLook::Dense && word.is_whole
        });
        add_last(&mut texts.words, &chance);
        if chance.len() < whole.len() {
            add_last(&mut texts.words, &whole);
        }
        if chance.len() < words.len() {
            add_last(&mut texts.words_confirmed, words);
        }
        add_last(&mut texts.words_confirmed, &words::bare(words));
        for joins in words::JOINS {
            let cores = words::cores(words, joins, begins);
            // Where no sign joins anything, no single one does.
            if cores.is_empty() {
                break;
            }
            let may_be = of(&cores, |word| is_of_chance(word, begins));
            add_last(&mut texts.woven, &may_be);
            add_last(&mut texts.words_confirmed, &cores);
        }
        for place in [0, 1] {
            add_last(&mut texts.words_confirmed, &words::apart(words, place));
        }
        for words in [chance.as_slice(), &whole, words] {
            add_reversed(&mut texts.words_confirmed, words);
        }
    }
}

/// Adds what the last words of a stream say that are coded each by itself.
fn add_coded(texts: &mut SideTexts, words: &[StreamEntry<'_>], begins: Begins<'_>) {
    let words = last(words, |word| word.bytes.len());
    if words.iter().all(|word| word.age != Age::New) {
        return;
    }
    let (alone, among) = coded::forms(words, begins);
    for form in alone {
        texts.words.add(&form);
        texts.words_confirmed.add(&forms::reversed(&form));
    }
    if let Some(form) = among {
        texts.words_confirmed.add(&form);
        texts.words_confirmed.add(&forms::reversed(&form));
    }
}
