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

use super::ends::{last, last_of, latest};
use super::text::{JoinedText, Side};
use super::words::Begins;
use super::{Age, PieceSource, StreamEntry, cores, forms};
use crate::limits;

mod inside;

use inside::{unwoven, within};

/// In which orders pieces are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceOrder {
    /// As they were sent.
    Sent,
    /// The last one first, too.
    Reversed,
    /// And with some left out.
    Any,
}

/// The texts of one side.
#[derive(Default)]
struct SideTexts {
    /// Streams of one source or slot: a credential that was coded before it was cut up.
    coded: JoinedText,
    /// All others: a credential cut up as it is.
    written: JoinedText,
    /// Streams in another order than that of sending, or without some of their pieces.
    reordered: JoinedText,
    /// The words of values, and those that have to be confirmed: with room of their own.
    words: JoinedText,
    words_confirmed: JoinedText,
    /// Values and words without what was taken out of them.
    woven: JoinedText,
}

impl SideTexts {
    /// The texts, each for a side.
    fn into_sides(mut self, sides: [Side; 4]) -> [(Side, JoinedText); 4] {
        self.written.append(&self.words);
        self.reordered.append(&self.words_confirmed);
        let [coded, written, woven, reordered] = sides;
        [
            (coded, self.coded),
            (written, self.written),
            (woven, self.woven),
            (reordered, self.reordered),
        ]
    }
}

/// The streams in which the new pieces take part, as texts for either side. Short ones come
/// first: long texts between the pieces must not take their room.
pub(crate) fn streams(entries: &[StreamEntry<'_>], begins: Begins<'_>) -> Vec<(Side, JoinedText)> {
    if entries.iter().all(|entry| entry.age != Age::New) {
        return Vec::new();
    }
    let (mut head, mut content) = (SideTexts::default(), SideTexts::default());
    let varied = of(entries, |entry| !entry.is_constant());
    let own = own_streams(&varied);
    for own in &own {
        let texts = side(&own.stream, &mut head, &mut content);
        let dense = of(&own.stream, StreamEntry::is_dense);
        texts.coded.add_new(&dense);
        // What a coding makes may be digits alone in one piece, or letters.
        let symbols = of(&own.stream, StreamEntry::is_of_symbols);
        if symbols.len() > dense.len() {
            texts.coded.add_new(&symbols);
        }
        cores::add(&mut texts.coded, &own.stream);
        narrow(texts, &dense, own.order);
        once_each_of(texts, own, entries);
    }
    across(&mut head, &mut content, (entries, &varied));
    for own in &own {
        let texts = side(&own.stream, &mut head, &mut content);
        cores::add_words(&mut texts.words_confirmed, &own.stream);
    }
    within(&mut head, &mut content, (&own, entries), begins);
    unwoven(&mut head, &mut content, &varied, begins);
    for own in &own {
        let texts = side(&own.stream, &mut head, &mut content);
        wide(texts, &own.stream);
        add_reversed(&mut texts.reordered, &own.stream);
    }
    let heads = [
        Side::Head,
        Side::HeadAsWritten,
        Side::HeadWoven,
        Side::HeadReordered,
    ];
    let contents = [
        Side::Content,
        Side::ContentAsWritten,
        Side::ContentWoven,
        Side::ContentReordered,
    ];
    let mut texts = Vec::from(head.into_sides(heads));
    texts.extend(content.into_sides(contents));
    texts
}

/// The pieces of one source or of one slot that are not constant.
struct OwnStream<'a> {
    order: PieceOrder,
    source: PieceSource,
    /// Nothing where it is that of the source.
    slot: Option<u64>,
    stream: Vec<StreamEntry<'a>>,
}

impl OwnStream<'_> {
    fn holds(&self, entry: &StreamEntry<'_>) -> bool {
        entry.source == self.source && self.slot.is_none_or(|slot| slot == entry.slot)
    }
}

/// The streams of each source and of each slot that says something new, and in which orders
/// their pieces are put together.
fn own_streams<'a>(varied: &[StreamEntry<'a>]) -> Vec<OwnStream<'a>> {
    let mut sources: Vec<PieceSource> = Vec::new();
    let mut slots: Vec<(PieceSource, u64)> = Vec::new();
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
        order: PieceOrder::Any,
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
                order: PieceOrder::Reversed,
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
fn once_each_of(texts: &mut SideTexts, own: &OwnStream<'_>, entries: &[StreamEntry<'_>]) {
    let all = of(entries, |entry| {
        own.holds(entry) && entry.age != Age::Constant
    });
    let has_repeated = all.iter().any(|entry| entry.age == Age::Repeated);
    let left = of(&all, StreamEntry::is_dense);
    let left = recent(&left);
    let rare = less_often(left);
    let mut add = |stream: &[StreamEntry<'_>]| {
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
fn recent<'a, 'b>(stream: &'a [StreamEntry<'b>]) -> &'a [StreamEntry<'b>] {
    last_of(stream, limits::JOINED_REPEATED_BYTES_MAX, |entry| {
        entry.bytes.len()
    })
}

/// The pieces that come less often than the others: what a client says in most of its
/// requests is none, whatever it says else under that name.
fn less_often<'a>(stream: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    let mut counts: HashMap<&[u8], usize> = HashMap::with_capacity(stream.len());
    for entry in stream {
        let count = counts.entry(entry.bytes).or_default();
        *count = count.saturating_add(1);
    }
    let most = counts.values().max().copied().unwrap_or_default();
    let is_rare = |entry: &StreamEntry<'_>| most < 2 || counts.get(entry.bytes) != Some(&most);
    of(stream, is_rare)
}

