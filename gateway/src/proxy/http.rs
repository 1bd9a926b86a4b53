//! HTTP towards the explicit proxy (RFC 9110 9.3.6, RFC 9112 3.2): CONNECT, which becomes a
//! tunnel with one destination, and requests in absolute form, each of which is one request to
//! one. Everything else is answered here, in words. Decides nothing.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use hyper::ext::ReasonPhrase;
use outgate_record::Reason;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::head::{self, HeadRead, ProxyHead};
use super::tokens::{Credentials, TokenRegistry};
use super::{Explains, ProxyAsk, ProxyRefusal, destination};
use crate::content::MessageContent;
use crate::http1::RequestsCarried;
use crate::linger::close_lingering;
use crate::malformed::Malformed;
use crate::respond;
use crate::session::Session;
use crate::uri_authority::{UriAuthority, parse_authority};

/// Requests without good credentials on one connection: some clients try each way once.
const TRIES_MAX: usize = 4;

/// What a tunnel begins with.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// What somebody hears who takes the proxy for a server.
const NO_SERVER: &str = "this is the proxy of an outgate gateway and no web server: send it \
    `CONNECT host:port` or `GET http://host/path`, with the name and the token of a sandbox as \
    the proxy's user and password";

/// What somebody hears whom the proxy does not know.
const UNKNOWN: &str = "the proxy wants the name and the token of a sandbox (user and password, \
    or Bearer); `outgate token create NAME` makes one; what was sent is missing, unknown, revoked \
    or expired";

/// What is asked for, in one of the two forms.
enum ProxyForm {
    Connect(UriAuthority),
    Absolute(UriAuthority),
}

/// Serves a connection until it is handed on or answered.
pub(super) async fn serve(
    mut stream: TcpStream,
    from: SocketAddr,
    tokens: &TokenRegistry,
) -> io::Result<()> {
    for _ in 0..TRIES_MAX {
        let bytes = match head::read(&mut stream).await? {
            HeadRead::Head(bytes) => bytes,
            HeadRead::End => return Ok(()),
            HeadRead::Long => return last(stream, respond_to(&head::long(), None)).await,
        };
        let read = ProxyHead::parse(&bytes);
        let read = read.and_then(|head| Ok((form(&head)?, head)));
        let (form, head) = match read {
            Ok(read) => read,
            Err(fault) => return last(stream, respond_to(&fault, None)).await,
        };
        let shown = match head.one(&header::PROXY_AUTHORIZATION) {
            Ok(shown) => shown.and_then(|value| Credentials::of_field(value.as_bytes())),
            Err(fault) => return last(stream, respond_to(&fault, Some(&head))).await,
        };
        let Some(session) = shown.and_then(|shown| tokens.session(&shown)) else {
            let answer = unknown(&head);
            // Many clients ask without credentials first, and again on the same connection.
            if head.has_content() || head.is_last() {
                return last(stream, answer).await;
            }
            let bytes = encoded(answer, &head, Afterwards::More).await;
            stream.write_all(&bytes).await?;
            continue;
        };
        return match form {
            ProxyForm::Connect(to) => connect(stream, (&head, to), (session, from)).await,
            ProxyForm::Absolute(to) => request(stream, (head, to), (session, from)).await,
        };
    }
    Ok(())
}

