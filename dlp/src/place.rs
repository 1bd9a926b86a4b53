//! Where in a message bytes stand.

use std::fmt;

/// Where in a message bytes stand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The request method.
    Method,
    /// The request target: path and query.
    Target,
    /// The name of a field.
    FieldName,
    /// The value of the named field.
    Field(String),
    /// The content.
    Content,
    /// The value of the named trailer field.
    Trailer(String),
    /// One message of a WebSocket or of gRPC.
    Message,
    /// The server name of TLS.
    ServerName,
    /// A label of a question to the DNS.
    Label,
    /// Values one after the other, without what stood between them.
    Joined(Joined),
}

/// What was joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Joined {
    /// The values of the query.
    Query,
    /// The values of fields.
    Fields,
    /// The values of a form or of a document.
    Content,
    /// Values of the heads of several messages.
    Heads,
    /// Values of the contents of several messages.
    Messages,
}

/// What a place is for, as far as credentials go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind<'a> {
    /// Where a client shows a credential: the head of a request, and names.
    Head,
    /// Where it was shown in pieces, of which nobody knows the places.
    Pieces,
    /// Where stands what is sent, and may be kept.
    Content,
    /// The same where all of it is a form or a document.
    Form(ContentSyntax<'a>),
}

/// Content of keys and values, on its way to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentSyntax<'a> {
    pub(crate) path: &'a str,
    /// Whether it is a document in JSON; a form otherwise.
    pub(crate) is_json: bool,
    /// What stands before the value that is asked about.
    pub(crate) before: &'a [u8],
}

impl Place {
    /// What it is for.
    pub(crate) const fn kind(&self) -> PlaceKind<'static> {
        match self {
            Self::Method
            | Self::Target
            | Self::FieldName
            | Self::Field(_)
            | Self::ServerName
            | Self::Label
            | Self::Joined(Joined::Query | Joined::Fields) => PlaceKind::Head,
            Self::Joined(Joined::Heads) => PlaceKind::Pieces,
            Self::Content
            | Self::Trailer(_)
            | Self::Message
            | Self::Joined(Joined::Content | Joined::Messages) => PlaceKind::Content,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => formatter.write_str("method"),
            Self::Target => formatter.write_str("target"),
            Self::FieldName => formatter.write_str("field name"),
            Self::Field(name) => write!(formatter, "field `{name}`"),
            Self::Content => formatter.write_str("content"),
            Self::Trailer(name) => write!(formatter, "trailer `{name}`"),
            Self::Message => formatter.write_str("message"),
            Self::ServerName => formatter.write_str("server name"),
            Self::Label => formatter.write_str("label"),
            Self::Joined(Joined::Query) => formatter.write_str("values of the query"),
            Self::Joined(Joined::Fields) => formatter.write_str("values of fields"),
            Self::Joined(Joined::Content) => formatter.write_str("values of the content"),
            Self::Joined(Joined::Heads | Joined::Messages) => {
                formatter.write_str("values of several messages")
            }
        }
    }
}

/// A small part of a message, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct MessagePart<'a> {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub bytes: &'a [u8],
}

/// What is known of a stream before its first byte.
#[derive(Debug, Clone)]
pub struct Description<'a> {
    /// Where it stands.
    pub place: Place,
    /// The value of `Content-Type`, as it came.
    pub media_type: Option<&'a [u8]>,
    /// The value of `Content-Encoding`, as it came.
    pub content_codings: Option<&'a [u8]>,
    /// The announced length, in bytes.
    pub length: Option<u64>,
}

impl fmt::Debug for MessagePart<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Part({}, {} bytes)",
            self.place,
            self.bytes.len()
        )
    }
}
