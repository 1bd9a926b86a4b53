//! The one target of a request, made from the pinned destination and the
//! request's own words, which must agree with it (RFC 9110 7.2, RFC 9112 3.2).
//! What the parser tolerates and this file does not is refused here, before
//! anything is judged. Reads only; decides nothing about policy.

use http::header;
use http::request;
use http::{Method, StatusCode, Uri, Version};
use outgate_policy::{Inspect, RequestTarget};
use outgate_record::Reason;

use crate::carrier::{Carrier, Upgrade};
use crate::destination::Destination;
use crate::fields::{self, names_in};
use crate::limits;
use crate::malformed::Malformed;
use crate::overrides;
use crate::target::{Target, TargetVisibility};
use crate::uri_authority::{UriAuthority, parse_authority};

fn bad(because: &str) -> Malformed {
    Malformed::bad(because)
}

fn refused(status: StatusCode, reason: Reason, because: &str) -> Malformed {
    Malformed {
        status,
        reason,
        because: because.to_owned(),
    }
}

/// Makes the target of a request on this destination.
pub(crate) fn make(
    head: &request::Parts,
    to: &Destination,
    carrier: Carrier,
) -> Result<Target, Malformed> {
    if head.headers.len() > limits::FIELDS_MAX {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let because = format!("more than {} fields", limits::FIELDS_MAX);
        return Err(refused(status, Reason::Malformed, &because));
    }
    check_method(head)?;
    check_framing(head)?;
    overrides::check(&head.headers, to)?;
    let named = authority(head, to, carrier)?;
    let Some(host) = (match &named {
        Some(authority) => to.matching(&authority.host),
        None => to.unnamed(),
    }) else {
        return Err(other_host(named.as_ref(), to));
    };
    if let Some(port) = named.and_then(|authority| authority.port)
        && port != to.port
    {
        let because = format!("Host names port {port} on a connection to port {}", to.port);
        return Err(refused(StatusCode::FORBIDDEN, Reason::Authority, &because));
    }
    let upgrade = upgrade(head)?;
    let text = request_target(head)?;
    let resource =
        RequestTarget::parse(text).map_err(|error| bad(&format!("request target: {error}")))?;
    let resource = if overrides::hides_query(&head.headers) {
        resource.with_hidden_query()
    } else {
        resource
    };
    Ok(Target {
        host,
        port: to.port,
        scheme: carrier.scheme(upgrade),
        // On a connection of its own it would be a GET, and rules mean that.
        method: match protocol(head) {
            Some(_) => Method::GET,
            None => head.method.clone(),
        },
        resource,
        shown: TargetVisibility::Path,
        mode: Inspect::Block,
    })
}

fn other_host(named: Option<&UriAuthority>, to: &Destination) -> Malformed {
    let named = named.map(|authority| authority.host.to_string());
    let because = format!(
        "the request names {} on a connection to {to}",
        named.as_deref().unwrap_or("no host")
    );
    refused(StatusCode::FORBIDDEN, Reason::Authority, &because)
}

/// What a stream is to become (RFC 8441 4), by its registered name.
fn protocol(head: &request::Parts) -> Option<&str> {
    let protocol = head.extensions.get::<h2::ext::Protocol>();
    protocol.map(h2::ext::Protocol::as_str)
}

fn check_method(head: &request::Parts) -> Result<(), Malformed> {
    let method = &head.method;
    let text = method.as_str();
    let plain = text
        .bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_'));
    if !plain || text.len() > limits::METHOD_BYTES_MAX {
        return Err(bad("the method is not a short token in upper case"));
    }
    match protocol(head) {
        Some("websocket") if *method == Method::CONNECT => return Ok(()),
        Some(_) => {
            let because = "a stream can become a WebSocket, and nothing else";
            return Err(refused(
                StatusCode::NOT_IMPLEMENTED,
                Reason::Method,
                because,
            ));
        }
        None => {}
    }
    if *method == Method::CONNECT {
        let because = "CONNECT has no meaning here: connect to the destination itself";
        return Err(refused(StatusCode::FORBIDDEN, Reason::Method, because));
    }
    if *method == Method::TRACE || text == "TRACK" {
        let because = "TRACE sends back what others added to a request";
        return Err(refused(StatusCode::FORBIDDEN, Reason::Method, because));
    }
    Ok(())
}

