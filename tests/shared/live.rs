//! The live page of a shared gateway and `outgate top`: what they show, in a browser and in a
//! terminal; and attacked, by commands, by other users, by other pages and by those who do not
//! read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Lab, Running, eventually, lab_tests};
use serde_json::Value;

use crate::gate::{Gate, Plan, curl, outgate, program, python, shell, start};

/// Where the page is.
const PORT: u16 = 7070;
/// The same as an option.
const LISTEN: [&str; 2] = ["--admin-listen", "127.0.0.1:7070"];
/// Longest wait for what comes soon.
const SOON: Duration = Duration::from_secs(30);

/// A gateway with a page, and these options.
fn gate(lab: &Lab, options: &[&str]) -> Gate {
    let words: Vec<&str> = LISTEN.iter().chain(options).copied().collect();
    Gate::start(lab, Identity::Own, &Plan::new(&words))
}

/// What `outgate gateway page` prints: the authority of the page and what follows it.
fn address(lab: &Lab, gate: &Gate) -> (String, String) {
    let socket = gate.socket.to_string_lossy().into_owned();
    let outcome = outgate(lab, Identity::Own, &["gateway", "page", &socket]);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let address = outcome.stdout.trim();
    let rest = address.strip_prefix("http://").expect("an address");
    let (authority, path) = rest.split_once('/').expect("a path");
    assert!(authority.ends_with(".localhost:7070"), "{address}");
    (authority.to_owned(), format!("/{path}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a browser that no launcher holds"
)]
fn connected() -> TcpStream {
    TcpStream::connect(("127.0.0.1", PORT)).expect("it listens")
}

/// A request to the page and its whole answer, which may be cut after a time.
fn asked(line: &str, fields: &[(&str, &str)]) -> String {
    let mut stream = connected();
    stream
        .set_read_timeout(Some(Duration::from_secs(4)))
        .expect("a time");
    let mut request = format!("{line} HTTP/1.1\r\n");
    for (name, value) in fields {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
        if answer.len() > 1 << 20 {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn code(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// The cookie of a browser that is let in.
fn let_in(lab: &Lab, gate: &Gate) -> (String, String) {
    let (authority, path) = address(lab, gate);
    let answer = asked(&format!("GET {path}"), &[("Host", &authority)]);
    assert_eq!(code(&answer), "303", "{answer}");
    let cookie = answer.split("set-cookie: ").nth(1).expect("a cookie");
    let cookie = cookie.split(';').next().expect("a value");
    (authority, cookie.to_owned())
}

/// Connects to each `HOST PORT`, asks for the page, and says what came.
const ASKER: &str = r"
import socket, sys
for word in sys.argv[1:]:
    host, port = word.rsplit(':', 1)
    try:
        s = socket.create_connection((host, int(port)), 10)
        s.sendall(f'GET /overview HTTP/1.1\r\nHost: {word}\r\nConnection: close\r\n\r\n'.encode())
        got = b''
        while True:
            more = s.recv(65536)
            if not more: break
            got += more
        print('REACHED' if b'of that name' in got or b'runs the gateway' in got else 'no', word)
    except OSError as error: print('refused', word, error)
print('asked')
";

/// As many connections as there may be and more, each silent.
const FLOOD: &str = r"
import socket, time
held = []
for number in range(200):
    try:
        s = socket.create_connection(('127.0.0.1', 7070), 2)
        s.sendall(b'GET / HT')
        held.append(s)
    except OSError: pass
print('flooding', flush=True)
time.sleep(3)
print('over')
";

lab_tests! {
    fn the_live_page_lets_in_whom_its_user_sends_and_nobody_else(lab) {
        let gate = gate(lab, &["-a", "http://a.example:8080"]);
        let (authority, path) = address(lab, &gate);
        let host = ("Host", &*authority);
        let enter = format!("GET {path}");
        // Another name, another page, and no code.
        assert_eq!(code(&asked(&enter, &[("Host", "127.0.0.1:7070")])), "421");
        assert_eq!(code(&asked(&enter, &[host, ("Sec-Fetch-Site", "cross-site")])), "403");
        assert_eq!(code(&asked("GET /enter?code=", &[host])), "401");
        let answer = asked(&enter, &[host]);
        assert_eq!(code(&answer), "303", "{answer}");
        for part in ["location: /", "HttpOnly; SameSite=Strict; Path=/", "no-store"] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
        assert_eq!(code(&asked(&enter, &[host])), "401", "once");
        let cookie = answer.split("set-cookie: ").nth(1).and_then(|rest| rest.split(';').next());
        let cookie = ("Cookie", cookie.expect("a cookie"));
        let page = asked("GET /", &[host, cookie]);
        assert_eq!(code(&page), "200", "{page}");
        for part in ["default-src 'none'", "frame-ancestors 'none'", "trusted-types 'none'", "nosniff"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(asked("GET /overview", &[host, cookie]).contains("\"sandboxes\":[]"));
        for path in ["/", "/live.js", "/live.css", "/overview", "/events", "/nothing"] {
            let line = format!("GET {path}");
            for (fields, wanted) in [
                (vec![host], "401"),
                (vec![host, ("Cookie", "outgate=0")], "401"),
                (vec![("Host", "evil.example:7070"), cookie], "421"),
                (vec![("Host", "localhost:7070"), cookie], "421"),
                (vec![host, cookie, ("Sec-Fetch-Site", "same-site")], "403"),
                (vec![host, cookie, ("Origin", "http://127.0.0.1:8000")], "403"),
                (vec![host, host, cookie], "421"),
            ] {
                let answer = asked(&line, &fields);
                assert_eq!(code(&answer), wanted, "{path} {fields:?}: {answer}");
                assert!(!answer.contains("set-cookie"), "{answer}");
                assert!(!answer.contains("\"sandboxes\""), "{answer}");
            }
        }
        assert_eq!(code(&asked("POST /overview", &[host, cookie, ("Content-Length", "0")])), "405");
        // Codes that nobody used are good for nothing else.
        let (_, code_path) = address(lab, &gate);
        let stolen = format!("outgate={}", code_path.trim_start_matches("/enter?code="));
        assert_eq!(code(&asked("GET /", &[host, ("Cookie", &stolen)])), "401");
        gate.end();
    }

    fn another_user_gets_no_address_of_the_page(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let gate = gate(lab, &["-a", "http://a.example:8080"]);
        let socket = gate.socket.to_string_lossy().into_owned();
        for words in [vec!["gateway", "page", &socket], vec!["top", &socket]] {
            let outcome = outgate(lab, Identity::Nobody, &words);
            assert_eq!(outcome.code, Some(1), "{outcome}");
            assert_eq!(outcome.stdout, "", "{outcome}");
            assert!(outcome.stderr.contains("the gateway's own user and root may ask"), "{outcome}");
        }
        gate.end();
    }

    fn no_command_reaches_the_live_page_by_any_name_or_address(lab) {
        let _origin = Origin::start(8080);
        let rules = [
            "-a", "http://127.0.0.1:7070", "-a", "tcp://127.0.0.1:7070", "-a", "http://localhost:7070",
            "-a", "http://page.example:7070", "-a", "tcp://page.example:7070",
            "-a", "http://moved.example:80", "-a", "http://[::1]:7070",
            "--resolve", "page.example=127.0.0.1", "--resolve", "moved.example:80=127.0.0.1:7070",
            "-a", "http://127.0.0.1:8080",
        ];
        let words = [
            "127.0.0.1:7070", "localhost:7070", "0.0.0.0:7070", "page.example:7070", "moved.example:80",
            "::1:7070", "::ffff:127.0.0.1:7070", "127.1:7070",
        ];
        let asker: Vec<String> = python(ASKER).into_iter().chain(words.map(str::to_owned)).collect();
        for more in [&[][..], &["--monitor=all"]] {
            let gate = gate(lab, &[&rules, more].concat());
            let outcome = gate.sandbox(lab, Identity::Own).run(&asker);
            assert!(outcome.stdout.contains("asked"), "{outcome}");
            assert!(!outcome.stdout.contains("REACHED"), "{outcome}");
            let records = gate.records();
            let is_it = |record: &&Value| record["detail"].as_str().is_some_and(|text| text.contains("admin listener"));
            assert!(records.iter().filter(is_it).count() >= 3, "{outcome}");
            // Its neighbour on this machine is reached, and so is it from outside of a run.
            let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://127.0.0.1:8080/", 20));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
            let bare = lab.start_bare(Identity::Own, &asker).finish();
            assert!(bare.stdout.contains("REACHED 127.0.0.1:7070"), "{bare}");
            gate.end();
        }
    }

    fn no_client_of_the_explicit_proxy_reaches_the_live_page(lab) {
        let gate = gate(lab, &[
            "--proxy", "127.0.0.1:3128", "-a", "http://127.0.0.1:7070", "-a", "tcp://127.0.0.1:7070",
            "-a", "http://page.example:7070", "-a", "tcp://page.example:7070",
            "--resolve", "page.example=127.0.0.1",
        ]);
        let made = outgate(lab, Identity::Own, &["token", "create", "client"]);
        assert_eq!(made.code, Some(0), "{made}");
        let token = made.stdout.trim();
        for host in ["127.0.0.1", "page.example", "localhost"] {
            for (scheme, more) in [("http", ""), ("http", "-p"), ("socks5h", ""), ("socks5", "")] {
                let script = format!(
                    "curl -sS -m 10 {more} -x {scheme}://client:{token}@127.0.0.1:3128 \
                     http://{host}:7070/; echo over"
                );
                let mut outcome = lab.start_bare(Identity::Own, &shell(&script)).finish();
                // A token is good a moment after it was made.
                let is_good = eventually(SOON, || {
                    let is_early = outcome.stdout.contains("credentials") || outcome.stderr.contains("407");
                    if is_early {
                        outcome = lab.start_bare(Identity::Own, &shell(&script)).finish();
                    }
                    !is_early
                });
                assert!(is_good && outcome.stdout.contains("over"), "{outcome}");
                for part in ["of that name", "runs the gateway"] {
                    assert!(!outcome.stdout.contains(part), "{scheme} {more} {host}: {outcome}");
                }
            }
        }
        let records = gate.records();
        let is_it = |record: &&Value| record["detail"].as_str().is_some_and(|text| text.contains("admin listener"));
        assert!(records.iter().filter(is_it).count() >= 4, "{}", gate.errors());
        gate.end();
    }

    fn who_does_not_read_or_speak_holds_up_no_run(lab) {
        let _origin = Origin::start(8080);
        let gate = gate(lab, &["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"]);
        let (authority, cookie) = let_in(lab, &gate);
        let open = || {
            let mut stream = connected();
            stream.set_read_timeout(Some(SOON)).expect("a time");
            let request = format!("GET /events HTTP/1.1\r\nHost: {authority}\r\nCookie: {cookie}\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut first = [0; 12];
            stream.read_exact(&mut first).expect("an answer");
            (stream, String::from_utf8_lossy(&first).into_owned())
        };
        let pages: Vec<_> = (0..9).map(|_| open()).collect();
        let shown = pages.iter().filter(|(_, line)| line.ends_with("200")).count();
        assert_eq!(shown, 8, "{:?}", pages.iter().map(|(_, line)| line).collect::<Vec<_>>());
        let flood = lab.start_bare(Identity::Own, &python(FLOOD));
        flood.wait_for("flooding");
        let script = "for n in $(seq 300); do echo \"url=http://a.example:8080/$n\"; echo output=/dev/null; done |
            curl -sS -K - && echo all";
        let outcome = gate.sandbox(lab, Identity::Own).limit(Duration::from_mins(2)).run(&shell(script));
        assert!(outcome.stdout.contains("all"), "{outcome}");
        assert!(flood.finish().stdout.contains("over"));
        // A page that was closed makes room for one that reads.
        drop(pages);
        let mut page = None;
        let is_open = eventually(SOON, || {
            let (stream, line) = open();
            page = line.ends_with("200").then_some(stream);
            page.is_some()
        });
        assert!(is_open);
        let mut page = page.expect("a page");
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/seen", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        let mut seen = String::new();
        let told = eventually(SOON, || {
            let mut buffer = [0; 8192];
            let count = page.read(&mut buffer).unwrap_or(0);
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
            seen.contains("/seen")
        });
        assert!(told && seen.contains("event: state") && seen.contains("event: events"), "{seen}");
        gate.end();
    }

    fn a_browser_shows_what_happens_and_hostile_names_stay_text(lab) {
        if !is_there("chromium") {
            return outgate_harness::skip("no chromium");
        }
        let _origin = Origin::start(8080);
        let gate = gate(lab, &[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
            "--resolve", "b.example=192.0.2.2",
        ]);
        let script = "cp /usr/bin/curl './<img src=x onerror=document.title=1>'
            while sleep 0.3; do
            './<img src=x onerror=document.title=1>' -sS -o /dev/null 'http://b.example:8080/<script>document.title=1</script>'
            curl -sS -o /dev/null 'http://b.example:8080/%3Cimg%20src=x%20onerror=document.title=2%3E'
            curl -sS -o /dev/null http://a.example:8080/fine; echo done; done";
        let run = gate.sandbox(lab, Identity::Own).option("--name", "hostile");
        let run = run.limit(Duration::from_mins(3)).start(&shell(script));
        run.wait_for("done");
        let (authority, path) = address(lab, &gate);
        let pictures = lab.folder("pictures", Identity::Own);
        let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shared/live_browser.py");
        let line: Vec<String> = [
            "/usr/bin/python3", driver, &format!("http://{authority}{path}"), &pictures.to_string_lossy(),
            "document.querySelectorAll('#flows li:not(.none)').length >= 3 && document.querySelector('#denied code')",
            "document.title", "document.querySelectorAll('main img, main script').length", "document.body.innerText",
            "location.pathname + location.search", "document.cookie",
            "fetch('http://127.0.0.1:8080/').then(() => 1, () => 0) && 1",
        ].map(str::to_owned).to_vec();
        let outcome = start(lab, Identity::Own, &line, 150).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let seen: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        assert_eq!(seen["values"][0], "outgate", "{seen}");
        assert_eq!(seen["values"][1], 0, "{seen}");
        let text = seen["values"][2].as_str().expect("a text");
        for part in [
            "<img src=x onerror=document.title=1>", "ready for", "GET http://b.example:8080", "hostile #1",
            "-a 'GET http://b.example:8080",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // The code is gone from the address, and no script has the cookie.
        assert_eq!((&seen["values"][3], &seen["values"][4]), (&"/".into(), &"".into()), "{seen}");
        for wide in seen["wide"].as_array().expect("a list") {
            assert!(wide.as_i64() <= Some(0), "it fits no phone: {seen}");
        }
        let faults = seen["faults"].as_array().expect("a list");
        let is_expected = |fault: &&Value| fault.to_string().contains("127.0.0.1:8080");
        assert!(faults.iter().all(|fault| is_expected(&fault)), "{seen}");
        if let Some(keep) = std::env::var_os("OUTGATE_KEEP_PICTURES") {
            for name in ["phone-light", "phone-dark", "desk-light", "desk-dark"] {
                let name = format!("{name}.png");
                std::fs::copy(pictures.join(&name), std::path::Path::new(&keep).join(&name)).expect("a copy");
            }
        }
        run.signal(nix::sys::signal::Signal::SIGTERM);
        run.finish();
        gate.end();
    }

    fn top_shows_it_in_a_terminal_and_as_lines(lab) {
        let _origin = Origin::start(8080);
        let gate = gate(lab, &["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"]);
        let socket = gate.socket.to_string_lossy().into_owned();
        let script = "while sleep 0.3; do curl -sS -o /dev/null http://b.example:8080/x;
            curl -sS -o /dev/null http://a.example:8080/fine; echo done; done";
        let run: Running = gate.sandbox(lab, Identity::Own).option("--name", "agent")
            .limit(Duration::from_mins(2)).start(&shell(script));
        run.wait_for_count("done", 2);
        let plain = outgate(lab, Identity::Own, &["top", &socket, "--plain"]);
        assert_eq!(plain.code, Some(0), "{plain}");
        for part in ["outgate top: ready", "DENIED", "agent #1", "SANDBOXES", "by curl in"] {
            assert!(plain.stdout.contains(part), "{part}: {plain}");
        }
        assert!(!plain.stdout.contains('\u{1b}'), "{plain}");
        if is_there("tmux") {
            let terminal = lab.folder("tmux", Identity::Own).join("top");
            let call = |words: &[&str]| {
                let place = terminal.to_string_lossy();
                let line = ["tmux", "-f", "/dev/null", "-S", &place].into_iter().chain(words.iter().copied());
                let line: Vec<String> = line.map(str::to_owned).collect();
                lab.start_bare(Identity::Own, &line).finish()
            };
            let command = format!("{} top {socket}; echo ENDED $?; sleep 30", program(lab));
            call(&["new-session", "-d", "-x", "110", "-y", "40", "sh", "-c", &command]);
            let shows = |wanted: &[&str]| {
                let mut text = String::new();
                let shown = eventually(SOON, || {
                    text = call(&["capture-pane", "-p"]).stdout;
                    wanted.iter().all(|part| text.contains(part))
                });
                assert!(shown, "{wanted:?}:\n{text}");
            };
            shows(&["ready for", "DENIED", "agent #1", " now", "allow  GET http://a.example:8080/fine", "q quit"]);
            call(&["send-keys", "q"]);
            shows(&["ENDED 0"]);
            call(&["kill-server"]);
        }
        run.signal(nix::sys::signal::Signal::SIGTERM);
        run.finish();
        gate.end();
    }

    fn a_page_for_other_machines_or_without_an_admin_socket_is_refused(lab) {
        let words = ["gateway", "--listen", "/nowhere/gate", "-a", "http://a.example", "--admin-listen"];
        for (more, part) in [
            (&["0.0.0.0:7070"][..], "no loopback address"),
            (&["192.0.2.1:7070"], "no loopback address"),
            (&["127.0.0.1:7070", "--admin", "none"], "give --admin SOCKET"),
        ] {
            let outcome = outgate(lab, Identity::Own, &[&words, more].concat());
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(outcome.stderr.contains(part), "{outcome}");
        }
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example"]));
        let socket = gate.socket.to_string_lossy().into_owned();
        let outcome = outgate(lab, Identity::Own, &["gateway", "page", &socket]);
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert!(outcome.stderr.contains("start it with --admin-listen"), "{outcome}");
        gate.end();
    }
}
