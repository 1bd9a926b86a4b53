//! How the content of a request may be written, by what its fields say: which readers
//! look for another method in it, and whether they can. Reads fields only.

use http::header::HeaderMap;

use super::coding::Coding;
use super::members::Manner;
use super::{charset, folded};

/// Bytes of a boundary, at most. RFC 2046 5.1.1 has 70, which Werkzeug's own client exceeds
/// now and then: who minds refuses the whole, and nobody finds another boundary.
const BOUNDARY_BYTES_MAX: usize = 200;

/// A way in which servers may take content to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaReading {
    /// `application/x-www-form-urlencoded`.
    Pairs,
    /// `multipart/form-data` (RFC 7578).
    Parts,
    /// JSON (RFC 8259).
    Members,
    /// Requests in parts of their own (`application/http`, RFC 9112 10.2).
    Requests,
}

/// What content is taken for whose fields name no media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Untyped {
    /// Whatever programs read by themselves: a form or JSON.
    Form,
    /// Nothing that they look into.
    Opaque,
}

/// What these fields say. Every media type in them counts, wherever it stands: whoever
/// disagrees about fields, lists and parameters reads another one than the next. What
/// names none is read as whatever programs take it for then.
pub(super) fn of(fields: &HeaderMap, untyped: Untyped) -> Vec<MediaReading> {
    let kinds: Vec<String> = kinds(fields).collect();
    let says = |word: &str| kinds.iter().any(|kind| kind.contains(word));
    let is_named = untyped == Untyped::Opaque || kinds.iter().any(|kind| is_type(kind));
    let parts = says("multipart") || says("form-data");
    // Without a boundary that everybody finds, it is a form of pairs to Rack.
    let is_split = kinds.len() == 1 && kinds.iter().all(|kind| has_boundary(kind));
    let pairs = says("urlencoded") || !is_named || (parts && !is_split);
    let ways = [
        (MediaReading::Pairs, pairs),
        (MediaReading::Parts, parts),
        (MediaReading::Members, says("json") || !is_named),
        (MediaReading::Requests, says("application/http") || parts),
    ];
    let ways = ways.into_iter().filter(|(_, is_one)| *is_one);
    ways.map(|(way, _)| way).collect()
}

/// Whether it may hold requests in parts of their own.
pub(super) fn holds_requests(fields: &HeaderMap) -> bool {
    of(fields, Untyped::Opaque).contains(&MediaReading::Requests)
}

/// The same, where nobody can tell: lists of requests in JSON of another character set.
pub(super) fn may_hold_requests(fields: &HeaderMap) -> bool {
    let is_json = || of(fields, Untyped::Opaque).contains(&MediaReading::Members);
    holds_requests(fields) || charset::hides_query(fields) && is_json()
}

/// How strictly what may be JSON is read.
pub(super) fn manner(fields: &HeaderMap) -> Manner {
    let kinds: Vec<String> = kinds(fields).collect();
    let says = |word: &str| kinds.iter().any(|kind| kind.contains(word));
    if !says("json") {
        Manner::Guessed
    } else if says("connect+json") || says("grpc") {
        Manner::Framed
    } else {
        Manner::Said
    }
}

/// How what is not said to be JSON is read where it begins as that.
pub(super) fn unsaid(fields: &HeaderMap) -> Manner {
    if charset::hides_query(fields) {
        Manner::Recoded
    } else {
        Manner::Unsaid
    }
}

/// The boundary of multipart content, where every program finds the same.
pub(super) fn boundary(fields: &HeaderMap) -> Option<Vec<u8>> {
    let mut kinds = types(fields);
    let kind = kinds.next().filter(|_| kinds.next().is_none())?;
    boundary_of(&kind)
}

/// The same of one media type.
pub(super) fn boundary_of(kind: &str) -> Option<Vec<u8>> {
    if !has_boundary(&kind.to_ascii_lowercase()) {
        return None;
    }
    let mut parameters = kind.split(';').skip(1);
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_own = name.trim_start().eq_ignore_ascii_case("boundary");
        is_own.then_some(value)
    });
    Some(value?.trim_matches('"').as_bytes().to_vec())
}

/// Whether some of them is a form's.
pub(super) fn is_form(ways: &[MediaReading]) -> bool {
    ways.iter()
        .any(|way| matches!(way, MediaReading::Pairs | MediaReading::Parts))
}

