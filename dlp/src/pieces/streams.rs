//! Streams of pieces: what a credential that was cut into the values of a
//! message, or of several, would be read from. The pieces of one source, of one slot, and of a whole message,
//! each in order, are streams, and so are a slot of the head and the content
//! together. Constant slots, those that say the same in every message, are left
//! out, but for the last, where they count once; what repeats and is not said any
//! more is read once as well, at its first place, and what repeats at all. Each
//! stream is read as it is, without words, without what its pieces have around them
//! (`forms`), and as the words that its values hold (`words`); last piece first and
//! with pieces left out as well, where a checksum or a known value has to confirm
//! what is found. Tokens, known values and canaries are looked for in the same
//! streams.

use std::collections::{HashMap, HashSet};

use super::text::{Side, Text};
use super::words::{self, Begins};
use super::{Age, Entry, Look, Source, coded, forms};
use crate::limits;

/// In which orders pieces are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As they were sent.
    Sent,
    /// The last one first, too.
    Reversed,
    /// And with some left out.
    Any,
}

/// The texts of one side.
#[derive(Default)]
struct Texts {
    /// Streams of one source or slot: a credential that was coded before it was cut up.
    coded: Text,
    /// All others: a credential cut up as it is.
    written: Text,
    /// Streams in another order than that of sending, or without some of their pieces.
    reordered: Text,
    /// The words of values, and those that have to be confirmed: with room of their own.
    words: Text,
    words_confirmed: Text,
}

impl Texts {
    /// The texts, each for a side.
    fn into_sides(mut self, sides: [Side; 3]) -> [(Side, Text); 3] {
        self.written.append(&self.words);
        self.reordered.append(&self.words_confirmed);
        let [coded, written, reordered] = sides;
        [
            (coded, self.coded),
            (written, self.written),
            (reordered, self.reordered),
        ]
    }
}

/// The streams in which the new pieces take part, as texts for either side. Short ones come
/// first: long texts between the pieces must not take their room.
pub(crate) fn streams(entries: &[Entry<'_>], begins: Begins<'_>) -> Vec<(Side, Text)> {
    if entries.iter().all(|entry| entry.age != Age::New) {
        return Vec::new();
    }
    let (mut head, mut content) = (Texts::default(), Texts::default());
    let varied = of(entries, |entry| !entry.is_constant());
    let own = own_streams(&varied);
    for own in &own {
        let texts = side(&own.stream, &mut head, &mut content);
        let dense = of(&own.stream, Entry::is_dense);
        texts.coded.add_new(&dense);
        narrow(texts, &dense, own.order);
        once_each_of(texts, own, entries);
    }
    across(&mut head, &mut content, (entries, &varied));
    within(&mut head, &mut content, (&own, entries), begins);
    for own in &own {
        let texts = side(&own.stream, &mut head, &mut content);
        wide(&mut texts.written, &own.stream);
    }
    let heads = [Side::Head, Side::HeadAsWritten, Side::HeadReordered];
    let contents = [
        Side::Content,
        Side::ContentAsWritten,
        Side::ContentReordered,
    ];
    let mut texts = Vec::from(head.into_sides(heads));
    texts.extend(content.into_sides(contents));
    texts
}

/// The pieces of one source or of one slot that are not constant.
struct OwnStream<'a> {
    order: Order,
    source: Source,
    /// Nothing where it is that of the source.
    slot: Option<u64>,
    stream: Vec<Entry<'a>>,
}

impl OwnStream<'_> {
    fn holds(&self, entry: &Entry<'_>) -> bool {
        entry.source == self.source && self.slot.is_none_or(|slot| slot == entry.slot)
    }
}

/// The streams of each source and of each slot that says something new, and in which orders
/// their pieces are put together.
fn own_streams<'a>(varied: &[Entry<'a>]) -> Vec<OwnStream<'a>> {
    let mut sources: Vec<Source> = Vec::new();
    let mut slots: Vec<(Source, u64)> = Vec::new();
    for entry in varied.iter().rev().filter(|entry| entry.age == Age::New) {
        if !sources.contains(&entry.source) {
            sources.push(entry.source);
        }
        let slot = (entry.source, entry.slot);
        if slots.len() < limits::JOINED_SLOTS_MAX && !slots.contains(&slot) {
            slots.push(slot);
        }
    }
    let of_source = |source| OwnStream {
        order: Order::Any,
        source,
        slot: None,
        stream: of(varied, |entry| entry.source == source),
    };
    let mut streams: Vec<OwnStream<'a>> = sources.into_iter().map(of_source).collect();
    let count = streams.len();
    for (source, slot) in slots {
        let stream = of(varied, |entry| entry.slot == slot);
        let is_all =
            |other: &OwnStream<'_>| other.source == source && other.stream.len() == stream.len();
        if !streams.iter().take(count).any(is_all) {
            streams.push(OwnStream {
                order: Order::Reversed,
                source,
                slot: Some(slot),
                stream,
            });
        }
    }
    streams
}