/// What decides where a message ends has one reading, or the message none.
fn check_framing(head: &request::Parts) -> Result<(), Malformed> {
    let fields = &head.headers;
    if fields.keys().any(fields::is_respelt_framing) {
        return Err(bad("a field that frames is spelt with `_`"));
    }
    let mut codings = fields.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(bad(
                "Transfer-Encoding is something else than one `chunked`",
            ));
        }
        if fields.contains_key(header::CONTENT_LENGTH) {
            return Err(bad("Transfer-Encoding and Content-Length together"));
        }
    }
    let mut lengths = fields.get_all(header::CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        let text = length.as_bytes();
        let canonical = text == b"0" || text.first().is_some_and(|digit| *digit != b'0');
        if lengths.next().is_some() || !canonical || !text.iter().all(u8::is_ascii_digit) {
            return Err(bad("Content-Length is not one canonical number"));
        }
    }
    let mut expectations = fields.get_all(header::EXPECT).iter();
    if let Some(expectation) = expectations.next() {
        let known = expectation.as_bytes().eq_ignore_ascii_case(b"100-continue");
        if !known || expectations.next().is_some() {
            let because = "only `Expect: 100-continue` is understood";
            return Err(refused(
                StatusCode::EXPECTATION_FAILED,
                Reason::Malformed,
                because,
            ));
        }
    }
    Ok(())
}

fn authority(
    head: &request::Parts,
    to: &Destination,
    carrier: Carrier,
) -> Result<Option<UriAuthority>, Malformed> {
    let own_port = carrier.default_port();
    if head.version >= Version::HTTP_2 && head.uri.authority().is_none() {
        // Without one the parser does not show the scheme either.
        return Err(bad("no :authority"));
    }
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let named = match hosts.next() {
        None if head.version == Version::HTTP_11 => return Err(bad("no Host field")),
        None => None,
        Some(value) => {
            let text = value.to_str().map_err(|_| bad("Host is not ASCII"))?;
            Some(parse_authority(text)?)
        }
    };
    if hosts.next().is_some() {
        return Err(bad("more than one Host field"));
    }
    let Some(in_target) = head.uri.authority() else {
        return Ok(named);
    };
    if head
        .uri
        .scheme_str()
        .is_none_or(|scheme| !scheme.eq_ignore_ascii_case(carrier.scheme(Upgrade::None).as_str()))
    {
        return Err(bad(
            "the request target is not of the form this connection can have",
        ));
    }
    let in_target = parse_authority(in_target.as_str())?;
    let port = |authority: &UriAuthority| authority.port.unwrap_or(own_port);
    match &named {
        Some(named) if named.host != in_target.host || port(named) != port(&in_target) => {
            Err(bad("request target and Host name different authorities"))
        }
        _ => {
            // Before HTTP/2 a whole URI says its port, if only by its scheme;
            // `:authority` is as `Host` is.
            let said = head.version < Version::HTTP_2 && to.port != own_port;
            let port = in_target.port.or(said.then_some(own_port));
            Ok(Some(UriAuthority {
                host: in_target.host,
                port,
            }))
        }
    }
}

/// Path and query of the request target, or `*`.
fn request_target(head: &request::Parts) -> Result<&str, Malformed> {
    let uri: &Uri = &head.uri;
    let Some(path_and_query) = uri.path_and_query() else {
        return Err(bad("the request target has no path"));
    };
    let text = path_and_query.as_str();
    if text.len() > limits::TARGET_BYTES_MAX {
        let because = format!("request target over {} bytes", limits::TARGET_BYTES_MAX);
        return Err(refused(
            StatusCode::URI_TOO_LONG,
            Reason::Malformed,
            &because,
        ));
    }
    match text {
        "*" if head.method != Method::OPTIONS => Err(bad("`*` is a target for OPTIONS only")),
        "*" => Ok(text),
        _ if text.starts_with('/') => Ok(text),
        // An absolute form without a path (RFC 9112 3.2.1).
        "" if uri.authority().is_some() => Ok("/"),
        _ => Err(bad(
            "the request target is not of the form this method can have",
        )),
    }
}

