//! A request's head cut into the parts the scan looks at. Reads only; decides
//! nothing, and copies no value.

use http::{HeaderMap, request};
use outgate_dlp::{Joined, MessagePart, Piece, PieceSource, Place};

use crate::target::Target;

/// The slots of the first segments of a path, and that of all behind them.
const PLACES: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const DEEPER: u8 = 8;

/// Every part of a head.
pub(super) fn parts<'a>(head: &'a request::Parts, target: &'a Target) -> Vec<MessagePart<'a>> {
    let mut parts = vec![
        MessagePart {
            place: Place::Method,
            bytes: head.method.as_str().as_bytes(),
        },
        self::target(target),
    ];
    for (name, value) in &head.headers {
        parts.push(MessagePart {
            place: Place::FieldName,
            bytes: name.as_str().as_bytes(),
        });
        parts.push(MessagePart {
            place: Place::Field(name.as_str().to_owned()),
            bytes: value.as_bytes(),
        });
    }
    parts
}

/// The target alone.
pub(super) fn target(target: &Target) -> MessagePart<'_> {
    MessagePart {
        place: Place::Target,
        bytes: target.resource.as_str().as_bytes(),
    }
}

/// Every part of trailers.
pub(super) fn trailers(trailers: &HeaderMap) -> Vec<MessagePart<'_>> {
    let mut parts = Vec::new();
    for (name, value) in trailers {
        parts.push(MessagePart {
            place: Place::FieldName,
            bytes: name.as_str().as_bytes(),
        });
        parts.push(MessagePart {
            place: Place::Trailer(name.as_str().to_owned()),
            bytes: value.as_bytes(),
        });
    }
    parts
}

/// What of a head a sender chooses freely, with its source: what a credential could be cut
/// into, within one request or from one to the next.
pub(super) fn pieces<'a>(head: &'a request::Parts, target: &'a Target) -> Vec<Piece<'a>> {
    let method = head.method.as_str().as_bytes();
    let mut pieces = vec![of(PieceSource::Method, b"", method)];
    let (path, query) = split(target.resource.as_str().as_bytes(), b'?');
    let places = PLACES.iter().chain(std::iter::repeat(&DEEPER));
    for (place, segment) in places.zip(path.split(|byte| *byte == b'/')) {
        pieces.push(of(PieceSource::Path, std::slice::from_ref(place), segment));
    }
    for pair in query.split(|byte| *byte == b'&') {
        named(
            &mut pieces,
            pair,
            (PieceSource::Query, PieceSource::QueryName),
        );
    }
    for (name, value) in &head.headers {
        let (name, value) = (name.as_str(), value.as_bytes());
        if name == "cookie" {
            for pair in value.split(|byte| *byte == b';') {
                named(
                    &mut pieces,
                    pair.trim_ascii(),
                    (PieceSource::Cookie, PieceSource::CookieName),
                );
            }
            continue;
        }
        match kind(name) {
            FieldMeaning::Free => {
                pieces.push(of(PieceSource::FieldName, name.as_bytes(), name.as_bytes()));
                pieces.push(of(PieceSource::Field, name.as_bytes(), value));
            }
            FieldMeaning::Client => pieces.push(of(PieceSource::Client, name.as_bytes(), value)),
            FieldMeaning::Framing => {}
        }
    }
    pieces
}

/// What of trailers a sender chooses freely.
pub(super) fn pieces_of_trailers(trailers: &HeaderMap) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (name, value) in trailers {
        let slot = name.as_str().as_bytes();
        pieces.push(of(PieceSource::ContentName, slot, slot));
        pieces.push(of(PieceSource::Beside, slot, value.as_bytes()));
        // It goes on with other trailers, or with the content before them.
        pieces.push(Piece::of_content(value.as_bytes()));
    }
    pieces
}

/// A name and its value; what stands without a name is a value.
fn named<'a>(
    pieces: &mut Vec<Piece<'a>>,
    pair: &'a [u8],
    (value, name): (PieceSource, PieceSource),
) {
    match split(pair, b'=') {
        (alone, []) => pieces.push(of(value, b"", alone)),
        (key, content) => {
            // As they stand: a value goes on where its name ends.
            pieces.push(of(name, key, key));
            pieces.push(of(value, key, content));
        }
    }
}

const fn of<'a>(source: PieceSource, slot: &'a [u8], bytes: &'a [u8]) -> Piece<'a> {
    Piece {
        source,
        slot,
        bytes,
    }
}

/// What is before and behind the first of these bytes.
fn split(bytes: &[u8], at: u8) -> (&[u8], &[u8]) {
    let place = bytes.iter().position(|byte| *byte == at);
    let (before, rest) = bytes.split_at(place.unwrap_or(bytes.len()));
    (before, rest.get(1..).unwrap_or_default())
}

/// What a field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldMeaning {
    /// What the sender likes, under a name that it likes.
    Free,
    /// The same under a name that is in the requests of every client.
    Client,
    /// What the request target and the content say as well, which is checked against them,
    /// and what a hop says to the next (RFC 9110 7.6.1).
    Framing,
}

fn kind(name: &str) -> FieldMeaning {
    match name {
        "host" | "connection" | "content-length" => FieldMeaning::Framing,
        "user-agent" | "accept" | "accept-encoding" | "accept-language" | "content-type" | "te"
        | "via" | "cache-control" | "pragma" | "origin" | "referer" => FieldMeaning::Client,
        _ => FieldMeaning::Free,
    }
}

/// A name's labels, one by one and as one.
pub(super) fn labels<'a>(name: &'a str, joined: &'a str) -> Vec<MessagePart<'a>> {
    let one = |bytes: &'a str| MessagePart {
        place: Place::Label,
        bytes: bytes.as_bytes(),
    };
    let mut parts: Vec<MessagePart<'_>> = name.split('.').map(one).collect();
    parts.push(MessagePart {
        place: Place::Joined(Joined::Fields),
        bytes: joined.as_bytes(),
    });
    parts
}
