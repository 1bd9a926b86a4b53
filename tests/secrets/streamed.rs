//! An origin of HTTP/2 inside TLS. It records every request as HTTP/1.1 would
//! write it, says what it got in a field, in its content piece by piece and in a
//! trailer, and takes WebSockets on streams (RFC 8441).

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::thread;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use crate::origin::{ADDRESS, Origins, extended, field, message};

/// Where it listens, and every name leads.
pub(crate) const PORT: u16 = 9443;

/// Starts it beside the others.
pub(crate) fn start(origins: &Origins) {
    let address: SocketAddr = format!("{ADDRESS}:{PORT}").parse().expect("an address");
    let listener = std::net::TcpListener::bind(address).expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let acceptor = tokio_rustls::TlsAcceptor::from(origins.config(b"h2"));
    let origins = origins.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, origins) = (acceptor.clone(), origins.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut settings = h2::server::Builder::new();
                    settings.enable_connect_protocol();
                    let Ok(mut connection) = settings.handshake::<_, Bytes>(stream).await else {
                        return;
                    };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(serve(origins.clone(), request, respond));
                    }
                });
            }
        });
    });
}

async fn serve(
    origins: Origins,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) -> Option<()> {
    let (head, mut content) = request.into_parts();
    let path = head.uri.path().to_owned();
    let target = head.uri.path_and_query().map_or("", |own| own.as_str());
    let mut text = format!("{} {target} HTTP/2\r\n", head.method);
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        write!(text, "{name}: {value}\r\n").ok()?;
    }
    text.push_str("\r\n");
    if head.method == Method::CONNECT {
        origins.note(text.clone());
        return converse(&text, &path, content, respond).await;
    }
    while let Some(data) = content.data().await {
        let data = data.ok()?;
        content.flow_control().release_capacity(data.len()).ok()?;
        text.push_str(&String::from_utf8_lossy(&data));
    }
    if let Some(trailers) = content.trailers().await.ok()? {
        write!(text, "{trailers:?}").ok()?;
    }
    origins.note(text.clone());
    answer(&text, &path, respond)
}

fn said(text: &str) -> &str {
    field(text, "authorization").unwrap_or("none")
}

fn answer(text: &str, path: &str, mut respond: SendResponse<Bytes>) -> Option<()> {
    let echoes = path.starts_with("/echo");
    let own = if echoes { said(text) } else { "none" };
    let response = Response::builder().header("x-echo", own).body(()).ok()?;
    let mut sent = respond.send_response(response, false).ok()?;
    if !echoes {
        return sent.send_data("ok".into(), true).ok();
    }
    for piece in text.as_bytes().chunks(5) {
        sent.send_data(Bytes::copy_from_slice(piece), false).ok()?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-late", own.parse().ok()?);
    sent.send_trailers(trailers).ok()
}

/// A WebSocket that says the credentials of its request, a byte at a time, and
/// then reads what comes.
async fn converse(
    text: &str,
    path: &str,
    mut content: RecvStream,
    mut respond: SendResponse<Bytes>,
) -> Option<()> {
    let mut response = Response::builder().status(StatusCode::OK);
    if let Some(name) = extended(path) {
        response = response.header("sec-websocket-extensions", name);
    }
    let response = response.header("x-echo", said(text)).body(()).ok()?;
    let mut sent = respond.send_response(response, false).ok()?;
    for byte in message(said(text)) {
        sent.send_data(Bytes::copy_from_slice(&[byte]), false)
            .ok()?;
    }
    while let Some(data) = content.data().await {
        let data = data.ok()?;
        content.flow_control().release_capacity(data.len()).ok()?;
    }
    sent.send_data(Bytes::new(), true).ok()
}
