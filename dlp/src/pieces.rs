//! Pieces: the values of a message that a sender chooses, which a credential could be cut
//! into, each with its source (the path, the query, the cookies, …) and its slot there (the
//! name of the parameter or of the cookie). Pure.

use std::borrow::Cow;

use crate::limits;

mod coded;
mod codings;
mod cores;
mod ends;
mod forms;
mod streams;
mod text;
mod words;
mod woven;

pub(crate) use forms::{is_dense, is_of_chance, plain};
pub(crate) use streams::streams;
pub(crate) use text::{JoinedText, Side};

/// Between the two ends of a long piece: in no credential.
const GAP: u8 = 1;

/// Where in a message a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PieceSource {
    /// The method.
    Method,
    /// A segment of the path; its slot is its place, counted from the front.
    Path,
    /// A value of the query; its slot is the parameter's name.
    Query,
    /// The name of a parameter of the query.
    QueryName,
    /// The value of a field; its slot is the field's name.
    Field,
    /// The value of a field in which every client says something, so that it may stand
    /// between others.
    Client,
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

impl PieceSource {
    /// Whether a piece of it stands in the head of a message.
    pub(crate) const fn is_head(self) -> bool {
        match self {
            Self::Method
            | Self::Path
            | Self::Query
            | Self::QueryName
            | Self::Field
            | Self::Client
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
    pub source: PieceSource,
    /// Under which name: pieces of one name follow each other from message to message.
    pub slot: &'a [u8],
    /// The piece.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// A value of content that has no name.
    pub const fn of_content(bytes: &'a [u8]) -> Self {
        Self {
            source: PieceSource::Content,
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
    /// With a message before, and its slot says nothing else in any, this one included.
    Constant,
    /// With several before, and its slot said nothing else, and says nothing now.
    Repeated,
    /// With a message before.
    Old,
    /// It belongs to the message that is looked at.
    New,
}

/// A piece as the streams read it, the oldest first.
#[derive(Clone, Copy)]
pub(crate) struct StreamEntry<'a> {
    pub(crate) source: PieceSource,
    /// Stands for source and slot.
    pub(crate) slot: u64,
    /// Its place among all, as they were sent.
    pub(crate) place: u64,
    pub(crate) bytes: &'a [u8],
    pub(crate) age: Age,
    pub(crate) look: PieceLook,
    /// Whether it is all of a value.
    pub(crate) is_whole: bool,
}

impl StreamEntry<'_> {
    fn is_dense(&self) -> bool {
        self.look != PieceLook::Word
    }

    /// Whether it may be a piece of what was coded as a whole (RFC 4648): one that looks like
    /// a word or a number as well.
    fn is_of_symbols(&self) -> bool {
        let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
        self.is_dense() || self.bytes.iter().all(is_symbol)
    }

    /// Whether it says the same in every message.
    fn is_constant(&self) -> bool {
        matches!(self.age, Age::Constant | Age::Repeated)
    }
}

/// What a piece looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceLook {
    /// A word or a number.
    Word,
    /// The beginning of a form and nothing else, among other words of a value.
    Beginning,
    /// As a credential may.
    Dense,
    /// As what chance made.
    Chance,
}

/// Of a long piece only the ends can go on in the next, or from the last.
pub(crate) fn ends(piece: Cow<'_, [u8]>) -> Vec<u8> {
    let length = piece.len();
    if length <= limits::PIECE_BYTES_MAX {
        return piece.into_owned();
    }
    let half = limits::PIECE_BYTES_MAX / 2;
    let (first, _) = piece.split_at(half);
    let (_, last) = piece.split_at(length.saturating_sub(half));
    [first, &[GAP], last].concat()
}