/// Why nobody can read such content as it stands: its character set or its coding.
pub(super) fn hides(fields: &HeaderMap, untyped: Untyped) -> Option<&'static str> {
    let ways = of(fields, untyped);
    if ways.is_empty() {
        return None;
    }
    if charset::hides_query(fields) {
        return Some("a character set that is not read");
    }
    let is_hidden = match Coding::of(fields) {
        Coding::Plain => false,
        // JSON is looked at behind them.
        Coding::Gzip | Coding::Deflate | Coding::Brotli | Coding::Zstd => {
            ways.iter().any(|way| *way != MediaReading::Members)
        }
        Coding::Other => true,
    };
    is_hidden.then_some("a content coding that is not read")
}

/// The values of all fields that programs take for the content's type.
fn types(fields: &HeaderMap) -> impl Iterator<Item = String> {
    let kinds = fields
        .iter()
        .filter(|(name, _)| folded(name.as_str()) == "content-type");
    kinds.map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The same in lower case.
fn kinds(fields: &HeaderMap) -> impl Iterator<Item = String> {
    types(fields).map(|kind| kind.to_ascii_lowercase())
}

/// Whether every parser finds the one boundary of a multipart type (RFC 2046 5.1.1): each
/// of its parameters is plain, and no other has such a name.
fn has_boundary(kind: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_value = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_-./:=?".contains(&byte);
    // As SOAP names its first part.
    let is_quoted = |byte: u8| is_value(byte) || b"<>@".contains(&byte);
    let mut boundaries = 0;
    let mut parameters = kind.split(';').skip(1);
    let all_plain = parameters.all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        let name = name.trim_start();
        let quoted = value
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let value = quoted.unwrap_or(value);
        boundaries += usize::from(name == "boundary");
        let is_plain = (1..=BOUNDARY_BYTES_MAX).contains(&value.len())
            && (value.bytes().all(is_value)
                || (name != "boundary" && quoted.is_some() && value.bytes().all(is_quoted)))
            && !name.is_empty()
            && name.bytes().all(is_name);
        is_plain
            && (name == "boundary" || !(name.contains("boundary") || value.contains("boundary")))
            && !value.contains("boundary=")
    });
    let family = kind.split(';').next().unwrap_or_default();
    all_plain && boundaries == 1 && !family.contains("boundary")
}