/// Each piece once, where it stood first.
fn once_each<'a>(stream: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    let mut said: HashSet<&[u8]> = HashSet::with_capacity(stream.len());
    let once = stream.iter().filter(|entry| said.insert(entry.bytes));
    once.copied().collect()
}

/// Adds the end of a stream, where something in it is new.
fn add_last(text: &mut JoinedText, stream: &[StreamEntry<'_>]) {
    let stream = last(stream, |entry| entry.bytes.len());
    if stream.iter().any(|entry| entry.age == Age::New) {
        text.add(&forms::pieces(stream));
    }
}

/// Adds the end of a stream, the last one first: where each piece is written the other way
/// round, so is all of it.
fn add_reversed(text: &mut JoinedText, stream: &[StreamEntry<'_>]) {
    let stream = last(stream, |entry| entry.bytes.len());
    if stream.iter().any(|entry| entry.age == Age::New) {
        text.add(&forms::reversed(&forms::pieces(stream)));
    }
}

/// The texts of the side on which a stream stands.
fn side<'a>(
    stream: &[StreamEntry<'_>],
    head: &'a mut SideTexts,
    content: &'a mut SideTexts,
) -> &'a mut SideTexts {
    match stream.first() {
        Some(first) if first.source.is_head() => head,
        _ => content,
    }
}

/// Whether pieces are of several sources.
fn is_mixed(stream: &[StreamEntry<'_>]) -> bool {
    let first = stream.first().map(|entry| entry.source);
    stream.iter().any(|entry| Some(entry.source) != first)
}

/// The pieces that belong to a stream.
fn of<'a>(
    entries: &[StreamEntry<'a>],
    belongs: impl Fn(&StreamEntry<'a>) -> bool,
) -> Vec<StreamEntry<'a>> {
    let own = entries.iter().filter(|entry| belongs(entry));
    own.copied().collect()
}

/// Adds the streams over several sources: of all heads, of all contents, and of both.
fn across(
    head: &mut SideTexts,
    content: &mut SideTexts,
    (all, varied): (&[StreamEntry<'_>], &[StreamEntry<'_>]),
) {
    let is_head = |entry: &StreamEntry<'_>| entry.source.is_head();
    let heads = of(varied, is_head);
    let both = |text: &mut JoinedText, stream: &[StreamEntry<'_>]| {
        text.add_new(&of(stream, StreamEntry::is_dense));
        text.add_new(stream);
    };
    if is_mixed(&heads) {
        both(&mut head.written, &heads);
        // Names among their values, and what every client says among the rest.
        add_last(&mut head.written, &as_sent(&heads));
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
    let behind = [
        PieceSource::Content,
        PieceSource::ContentName,
        PieceSource::Beside,
    ];
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
                narrow(content, &stream, PieceOrder::Sent);
            }
        }
    }
    if is_mixed(varied) {
        let contents = of(varied, |entry| !is_head(entry));
        both(&mut content.written, &contents);
        add_last(&mut content.written, &as_sent(&contents));
        both(&mut content.written, varied);
    }
}

/// The pieces without words as they were sent, whatever their sources.
fn as_sent<'a>(stream: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    let mut sent = of(stream, StreamEntry::is_dense);
    sent.sort_by_key(|entry| entry.place);
    sent
}

/// Adds the end of a stream without words in the forms in which pieces are put together,
/// and in other orders.
fn narrow(texts: &mut SideTexts, dense: &[StreamEntry<'_>], order: PieceOrder) {
    let stream = last(dense, |entry| entry.bytes.len());
    if stream.len() < 2 || stream.iter().all(|entry| entry.age != Age::New) {
        return;
    }
    let pieces = forms::pieces(stream);
    let made = forms::all(&pieces);
    for form in &made {
        texts.written.add(form);
    }
    if order == PieceOrder::Sent {
        return;
    }
    texts.reordered.add(&forms::reversed(&pieces));
    for form in &made {
        texts.reordered.add(&forms::reversed(form));
    }
    if order == PieceOrder::Any {
        for form in forms::sparse(&pieces) {
            texts.reordered.add(&form);
        }
        texts.reordered.add(&forms::pieces(&said_once(stream)));
    }
}

/// What slots of the head say, each time that it is not what they said before.
fn said_anew<'a>(stream: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    let mut anew: Vec<StreamEntry<'a>> = Vec::new();
    for entry in stream {
        let is_same =
            |other: &StreamEntry<'_>| other.slot == entry.slot && other.bytes == entry.bytes;
        if !entry.source.is_head() || !anew.iter().any(is_same) {
            anew.push(*entry);
        }
    }
    anew
}

/// The pieces of slots that say one thing.
fn said_once<'a>(stream: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    of(stream, |entry| {
        let same = stream.iter().filter(|other| other.slot == entry.slot);
        same.count() == 1
    })
}

/// Adds a stream with all that is in it.
fn wide(texts: &mut SideTexts, stream: &[StreamEntry<'_>]) {
    if stream.iter().all(|entry| entry.age != Age::New) {
        return;
    }
    let stream = latest(stream);
    let pieces = forms::pieces(stream);
    let text = &mut texts.written;
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
    if let Some(form) = forms::changed(&pieces, forms::without_signs) {
        texts.woven.add(&form);
    }
    let changed = [
        forms::changed(&pieces, forms::without_number),
        forms::once(&pieces),
    ];
    let changed = changed.into_iter().flatten();
    for form in forms::said(&pieces).into_iter().chain(changed) {
        text.add(&form);
    }
}
