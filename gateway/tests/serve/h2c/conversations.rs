//! What goes on before a response and after it: interim responses, content
//! that waits to be wanted, and streams that become WebSockets.

use base64::Engine as _;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};
use outgate_policy::SourceKind;

use super::peers::{Asked, Served, Streamed, ask, client, get, run, runtime, session, whole};
use crate::harness::{Launcher, Origin, field, read_message, start};

fn websocket(uri: &str) -> Request<()> {
    let mut request = get(uri);
    *request.method_mut() = Method::CONNECT;
    let fields = request.headers_mut();
    fields.insert("sec-websocket-version", "13".parse().unwrap());
    fields.insert("sec-websocket-protocol", "chat".parse().unwrap());
    let protocol = Protocol::from_static("websocket");
    request.extensions_mut().insert(protocol);
    request
}

/// Asks for a WebSocket once the gateway said that it takes such questions.
async fn join(client: &SendRequest<Bytes>, uri: &str) -> (Response<RecvStream>, SendStream<Bytes>) {
    while !client.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    let mut client = client.clone().ready().await.unwrap();
    let (answer, sent) = client.send_request(websocket(uri), false).unwrap();
    (answer.await.unwrap(), sent)
}

async fn read(content: &mut RecvStream) -> Option<String> {
    loop {
        let data = content.data().await?.unwrap();
        content.flow_control().release_capacity(data.len()).unwrap();
        // A frame may hold nothing but the end.
        if !data.is_empty() {
            return Some(String::from_utf8(data.to_vec()).unwrap());
        }
    }
}

/// Sends back what comes, on a stream or instead of one.
fn echo((request, mut respond): Asked) -> Served {
    Box::pin(async move {
        let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
        if protocol != Some("websocket") || request.uri().path() == "/no" {
            let mut head = Response::new(());
            *head.status_mut() = StatusCode::NOT_FOUND;
            let mut content = respond.send_response(head, false).unwrap();
            content.send_data("not here".into(), true).unwrap();
            return;
        }
        let mut head = Response::new(());
        head.headers_mut()
            .insert("sec-websocket-protocol", "chat".parse().unwrap());
        let mut sent = respond.send_response(head, false).unwrap();
        sent.send_data("hello".into(), false).unwrap();
        let mut content = request.into_body();
        while let Some(text) = read(&mut content).await {
            sent.send_data(format!("<{text}>").into(), false).unwrap();
        }
        sent.send_data("bye".into(), true).unwrap();
    })
}

fn rules(pin: &str) -> Launcher {
    start(&[
        (SourceKind::Allow, "ws://a.test/chat"),
        (SourceKind::Allow, "ws://a.test/no"),
        // What is sent here is text, and no frames.
        (SourceKind::Document, "inspect = { mode = \"off\" }"),
        (SourceKind::Allow, "http://a.test"),
        (SourceKind::Pin, pin),
    ])
}

fn conversing() -> Streamed {
    let mut settings = h2::server::Builder::new();
    settings.enable_connect_protocol();
    Streamed::with(settings, echo)
}

async fn converse(client: &SendRequest<Bytes>) {
    let (answer, mut sent) = join(client, "http://a.test/chat").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    for name in ["sec-websocket-accept", "upgrade", "connection"] {
        assert!(!answer.headers().contains_key(name), "{name}");
    }
    let mut content = answer.into_body();
    assert_eq!(read(&mut content).await.as_deref(), Some("hello"));
    for text in ["one", "two"] {
        sent.send_data(text.into(), false).unwrap();
        assert_eq!(read(&mut content).await, Some(format!("<{text}>")));
    }
    sent.send_data(Bytes::new(), true).unwrap();
    assert_eq!(read(&mut content).await.as_deref(), Some("bye"));
    assert_eq!(read(&mut content).await, None);
}

#[test]
fn a_stream_becomes_a_websocket_under_its_own_rule() {
    let origin = conversing();
    let mut launcher = rules(&origin.pin("a.test", 80));
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        converse(&client).await;
        // Rules for http do not include it, and nothing arrives.
        let (denied, _) = join(&client, "http://a.test/other").await;
        assert_eq!(denied.status(), StatusCode::FORBIDDEN);
        let (denied, _) = whole(denied).await;
        let hint = denied.body().contains("-a 'ws://a.test/other'");
        assert!(hint, "{}", denied.body());
        // What the origin says to it is no WebSocket, but an answer.
        let (refused, _) = join(&client, "http://a.test/no").await;
        assert_eq!(refused.status(), StatusCode::NOT_FOUND);
        assert_eq!(whole(refused).await.0.body(), "not here");
    });
    let seen = origin.requests();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(
        seen[0].starts_with("CONNECT http://a.test/chat "),
        "{seen:?}"
    );
    assert!(
        !seen
            .iter()
            .any(|request| request.contains("sec-websocket-key"))
    );
    launcher.finish();
    let requests: Vec<_> = launcher
        .records()
        .iter()
        .filter(|record| record["kind"] == "request")
        .map(|record| {
            format!(
                "{} {} {}",
                record["verdict"], record["method"], record["target"]
            )
        })
        .collect();
    let allowed = "\"allow\" \"GET\" \"ws://a.test\"";
    assert_eq!(
        requests,
        [allowed, "\"deny\" \"GET\" \"ws://a.test\"", allowed]
    );
}