/// Whether it begins like a media type (RFC 9110 8.3.1).
fn is_type(kind: &str) -> bool {
    let is_token = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain)
    };
    let end = kind.find([';', ',']).unwrap_or(kind.len());
    let name = kind.get(..end).unwrap_or_default().trim();
    name.split_once('/')
        .is_some_and(|(family, member)| is_token(family) && is_token(member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue};

    fn fields(of: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = of.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        pairs.collect()
    }

    #[test]
    fn every_type_that_a_program_may_see_counts() {
        const TYPE: &str = "content-type";
        for (given, pairs, parts, members) in [
            (&[][..], true, false, true),
            (&[(TYPE, "")], true, false, true),
            (&[(TYPE, ";charset=utf-8")], true, false, true),
            (&[(TYPE, "form")], true, false, true),
            (&[(TYPE, "text/plain")], false, false, false),
            (&[(TYPE, "application/octet-stream")], false, false, false),
            (
                &[(TYPE, "Application/X-WWW-Form-URLEncoded")],
                true,
                false,
                false,
            ),
            (
                &[(TYPE, "text/plain, application/x-www-form-urlencoded")],
                true,
                false,
                false,
            ),
            (
                &[
                    (TYPE, "text/plain"),
                    ("content_type", "multipart/form-data;boundary=b"),
                ],
                true,
                true,
                false,
            ),
            (&[(TYPE, "multipart/mixed;boundary=b")], false, true, false),
            (&[(TYPE, "application/vnd.api+json")], false, false, true),
        ] {
            let ways = of(&fields(given), Untyped::Form);
            let found = [
                MediaReading::Pairs,
                MediaReading::Parts,
                MediaReading::Members,
            ]
            .map(|way| ways.contains(&way));
            assert_eq!(found, [pairs, parts, members], "{given:?}");
        }
    }

    #[test]
    fn parts_without_a_boundary_that_all_find_are_pairs_too() {
        let long = format!("; boundary={}", "b".repeat(BOUNDARY_BYTES_MAX + 1));
        let odd = format!("; boundary={}", "b".repeat(71));
        for (parameters, pairs) in [
            ("; boundary=b", false),
            (";boundary=\"b\"", false),
            ("; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", false),
            ("; charset=utf-8; Boundary=b", false),
            ("; boundary=b;charset=utf-8", false),
            ("", true),
            (";", true),
            ("; boundary", true),
            ("; boundary=", true),
            ("; boundary=\"\"", true),
            ("; boundary=\"b", true),
            ("; boundary =b", true),
            ("; boundary= b", true),
            ("; boundary*=b", true),
            ("; boundary*0=b", true),
            ("; xboundary=b", true),
            ("; boundary=b; boundary=c", true),
            ("; boundary=b; boundary*=c", true),
            ("; boundary=b, x", true),
            ("; x=\"; boundary=b\"", true),
            (", boundary=b", true),
            (" boundary=b", true),
            ("; boundary=b; x", true),
            ("; boundary===============7==", false),
            ("; boundary=bboundary=c", true),
            (
                "; type=\"application/xop+xml\"; start=\"<a@b>\"; boundary=b",
                false,
            ),
            ("; type=<a@b>; boundary=b", true),
            ("; x=boundary; y=c; boundary=b", true),
            (odd.as_str(), false),
            (long.as_str(), true),
        ] {
            let value = HeaderValue::from_str(&format!("multipart/form-data{parameters}"));
            let fields = HeaderMap::from_iter([(http::header::CONTENT_TYPE, value.unwrap())]);
            let ways = of(&fields, Untyped::Form);
            assert!(ways.contains(&MediaReading::Parts), "{parameters}");
            assert_eq!(ways.contains(&MediaReading::Pairs), pairs, "{parameters}");
            assert_eq!(boundary(&fields).is_none(), pairs, "{parameters}");
        }
        for kind in ["multipart/mixed", "multipart/related; x=y"] {
            let ways = of(&fields(&[("content-type", kind)]), Untyped::Form);
            assert!(
                ways.contains(&MediaReading::Pairs) && ways.contains(&MediaReading::Parts),
                "{kind}"
            );
        }
    }

    #[test]
    fn content_of_no_type_is_looked_into_only_where_programs_do() {
        const GZIP: (&str, &str) = ("content-encoding", "gzip");
        const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
        const JSON: (&str, &str) = ("content-type", "application/json");
        for (given, looked, hidden) in [
            (&[][..], false, false),
            (&[GZIP], false, false),
            (&[("content-type", "")], false, false),
            (&[JSON, GZIP], true, false),
            (&[FORM], true, false),
            (&[FORM, GZIP], true, true),
        ] {
            let fields = fields(given);
            let ways = of(&fields, Untyped::Opaque);
            assert_eq!(!ways.is_empty(), looked, "{given:?}");
            assert_eq!(
                hides(&fields, Untyped::Opaque).is_some(),
                hidden,
                "{given:?}"
            );
        }
    }

    #[test]
    fn what_is_written_otherwise_cannot_be_read() {
        const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
        for (given, hidden) in [
            (&[FORM][..], false),
            (&[FORM, ("content-encoding", "identity")], false),
            (&[FORM, ("content-encoding", "gzip")], true),
            (&[FORM, ("content_encoding", "x-unknown")], true),
            (&[("content-encoding", "br")], true),
            (
                &[
                    ("content-type", "application/json"),
                    ("content-encoding", "gzip"),
                ],
                false,
            ),
            (
                &[("content-type", "application/json;charset=utf-16be")],
                true,
            ),
            (
                &[(
                    "content-type",
                    "application/x-www-form-urlencoded;charset=ibm037",
                )],
                true,
            ),
            (&[("content-type", "text/plain;charset=utf-16")], false),
            (
                &[
                    ("content-type", "application/octet-stream"),
                    ("content-encoding", "gzip"),
                ],
                false,
            ),
        ] {
            assert_eq!(
                hides(&fields(given), Untyped::Form).is_some(),
                hidden,
                "{given:?}"
            );
        }
    }
}