/// An offer to become a WebSocket is a request of its own kind; all other
/// offers are hop-by-hop, and the next hop does not hear of them.
fn upgrade(head: &request::Parts) -> Result<Upgrade, Malformed> {
    if protocol(head).is_some() {
        return if head.headers.contains_key(header::CONTENT_LENGTH) {
            Err(bad("a stream that becomes a WebSocket has no length"))
        } else {
            Ok(Upgrade::WebSocket)
        };
    }
    let mut offers = head.headers.get_all(header::UPGRADE).iter();
    let is_websocket = offers
        .next()
        .is_some_and(|offer| offer.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let announced = names_in(&head.headers, &header::CONNECTION)
        .any(|name| name.eq_ignore_ascii_case("upgrade"));
    if !is_websocket || !announced {
        return Ok(Upgrade::None);
    }
    let has_content = head.headers.contains_key(header::TRANSFER_ENCODING)
        || head
            .headers
            .get(header::CONTENT_LENGTH)
            .is_some_and(|length| length != "0");
    if offers.next().is_some() || head.method != Method::GET || has_content {
        return Err(bad("an upgrade to WebSocket is one GET without content"));
    }
    if head.version < Version::HTTP_11 {
        return Err(bad("an upgrade needs HTTP/1.1"));
    }
    Ok(Upgrade::WebSocket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Party;
    use http::Request;
    use outgate_policy::{Host, Scheme};
    use std::net::{IpAddr, SocketAddr};

    fn to(host: &str, port: u16) -> Destination {
        let address: IpAddr = "198.18.7.7".parse().unwrap();
        let party = match Host::parse(host).unwrap() {
            Host::Name(name) => Party::Name(name),
            Host::Address(address) => Party::Address(address),
        };
        Destination {
            party,
            port,
            address: SocketAddr::new(address, port),
        }
    }

    fn head(method: &str, uri: &str, fields: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn get(uri: &str, fields: &[(&str, &str)]) -> Result<Target, Malformed> {
        make(&head("GET", uri, fields), &to("a.test", 80), Carrier::Plain)
    }

    #[test]
    fn the_target_is_the_destination_in_canonical_words() {
        for (uri, host) in [
            ("/x", "a.test"),
            ("/x", "A.Test."),
            ("/x", "a.test:80"),
            ("http://a.test/x", "a.test"),
            ("http://a.test:80/x", "a.test"),
        ] {
            let target = get(uri, &[("host", host)]).unwrap();
            assert_eq!(target.origin(), "http://a.test", "{uri} {host}");
            assert_eq!(target.resource.as_str(), "/x");
        }
        let other = make(
            &head("GET", "/", &[("host", "a.test:8080")]),
            &to("a.test", 8080),
            Carrier::Plain,
        )
        .unwrap();
        assert_eq!(other.authority(), "a.test:8080");
        let silent = make(
            &head("GET", "/", &[("host", "a.test")]),
            &to("a.test", 8080),
            Carrier::Plain,
        )
        .unwrap();
        assert_eq!(silent.authority(), "a.test:8080");
        let local = make(
            &head("GET", "/", &[("host", "localhost:3000")]),
            &to("127.0.0.1", 3000),
            Carrier::Plain,
        );
        assert_eq!(local.unwrap().authority(), "127.0.0.1:3000");
        let six = make(
            &head("GET", "/", &[("host", "[::1]:3000")]),
            &to("[::1]", 3000),
            Carrier::Plain,
        )
        .unwrap();
        assert_eq!(six.authority(), "[::1]:3000");
    }

    #[test]
    fn another_authority_is_refused() {
        for (uri, host, status) in [
            ("/", "b.test", 403),
            ("/", "a.test.b.test", 403),
            ("/", "198.18.7.7", 403),
            ("/", "a.test:81", 403),
            ("/", "localhost", 403),
            ("http://b.test/", "a.test", 400),
            ("http://b.test/", "b.test", 403),
            ("http://a.test:81/", "a.test", 400),
            ("http://u@a.test/", "a.test", 400),
            ("https://a.test/", "a.test", 400),
            ("ftp://a.test/", "a.test", 400),
            ("a.test:80", "a.test", 400),
            ("/", "u@a.test", 400),
            ("/", "a.test,b.test", 400),
            ("/", "a.test/x", 400),
            ("/", "a.test:", 400),
            ("/", "a.test:0", 400),
            ("/", "a.test:080", 400),
            ("/", "a.test:65536", 400),
            ("/", "a.test:+80", 400),
            ("/", "a.test:80:80", 400),
            ("/", "", 400),
            ("/", "127.1", 400),
            ("/", "2130706433", 400),
            ("/", "0x7f.1", 400),
            ("/", "[::1", 400),
            ("/", "[::1%25eth0]", 400),
            ("/", "[::1]x", 400),
            ("/", "::1", 400),
        ] {
            let result = get(uri, &[("host", host)]);
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                result.map(|t| t.origin()).map_err(|m| m.status),
                Err(status),
                "{uri} {host}"
            );
        }
        for fields in [&[][..], &[("host", "a.test"), ("host", "a.test")]] {
            assert_eq!(get("/", fields).unwrap_err().status, 400);
        }
    }

    #[test]
    fn messages_with_two_readings_are_refused() {
        for fields in [
            &[
                ("transfer-encoding", "chunked"),
                ("transfer-encoding", "chunked"),
            ][..],
            &[("transfer-encoding", "gzip, chunked")],
            &[("transfer-encoding", "xchunked")],
            &[("transfer-encoding", "chunked"), ("content-length", "3")],
            &[("content-length", "3"), ("content-length", "3")],
            &[("content-length", "03")],
            &[("content-length", "+3")],
            &[("content-length", "3, 3")],
        ] {
            let mut all = vec![("host", "a.test")];
            all.extend(fields);
            let result = make(&head("POST", "/", &all), &to("a.test", 80), Carrier::Plain);
            assert_eq!(result.unwrap_err().status, 400, "{fields:?}");
        }
        let expect = [("host", "a.test"), ("expect", "200-ok")];
        assert_eq!(get("/", &expect).unwrap_err().status, 417);
    }

    #[test]
    fn methods_and_forms_that_belong_to_others_are_refused() {
        let host = [("host", "a.test")];
        for (method, uri, status) in [
            ("TRACE", "/", 403),
            ("TRACK", "/", 403),
            ("CONNECT", "a.test:80", 403),
            ("get", "/", 400),
            ("GET", "*", 400),
            ("AVERYVERYVERYVERYVERYVERYVERYLONGMETHOD", "/", 400),
        ] {
            let result = make(&head(method, uri, &host), &to("a.test", 80), Carrier::Plain);
            assert_eq!(
                result.unwrap_err().status.as_u16(),
                status,
                "{method} {uri}"
            );
        }
        assert!(
            make(
                &head("OPTIONS", "*", &host),
                &to("a.test", 80),
                Carrier::Plain
            )
            .is_ok()
        );
    }

    #[test]
    fn only_a_clean_websocket_offer_is_an_upgrade() {
        let upgrade = |method, more: &[(&str, &str)]| {
            let mut all = vec![("host", "a.test"), ("connection", "keep-alive, Upgrade")];
            all.extend(more);
            make(&head(method, "/", &all), &to("a.test", 80), Carrier::Plain)
                .map(|target| target.scheme)
        };
        assert_eq!(upgrade("GET", &[("upgrade", "WebSocket")]), Ok(Scheme::Ws));
        assert_eq!(upgrade("GET", &[("upgrade", "h2c")]), Ok(Scheme::Http));
        assert!(upgrade("POST", &[("upgrade", "websocket")]).is_err());
        assert!(upgrade("GET", &[("upgrade", "websocket"), ("upgrade", "h2c")]).is_err());
        let unannounced = get("/", &[("host", "a.test"), ("upgrade", "websocket")]);
        assert_eq!(unannounced.unwrap().scheme, Scheme::Http);
    }
}