/// What an origin of HTTP/1.1 has to say to a key (RFC 6455 4.2.2).
fn accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(hash)
}

/// An origin that knows HTTP/1.1 only, and agrees with `accept` of the key.
fn older(accept: fn(&str) -> String) -> Origin {
    Origin::start(move |mut stream, record| {
        let Some(request) = read_message(&mut stream) else {
            return;
        };
        let text = String::from_utf8_lossy(&request).into_owned();
        if text.starts_with("PRI ") {
            return;
        }
        record(request);
        let key = field(&text, "sec-websocket-key")
            .unwrap_or_default()
            .to_owned();
        let head = accept(&key);
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        let mut buffer = [0; 100];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if stream.write_all(format!("<{text}>").as_bytes()).is_err() {
                return;
            }
        }
        stream.write_all(b"bye").ok();
    })
}

fn switching(accept: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: {accept}\r\n\r\nhello"
    )
}

#[test]
fn an_origin_of_http_1_is_asked_in_its_own_words() {
    let origin = older(|key| switching(&accept(key)));
    let mut launcher = rules(&origin.pin("a.test", 80));
    let stream = launcher.connect("a.test", 80);
    run(async { converse(&client(stream).await).await });
    let seen = origin.requests();
    let text = &seen[0];
    assert!(text.starts_with("GET /chat HTTP/1.1\r\n"), "{text}");
    assert_eq!(field(text, "host"), Some("a.test"));
    assert_eq!(field(text, "upgrade"), Some("websocket"));
    assert_eq!(field(text, "sec-websocket-protocol"), Some("chat"));
    assert_eq!(field(text, "sec-websocket-version"), Some("13"));
    assert_eq!(field(text, "sec-websocket-key").map(str::len), Some(24));
    launcher.finish();
}

#[test]
fn an_origin_that_does_not_agree_is_no_websocket() {
    for (answer, words) in [
        (
            (|_| switching("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")) as fn(&str) -> String,
            "RFC 6455",
        ),
        (
            |_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "something else",
        ),
    ] {
        let origin = older(answer);
        let launcher = rules(&origin.pin("a.test", 80));
        let stream = launcher.connect("a.test", 80);
        run(async {
            let (answer, _) = join(&client(stream).await, "http://a.test/chat").await;
            assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
            let (answer, _) = whole(answer).await;
            assert!(answer.body().contains(words), "{}", answer.body());
        });
    }
    // An origin that knows HTTP/2 only, and not this of it.
    let origin = Streamed::start(echo);
    let launcher = rules(&origin.pin("a.test", 80));
    let stream = launcher.connect("a.test", 80);
    run(async {
        let (answer, _) = join(&client(stream).await, "http://a.test/chat").await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    });
    assert_eq!(origin.requests(), Vec::<String>::new());
}

#[test]
fn a_stream_becomes_nothing_else() {
    let origin = conversing();
    let launcher = rules(&origin.pin("a.test", 80));
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let (_, _) = join(&client, "http://a.test/other").await;
        for protocol in ["connect-udp", "connect-ip", "webtransport", "WebSocket"] {
            let mut request = websocket("http://a.test/chat");
            let protocol = Protocol::from(protocol);
            request.extensions_mut().insert(protocol);
            let (answer, _) = ask(&client, request).await;
            assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
        }
        // Without a protocol it is a tunnel, which is never made.
        let mut plain = get("a.test:80");
        *plain.method_mut() = Method::CONNECT;
        let mut sender = client.clone().ready().await.unwrap();
        let (answer, _) = sender.send_request(plain, true).unwrap();
        let status = answer.await.map(|answer| answer.status());
        assert!(!status.is_ok_and(|status| status.is_success()));
    });
    assert_eq!(origin.requests(), Vec::<String>::new());
}