/// Adds what a source or a slot says, each piece once, at its first place: without what
/// every message says, with it, and without what comes most often.
fn once_each_of(texts: &mut Texts, own: &OwnStream<'_>, entries: &[Entry<'_>]) {
    let all = of(entries, |entry| {
        own.holds(entry) && entry.age != Age::Constant
    });
    let has_repeated = all.iter().any(|entry| entry.age == Age::Repeated);
    let left = of(&all, Entry::is_dense);
    let left = recent(&left);
    let rare = less_often(left);
    let mut add = |stream: &[Entry<'_>]| {
        let once = once_each(stream);
        add_last(&mut texts.written, &once);
        narrow(texts, &once, own.order);
    };
    if has_repeated || rare.len() < left.len() {
        add(left);
    }
    if rare.len() < left.len() {
        add(&rare);
    }
    if has_repeated {
        add_last(&mut texts.written, &once_each(recent(&all)));
    }
    let dense = of(entries, |entry| own.holds(entry) && entry.is_dense());
    if dense.iter().any(|entry| entry.age == Age::Constant) {
        add_last(&mut texts.written, &once_each(recent(&dense)));
    }
}

/// Of pieces the last, as many as a credential may be cut into that are sent several times.
fn recent<'a, 'b>(stream: &'a [Entry<'b>]) -> &'a [Entry<'b>] {
    last_of(stream, limits::JOINED_REPEATED_BYTES_MAX, |entry| {
        entry.bytes.len()
    })
}

/// The pieces that come less often than the others: what a client says in most of its
/// requests is none, whatever it says else under that name.
fn less_often<'a>(stream: &[Entry<'a>]) -> Vec<Entry<'a>> {
    let mut counts: HashMap<&[u8], usize> = HashMap::with_capacity(stream.len());
    for entry in stream {
        let count = counts.entry(entry.bytes).or_default();
        *count = count.saturating_add(1);
    }
    let most = counts.values().max().copied().unwrap_or_default();
    let is_rare = |entry: &Entry<'_>| most < 2 || counts.get(entry.bytes) != Some(&most);
    of(stream, is_rare)
}

/// Each piece once, where it stood first.
fn once_each<'a>(stream: &[Entry<'a>]) -> Vec<Entry<'a>> {
    let mut said: HashSet<&[u8]> = HashSet::with_capacity(stream.len());
    let once = stream.iter().filter(|entry| said.insert(entry.bytes));
    once.copied().collect()
}

