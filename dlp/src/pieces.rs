//! Streams of pieces: what a credential that was cut into the values of a
//! message, or of several, would be read from. A piece has a source (the path,
//! the query, the cookies, …) and a slot in it (the name of the parameter or of
//! the cookie); the pieces of one source, of one slot, and of a whole message,
//! each in order, are streams, and so are a slot of the head and the content
//! together. Constant slots, those that say the same in every message, are left
//! out, but for the last, where they count once. Each stream is read as it is,
//! without words, and without what its pieces have around them (`forms`); last
//! piece first and with pieces left out as well, where a checksum or a known value
//! has to confirm what is found. Tokens, known values and canaries are looked for
//! in the same streams.

use std::borrow::Cow;

use crate::limits;

mod forms;

pub(crate) use forms::{is_dense, plain};

/// Between two texts: in no credential and in no run.
const BORDER: &[u8] = b"\x01\n";
/// Between the two ends of a long piece: in no credential.
const GAP: u8 = 1;

/// Where in a message a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A segment of the path; its slot is its place, counted from the front.
    Path,
    /// A value of the query; its slot is the parameter's name.
    Query,
    /// The name of a parameter of the query.
    QueryName,
    /// The value of a field; its slot is the field's name.
    Field,
    /// The name of a field.
    FieldName,
    /// The value of a cookie; its slot is the cookie's name.
    Cookie,
    /// The name of a cookie.
    CookieName,
    /// A value of the content; its slot is its name there.
    Content,
    /// A name in the content.
    ContentName,
    /// What stands beside the content: trailers, control frames.
    Beside,
}

impl Source {
    /// Whether a piece of it stands in the head of a message.
    pub(crate) const fn is_head(self) -> bool {
        match self {
            Self::Path
            | Self::Query
            | Self::QueryName
            | Self::Field
            | Self::FieldName
            | Self::Cookie
            | Self::CookieName => true,
            Self::Content | Self::ContentName | Self::Beside => false,
        }
    }
}

/// A value that a sender chooses, as it stands in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where in the message.
    pub source: Source,
    /// Under which name: pieces of one name follow each other from message to message.
    pub slot: &'a [u8],
    /// The piece.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// A value of content that has no name.
    pub const fn of_content(bytes: &'a [u8]) -> Self {
        Self {
            source: Source::Content,
            slot: b"",
            bytes,
        }
    }
}

impl std::fmt::Debug for Piece<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it holds may be a credential.
        write!(
            formatter,
            "Piece({:?}, {} bytes)",
            self.source,
            self.bytes.len()
        )
    }
}

/// Whether a piece was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// With a message before, and its slot says nothing else in any.
    Constant,
    /// With a message before.
    Old,
    /// It belongs to the message that is looked at.
    New,
}

/// A piece as the streams read it, the oldest first.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) source: Source,
    /// Stands for source and slot.
    pub(crate) slot: u64,
    pub(crate) bytes: &'a [u8],
    pub(crate) age: Age,
    /// Whether it could be of a credential.
    pub(crate) is_dense: bool,
}

/// What a text is judged as, and how far it is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// As what stands in the head of a message, through all codings.
    Head,
    /// The same as it is written alone.
    HeadAsWritten,
    /// The same, of pieces in an order that somebody may have chosen, or nobody.
    HeadReordered,
    /// As what stands in content, through all codings.
    Content,
    /// The same as it is written alone.
    ContentAsWritten,
    /// The same, of pieces in an order that somebody may have chosen, or nobody.
    ContentReordered,
}

/// Several streams in one buffer, with the places where a piece ends and the next begins.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    pub(crate) borders: Vec<u64>,
    /// The streams that are in it, by the places of their first and last byte.
    spans: Vec<(usize, usize)>,
}

