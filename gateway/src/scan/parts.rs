//! A request's head cut into the parts the scan looks at. Reads only; decides
//! nothing, and copies no value.

use http::{HeaderMap, request};
use outgate_dlp::{Joined, Part, Place};

use crate::target::Target;

/// Every part of a head.
pub(super) fn parts<'a>(head: &'a request::Parts, target: &'a Target) -> Vec<Part<'a>> {
    let mut parts = vec![
        Part {
            place: Place::Method,
            bytes: head.method.as_str().as_bytes(),
        },
        self::target(target),
    ];
    for (name, value) in &head.headers {
        parts.push(Part {
            place: Place::FieldName,
            bytes: name.as_str().as_bytes(),
        });
        parts.push(Part {
            place: Place::Field(name.as_str().to_owned()),
            bytes: value.as_bytes(),
        });
    }
    parts
}

/// The target alone.
pub(super) fn target(target: &Target) -> Part<'_> {
    Part {
        place: Place::Target,
        bytes: target.resource.as_str().as_bytes(),
    }
}

/// Every part of trailers.
pub(super) fn trailers(trailers: &HeaderMap) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (name, value) in trailers {
        parts.push(Part {
            place: Place::FieldName,
            bytes: name.as_str().as_bytes(),
        });
        parts.push(Part {
            place: Place::Trailer(name.as_str().to_owned()),
            bytes: value.as_bytes(),
        });
    }
    parts
}

/// The values among the parts that a sender chooses freely: what a credential
/// could be split over, from one request to the next.
pub(super) fn values<'a>(parts: &[Part<'a>]) -> Vec<&'a [u8]> {
    let mut values = Vec::new();
    for part in parts {
        match &part.place {
            Place::Target => {
                let (path, query) = split(part.bytes, b'?');
                let pairs = query.split(|byte| *byte == b'&');
                values.extend(pairs.map(|pair| match split(pair, b'=') {
                    (alone, []) => alone,
                    (_, value) => value,
                }));
                values.extend(path.rsplit(|byte| *byte == b'/').next());
            }
            Place::Field(name) if is_free(name) => values.push(part.bytes),
            _ => {}
        }
    }
    values.retain(|value| !value.is_empty());
    values
}

/// What is before and behind the first of these bytes.
fn split(bytes: &[u8], at: u8) -> (&[u8], &[u8]) {
    let place = bytes.iter().position(|byte| *byte == at);
    let (before, rest) = bytes.split_at(place.unwrap_or(bytes.len()));
    (before, rest.get(1..).unwrap_or_default())
}

/// Fields that are not the same in every request of a client.
fn is_free(name: &str) -> bool {
    const SAME: [&str; 14] = [
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "content-type",
        "te",
        "via",
        "cache-control",
        "pragma",
        "origin",
        "referer",
    ];
    !SAME.contains(&name)
}

/// A name's labels, one by one and as one.
pub(super) fn labels<'a>(name: &'a str, joined: &'a str) -> Vec<Part<'a>> {
    let one = |bytes: &'a str| Part {
        place: Place::Label,
        bytes: bytes.as_bytes(),
    };
    let mut parts: Vec<Part<'_>> = name.split('.').map(one).collect();
    parts.push(Part {
        place: Place::Joined(Joined::Fields),
        bytes: joined.as_bytes(),
    });
    parts
}
