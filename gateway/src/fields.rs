//! Which fields end at this hop and which a trailer may not hold (RFC 9110
//! 7.6.1, 6.5.1, 11.7). Edits field lists; knows nothing of who sent them.

use http::header::{self, HeaderName, HeaderValue};
use http::{Extensions, HeaderMap, Version};
use hyper::ext::ReasonPhrase;

use crate::limits;

/// What this program calls itself in `Via` (RFC 9110 7.6.3).
const PSEUDONYM: &str = "outgate";

/// Fields that speak to the next hop only, beside those `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// A field that an origin does not say through here: that the same is to be had
/// over UDP or from another host (RFC 7838).
const NOT_AN_ORIGINS: [HeaderName; 1] = [header::ALT_SVC];

/// What proxies on the way did (RFC 9209 2), of which we are one.
const PROXY_STATUS: &str = "proxy-status";

/// The members of a list-valued field (RFC 9110 5.6.1).
pub(crate) fn names_in<'a>(
    fields: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    fields
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|member| !member.is_empty())
}

/// Removes the fields that `Connection` names, whatever they are: a request is judged
/// without them, since it goes on without them. Those of every hop stay.
pub(crate) fn strip_named(fields: &mut HeaderMap) {
    let stays = |name: &HeaderName| {
        [header::CONTENT_LENGTH, header::HOST].contains(name) || HOP_BY_HOP.contains(name)
    };
    // Most messages name nothing, or only `keep-alive`.
    let named: Vec<HeaderName> = names_in(fields, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .filter(|name| !stays(name))
        .collect();
    for name in named {
        fields.remove(name);
    }
}

/// Removes what is meant for this hop. Framing fields are written anew by the
/// sender from the content's own length.
pub(crate) fn strip_hop_by_hop(fields: &mut HeaderMap) {
    strip_named(fields);
    for name in HOP_BY_HOP.into_iter().chain(NOT_AN_ORIGINS) {
        fields.remove(name);
    }
    fields.remove("proxy-authentication-info");
    strip_ours(fields);
}

/// Removes what only this program says, that it denied something: everything
/// below its own name, and what names it in `Proxy-Status`.
fn strip_ours(fields: &mut HeaderMap) {
    // Few messages have any.
    let ours: Vec<HeaderName> = fields
        .keys()
        .filter(|name| is_ours(name))
        .cloned()
        .collect();
    for name in ours {
        fields.remove(name);
    }
    let names_us = |value: &HeaderValue| names_us(value.as_bytes());
    for name in [PROXY_STATUS, "proxy_status"] {
        if !fields.get_all(name).iter().any(names_us) {
            continue;
        }
        let all = fields.get_all(name).iter().cloned();
        let others: Vec<HeaderValue> = all.filter(|value| !names_us(value)).collect();
        fields.remove(name);
        for value in others {
            fields.append(HeaderName::from_static(name), value);
        }
    }
}

/// Removes a reason phrase that names this program: it says there what it denied, and how
/// to allow it.
pub(crate) fn strip_our_reason(extensions: &mut Extensions) {
    let phrase = extensions.get::<ReasonPhrase>();
    if phrase.is_some_and(|phrase| names_us(phrase.as_bytes())) {
        extensions.remove::<ReasonPhrase>();
    }
}

fn names_us(text: &[u8]) -> bool {
    text.windows(PSEUDONYM.len())
        .any(|part| part.eq_ignore_ascii_case(PSEUDONYM.as_bytes()))
}

/// Whether a field is one of this program's; interfaces between servers and
/// programs take `_` for `-` (RFC 3875 4.1.18).
fn is_ours(name: &HeaderName) -> bool {
    let rest = name.as_str().strip_prefix(PSEUDONYM);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

/// Whether the sender of these fields takes trailers.
pub(crate) fn takes_trailers(fields: &HeaderMap) -> bool {
    names_in(fields, &header::TE).any(|coding| coding.eq_ignore_ascii_case("trailers"))
}

/// Says that trailers are welcome, for this hop. Only where connections carry
/// fields of their own is the field announced as one of them.
pub(crate) fn welcome_trailers(fields: &mut HeaderMap, version: Version) {
    fields.insert(header::TE, HeaderValue::from_static("trailers"));
    if version < Version::HTTP_2 {
        fields.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Says that content of unknown length follows, where a version needs to say
/// so: of some methods the sender would think that they have none.
pub(crate) fn announce_content(fields: &mut HeaderMap, version: Version) {
    if version < Version::HTTP_2 && !fields.contains_key(header::CONTENT_LENGTH) {
        let coding = HeaderValue::from_static("chunked");
        fields.insert(header::TRANSFER_ENCODING, coding);
    }
}

/// Whether a field that frames is spelt with `_`: interfaces between servers
/// and programs take it for `-` (RFC 3875 4.1.18).
pub(crate) fn is_respelt_framing(name: &HeaderName) -> bool {
    let framing = ["content-length", "transfer-encoding"];
    let text = name.as_str();
    framing
        .iter()
        .any(|one| text.len() == one.len() && text != *one && text.replace('_', "-") == *one)
}

/// Names this program as one that a message went through; `received` is the
/// version it came with (RFC 9110 7.6.3).
pub(crate) fn add_via(fields: &mut HeaderMap, received: Version) {
    let own = match received {
        Version::HTTP_10 => HeaderValue::from_static("1.0 outgate"),
        Version::HTTP_2 => HeaderValue::from_static("2.0 outgate"),
        _ => HeaderValue::from_static("1.1 outgate"),
    };
    fields.append(header::VIA, own);
}

/// Whether a request went through here too often to be on its way.
pub(crate) fn goes_in_circles(fields: &HeaderMap) -> bool {
    let own = names_in(fields, &header::VIA)
        .filter(|entry| entry.split_ascii_whitespace().nth(1) == Some(PSEUDONYM))
        .count();
    own >= limits::VIA_MAX
}

/// `Max-Forwards` of a request that may be answered on its way
/// (RFC 9110 7.6.2): `None` without one, or with one that is no number.
pub(crate) fn forwards_left(fields: &HeaderMap) -> Option<u64> {
    fields
        .get(header::MAX_FORWARDS)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// One forward less.
pub(crate) fn count_down(fields: &mut HeaderMap) {
    if let Some(left) = forwards_left(fields) {
        let next = HeaderValue::from(left.saturating_sub(1));
        fields.insert(header::MAX_FORWARDS, next);
    }
}

/// Whether a trailer of this name could change framing, routing, access or
/// what the head said about the content.
pub(crate) fn is_forbidden_trailer(name: &HeaderName) -> bool {
    // To programs behind interfaces both are one (RFC 3875 4.1.18).
    let text = &*name.as_str().replace('_', "-");
    let groups = [
        "content-",
        "if-",
        "proxy-",
        "sec-",
        "access-control-",
        "x-forwarded-",
        "x-http-method",
        PSEUDONYM,
    ];
    let single = [
        "host",
        "authorization",
        "cookie",
        "set-cookie",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
        "max-forwards",
        "range",
        "age",
        "cache-control",
        "expires",
        "pragma",
        "vary",
        "location",
        "retry-after",
        "date",
        "via",
        "forwarded",
        "www-authenticate",
        "age",
        "http2-settings",
        "strict-transport-security",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
    ];
    groups.iter().any(|group| text.starts_with(group)) || single.contains(&text)
}

/// About how many bytes fields have on the wire, in a head or behind content (RFC 9112 5).
pub(crate) fn bytes(fields: &HeaderMap) -> usize {
    let each = fields.iter().map(|(name, value)| {
        let both = name.as_str().len().saturating_add(value.len());
        both.saturating_add(4)
    });
    each.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_this_hop_does_not_pass_it() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("connection", "host, content-length"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eA=="),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAoAAAAAIAAAAA"),
            ("transfer-encoding", "chunked"),
            ("alt-svc", "h3=\":443\""),
            ("outgate-denied", "no-rule; rule=-"),
            ("outgate_denied", "no-rule; rule=-"),
            ("outgate", "1"),
            ("proxy-status", "outgate; error=http_request_denied"),
            ("proxy-status", "cdn; a, OUTGATE"),
            ("proxy-status", "cdn; error=dns_timeout"),
            ("proxy_status", "\"outgate\""),
            ("host", "a.test"),
            ("content-length", "3"),
            ("accept", "*/*"),
        ] {
            let name = HeaderName::from_static(name);
            fields.append(name, HeaderValue::from_static(value));
        }
        assert!(takes_trailers(&fields));
        strip_hop_by_hop(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "content-length", "host", "proxy-status"]);
        let status: Vec<_> = fields.get_all(PROXY_STATUS).iter().collect();
        assert_eq!(status, ["cdn; error=dns_timeout"]);
    }

    #[test]
    fn what_connection_names_is_gone_before_the_rest() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("connection", "Content-Type, x-hop, upgrade, host"),
            ("content-type", "text/plain"),
            ("x-hop", "1"),
            ("upgrade", "websocket"),
            ("host", "a.test"),
        ] {
            fields.append(name, HeaderValue::from_static(value));
        }
        strip_named(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["connection", "host", "upgrade"]);
    }

    #[test]
    fn a_field_that_frames_has_one_spelling() {
        for (name, respelt) in [
            ("content-length", false),
            ("transfer-encoding", false),
            ("content_language", false),
            ("content_length", true),
            ("transfer_encoding", true),
        ] {
            let name = HeaderName::from_static(name);
            assert_eq!(is_respelt_framing(&name), respelt, "{name}");
        }
    }

    #[test]
    fn trailers_that_frame_route_or_authorise_are_forbidden() {
        for name in [
            "content-length",
            "host",
            "transfer-encoding",
            "authorization",
            "set-cookie",
            "content_type",
            "proxy_status",
        ] {
            assert!(
                is_forbidden_trailer(&HeaderName::from_static(name)),
                "{name}"
            );
        }
        for name in ["grpc-status", "x-checksum", "digest"] {
            assert!(
                !is_forbidden_trailer(&HeaderName::from_static(name)),
                "{name}"
            );
        }
    }
}