/// Adds the end of a stream, where something in it is new.
fn add_last(text: &mut Text, stream: &[Entry<'_>]) {
    let stream = last(stream, |entry| entry.bytes.len());
    if stream.iter().any(|entry| entry.age == Age::New) {
        text.add(&forms::pieces(stream));
    }
}

/// Adds the words that values hold: of each source and slot, of all heads, and of all.
fn within(
    head: &mut Texts,
    content: &mut Texts,
    (own, entries): (&[OwnStream<'_>], &[Entry<'_>]),
    begins: Begins<'_>,
) {
    let mut sources: Vec<Source> = Vec::new();
    for entry in entries {
        if !sources.contains(&entry.source) {
            sources.push(entry.source);
        }
    }
    let of_source = |source| of(entries, |entry| entry.source == source);
    let words = sources.into_iter().map(of_source);
    let mut all: Vec<Entry<'_>> = words
        .flat_map(|values| words::of(&values, begins))
        .collect();
    let words = of(&all, |word| word.age != Age::Constant);
    if words.iter().all(|word| word.age != Age::New) || !words::is_more(&all) {
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
    let has_head = |words: &[Entry<'_>]| words.iter().any(|word| word.source.is_head());
    if heads.len() < words.len() && is_mixed(&all) {
        within_one(content, &words, begins);
        // What the head says in every message, it may have said first.
        if has_head(&all) && words.len() < all.len() {
            within_one(content, &all, begins);
        }
    }
}

/// Adds the words of a stream: those that chance made and whole values, and, to be
/// confirmed, all of them, and without signs around and between them.
fn within_one(texts: &mut Texts, words: &[Entry<'_>], begins: Begins<'_>) {
    if words.iter().all(|word| word.age != Age::New) || !words::is_more(words) {
        return;
    }
    let words = recent(words);
    let once = once_each(words);
    let again = (once.len() < words.len()).then_some(words);
    for words in [Some(once.as_slice()), again].into_iter().flatten() {
        add_coded(texts, words, begins);
        let chance = of(words, |word| word.look == Look::Chance);
        let whole = of(words, |word| {
            word.look == Look::Chance || word.look == Look::Dense && word.is_whole
        });
        add_last(&mut texts.words, &chance);
        if chance.len() < whole.len() {
            add_last(&mut texts.words, &whole);
        }
        if chance.len() < words.len() {
            add_last(&mut texts.words_confirmed, words);
        }
        add_last(&mut texts.words_confirmed, &words::bare(words));
        for place in [0, 1] {
            add_last(&mut texts.words_confirmed, &words::apart(words, place));
        }
    }
}

/// Adds what the last words of a stream say that are coded each by itself.
fn add_coded(texts: &mut Texts, words: &[Entry<'_>], begins: Begins<'_>) {
    let words = last(words, |word| word.bytes.len());
    if words.iter().all(|word| word.age != Age::New) {
        return;
    }
    let (alone, among) = coded::forms(words, begins);
    for form in alone {
        texts.words.add(&form);
    }
    if let Some(form) = among {
        texts.words_confirmed.add(&form);
    }
}

/// The texts of the side on which a stream stands.
fn side<'a>(stream: &[Entry<'_>], head: &'a mut Texts, content: &'a mut Texts) -> &'a mut Texts {
    match stream.first() {
        Some(first) if first.source.is_head() => head,
        _ => content,
    }
}

/// Whether pieces are of several sources.
fn is_mixed(stream: &[Entry<'_>]) -> bool {
    let first = stream.first().map(|entry| entry.source);
    stream.iter().any(|entry| Some(entry.source) != first)
}

/// The pieces that belong to a stream.
fn of<'a>(entries: &[Entry<'a>], belongs: impl Fn(&Entry<'a>) -> bool) -> Vec<Entry<'a>> {
    let own = entries.iter().filter(|entry| belongs(entry));
    own.copied().collect()
}

/// Adds the streams over several sources: of all heads, of all contents, and of both.
fn across(head: &mut Texts, content: &mut Texts, (all, varied): (&[Entry<'_>], &[Entry<'_>])) {
    let is_head = |entry: &Entry<'_>| entry.source.is_head();
    let heads = of(varied, is_head);
    let both = |text: &mut Text, stream: &[Entry<'_>]| {
        text.add_new(&of(stream, Entry::is_dense));
        text.add_new(stream);
    };
    if is_mixed(&heads) {
        both(&mut head.written, &heads);
        let of_client = |entry: &Entry<'_>| matches!(entry.source, Source::Client);
        if heads.iter().any(of_client) {
            let mut sent = of(&heads, Entry::is_dense);
            sent.sort_by_key(|entry| entry.place);
            add_last(&mut head.written, &sent);
        }
    }
    let left = of(all, |entry| {
        is_head(entry) && entry.is_dense() && entry.age != Age::Constant
    });
    if left.iter().any(|entry| entry.age == Age::Repeated) && is_mixed(&left) {
        add_last(&mut head.written, &once_each(&left));
    }
    if varied.iter().all(is_head) {
        return;
    }
    // What a slot of the head always says is said once.
    let dense = of(all, |entry| {
        entry.is_dense() && (entry.age != Age::Constant || is_head(entry))
    });
    let mut slots: Vec<u64> = Vec::new();
    for entry in dense.iter().filter(|entry| is_head(entry)) {
        if slots.len() < limits::JOINED_SLOTS_MAX && !slots.contains(&entry.slot) {
            slots.push(entry.slot);
        }
    }
    let start = content.written.bytes.len();
    let behind = [Source::Content, Source::ContentName, Source::Beside];
    let ways = slots
        .iter()
        .flat_map(|slot| behind.map(|source| (*slot, source)));
    for (slot, source) in ways {
        let added = content.written.bytes.len().saturating_sub(start);
        if added > limits::JOINED_MIXED_BYTES_MAX {
            break;
        }
        let stream = said_anew(&of(&dense, |entry| {
            entry.slot == slot || entry.source == source
        }));
        if stream.iter().any(|entry| entry.source == source) {
            content.written.add_new(&stream);
            let mut end = last(&stream, |entry| entry.bytes.len()).iter();
            if end.any(is_head) {
                narrow(content, &stream, Order::Sent);
            }
        }
    }
    if is_mixed(varied) {
        both(&mut content.written, &of(varied, |entry| !is_head(entry)));
        both(&mut content.written, varied);
    }
}

/// Adds the end of a stream without words in the forms in which pieces are put together,
/// and in other orders.
fn narrow(texts: &mut Texts, dense: &[Entry<'_>], order: Order) {
    let stream = last(dense, |entry| entry.bytes.len());
    if stream.len() < 2 || stream.iter().all(|entry| entry.age != Age::New) {
        return;
    }
    let pieces = forms::pieces(stream);
    let made = forms::all(&pieces);
    for form in &made {
        texts.written.add(form);
    }
    if order == Order::Sent {
        return;
    }
    texts.reordered.add(&forms::reversed(&pieces));
    for form in &made {
        texts.reordered.add(&forms::reversed(form));
    }
    if order == Order::Any {
        for form in forms::sparse(&pieces) {
            texts.reordered.add(&form);
        }
        texts.reordered.add(&forms::pieces(&said_once(stream)));
    }
}

/// What slots of the head say, each time that it is not what they said before.
fn said_anew<'a>(stream: &[Entry<'a>]) -> Vec<Entry<'a>> {
    let mut anew: Vec<Entry<'a>> = Vec::new();
    for entry in stream {
        let is_same = |other: &Entry<'_>| other.slot == entry.slot && other.bytes == entry.bytes;
        if !entry.source.is_head() || !anew.iter().any(is_same) {
            anew.push(*entry);
        }
    }
    anew
}

/// The pieces of slots that say one thing.
fn said_once<'a>(stream: &[Entry<'a>]) -> Vec<Entry<'a>> {
    of(stream, |entry| {
        let same = stream.iter().filter(|other| other.slot == entry.slot);
        same.count() == 1
    })
}