/// What a head asks for.
///
/// # Errors
/// It asks for nothing that a proxy does.
fn form(head: &ProxyHead) -> Result<ProxyForm, Malformed> {
    if head.method == Method::CONNECT {
        return connect_form(head).map(ProxyForm::Connect);
    }
    let target = head.target.as_str();
    let Some((scheme, rest)) = target.split_once("://") else {
        return Err(Malformed::bad(NO_SERVER));
    };
    if scheme.starts_with('/') {
        return Err(Malformed::bad(NO_SERVER));
    }
    if !scheme.eq_ignore_ascii_case("http") {
        let because = "only http:// is asked for in absolute form; for https:// and everything \
                       else the proxy is sent `CONNECT host:port`";
        return Err(Malformed::bad(because));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.split_at_checked(end).map(|(authority, _)| authority);
    parse_authority(authority.unwrap_or_default()).map(ProxyForm::Absolute)
}

/// The target of CONNECT, which has one form, and with which Host agrees.
fn connect_form(head: &ProxyHead) -> Result<UriAuthority, Malformed> {
    let to = parse_authority(&head.target)?;
    if to.port.is_none() {
        return Err(Malformed::bad("CONNECT names no port: `CONNECT host:port`"));
    }
    if head.has_content() {
        return Err(Malformed::bad("CONNECT has no content"));
    }
    if let Some(host) = head.one(&header::HOST)? {
        let named = host
            .to_str()
            .map_err(|_| Malformed::bad("Host is not ASCII"))?;
        let named = parse_authority(named)?;
        if named.host != to.host || named.port.is_some_and(|port| Some(port) != to.port) {
            return Err(Malformed::bad(
                "CONNECT and Host name different authorities",
            ));
        }
    }
    Ok(to)
}

async fn connect(
    mut stream: TcpStream,
    (head, to): (&ProxyHead, UriAuthority),
    (session, from): (Arc<Session>, SocketAddr),
) -> io::Result<()> {
    let how = format!("CONNECT from {}", from.ip().to_canonical());
    match decided(session, to, &head.target, (&how, Explains::Here)) {
        Ok(ask) => {
            stream.write_all(ESTABLISHED).await?;
            ask.tunnel(stream);
            Ok(())
        }
        Err(refused) => {
            let answer = refusal(&refused, head);
            let bytes = encoded(answer, head, Afterwards::End).await;
            close_lingering(stream, &bytes).await;
            Ok(())
        }
    }
}

async fn request(
    stream: TcpStream,
    (head, to): (ProxyHead, UriAuthority),
    (session, from): (Arc<Session>, SocketAddr),
) -> io::Result<()> {
    let how = format!("{} from {}", head.method, from.ip().to_canonical());
    match decided(session, to, &head.target, (&how, Explains::Inside)) {
        Ok(ask) => {
            // What switches protocols says so in the field that would say it is the last.
            let carries = if head.fields.contains_key(header::UPGRADE) {
                RequestsCarried::Many
            } else {
                RequestsCarried::One
            };
            ask.request((head.onward, carries), stream);
            Ok(())
        }
        Err(refused) => {
            let answer = refusal(&refused, &head);
            let bytes = encoded(answer, &head, Afterwards::End).await;
            close_lingering(stream, &bytes).await;
            Ok(())
        }
    }
}

/// A place and a decision for one destination.
fn decided(
    session: Arc<Session>,
    to: UriAuthority,
    said: &str,
    (how, explains): (&str, Explains),
) -> Result<ProxyAsk, ProxyRefusal> {
    const HTTP_PORT: u16 = 80;
    let to = destination(&session, to.host, to.port.unwrap_or(HTTP_PORT));
    let ask = ProxyAsk::new(session, to, said).ok_or(ProxyRefusal::Full)?;
    let decided = ask.decide(how, explains);
    decided.map(|()| ask).map_err(ProxyRefusal::Denied)
}

fn refusal(refused: &ProxyRefusal, head: &ProxyHead) -> Response<MessageContent> {
    match refused {
        ProxyRefusal::Denied(refusal) => respond::refusal(refusal, respond::form(&head.fields)),
        ProxyRefusal::Full => {
            let fault = Malformed {
                status: StatusCode::SERVICE_UNAVAILABLE,
                reason: Reason::Limit,
                because: "too many connections at once".to_owned(),
            };
            respond_to(&fault, Some(head))
        }
    }
}

fn respond_to(fault: &Malformed, head: Option<&ProxyHead>) -> Response<MessageContent> {
    let form = head.map_or(respond::TextForm::Text, |head| respond::form(&head.fields));
    respond::malformed(fault, form)
}

/// The answer to who cannot say which sandbox it is (RFC 9110 15.5.8).
fn unknown(head: &ProxyHead) -> Response<MessageContent> {
    let fault = Malformed {
        status: StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        reason: Reason::Identity,
        because: UNKNOWN.to_owned(),
    };
    let mut response = respond_to(&fault, Some(head));
    for challenge in ["Basic realm=\"outgate\"", "Bearer realm=\"outgate\""] {
        let value = HeaderValue::from_static(challenge);
        response
            .headers_mut()
            .append(header::PROXY_AUTHENTICATE, value);
    }
    response
}

/// Whether the connection goes on behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    More,
    End,
}

/// The last answer on a connection, to a head that was not understood.
async fn last(stream: TcpStream, answer: Response<MessageContent>) -> io::Result<()> {
    let bytes = written(answer, Afterwards::End, Shows::Content).await;
    close_lingering(stream, &bytes).await;
    Ok(())
}

/// An answer in bytes.
async fn encoded(
    answer: Response<MessageContent>,
    head: &ProxyHead,
    afterwards: Afterwards,
) -> Vec<u8> {
    let shows = if head.method == Method::HEAD {
        Shows::Head
    } else {
        Shows::Content
    };
    written(answer, afterwards, shows).await
}

/// How much of an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Head,
    Content,
}

