//! HTTP/2: a value goes to its host in the same positions and comes back as
//! little as over HTTP/1.1, in requests and in WebSockets on streams (RFC 8441).

use outgate_harness::lab_tests;

use crate::origin::field;
use crate::stage::{Stage, TOKEN, VALUE, assert_hidden, base64, bash};

/// The host by its origin of HTTP/2.
const SECRET: &str = "KEY=env:REAL@api.test:9443;in=credentials,x-note,query,content";

/// A client of HTTP/2 that asks for a WebSocket at PLACE, shows its first
/// message, then sends two. It writes its fields without any coding.
const TALK: &str = r"python3 - <<'E'
import os, socket, ssl, struct
key = os.environ['KEY']
host, port, path = 'PLACE'.split()
context = ssl.create_default_context()
context.set_alpn_protocols(['h2'])
stream = context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
assert stream.selected_alpn_protocol() == 'h2'
stream.settimeout(20)
def frame(kind, flags, number, data):
    stream.sendall(struct.pack('>I', len(data))[1:] + bytes([kind, flags]) + struct.pack('>I', number) + data)
def text(value):
    assert len(value) < 127
    return bytes([len(value)]) + value.encode()
unread = b''
def read():
    global unread
    while True:
        size = 9 + int.from_bytes(unread[:3], 'big')
        if len(unread) >= max(size, 9):
            kind, flags, data, unread = unread[3], unread[4], unread[9:size], unread[size:]
            if kind == 4 and not flags & 1:
                frame(4, 1, 0, b'')
            return kind, flags, data
        try:
            part = stream.recv(65536)
        except (OSError, ssl.SSLError):
            part = b''
        if not part:
            return None
        unread += part
stream.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
frame(4, 0, 0, b'')
fields = [(':method', 'CONNECT'), (':protocol', 'websocket'), (':scheme', 'https'), (':path', path),
    (':authority', host if port == '443' else f'{host}:{port}'), ('sec-websocket-version', '13'),
    ('sec-websocket-extensions', 'permessage-deflate'), ('authorization', key)]
frame(1, 4, 1, b''.join(b'\0' + text(name) + text(value) for name, value in fields))
got, opened = b'', False
while len(got) < 2 + len(key):
    kind, flags, data = read()
    if kind == 1:
        opened = b'\x88' in data[:4]
        print('opened' if opened else 'refused')
    if kind == 0 and opened:
        got += data
    if kind in (3, 7) or kind in (0, 1) and flags & 1:
        print('no WebSocket')
        raise SystemExit
print('masked' if got[2:].decode() == key else got)
def send(words):
    mask = b'\x11\x22\x33\x44'
    payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(words.encode()))
    frame(0, 0, 1, bytes([0x81, 0x80 | len(payload)]) + mask + payload)
send('harmless')
send('my key is ' + key)
while (one := read()) is not None:
    kind, flags, data = one
    if kind in (3, 7) or kind == 0 and flags & 1:
        break
print('ended')
E";

/// Runs a client that asks for a WebSocket.
fn talk(stage: &Stage<'_>, secret: &str, place: &str) -> outgate_harness::Outcome {
    let script = TALK.replace("PLACE", place);
    let outcome = stage.sandbox(&[secret]).run(&bash(&script));
    assert_hidden(&outcome.stdout, place);
    assert_hidden(&outcome.stderr, place);
    outcome
}

