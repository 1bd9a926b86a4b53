//! How the content of a request may be written, by what its fields say: which readers
//! look for another method in it, and whether they can. Reads fields only.

use http::header::{CONTENT_ENCODING, HeaderMap};

use super::charset;

/// A way in which servers may take content to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `application/x-www-form-urlencoded`.
    Pairs,
    /// `multipart/form-data` (RFC 7578).
    Parts,
    /// JSON (RFC 8259).
    Members,
    /// Requests in parts of their own (`application/http`, RFC 9112 10.2).
    Requests,
}

/// What these fields say. Every media type in them counts, wherever it stands: whoever
/// disagrees about fields, lists and parameters reads another one than the next. What
/// names none is read as whatever programs take it for then.
pub(super) fn of(fields: &HeaderMap) -> Vec<Way> {
    let kinds: Vec<String> = kinds(fields).collect();
    let says = |word: &str| kinds.iter().any(|kind| kind.contains(word));
    let is_named = kinds.iter().any(|kind| is_type(kind));
    let parts = says("multipart") || says("form-data");
    let ways = [
        (Way::Pairs, says("urlencoded") || !is_named),
        (Way::Parts, parts),
        (Way::Members, says("json") || !is_named),
        (Way::Requests, says("application/http") || parts),
    ];
    let ways = ways.into_iter().filter(|(_, is_one)| *is_one);
    ways.map(|(way, _)| way).collect()
}

/// Whether some of them is a form's.
pub(super) fn is_form(ways: &[Way]) -> bool {
    ways.iter()
        .any(|way| matches!(way, Way::Pairs | Way::Parts))
}

/// Why nobody can read such content as it stands: its character set or its coding.
pub(super) fn hides(fields: &HeaderMap) -> Option<&'static str> {
    let ways = of(fields);
    if ways.is_empty() {
        return None;
    }
    if charset::hides_query(fields) {
        return Some("a character set that is not read");
    }
    let codings = fields
        .iter()
        .filter(|(name, _)| **name == CONTENT_ENCODING || name.as_str() == "content_encoding");
    let mut codings = codings.flat_map(|(_, value)| value.as_bytes().split(|byte| *byte == b','));
    let is_coded = codings.any(|coding| {
        let coding = coding.trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    });
    (is_form(&ways) && is_coded).then_some("a content coding")
}

/// The values of all fields that programs take for the content's type, in lower case.
/// Interfaces between servers and programs take `_` for `-` (RFC 3875 4.1.18).
fn kinds(fields: &HeaderMap) -> impl Iterator<Item = String> {
    let kinds = fields
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "content-type" | "content_type"));
    kinds.map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
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
                    ("content_type", "multipart/form-data"),
                ],
                false,
                true,
                false,
            ),
            (&[(TYPE, "multipart/mixed;boundary=b")], false, true, false),
            (&[(TYPE, "application/vnd.api+json")], false, false, true),
        ] {
            let ways = of(&fields(given));
            let found = [Way::Pairs, Way::Parts, Way::Members].map(|way| ways.contains(&way));
            assert_eq!(found, [pairs, parts, members], "{given:?}");
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
            assert_eq!(hides(&fields(given)).is_some(), hidden, "{given:?}");
        }
    }
}
