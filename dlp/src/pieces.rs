//! Streams of pieces: what a credential that was cut into the values of a
//! message, or of several, would be read from. A piece has a source (the path,
//! the query, the cookies, …) and a slot in it (the name of the parameter or of
//! the cookie); the pieces of one source, of one slot, and of a whole message,
//! each in order, are streams. Constant slots, those that say the same in every
//! message, are left out. Tokens, known values and canaries are looked for in
//! the same streams.

use std::borrow::Cow;

use crate::limits;
use crate::validate::base64;

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
    /// As what stands in content, through all codings.
    Content,
    /// The same as it is written alone.
    ContentAsWritten,
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
    /// Adds a stream of pieces, unless it is there already or could not hold anything that
    /// one piece alone does not.
    fn add(&mut self, pieces: &[Cow<'_, [u8]>]) {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_full = self.bytes.len().saturating_add(bytes) > limits::JOINED_BYTES_MAX;
        if pieces.len() < 2 || bytes < limits::JOINED_BYTES_MIN || is_full {
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
        self.borders.push(wide(place));
        for piece in pieces {
            place = place.saturating_add(piece.len());
            self.borders.push(wide(place));
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

/// The texts of one side.
#[derive(Default)]
struct Texts {
    /// Streams of one source or slot: a credential that was coded before it was cut up.
    coded: Text,
    /// All others: a credential cut up as it is.
    written: Text,
}

/// The streams in which the new pieces take part, as texts for either side; of pieces
/// without those of constant slots.
pub(crate) fn streams(varied: &[Entry<'_>]) -> [(Side, Text); 4] {
    let (mut head, mut content) = (Texts::default(), Texts::default());
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
    for source in &sources {
        let texts = side(*source, &mut head, &mut content);
        let stream = of(varied, |entry| entry.source == *source);
        add(&mut texts.coded, &dense(&stream), as_it_is);
        forms(&mut texts.written, &stream);
    }
    for (source, slot) in slots {
        let texts = side(source, &mut head, &mut content);
        let stream = of(varied, |entry| entry.slot == slot);
        add(&mut texts.coded, &dense(&stream), as_it_is);
        forms(&mut texts.written, &stream);
    }
    let is_head = |entry: &Entry<'_>| entry.source.is_head();
    let is_mixed = |stream: &[Entry<'_>]| {
        let first = stream.first().map(|entry| entry.source);
        stream.iter().any(|entry| Some(entry.source) != first)
    };
    let all = of(varied, is_head);
    if is_mixed(&all) {
        across(&mut head.written, &all);
    }
    if !varied.iter().all(is_head) && is_mixed(varied) {
        across(&mut content.written, &of(varied, |entry| !is_head(entry)));
        across(&mut content.written, varied);
    }
    [
        (Side::Head, head.coded),
        (Side::HeadAsWritten, head.written),
        (Side::Content, content.coded),
        (Side::ContentAsWritten, content.written),
    ]
}

/// The texts of the side on which a source stands.
fn side<'a>(source: Source, head: &'a mut Texts, content: &'a mut Texts) -> &'a mut Texts {
    if source.is_head() { head } else { content }
}

/// The pieces that belong to a stream.
fn of<'a>(entries: &[Entry<'a>], belongs: impl Fn(&Entry<'a>) -> bool) -> Vec<Entry<'a>> {
    let own = entries.iter().filter(|entry| belongs(entry));
    own.copied().collect()
}

/// The pieces that could be of a credential.
fn dense<'a>(stream: &[Entry<'a>]) -> Vec<Entry<'a>> {
    of(stream, |entry| entry.is_dense)
}

/// Adds a stream over several sources: as it is, and without words.
fn across(text: &mut Text, stream: &[Entry<'_>]) {
    add(text, stream, as_it_is);
    add(text, &dense(stream), as_it_is);
}

/// Adds a stream in the forms in which pieces are put together.
fn forms(text: &mut Text, stream: &[Entry<'_>]) {
    add(text, stream, as_it_is);
    add(text, &dense(stream), as_it_is);
    let stream = latest(stream);
    // Each of the last pieces as the end: what a form of any length reads on into the next
    // piece would be another value.
    let new = stream.iter().filter(|entry| entry.age == Age::New).count();
    for end in (1..new).take(limits::JOINED_ENDS_MAX) {
        let to = stream.len().saturating_sub(end);
        add(text, stream.get(..to).unwrap_or_default(), as_it_is);
    }
    let is_same =
        |last: &Entry<'_>, next: &Entry<'_>| last.slot == next.slot && last.bytes == next.bytes;
    if stream
        .windows(2)
        .any(|two| matches!(two, [last, next] if is_same(last, next)))
    {
        let mut once = stream.to_vec();
        once.dedup_by(|next, last| is_same(last, next));
        add(text, &once, as_it_is);
    }
    for change in [bare, without_number, decoded] {
        let is_changed = |entry: &Entry<'_>| change(entry.bytes).as_ref() != entry.bytes;
        if stream.iter().any(is_changed) {
            add(text, stream, change);
        }
    }
}

/// Adds a stream of which every piece is changed in this way.
fn add(text: &mut Text, stream: &[Entry<'_>], change: fn(&[u8]) -> Cow<'_, [u8]>) {
    if stream.iter().any(|entry| entry.age == Age::New) {
        let pieces = latest(stream).iter();
        let pieces: Vec<Cow<'_, [u8]>> = pieces.map(|entry| change(entry.bytes)).collect();
        text.add(&pieces);
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

/// A piece as it is.
fn as_it_is(piece: &[u8]) -> Cow<'_, [u8]> {
    Cow::Borrowed(piece)
}

/// Whether bytes look more like a piece of a credential than like a word or a number.
pub(crate) fn is_dense(piece: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| piece.iter().any(is);
    let has_digit = has(u8::is_ascii_digit);
    let has_small = has(u8::is_ascii_lowercase);
    // A capital at the beginning is that of a word.
    let has_capital = piece.iter().skip(1).any(u8::is_ascii_uppercase);
    let mixes = [has_digit, has_small, has_capital];
    let is_word = !has(u8::is_ascii_whitespace);
    is_word && mixes.iter().filter(|has| **has).count() >= 2
}

/// A piece without what separates words.
fn bare(piece: &[u8]) -> Cow<'_, [u8]> {
    let is_word = |byte: &u8| !byte.is_ascii_whitespace() && !b",;\"'|".contains(byte);
    if piece.iter().all(is_word) {
        return Cow::Borrowed(piece);
    }
    piece.iter().copied().filter(is_word).collect()
}

/// A piece without the number by which its sender would put it in order.
fn without_number(piece: &[u8]) -> Cow<'_, [u8]> {
    let digits = piece.iter().take_while(|byte| byte.is_ascii_digit());
    let count = digits.count();
    let separates = |byte: &u8| b"-_.:,;=/| ".contains(byte);
    let (number, rest) = piece.split_at(count);
    Cow::Borrowed(match rest.split_first() {
        Some((first, rest)) if (1..=4).contains(&number.len()) && separates(first) => {
            rest.trim_ascii_start()
        }
        _ => piece,
    })
}

/// What a piece says that is coded by itself, in text.
fn decoded(piece: &[u8]) -> Cow<'_, [u8]> {
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    if piece.len() < 2 || !piece.iter().all(is_symbol) {
        return Cow::Borrowed(piece);
    }
    let is_text = |bytes: &Vec<u8>| !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic);
    let from_hex = hex(piece).filter(is_text);
    let decoded = from_hex.or_else(|| base64::decode(piece).filter(is_text));
    decoded.map_or(Cow::Borrowed(piece), Cow::Owned)
}

/// What hexadecimal stands for.
fn hex(piece: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = piece.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    };
    rest.is_empty()
        .then(|| pairs.iter().map(byte).collect())
        .flatten()
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

fn wide(place: usize) -> u64 {
    crate::budget::wide(place)
}
