//! Who may use the explicit proxy: with a token, as its sandbox alone, and no longer than it
//! is good.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use outgate_harness::{Identity, eventually, lab_tests};

use crate::admin::{admin, asked};
use crate::proxied::{PROXY, Stage, authorization, dial};

/// Longest wait for what comes at once.
const SOON: Duration = Duration::from_secs(50);

/// An echo through a tunnel, which stands.
fn tunnel(name: &str, token: &str) -> TcpStream {
    let mut stream = dial();
    let field = authorization(name, token);
    let head = format!("CONNECT raw.example:7000 HTTP/1.1\r\n{field}\r\n");
    stream.write_all(head.as_bytes()).expect("the proxy reads");
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    stream
}

/// Whether an echo comes back.
fn echoes(stream: &mut TcpStream) -> bool {
    let mut echo = [0; 4];
    stream.write_all(b"ping").is_ok() && stream.read_exact(&mut echo).is_ok() && &echo == b"ping"
}

fn get(url: &str, field: &str) -> String {
    let host = url.split('/').nth(2).unwrap_or_default();
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n")
}

lab_tests! {
    fn a_gateway_that_ends_finishes_what_came_by_the_proxy_and_takes_nothing_new(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &["--drain", "60s"]) else {
            return;
        };
        let one = stage.make("one", &[]);
        let mut stream = tunnel("one", &one);
        assert!(echoes(&mut stream));
        let status = |path| asked(&admin(&stage.gate), path).unwrap_or_default();
        assert!(status("/status").contains("\"tokens\":1"), "{}", status("/status"));
        stage.arrived();
        kill(stage.gate.front(), Signal::SIGTERM).expect("it is there");
        let ends = || status("/readyz").contains("ending");
        assert!(eventually(SOON, ends), "{}", stage.gate.errors());
        let knows = || stage.records().iter().any(|line| line.to_string().contains("gateway is ending"));
        assert!(eventually(SOON, knows), "{}", stage.gate.errors());
        let field = authorization("one", &one);
        let connect = format!("CONNECT raw.example:7000 HTTP/1.1\r\n{field}\r\n");
        for asked in [connect, get("http://host.example/x", &field)] {
            let answer = stage.says(asked.as_bytes());
            assert!(answer.contains("gateway is ending"), "{asked}: {answer}");
        }
        let late = stage.token(&["create", "late"]);
        assert_eq!(late.code, Some(0), "{late}");
        assert!(!stage.is_good("late", late.stdout.trim()), "{}", stage.gate.errors());
        assert_eq!(stage.arrived(), "");
        assert!(echoes(&mut stream), "{}", stage.gate.errors());
        drop(stream);
        let gate = stage.gate.finish();
        assert_eq!(gate.code, Some(0), "{gate}");
        assert!(gate.stderr.contains("takes nothing new"), "{gate}");
    }

    fn without_good_credentials_nothing_is_asked_for(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let (one, other) = (stage.make("one", &[]), stage.make("other", &[]));
        stage.arrived();
        let url = "http://host.example/x";
        for field in [
            String::new(),
            authorization("one", ""),
            authorization("one", "ogt_0"),
            authorization("one", &other),
            authorization("two", &one),
            authorization("", &one),
            authorization("ONE", &one),
            authorization("one", one.get(..one.len() - 1).expect("letters")),
            authorization("one", &format!("{one}0")),
            "Proxy-Authorization: Bearer ogt_0\r\n".to_owned(),
            format!("Proxy-Authorization: Digest {one}\r\n"),
            format!("Authorization: Bearer {one}\r\n"),
        ] {
            let answer = stage.says(&get(url, &format!("{field}Connection: close\r\n")).into_bytes());
            assert!(answer.starts_with("HTTP/1.1 407 "), "{field}: {answer}");
            assert!(answer.contains("proxy-authenticate: Basic realm=\"outgate\""), "{answer}");
            assert!(answer.contains("outgate token create"), "{answer}");
        }
        let twice = authorization("one", &one).repeat(2);
        let answer = stage.says(get(url, &twice).as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        // No method without credentials, and none with wrong ones.
        assert_eq!(stage.says(b"\x05\x01\x00"), "\u{5}\u{fffd}");
        assert_eq!(stage.says(b"\x05\x01\x02\x01\x03one\x01x"), "\u{5}\u{2}\u{1}\u{1}");
        assert_eq!(stage.says(b"\x04\x01\x00\x50\x01\x02\x03\x04x\0").as_bytes()[1], 91);
        assert_eq!(stage.arrived(), "");
        let bearer = format!("Proxy-Authorization: Bearer {one}\r\n");
        let answer = stage.says(get(url, &bearer).as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(stage.arrived().contains("GET /x HTTP/1.1"));
    }

    fn a_client_that_asks_first_and_shows_its_token_then_is_served(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let user = format!("ci:{token}");
        for words in [["http://host.example/x", "-s"], ["http://host.example/x", "-p"]] {
            let options = ["-x", PROXY, "--proxy-anyauth", "-U", &user];
            let (status, said) = stage.curl(&[&options[..], &words].concat());
            assert!(status.ends_with("/200"), "{status} {said}");
        }
        let (status, said) = stage.curl(&["-x", PROXY, "http://host.example/x"]);
        assert_eq!(status, "000/407", "{said}");
        assert!(said.contains("outgate token create"), "{said}");
    }

    fn a_token_is_its_sandbox_and_nothing_more(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let policy = lab.folder("policies", Identity::Own).join("narrow.toml");
        let rules = "allow = [\"GET http://path.example/a/**\", \"http://denied.example\"]";
        std::fs::write(&policy, rules).expect("a policy");
        let place = policy.to_string_lossy();
        let narrow = stage.make("narrow", &["--policy", &place]);
        let wide = stage.make("wide", &[]);
        for (name, token, url, status) in [
            ("wide", &wide, "http://host.example/x", "200"),
            ("wide", &wide, "http://path.example/a/x", "200"),
            ("narrow", &narrow, "http://path.example/a/x", "200"),
            ("narrow", &narrow, "http://host.example/x", "403"),
            // Its own policy allows it, that of the gateway does not.
            ("narrow", &narrow, "http://denied.example/", "403"),
        ] {
            let answer = stage.says(get(url, &authorization(name, token)).as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name} {url}: {answer}");
        }
        // Each is told by its name, and recorded as what it is.
        let told = stage.gate.errors();
        assert!(told.contains("outgate: narrow: denied GET http://host.example/x"), "{told}");
        let records = stage.records();
        let of = |sandbox: &str, target: &str| {
            let mut all = records.iter();
            all.any(|record| record["sandbox"] == sandbox && record["target"] == target)
        };
        assert!(of("narrow", "http://path.example") && of("wide", "http://host.example"));
        let text = serde_json::to_string(&records).expect("JSON");
        assert!(text.contains("gateway; GET from 127.0.0.1"), "{text}");
        assert!(!text.contains(&narrow) && !text.contains(&wide), "{text}");
        let fault = stage.token(&["create", "bad", "--policy", "/nowhere.toml"]);
        assert_eq!(fault.code, Some(2), "{fault}");
    }

    fn a_token_is_kept_as_a_hash_and_for_its_user_alone(lab) {
        for identity in Identity::all() {
            let Some(stage) = Stage::start(lab, identity, &[]) else {
                return;
            };
            let token = stage.make("ci", &["--ttl", "1h"]);
            let directory = lab.folder("state", identity).join("outgate/tokens");
            let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
            assert_eq!((mode(&directory), mode(&directory.join("ci"))), (0o700, 0o600));
            let kept = std::fs::read_to_string(directory.join("ci")).expect("a file");
            assert!(!kept.contains(&token) && kept.contains("sha256 "), "{kept}");
            let again = stage.token(&["create", "ci"]);
            assert_eq!(again.code, Some(1), "{again}");
            let listed = stage.token(&["list"]);
            assert!(listed.stdout.contains("ci ") && !listed.stdout.contains(&token), "{listed}");
            let ended = stage.gate.end();
            assert!(!ended.stderr.contains(&token), "{ended}");
            std::fs::remove_file(directory.join("ci")).expect("a file");
        }
    }

    fn what_is_revoked_or_expired_ends_with_all_its_connections(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let revoked = stage.make("revoked", &[]);
        let kept = stage.make("kept", &[]);
        let tunnels = [tunnel("revoked", &revoked), tunnel("kept", &kept)];
        let brief = stage.make("brief", &["--ttl", "15s"]);
        let [revoked_tunnel, kept_tunnel] = tunnels;
        let mut tunnels = [revoked_tunnel, tunnel("brief", &brief), kept_tunnel];
        assert!(tunnels.iter_mut().all(echoes));
        let ended = stage.token(&["revoke", "revoked"]);
        assert_eq!(ended.code, Some(0), "{ended}");
        let over = |name: &str, token: &str| eventually(SOON, || !stage.is_good(name, token));
        assert!(over("revoked", &revoked) && over("brief", &brief));
        let [revoked_tunnel, brief_tunnel, kept_tunnel] = &mut tunnels;
        assert!(!echoes(revoked_tunnel) && !echoes(brief_tunnel));
        assert!(echoes(kept_tunnel), "nobody else's ends");
        let answer = stage.says(&get("http://host.example/", &authorization("brief", &brief)).into_bytes()[..]);
        assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
        // A new token of an old name is another.
        let again = stage.make("revoked", &[]);
        assert_ne!(again, revoked);
        assert!(!stage.is_good("revoked", &revoked));
        let unknown = stage.token(&["revoke", "nobody"]);
        assert_eq!(unknown.code, Some(1), "{unknown}");
    }

    fn other_hosts_are_let_in_by_a_word_alone(lab) {
        let gateway = |more: &[&str]| {
            let words = [&["gateway", "--proxy", "0.0.0.0:3129"], more].concat();
            crate::gate::outgate(lab, Identity::Own, &words)
        };
        let refused = gateway(&[]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("--proxy-plaintext"), "{refused}");
        let alone = crate::gate::outgate(lab, Identity::Own, &["gateway", "--proxy-plaintext"]);
        assert_eq!(alone.code, Some(2), "{alone}");
        let plain = ["--proxy", "0.0.0.0:3128", "--proxy-plaintext"];
        let plan = crate::gate::Plan::new(&[&plain[..], &["-a", "http://host.example"]].concat());
        let gate = crate::gate::Gate::start(lab, Identity::Own, &plan);
        let warned = gate.errors();
        assert_eq!(warned.matches("in the clear").count(), 1, "{warned}");
        let ended = gate.end();
        assert_eq!(ended.code, Some(0), "{ended}");
    }

    fn a_directory_that_another_took_the_place_of_keeps_nobody_in(lab) {
        for identity in Identity::all() {
            let Some(stage) = Stage::start(lab, identity, &[]) else {
                return;
            };
            let state = lab.folder("state", identity).join("outgate");
            for (number, moved) in [state.join("tokens"), state].iter().enumerate() {
                let before = stage.make(&format!("before-{number}"), &[]);
                std::fs::rename(moved, moved.with_extension(format!("old-{number}"))).expect("it is moved");
                let name = format!("after-{number}");
                let after = stage.make(&name, &[]);
                let over = |name: &str, token: &str| eventually(SOON, || !stage.is_good(name, token));
                assert!(over(&format!("before-{number}"), &before), "{identity:?} {}", stage.gate.errors());
                let revoked = stage.token(&["revoke", &name]);
                assert_eq!(revoked.code, Some(0), "{revoked}");
                assert!(over(&name, &after), "{identity:?} {}", stage.gate.errors());
            }
            stage.gate.end();
        }
    }

    fn a_token_without_room_is_told_and_served_once_there_is_some(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &["--sandboxes", "2", "--sandboxes-per-user", "2"]) else {
            return;
        };
        for name in ["one", "two"] {
            stage.make(name, &[]);
        }
        let third = stage.token(&["create", "third"]);
        assert_eq!(third.code, Some(0), "{third}");
        let told = || stage.gate.errors().contains("token `third` is not served: ");
        assert!(eventually(SOON, told), "{}", stage.gate.errors());
        assert!(stage.gate.errors().contains("--sandboxes"), "{}", stage.gate.errors());
        assert!(!stage.is_good("third", third.stdout.trim()));
        let revoked = stage.token(&["revoke", "one"]);
        assert_eq!(revoked.code, Some(0), "{revoked}");
        let served = || stage.is_good("third", third.stdout.trim());
        assert!(eventually(SOON, served), "{}", stage.gate.errors());
        assert_eq!(stage.gate.errors().matches("is not served").count(), 1);
    }

    fn a_token_goes_to_no_origin(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let (token, other) = (stage.make("ci", &[]), stage.make("other", &[]));
        stage.arrived();
        let field = authorization("ci", &token);
        for leaves in [&token, &other] {
            for way in [
                format!("Authorization: Bearer {leaves}\r\n"),
                format!("X-Api: {leaves}\r\n"),
                format!("Proxy_Authorization: Bearer {leaves}\r\n"),
            ] {
                let answer = stage.says(&get("http://host.example/x", &format!("{field}{way}")).into_bytes());
                assert!(answer.starts_with("HTTP/1.1 403 "), "{way}: {answer}");
            }
            let answer = stage.says(&get(&format!("http://host.example/x?t={leaves}"), &field).into_bytes());
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        }
        assert_eq!(stage.arrived(), "");
    }

    fn no_command_writes_who_is_served(lab) {
        for identity in Identity::all() {
            let tokens = lab.folder("state", identity).join("outgate/tokens");
            let tokens = tokens.to_string_lossy().into_owned();
            for made in [false, true] {
                if made {
                    let created = crate::gate::outgate(lab, identity, &["token", "create", "ci"]);
                    assert_eq!(created.code, Some(0), "{created}");
                }
                let above = lab.folder("state", identity).to_string_lossy().into_owned();
                for grant in [&tokens, &above] {
                    let refused = crate::gate::outgate(lab, identity, &["run", "-w", grant, "--", "true"]);
                    assert_ne!(refused.code, Some(0), "{identity:?} {made} {grant} {refused}");
                }
                let refused = crate::gate::outgate(lab, identity, &["run", "-w", &tokens, "--", "true"]);
                let words = if made { "the tokens of your explicit proxy" } else { "cannot be granted" };
                assert!(refused.stderr.contains(words), "{identity:?} {refused}");
            }
        }
    }
}
