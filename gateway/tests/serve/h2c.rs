//! HTTP/2 with prior knowledge: each stream judged anew, and gRPC in all its
//! shapes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Method, Response, StatusCode};
use outgate_policy::SourceKind;

use crate::harness::{Origin, start};

mod conversations;
mod hostile;
mod peers;

use peers::{Asked, Served, Streamed, ask, call, client, get, hello, run, session};

#[test]
fn each_stream_is_judged_by_itself() {
    let origin = Streamed::start(hello);
    let mut launcher = start(&[
        (SourceKind::Allow, "GET http://a.test/ok"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        for _ in 0..2 {
            let (denied, _) = ask(&client, get("http://a.test/admin")).await;
            assert_eq!(denied.status(), StatusCode::FORBIDDEN);
            assert_eq!(denied.headers()["outgate-denied"], "no-rule; rule=-");
            let body = denied.body();
            assert!(body.contains("-a 'GET http://a.test/admin'"), "{body}");
            let (allowed, _) = ask(&client, get("http://A.test:80/x/../%6fk")).await;
            assert_eq!(allowed.status(), StatusCode::OK);
            assert_eq!(allowed.body(), "hello");
            assert_eq!(allowed.headers()["via"], "2.0 outgate");
        }
    });
    let seen = "GET http://a.test/ok via=2.0 outgate";
    assert_eq!(origin.requests(), [seen, seen]);
    assert_eq!(*origin.connections.lock().unwrap(), 1);
    launcher.finish();
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
    let verdicts: Vec<_> = launcher
        .records()
        .iter()
        .filter(|record| record["kind"] == "request")
        .map(|record| record["verdict"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(verdicts, ["deny", "allow", "deny", "allow"]);
}

#[test]
fn streams_for_others_and_with_two_readings_never_arrive() {
    let origin = Streamed::start(hello);
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    let with = |name: &'static str, value: &str| {
        let mut request = get("http://a.test/");
        request.headers_mut().append(name, value.parse().unwrap());
        request
    };
    let method = |method: &str| {
        let mut request = get("http://a.test/");
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        request
    };
    let mut two_hosts = with("host", "a.test");
    two_hosts
        .headers_mut()
        .append("host", "a.test".parse().unwrap());
    let mut connect = get("a.test:80");
    *connect.method_mut() = Method::CONNECT;
    let mut circle = get("http://a.test/");
    for _ in 0..8 {
        let via = "2.0 outgate".parse().unwrap();
        circle.headers_mut().append("via", via);
    }
    let mut many = get("http://a.test/");
    for _ in 0..101 {
        many.headers_mut().append("x", "y".parse().unwrap());
    }
    let long = format!("http://a.test/{}", "a".repeat(20_000));
    let rows = [
        (get("http://b.test/"), 403),
        (get("http://a.test:81/"), 403),
        (get("https://a.test/"), 400),
        (get("http://u@a.test/"), 400),
        (get("http://2130706433/"), 400),
        (with("host", "b.test"), 400),
        (two_hosts, 400),
        (with("x-http-method-override", "DELETE"), 403),
        (with("content-length", "00"), 400),
        (with("expect", "x"), 417),
        (method("TRACE"), 403),
        (method("get"), 400),
        (connect, 403),
        (circle, 508),
        (many, 431),
        (get(&long), 414),
        (get("http://a.test/%00"), 400),
        (get("http://a.test/../x"), 400),
    ];
    run(async {
        let client = client(stream).await;
        for (request, status) in rows {
            let shown = format!("{:.200}", format!("{request:?}"));
            let (answer, _) = ask(&client, request).await;
            assert_eq!(answer.status().as_u16(), status, "{shown}");
        }
        let (allowed, _) = ask(&client, get("http://a.test/")).await;
        assert_eq!(allowed.status(), StatusCode::OK);
    });
    assert_eq!(origin.requests(), ["GET http://a.test/ via=2.0 outgate"]);
}

#[test]
fn a_denied_call_is_told_as_a_status_that_grpc_clients_show() {
    let launcher = start(&[(SourceKind::Allow, "http://a.test/Other/Method")]);
    for name in ["a.test", "denied.test"] {
        let stream = launcher.connect(name, 80);
        run(async {
            let client = client(stream).await;
            let mut request = call("/pkg.Service/100%25");
            let uri = format!("http://{name}/pkg.Service/100%25");
            *request.uri_mut() = uri.parse().unwrap();
            let mut client = client.ready().await.unwrap();
            let (response, mut content) = client.send_request(request, false).unwrap();
            content.send_data("message".into(), true).unwrap();
            let response = response.await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert!(response.body().is_end_stream());
            let fields = response.headers();
            assert_eq!(fields["content-type"], "application/grpc");
            assert_eq!(fields["grpc-status"], "7");
            let message = fields["grpc-message"].to_str().unwrap();
            let sentence = format!("outgate denied POST http://{name}/pkg.Service/100%2525: ");
            assert!(message.starts_with(&sentence), "{message}");
            assert!(message.contains("; to allow it: -a '"), "{message}");
            assert_eq!(fields["outgate-denied"], "no-rule; rule=-");
        });
    }
}

/// Sends back every piece as it comes, with trailers at the end.
fn echo((request, mut respond): Asked) -> Served {
    Box::pin(async move {
        assert_eq!(request.headers()["te"], "trailers");
        let mut content = request.into_body();
        let mut back = respond.send_response(Response::new(()), false).unwrap();
        while let Some(Ok(data)) = content.data().await {
            content.flow_control().release_capacity(data.len()).unwrap();
            back.send_data(data, false).unwrap();
        }
        let mut trailers = content.trailers().await.unwrap().unwrap_or_default();
        trailers.insert("grpc-status", "0".parse().unwrap());
        trailers.insert("set-cookie", "x".parse().unwrap());
        back.send_trailers(trailers).unwrap();
    })
}

#[test]
fn a_call_streams_both_ways_at_once_with_trailers() {
    let origin = Streamed::start(echo);
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let mut client = client.ready().await.unwrap();
        let (response, mut sender) = client.send_request(call("/s/Bidi"), false).unwrap();
        let response = response.await.unwrap();
        let mut content = response.into_body();
        // Each message comes back before the next is sent: nothing is gathered.
        for number in 0..5 {
            let message = format!("\0\0\0\0\x09message {number}");
            sender.send_data(message.clone().into(), false).unwrap();
            let back = content.data().await.unwrap().unwrap();
            assert_eq!(back, message);
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        trailers.insert("authorization", "secret".parse().unwrap());
        sender.send_trailers(trailers).unwrap();
        assert!(content.data().await.is_none());
        let trailers = content.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["x-sum"], "7");
        for gone in ["authorization", "set-cookie"] {
            assert!(!trailers.contains_key(gone), "{trailers:?}");
        }
    });
}

