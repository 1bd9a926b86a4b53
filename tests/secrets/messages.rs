//! WebSockets: the request that asks for one may hold a secret, its messages may
//! not, and what comes back in them is masked.

use outgate_harness::lab_tests;

use crate::origin::field;
use crate::stage::{Stage, TOKEN, assert_hidden, bash};

/// Asks for a WebSocket, shows its first message, then sends.
const TALK: &str = r"
import os, socket, ssl, sys
key = os.environ['KEY']
stream = ssl.create_default_context().wrap_socket(socket.create_connection(('api.test', 443)), server_hostname='api.test')
stream.settimeout(20)
stream.sendall(f'GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: {key}\r\n\r\n'.encode())
got = b''
while b'\r\n\r\n' not in got or len(got.split(b'\r\n\r\n', 1)[1]) < 2 + len(key):
    part = stream.recv(4096)
    assert part, got
    got += part
head, message = got.split(b'\r\n\r\n', 1)
print(head.decode())
print('masked' if message[2:].decode() == key else message)
def send(text, first=0x81):
    mask = b'\x11\x22\x33\x44'
    payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text.encode()))
    stream.sendall(bytes([first, 0x80 | len(payload)]) + mask + payload)
send('harmless')
";

/// Waits for the end.
const END: &str = r"
try:
    print('ended' if stream.recv(1) == b'' else 'open')
except (OSError, ssl.SSLError):
    print('ended')
";

/// The same in a program, with what it sends.
fn talk(sends: &str) -> String {
    format!("python3 - <<'E'\n{TALK}{sends}{END}E")
}

lab_tests! {
    fn a_secret_enters_the_request_of_a_websocket_and_none_of_its_messages(lab) {
        let stage = Stage::new(lab);
        let outcome = stage.sandbox(&["KEY=env:REAL_TOKEN@api.test"]).run(&bash(&talk("send('my key is ' + key)\n")));
        assert!(outcome.stdout.contains("101"), "{outcome}");
        assert!(outcome.stdout.contains("masked\n"), "{outcome}");
        assert!(outcome.stdout.contains("ended\n"), "{outcome}");
        assert_hidden(&outcome.stdout, "what came back");
        let seen = stage.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(field(&seen[0], "authorization"), Some(TOKEN));
        assert_eq!(field(&seen[0], "sec-websocket-extensions"), None);
        let findings = stage.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].1.contains("secret KEY stands in a message"), "{findings:?}");
    }

    fn a_placeholder_in_fragments_is_found_whatever_stands_between(lab) {
        let stage = Stage::new(lab);
        let sends = "send('my key is ' + key[:9], 0x01)\nsend('-', 0x89)\nsend(key[9:], 0x80)\n";
        let outcome = stage.sandbox(&["KEY=env:REAL_TOKEN@api.test"]).run(&bash(&talk(sends)));
        assert!(outcome.stdout.contains("ended\n"), "{outcome}");
        let findings = stage.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].1.contains("secret KEY stands in a message"), "{findings:?}");
    }

    fn a_frame_of_an_extension_that_nobody_agreed_on_ends_a_websocket(lab) {
        let stage = Stage::new(lab);
        let sandbox = stage.sandbox(&["KEY=env:REAL_TOKEN@api.test"]).option("--inspect", "off");
        let outcome = sandbox.run(&bash(&talk("send('compressed', 0xc1)\n")));
        assert!(outcome.stdout.contains("ended\n"), "{outcome}");
        assert!(outcome.stderr.contains("extension nobody agreed on"), "{outcome}");
    }
}