async fn written(
    answer: Response<MessageContent>,
    afterwards: Afterwards,
    shows: Shows,
) -> Vec<u8> {
    let (mut head, content) = answer.into_parts();
    // Of texts of our own only, which are there at once.
    let content = content.collect().await;
    let content = content.map(Collected::to_bytes).unwrap_or_default();
    let length = HeaderValue::from(content.len());
    head.headers.insert(header::CONTENT_LENGTH, length);
    let connection = match afterwards {
        Afterwards::More => "keep-alive",
        Afterwards::End => "close",
    };
    for name in [
        header::CONNECTION,
        HeaderName::from_static("proxy-connection"),
    ] {
        head.headers
            .insert(name, HeaderValue::from_static(connection));
    }
    let phrase = head.extensions.get::<ReasonPhrase>();
    let phrase = phrase.map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned());
    let phrase = phrase.unwrap_or_default();
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write!(text, "HTTP/1.1 {} {phrase}\r\n", head.status.as_u16());
    let mut bytes = text.into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    if shows == Shows::Content {
        bytes.extend_from_slice(&content);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str, fields: &str) -> Result<String, StatusCode> {
        let text = format!("{line} HTTP/1.1\r\n{fields}\r\n");
        let head = ProxyHead::parse(text.as_bytes()).map_err(|fault| fault.status)?;
        let shown = |word, to: UriAuthority| {
            let port = to.port.map(|port| format!(":{port}"));
            format!("{word} {}{}", to.host, port.unwrap_or_default())
        };
        match form(&head) {
            Ok(ProxyForm::Connect(to)) => Ok(shown("tunnel", to)),
            Ok(ProxyForm::Absolute(to)) => Ok(shown("request", to)),
            Err(fault) => Err(fault.status),
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one entry a form")]
    fn a_proxy_is_asked_in_two_forms_and_no_other() {
        for (line, fields, found) in [
            ("CONNECT a.test:443", "", Ok("tunnel a.test:443")),
            (
                "CONNECT A.Test.:443",
                "Host: a.test:443\r\n",
                Ok("tunnel a.test:443"),
            ),
            (
                "CONNECT a.test:443",
                "Host: a.test\r\n",
                Ok("tunnel a.test:443"),
            ),
            (
                "CONNECT [2001:db8::1]:443",
                "",
                Ok("tunnel [2001:db8::1]:443"),
            ),
            (
                "CONNECT a.test:443",
                "Content-Length: 0\r\n",
                Ok("tunnel a.test:443"),
            ),
            ("CONNECT a.test:443", "Host: b.test:443\r\n", Err(400)),
            ("CONNECT a.test:443", "Host: a.test:80\r\n", Err(400)),
            (
                "CONNECT a.test:443",
                "Host: a.test\r\nHost: a.test\r\n",
                Err(400),
            ),
            ("CONNECT a.test:443", "Content-Length: 1\r\n", Err(400)),
            (
                "CONNECT a.test:443",
                "Transfer-Encoding: chunked\r\n",
                Err(400),
            ),
            ("CONNECT a.test", "", Err(400)),
            ("CONNECT a.test:", "", Err(400)),
            ("CONNECT a.test:0", "", Err(400)),
            ("CONNECT a.test:65536", "", Err(400)),
            ("CONNECT a.test:+443", "", Err(400)),
            ("CONNECT u@a.test:443", "", Err(400)),
            ("CONNECT http://a.test:443", "", Err(400)),
            ("CONNECT a.test:443/", "", Err(400)),
            ("CONNECT /", "", Err(400)),
            ("CONNECT *", "", Err(400)),
            ("CONNECT 2130706433:443", "", Err(400)),
            ("CONNECT 0x7f.1:443", "", Err(400)),
            ("CONNECT 127.1:443", "", Err(400)),
            ("CONNECT [::1%25lo]:443", "", Err(400)),
            ("CONNECT [::ffff:127.0.0.1]:443", "", Err(400)),
            ("CONNECT ::1:443", "", Err(400)),
            ("GET http://a.test", "", Ok("request a.test")),
            ("GET HTTP://a.test:8080/x", "", Ok("request a.test:8080")),
            (
                "GET http://a.test?x=http://b.test/",
                "",
                Ok("request a.test"),
            ),
            ("GET http://u:p@a.test/", "", Err(400)),
            ("GET http:///x", "", Err(400)),
            ("GET http://a.test\\@b.test/", "", Err(400)),
            ("GET https://a.test/", "", Err(400)),
            ("GET ftp://a.test/", "", Err(400)),
            ("GET /", "Host: a.test\r\n", Err(400)),
            ("GET /http://a.test/", "", Err(400)),
            ("GET //a.test/", "", Err(400)),
            ("OPTIONS *", "", Err(400)),
            ("GET a.test:80", "", Err(400)),
            ("GET outgate", "", Err(400)),
        ] {
            let found = found.map(str::to_owned);
            let status = |code| StatusCode::from_u16(code).unwrap();
            assert_eq!(
                asked(line, fields),
                found.map_err(status),
                "{line} {fields:?}"
            );
        }
    }
}