/// Adds a stream with all that is in it.
fn wide(text: &mut Text, stream: &[Entry<'_>]) {
    if stream.iter().all(|entry| entry.age != Age::New) {
        return;
    }
    let stream = latest(stream);
    let pieces = forms::pieces(stream);
    text.add(&pieces);
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    // Each of the last pieces as the end: what a form of any length reads on into the next
    // piece would be another value.
    let new = stream.iter().filter(|entry| entry.age == Age::New).count();
    for end in (1..new).take(limits::JOINED_ENDS_MAX) {
        let to = pieces.len().saturating_sub(end);
        let to = pieces.get(..to).unwrap_or_default();
        text.add(last(to, |piece| piece.len()));
    }
    if !text.has_room(bytes) {
        return;
    }
    let changes = [forms::without_signs, forms::without_number, forms::decoded];
    let changed = changes.map(|change| forms::changed(&pieces, change));
    for form in changed.into_iter().chain([forms::once(&pieces)]).flatten() {
        text.add(&form);
    }
}

/// Of a stream all that is new, and before it as much as counts.
pub(super) fn latest<'a, 'b>(stream: &'a [Entry<'b>]) -> &'a [Entry<'b>] {
    let new = stream.iter().position(|entry| entry.age == Age::New);
    let mut from = new.unwrap_or(stream.len());
    let mut bytes = 0_usize;
    while let Some(before) = from.checked_sub(1) {
        bytes = bytes.saturating_add(stream.get(before).map_or(0, |entry| entry.bytes.len()));
        if bytes > limits::WINDOW_BYTES_MAX {
            break;
        }
        from = before;
    }
    stream.get(from..).unwrap_or_default()
}

/// Of pieces the last, as many as a credential may be cut into.
fn last<T>(pieces: &[T], length: impl Fn(&T) -> usize) -> &[T] {
    last_of(pieces, limits::JOINED_FORMS_BYTES_MAX, length)
}

/// Of pieces the last of so many bytes.
fn last_of<T>(pieces: &[T], most: usize, length: impl Fn(&T) -> usize) -> &[T] {
    let mut bytes = 0_usize;
    let some = pieces.iter().rev().take_while(|piece| {
        bytes = bytes.saturating_add(length(piece));
        bytes <= most
    });
    let from = pieces.len().saturating_sub(some.count());
    pieces.get(from..).unwrap_or_default()
}
