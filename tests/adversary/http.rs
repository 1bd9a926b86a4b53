//! HTTP games of a command that may reach one host: other hosts, ports and
//! paths through its connection, and requests that two readers understand
//! differently. Each is a near twin of a request that is allowed.

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, lab_tests};

/// One connection to `allowed.example:8080` under one rule, and what it says.
fn speak(lab: &Lab, identity: Identity, texts: &[&str]) -> Outcome {
    let sandbox = lab
        .sandbox(identity)
        .allow("GET http://allowed.example:8080/public/**")
        .pin("allowed.example:8080=93.184.216.34:8080")
        .pin("other.example:8080=93.184.216.99:8080");
    let mut probe = vec!["fetch", "allowed.example", "8080"];
    probe.extend(texts);
    sandbox.probe(&probe)
}

/// Asserts that `text` is answered without anything arriving at an origin.
fn is_denied(lab: &Lab, origin: &Origin, text: &str) {
    for identity in Identity::all() {
        let before = origin.arrivals().len();
        let outcome = speak(lab, identity, &[text]);
        let new: Vec<_> = origin.arrivals().into_iter().skip(before).collect();
        assert!(
            new.is_empty(),
            "{identity:?} {text:?} arrived as {new:?}\n{outcome}"
        );
        assert!(!outcome.stdout.contains("from-here"), "{text:?} {outcome}");
    }
}

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n";