#[test]
fn a_response_of_only_trailers_ends_with_its_head() {
    let origin = Streamed::start(|(_, mut respond)| {
        Box::pin(async move {
            let response = Response::builder().header("grpc-status", "5");
            respond
                .send_response(response.body(()).unwrap(), true)
                .unwrap();
        })
    });
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let mut client = client.ready().await.unwrap();
        let (response, _) = client.send_request(call("/s/Unary"), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "5");
        assert!(response.body().is_end_stream());
    });
}

#[test]
fn a_receiver_that_stands_still_holds_the_sender_back() {
    let sent: Arc<Mutex<usize>> = Arc::default();
    let count = Arc::clone(&sent);
    let origin = Streamed::start(move |(_, mut respond)| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            let mut content = respond.send_response(Response::new(()), false).unwrap();
            for _ in 0..64 * 16 {
                content.reserve_capacity(64 * 1024);
                while content.capacity() < 64 * 1024 {
                    let more = std::future::poll_fn(|cx| content.poll_capacity(cx)).await;
                    let Some(Ok(_)) = more else { return };
                }
                let piece = Bytes::from(vec![7; 64 * 1024]);
                content.send_data(piece, false).unwrap();
                *count.lock().unwrap() += 64 * 1024;
            }
        })
    });
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let mut sender = client.clone().ready().await.unwrap();
        let (response, _) = sender.send_request(get("http://a.test/"), true).unwrap();
        let response = response.await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = *sent.lock().unwrap();
        // The windows of both connections and the buffers between: far below
        // the 64 MiB that are there.
        assert!(held <= 8 * 1024 * 1024, "{held}");
        // The other streams of the connection go on.
        let mut other = client.ready().await.unwrap();
        let (answer, _) = other.send_request(get("http://a.test/"), true).unwrap();
        let mut content = answer.await.unwrap().into_body();
        let first = content.data().await.unwrap().unwrap();
        assert_eq!(first[0], 7);
        drop(response);
    });
}

