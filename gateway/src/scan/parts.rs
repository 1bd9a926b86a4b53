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
        Part {
            place: Place::Target,
            bytes: target.resource.as_str().as_bytes(),
        },
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

/// The values that a sender chooses freely: what a credential could be split
/// over, from one request to the next.
pub(super) fn values<'a>(head: &'a request::Parts, target: &'a Target) -> Vec<&'a [u8]> {
    let resource = target.resource.as_str();
    let (path, query) = resource.split_once('?').unwrap_or((resource, ""));
    let segment = path.rsplit('/').next().unwrap_or_default();
    let mut values: Vec<&[u8]> = query
        .split('&')
        .filter_map(|pair| pair.split_once('=').map(|(_, value)| value))
        .chain([segment])
        .filter(|value| !value.is_empty())
        .map(str::as_bytes)
        .collect();
    let own = head
        .headers
        .iter()
        .filter(|(name, _)| is_free(name.as_str()));
    values.extend(own.map(|(_, value)| value.as_bytes()));
    values
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