lab_tests! {
    fn the_allowed_request_arrives(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let outcome = speak(lab, identity, &[GOOD, GOOD]);
            assert_eq!(outcome.stdout.matches("from-here").count(), 2, "{identity:?} {outcome}");
        }
        for arrival in origin.arrivals() {
            assert_eq!(arrival.line(), "GET /public/a HTTP/1.1");
            assert_eq!(arrival.fields("host"), ["allowed.example:8080"]);
        }
    }

    fn sandlock_h1_host_may_not_name_another_server(lab) {
        let origin = Origin::start(8080);
        for host in ["other.example:8080", "93.184.216.99:8080", "169.254.169.254", "127.0.0.1:8080", "*.example:8080"] {
            is_denied(lab, &origin, &format!("GET /public/a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        }
    }

    fn sandlock_h2_host_may_not_name_another_port(lab) {
        let origin = Origin::start(8080);
        for host in ["allowed.example:80", "allowed.example:8081", "allowed.example:08080 ", "allowed.example:99999", "allowed.example:8080:80"] {
            is_denied(lab, &origin, &format!("GET /public/a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        }
        is_denied(lab, &origin, "GET http://allowed.example:81/public/a HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n");
    }

    fn a_host_without_a_port_is_sent_with_the_one_that_was_judged(lab) {
        let origin = Origin::start(8080);
        let outcome = speak(lab, Identity::Own, &["GET /public/a HTTP/1.1\r\nHost: allowed.example\r\n\r\n"]);
        let arrivals = origin.arrivals();
        assert_eq!(arrivals.len(), 1, "{outcome}");
        assert_eq!(arrivals[0].fields("host"), ["allowed.example:8080"]);
    }

    fn sandlock_h11_the_second_request_is_judged_too(lab) {
        let origin = Origin::start(8080);
        for second in [
            "GET /public/a HTTP/1.1\r\nHost: other.example:8080\r\n\r\n",
            "GET /secret HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n",
            "DELETE /public/a HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n",
        ] {
            for identity in Identity::all() {
                let before = origin.arrivals().len();
                let outcome = speak(lab, identity, &[GOOD, second]);
                let new: Vec<_> = origin.arrivals().into_iter().skip(before).collect();
                assert_eq!(new.len(), 1, "{identity:?} {second:?} {new:?}\n{outcome}");
                assert_eq!(new[0].line(), "GET /public/a HTTP/1.1");
            }
        }
    }

    fn sandlock_h17_two_hosts_are_no_host(lab) {
        let origin = Origin::start(8080);
        for fields in [
            "Host: allowed.example:8080\r\nHost: other.example:8080",
            "Host: allowed.example:8080\r\nHost: allowed.example:8080",
            "Host: allowed.example:8080, other.example:8080",
            "Host: other.example:8080@allowed.example:8080",
            "Host:", "X: y",
        ] {
            is_denied(lab, &origin, &format!("GET /public/a HTTP/1.1\r\n{fields}\r\n\r\n"));
        }
    }

    fn sandlock_h5_and_h6_paths_that_other_readers_take_elsewhere_are_denied(lab) {
        let origin = Origin::start(8080);
        for path in [
            "/secret", "/public/../secret", "/public/..%2fsecret", "/public/%2e%2e/secret", "/public/..;/secret",
            "/public/%252e%252e/secret", "/public\\..\\secret", "/public/..%5csecret", "/PUBLIC/a", "//secret",
            "/public%2f..%2fsecret", "/secret/..%2fpublic/a", "/public/a%00", "/public/%zz", "/../public/../secret",
        ] {
            is_denied(lab, &origin, &format!("GET {path} HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n"));
        }
    }

    fn sandlock_h9_and_h10_requests_with_two_readings_are_denied(lab) {
        let origin = Origin::start(8080);
        let host = "Host: allowed.example:8080";
        for text in [
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"),
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nContent-Length: +1\r\n\r\na"),
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nX: a\r\n b\r\n\r\n"),
            format!("CONNECT other.example:8080 HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("TRACE /public/a HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("POST /public/a HTTP/1.1\r\n{host}\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n"),
            format!("GET /public/a HTTP/1.1\r\n{host}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA\r\n\r\n"),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "hello\r\n\r\n".to_owned(),
            "\u{16}\u{3}\u{1}\u{2}".to_owned(),
        ] {
            if text.contains("h2c") || text.contains("X: a") {
                no_upgrade(lab, &origin, &text);
            } else {
                is_denied(lab, &origin, &text);
            }
        }
    }

    fn fields_that_ask_for_another_request_are_refused_in_words(lab) {
        let origin = Origin::start(8080);
        let post = |path: &str, fields: &str| format!("POST {path} HTTP/1.1\r\nHost: allowed.example:8080\r\n{fields}Content-Length: 0\r\n\r\n");
        for identity in Identity::all() {
            let sandbox = || lab.sandbox(identity).allow("POST http://allowed.example:8080/public/**")
                .pin("allowed.example:8080=93.184.216.34:8080");
            for field in [
                "X-HTTP-Method-Override: DELETE", "X-HTTP-Method: PUT", "X-Method: DELETE", "Method-Override: DELETE", "X-HTTP-Verb: DELETE", "X-Method-Override: DELETE", "x-method-override: post",
                "X-Original-URL: /secret", "X-Rewrite-URL: /secret", "X-Original-URI: /secret",
                "X_HTTP_METHOD_OVERRIDE: DELETE", "X_Original_URL: /secret", "X-Original-Method: DELETE", "X-Forwarded-Uri: /secret",
                "X-Forwarded-Method: DELETE", "X-Forwarded-Host: other.example", "X-Host: other.example", "X-Forwarded-Server: other.example", "Forwarded-Host: other.example", "X-Host-Override: other.example", "X-Envoy-Original-Host: other.example",
                "X-HTTP-Host-Override: other.example", "Forwarded: host=other.example",
            ] {
                let before = origin.arrivals().len();
                let outcome = sandbox().probe(&["fetch", "allowed.example", "8080", &post("/public/a", &format!("{field}\r\n"))]);
                let new: Vec<_> = origin.arrivals().into_iter().skip(before).collect();
                let name = field.split(':').next().unwrap_or_default().to_ascii_lowercase();
                assert!(new.is_empty(), "{identity:?} {field} arrived as {new:?}");
                assert!(outcome.stdout.contains("403"), "{identity:?} {field} {outcome}");
                assert!(outcome.stdout.contains(&name), "it names the field: {outcome}");
                assert!(outcome.stderr.contains(&name), "a line for the person: {outcome}");
            }
            let before = origin.arrivals().len();
            let outcome = sandbox().probe(&["fetch", "allowed.example", "8080", &post("/public/a", "X-Method: express\r\nX-Forwarded-Host: allowed.example:8080\r\n")]);
            assert_eq!(origin.arrivals().len(), before + 1, "the near twin arrives: {outcome}");
        }
    }

    fn sandlock_h7_a_denied_host_is_denied_in_every_spelling(lab) {
        let origin = Origin::start(8080);
        for name in ["denied.example", "DENIED.example", "denied.example.", "dEnIeD.eXaMpLe."] {
            for identity in Identity::all() {
                let sandbox = lab.sandbox(identity).allow("http://*.example:8080").allow("http://93.184.216.0/24:8080")
                    .deny("denied.example:8080").pin("denied.example:8080=93.184.216.34:8080");
                let text = format!("GET / HTTP/1.1\r\nHost: {name}:8080\r\n\r\n");
                let outcome = sandbox.probe(&["fetch", name.trim_end_matches('.'), "8080", &text]);
                assert_eq!(origin.arrivals(), [], "{identity:?} {name} {outcome}");
                assert!(outcome.stdout.contains("403"), "{name} {outcome}");
            }
        }
        // An address in another spelling is no name and no address.
        for host in ["93.184.55330", "0x5db8d822", "1572395042", "[::ffff:93.184.216.34]", "0135.0270.0330.042"] {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}:8080\r\n\r\n");
            let sandbox = lab.sandbox(Identity::Own).allow("http://*:8080").deny("93.184.216.34:8080");
            let outcome = sandbox.pin("allowed.example:8080=93.184.216.99:8080").probe(&["fetch", "allowed.example", "8080", &text]);
            assert_eq!(origin.arrivals(), [], "{host} {outcome}");
        }
    }

    fn sandlock_h3_a_host_field_does_not_reach_the_metadata_service(lab) {
        let origin = Origin::start(80);
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow("http://*").deny("169.254.169.254").pin("allowed.example:80=93.184.216.34:80");
            let text = "GET /latest/meta-data HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n";
            let outcome = sandbox.probe(&["fetch", "allowed.example", "80", text]);
            assert_eq!(origin.arrivals(), [], "{identity:?} {outcome}");
        }
    }

    fn hop_by_hop_fields_stay_here(lab) {
        let origin = Origin::start(8080);
        let text = "GET /public/a HTTP/1.1\r\nHost: allowed.example:8080\r\nConnection: keep-alive, x-secret\r\nX-Secret: a\r\nProxy-Authorization: Basic eA==\r\nTE: trailers\r\nKeep-Alive: 5\r\n\r\n";
        let outcome = speak(lab, Identity::Own, &[text]);
        let arrivals = origin.arrivals();
        assert_eq!(arrivals.len(), 1, "{outcome}");
        for field in ["x-secret", "proxy-authorization", "keep-alive"] {
            assert!(arrivals[0].fields(field).is_empty(), "{field} in {arrivals:?}");
        }
        // A gateway may ask for trailers itself, hop by hop.
        assert!(["trailers", ""].contains(&arrivals[0].fields("te").join(",").as_str()), "{arrivals:?}");
    }

    fn a_denial_says_why_and_what_would_allow_it(lab) {
        let _origin = Origin::start(8080);
        for identity in Identity::all() {
            let text = "GET /secret HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n";
            let outcome = speak(lab, identity, &[text]);
            assert!(outcome.stdout.contains("403"), "{outcome}");
            let folded = outcome.stdout.to_ascii_lowercase();
            assert!(folded.contains("outgate-denied: no-rule"), "{outcome}");
            assert!(outcome.stdout.contains("-a 'GET http://allowed.example:8080/secret'"), "{outcome}");
            assert!(outcome.stderr.contains("outgate"), "a line for the person: {outcome}");
        }
    }
}

/// The request may be forwarded, but not with what makes it two requests.
fn no_upgrade(lab: &Lab, origin: &Origin, text: &str) {
    for identity in Identity::all() {
        let before = origin.arrivals().len();
        speak(lab, identity, &[text]);
        for arrival in origin.arrivals().into_iter().skip(before) {
            assert!(
                arrival.fields("upgrade").is_empty(),
                "{text:?} arrived as {arrival:?}"
            );
            assert!(
                arrival.fields("http2-settings").is_empty(),
                "{text:?} arrived as {arrival:?}"
            );
            assert!(
                !arrival.bytes.contains("\r\n b"),
                "a folded line arrived: {arrival:?}"
            );
        }
    }
}