impl Text {
    /// Adds of a stream what counts with its new pieces, where there are some.
    fn add_new(&mut self, stream: &[Entry<'_>]) {
        if stream.iter().any(|entry| entry.age == Age::New) {
            self.add(&forms::pieces(latest(stream)));
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len().saturating_add(bytes) <= limits::JOINED_BYTES_MAX
    }

    /// Adds a stream of pieces, unless it is there already or could not hold anything that
    /// one piece alone does not.
    fn add(&mut self, pieces: &[Cow<'_, [u8]>]) {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if pieces.len() < 2 || bytes < limits::JOINED_BYTES_MIN || !self.has_room(bytes) {
            return;
        }
        let start = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let (before, new) = self.bytes.split_at(start);
        let spans = &self.spans;
        let is_known = |span: &(usize, usize)| before.get(span.0..span.1) == Some(new);
        if spans.iter().any(is_known) {
            self.bytes.truncate(start);
            return;
        }
        let mut place = start;
        self.borders.push(crate::budget::wide(place));
        for piece in pieces {
            place = place.saturating_add(piece.len());
            self.borders.push(crate::budget::wide(place));
        }
        self.spans.push((start, place));
        self.bytes.extend_from_slice(BORDER);
    }

    /// The piece in which this place of the text lies, and where in it.
    pub(crate) fn piece(&self, place: u64) -> Option<(&[u8], u64)> {
        let next = self.borders.partition_point(|border| *border <= place);
        let start = *self.borders.get(next.checked_sub(1)?)?;
        let end = *self.borders.get(next)?;
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        Some((self.bytes.get(range)?, place.saturating_sub(start)))
    }
}

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
}

/// The streams in which the new pieces take part, as texts for either side. Short ones come
/// first: long texts between the pieces must not take their room.
pub(crate) fn streams(entries: &[Entry<'_>]) -> [(Side, Text); 6] {
    let (mut head, mut content) = (Texts::default(), Texts::default());
    let varied = of(entries, |entry| entry.age != Age::Constant);
    let own = own_streams(&varied);
    for (order, stream) in &own {
        let texts = side(stream, &mut head, &mut content);
        let dense = of(stream, |entry| entry.is_dense);
        texts.coded.add_new(&dense);
        narrow(texts, &dense, *order);
    }
    across(&mut head, &mut content, (entries, &varied));
    for (_, stream) in &own {
        wide(&mut side(stream, &mut head, &mut content).written, stream);
    }
    [
        (Side::Head, head.coded),
        (Side::HeadAsWritten, head.written),
        (Side::HeadReordered, head.reordered),
        (Side::Content, content.coded),
        (Side::ContentAsWritten, content.written),
        (Side::ContentReordered, content.reordered),
    ]
}

/// The streams of each source and of each slot that says something new, and in which orders
/// their pieces are put together.
fn own_streams<'a>(varied: &[Entry<'a>]) -> Vec<(Order, Vec<Entry<'a>>)> {
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
    let sources = sources.into_iter();
    let of_source = |source| (Order::Any, of(varied, |entry| entry.source == source));
    let mut streams: Vec<(Order, Vec<Entry<'a>>)> = sources.map(of_source).collect();
    let count = streams.len();
    for (source, slot) in slots {
        let stream = of(varied, |entry| entry.slot == slot);
        let is_all = |(_, other): &(Order, Vec<Entry<'_>>)| {
            let first = other.first().map(|entry| entry.source);
            first == Some(source) && other.len() == stream.len()
        };
        if !streams.iter().take(count).any(is_all) {
            streams.push((Order::Reversed, stream));
        }
    }
    streams
}

/// The texts of the side on which a stream stands.
fn side<'a>(stream: &[Entry<'_>], head: &'a mut Texts, content: &'a mut Texts) -> &'a mut Texts {
    match stream.first() {
        Some(first) if first.source.is_head() => head,
        _ => content,
    }
}

/// The pieces that belong to a stream.
fn of<'a>(entries: &[Entry<'a>], belongs: impl Fn(&Entry<'a>) -> bool) -> Vec<Entry<'a>> {
    let own = entries.iter().filter(|entry| belongs(entry));
    own.copied().collect()
}

/// Adds the streams over several sources: of all heads, of all contents, and of both.
fn across(head: &mut Texts, content: &mut Texts, (all, varied): (&[Entry<'_>], &[Entry<'_>])) {
    let is_head = |entry: &Entry<'_>| entry.source.is_head();
    let is_mixed = |stream: &[Entry<'_>]| {
        let first = stream.first().map(|entry| entry.source);
        stream.iter().any(|entry| Some(entry.source) != first)
    };
    let heads = of(varied, is_head);
    let both = |text: &mut Text, stream: &[Entry<'_>]| {
        text.add_new(&of(stream, |entry| entry.is_dense));
        text.add_new(stream);
    };
    if is_mixed(&heads) {
        both(&mut head.written, &heads);
    }
    if varied.iter().all(is_head) {
        return;
    }
    // What a slot of the head always says is said once.
    let dense = of(all, |entry| {
        entry.is_dense && (entry.age != Age::Constant || is_head(entry))
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
fn latest<'a, 'b>(stream: &'a [Entry<'b>]) -> &'a [Entry<'b>] {
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
    let mut bytes = 0_usize;
    let some = pieces.iter().rev().take_while(|piece| {
        bytes = bytes.saturating_add(length(piece));
        bytes <= limits::JOINED_FORMS_BYTES_MAX
    });
    let from = pieces.len().saturating_sub(some.count());
    pieces.get(from..).unwrap_or_default()
}

/// Of a long piece only the ends can go on in the next, or from the last.
pub(crate) fn ends(piece: &[u8]) -> Vec<u8> {
    let length = piece.len();
    if length <= limits::PIECE_BYTES_MAX {
        return piece.to_vec();
    }
    let half = limits::PIECE_BYTES_MAX / 2;
    let (first, _) = piece.split_at(half);
    let (_, last) = piece.split_at(length.saturating_sub(half));
    [first, &[GAP], last].concat()
}