#[test]
fn a_reset_reaches_the_other_side() {
    let heard: Arc<Mutex<Vec<Reason>>> = Arc::default();
    let record = Arc::clone(&heard);
    let origin = Streamed::start(move |(request, mut respond)| {
        let record = Arc::clone(&record);
        Box::pin(async move {
            if request.uri().path() == "/refuse" {
                respond.send_reset(Reason::REFUSED_STREAM);
                return;
            }
            let mut content = respond.send_response(Response::new(()), false).unwrap();
            content.send_data("begun".into(), false).unwrap();
            if request.uri().path() == "/break" {
                content.send_reset(Reason::ENHANCE_YOUR_CALM);
                return;
            }
            let reason = std::future::poll_fn(|cx| content.poll_reset(cx)).await;
            record.lock().unwrap().push(reason.unwrap());
        })
    });
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let mut sender = client.clone().ready().await.unwrap();
        let (response, _) = sender
            .send_request(get("http://a.test/refuse"), true)
            .unwrap();
        let error = response.await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::REFUSED_STREAM));
        let mut sender = client.clone().ready().await.unwrap();
        let (response, _) = sender
            .send_request(get("http://a.test/break"), true)
            .unwrap();
        // A reset overtakes what was sent before.
        let error = match response.await {
            Err(error) => error,
            Ok(response) => {
                let mut content = response.into_body();
                loop {
                    if let Err(error) = content.data().await.unwrap() {
                        break error;
                    }
                }
            }
        };
        assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
        let mut sender = client.ready().await.unwrap();
        let (response, mut body) = sender
            .send_request(get("http://a.test/long"), false)
            .unwrap();
        let mut content = response.await.unwrap().into_body();
        content.data().await.unwrap().unwrap();
        body.send_reset(Reason::CANCEL);
        while heard.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(*heard.lock().unwrap(), [Reason::CANCEL]);
    });
}

#[test]
fn an_origin_that_says_goodbye_is_connected_to_anew() {
    let origin = Streamed::start(hello);
    let launcher = session(&origin);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        for path in ["/", "/last", "/", "/last", "/"] {
            let (answer, _) = ask(&client, get(&format!("http://a.test{path}"))).await;
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(origin.requests().len(), 5);
    assert_eq!(*origin.connections.lock().unwrap(), 3);
}

#[test]
fn an_origin_that_does_not_speak_it_is_a_bad_gateway() {
    let old = Origin::http("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let launcher = start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Allow, "* http://127.0.0.1:1"),
        (SourceKind::Pin, &old.pin("a.test", 80)),
    ]);
    let stream = launcher.connect("a.test", 80);
    run(async {
        let client = client(stream).await;
        let (answer, _) = ask(&client, get("http://a.test/")).await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
        let status = answer.headers()["proxy-status"].to_str().unwrap();
        assert!(status.contains("http_protocol_error"), "{status}");
    });
    let stream = launcher.flow("127.0.0.1:1".parse().unwrap());
    run(async {
        let client = client(stream).await;
        let mut request = call("/");
        *request.uri_mut() = "http://127.0.0.1:1/".parse().unwrap();
        let (answer, _) = ask(&client, request).await;
        assert_eq!(answer.headers()["grpc-status"], "14");
    });
}

#[test]
fn a_destination_that_is_denied_answers_every_stream() {
    let mut launcher = start(&[(SourceKind::Allow, "http://a.test")]);
    let stream = launcher.connect("denied.test", 80);
    run(async {
        let client = client(stream).await;
        for _ in 0..3 {
            let (answer, _) = ask(&client, get("http://denied.test/x")).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        }
    });
    launcher.finish();
    assert_eq!(launcher.notices.len(), 1);
    assert_eq!(launcher.result(), Ok(()));
}