lab_tests! {
    fn a_value_enters_requests_of_http2_and_comes_back_masked(lab) {
        let stage = Stage::new(lab);
        let escaped = "s3cr3t%2FV4lue%2Bof%3Dthe%22first%26kind";
        for (form, expected) in [
            (r#"-H "Authorization: Bearer $KEY" https://api.test:9443/echo"#, format!("authorization: Bearer {VALUE}")),
            (r#"-u "user:$KEY" https://api.test:9443/echo"#, format!("authorization: Basic {}", base64(format!("user:{VALUE}").as_bytes()))),
            (r#"-H "X-Note: $KEY" https://api.test:9443/echo"#, format!("x-note: {VALUE}")),
            (r#""https://api.test:9443/echo?k=$KEY""#, format!("/echo?k={escaped} ")),
            (r#"-d "k=$KEY" https://api.test:9443/echo"#, format!("k={escaped}")),
            (r#"-T - -H "Content-Type: text/plain" https://api.test:9443/echo < <(head -c 300000 /dev/zero | tr '\0' a; printf %s "$KEY")"#, format!("a{VALUE}")),
        ] {
            let script = format!(r"curl -sSf --http2 -D fields -o out -w '%{{http_version}}\n' {form}; cat fields out");
            let outcome = stage.run(&[SECRET], &script);
            assert!(outcome.stdout.starts_with("2\n"), "{script}: {outcome}");
            assert_hidden(&outcome.stdout, &script);
            assert_hidden(&outcome.stderr, &script);
            let seen = stage.seen();
            assert_eq!(seen.len(), 1, "{script}: {seen:?}");
            assert!(seen[0].contains(" HTTP/2\r\n"), "{script}");
            assert!(seen[0].contains(&expected), "{script}: {}", &seen[0][..seen[0].len().min(2000)]);
            assert_eq!(stage.findings(), [], "{script}");
        }
    }

    fn a_placeholder_elsewhere_in_http2_is_refused(lab) {
        let stage = Stage::new(lab);
        for (form, words) in [
            (r#"-H "Authorization: $KEY" https://api.test/x"#, "the secret is for"),
            (r#"-H "Authorization: $KEY" https://other.test:9443/x"#, "the secret is for"),
            (r#"-H "X-Other: $KEY" https://api.test:9443/x"#, "field `x-other`"),
            (r"https://api.test:9443/$KEY", "the path"),
            (r#"-H "Authorization: $KEY ghp_Zk3xQ8vN1mT5rW7yB2cD4fG6hJ9kLpSaUeXo" https://api.test:9443/x"#, "GitHub"),
        ] {
            let script = format!("curl -sS --http2 {form}");
            let outcome = stage.run(&[SECRET], &script);
            assert!(outcome.stdout.contains(words), "{script}: {outcome}");
            assert_hidden(&outcome.stdout, &script);
            assert!(!stage.findings().is_empty(), "{script}: {outcome}");
            assert_eq!(stage.seen(), Vec::<String>::new(), "{script}");
        }
    }

    fn what_is_compressed_before_it_holds_a_placeholder_is_refused(lab) {
        let stage = Stage::new(lab);
        for version in ["--http1.1", "--http2"] {
            for coding in ["gzip", "zstd"] {
                let script = format!(
                    "printf 'the key is %s, said twice: %s' \"$KEY\" \"$KEY\" | {coding} -c > body; \
                     curl -sS {version} -H 'Content-Encoding: {coding}' --data-binary @body https://api.test:9443/x"
                );
                let outcome = stage.run(&[SECRET], &script);
                let place = format!("{script}: {outcome}");
                assert!(outcome.stdout.contains("secret KEY"), "{place}");
                assert!(outcome.stdout.contains("cannot be replaced"), "{place}");
                assert!(!stage.findings().is_empty(), "{place}");
                assert_eq!(stage.seen(), Vec::<String>::new(), "{place}");
            }
        }
    }

    fn a_websocket_on_a_stream_takes_a_secret_in_its_request_only(lab) {
        let stage = Stage::new(lab);
        for (secret, place) in [
            // To a stream of the origin, and to a connection of HTTP/1.1.
            ("KEY=env:REAL_TOKEN@api.test:9443", "api.test 9443 /ws"),
            ("KEY=env:REAL_TOKEN@api.test", "api.test 443 /ws"),
        ] {
            let outcome = talk(&stage, secret, place);
            assert_eq!(outcome.stdout, "opened\nmasked\nended\n", "{place}: {outcome}");
            let seen = stage.seen();
            assert_eq!(seen.len(), 1, "{place}: {seen:?}");
            assert_eq!(field(&seen[0], "authorization"), Some(TOKEN), "{place}");
            assert_eq!(field(&seen[0], "sec-websocket-extensions"), None, "{place}");
            let findings = stage.findings();
            assert_eq!(findings.len(), 1, "{place}: {findings:?}");
            assert!(findings[0].1.contains("secret KEY stands in a message"), "{findings:?}");
        }
    }

    /// An origin that compresses all the same would hide what comes back.
    fn a_websocket_with_an_extension_that_nobody_asked_for_is_none(lab) {
        let stage = Stage::new(lab);
        for (secret, place) in [
            ("KEY=env:REAL_TOKEN@api.test:9443", "api.test 9443 /ws-extended"),
            ("KEY=env:REAL_TOKEN@api.test", "api.test 443 /ws-extended"),
        ] {
            for mode in ["block", "off"] {
                let sandbox = stage.sandbox(&[secret]).option("--inspect", mode);
                let outcome = sandbox.run(&bash(&TALK.replace("PLACE", place)));
                assert!(outcome.stdout.contains("no WebSocket"), "{place}: {outcome}");
                assert!(!outcome.stdout.contains("masked"), "{place}: {outcome}");
            }
        }
    }
}
