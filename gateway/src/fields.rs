//! Which fields end at this hop and which a trailer may not hold (RFC 9110
//! 7.6.1, 6.5.1, 11.7). Edits field lists; knows nothing of who sent them.

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};

use crate::target::names_in;

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

/// Removes what is meant for this hop. Framing fields are written anew by the
/// sender from the content's own length.
pub(crate) fn strip_hop_by_hop(fields: &mut HeaderMap) {
    // Most messages name nothing, or only `keep-alive`.
    let named: Vec<HeaderName> = names_in(fields, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .filter(|name| *name != header::CONTENT_LENGTH && *name != header::HOST)
        .collect();
    for name in named {
        fields.remove(name);
    }
    for name in HOP_BY_HOP {
        fields.remove(name);
    }
    fields.remove("proxy-authentication-info");
}

/// Whether the sender of these fields takes trailers.
pub(crate) fn takes_trailers(fields: &HeaderMap) -> bool {
    names_in(fields, &header::TE).any(|coding| coding.eq_ignore_ascii_case("trailers"))
}

/// Says that trailers are welcome, for this hop.
pub(crate) fn welcome_trailers(fields: &mut HeaderMap) {
    fields.insert(header::TE, HeaderValue::from_static("trailers"));
    fields.insert(header::CONNECTION, HeaderValue::from_static("te"));
}

/// Whether a trailer of this name could change framing, routing, access or
/// what the head said about the content.
pub(crate) fn is_forbidden_trailer(name: &HeaderName) -> bool {
    let text = name.as_str();
    let groups = [
        "content-",
        "if-",
        "proxy-",
        "sec-",
        "access-control-",
        "x-forwarded-",
        "x-http-method",
        "outgate-",
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
        assert_eq!(left, ["accept", "content-length", "host"]);
    }

    #[test]
    fn trailers_that_frame_route_or_authorise_are_forbidden() {
        for name in [
            "content-length",
            "host",
            "transfer-encoding",
            "authorization",
            "set-cookie",
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