/// The interim responses that come before the final one.
async fn interim(mut answer: ResponseFuture) -> (Vec<Response<()>>, Response<RecvStream>) {
    let mut before = Vec::new();
    let response = poll_fn(|context| {
        while let Poll::Ready(Some(one)) = answer.poll_informational(context) {
            before.push(one.unwrap());
        }
        Pin::new(&mut answer).poll(context)
    });
    let response = response.await.unwrap();
    (before, response)
}

/// An origin that says a lot before it answers.
fn talkative((request, mut respond): Asked) -> Served {
    Box::pin(async move {
        let count = if request.uri().path() == "/many" {
            100
        } else {
            2
        };
        for number in 0..count {
            let mut hint = Response::new(());
            *hint.status_mut() = StatusCode::EARLY_HINTS;
            let fields = hint.headers_mut();
            fields.insert("link", format!("</{number}.css>").parse().unwrap());
            fields.insert("alt-svc", "h3=\":443\"".parse().unwrap());
            respond.send_informational(hint).unwrap();
        }
        let mut go = Response::new(());
        *go.status_mut() = StatusCode::CONTINUE;
        respond.send_informational(go).unwrap();
        let mut content = respond.send_response(Response::new(()), false).unwrap();
        content.send_data("hello".into(), true).unwrap();
    })
}

#[test]
fn interim_responses_pass_within_a_bound() {
    let origin = Streamed::start(talkative);
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        for (path, count) in [("/", 2), ("/many", 16)] {
            let mut sender = client.clone().ready().await.unwrap();
            let request = get(&format!("http://a.test{path}"));
            let (answer, _) = sender.send_request(request, true).unwrap();
            let (before, response) = interim(answer).await;
            assert_eq!(before.len(), count, "{before:?}");
            for (number, hint) in before.iter().enumerate() {
                assert_eq!(hint.status(), StatusCode::EARLY_HINTS);
                assert_eq!(hint.headers()["link"], format!("</{number}.css>"));
                assert_eq!(hint.headers()["via"], "2.0 outgate");
                assert!(!hint.headers().contains_key("alt-svc"));
            }
            assert_eq!(whole(response).await.0.body(), "hello");
        }
    });
}

/// Answers with what it was sent, without having said to go on.
fn receive((request, mut respond): Asked) -> Served {
    Box::pin(async move {
        let expects = request.headers().contains_key("expect");
        let mut content = request.into_body();
        let mut text = String::new();
        while let Some(more) = read(&mut content).await {
            text.push_str(&more);
        }
        let mut content = respond.send_response(Response::new(()), false).unwrap();
        let text = format!("{text} {expects}");
        content.send_data(text.into(), true).unwrap();
    })
}

#[test]
fn content_that_waits_is_asked_for_once_it_may_go_on() {
    let origin = Streamed::start(receive);
    let mut launcher = start(&[
        (SourceKind::Allow, "POST http://a.test/ok"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let waiting = |path: &str| {
            let mut request = get(&format!("http://a.test{path}"));
            *request.method_mut() = Method::POST;
            let fields = request.headers_mut();
            fields.insert("expect", "100-continue".parse().unwrap());
            request
        };
        let mut sender = client.clone().ready().await.unwrap();
        let (mut answer, mut content) = sender.send_request(waiting("/ok"), false).unwrap();
        let go = poll_fn(|context| answer.poll_informational(context)).await;
        assert_eq!(go.unwrap().unwrap().status(), StatusCode::CONTINUE);
        content.send_data("content".into(), true).unwrap();
        let (before, response) = interim(answer).await;
        assert!(before.is_empty(), "{before:?}");
        assert_eq!(whole(response).await.0.body(), "content false");
        // Who is denied keeps its content.
        let mut sender = client.clone().ready().await.unwrap();
        let (answer, _content) = sender.send_request(waiting("/no"), false).unwrap();
        let (before, response) = interim(answer).await;
        assert!(before.is_empty(), "{before:?}");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    });
    launcher.finish();
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn who_gives_up_before_the_answer_lets_the_origin_go() {
    let (told, hears) = std::sync::mpsc::channel();
    let origin = Streamed::start(move |(_request, mut respond): Asked| -> Served {
        let told = told.clone();
        Box::pin(async move {
            let reset = poll_fn(|context| respond.poll_reset(context)).await;
            told.send(reset.unwrap()).unwrap();
        })
    });
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    runtime().block_on(async {
        let client = client(stream).await;
        let mut sender = client.clone().ready().await.unwrap();
        let (answer, mut content) = sender.send_request(get("http://a.test/"), false).unwrap();
        while origin.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        content.send_reset(Reason::CANCEL);
        drop(answer);
        let reset =
            tokio::task::spawn_blocking(move || hears.recv_timeout(crate::harness::PATIENCE));
        assert_eq!(reset.await.unwrap(), Ok(Reason::CANCEL));
    });
}
