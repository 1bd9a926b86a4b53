//! The policy of a shared gateway changed under running commands: what is no
//! longer allowed ends, the rest goes on, and a faulty file changes nothing.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use outgate_harness::{Identity, Lab, eventually, lab_tests};

use crate::gate::{Gate, Plan, assert_chained, curl, python};

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// An origin that answers `/slow` in two halves, becomes a WebSocket, and sends
/// back whatever else comes.
pub(crate) struct Origin {
    may_end: Arc<AtomicBool>,
}

impl Origin {
    pub(crate) fn start(port: u16) -> Self {
        let may_end = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).expect("a port");
        let end = Arc::clone(&may_end);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let end = Arc::clone(&end);
                thread::spawn(move || serve(stream, &end));
            }
        });
        Self { may_end }
    }

    fn end_slow(&self) {
        self.may_end.store(true, Ordering::SeqCst);
    }
}

fn serve(mut stream: TcpStream, may_end: &AtomicBool) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
        let answer: &[u8] = if text.contains("websocket") {
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        } else if text.starts_with("GET /slow") {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
            if stream.write_all(head.as_bytes()).is_err() {
                return;
            }
            eventually(SOON, || may_end.load(Ordering::SeqCst));
            b"other"
        } else if text.starts_with("GET ") {
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        } else {
            &buffer[..count]
        };
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

/// Holds one of each kind of connection open, waits for a line, and says what
/// became of them.
pub(crate) const HOLDER: &str = r"
import socket, ssl, sys
def http(name):
    return socket.create_connection((name, 8080))
def ask(s, path, name):
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: {name}:8080\r\n\r\n'.encode())
    return s.recv(4096).decode().split(' ')[1]
def state(s):
    s.settimeout(5)
    try:
        # A frame of a client: the origin sends back what it gets, under a key of the gateway's
        # or, in a tunnel, as it is.
        more = b'\x81\x84' + bytes(4) + b'more'
        s.sendall(more)
        got = s.recv(100)
        plain = bytes(byte ^ got[2 + at % 4] for at, byte in enumerate(got[6:]))
        return b'more' in (plain, got[6:]) and 'open' or 'closed'
    except TimeoutError: return 'silent'
    except OSError: return 'closed'
kept = http('a.example')
print('kept', ask(kept, '/keep', 'a.example'))
ws = http('a.example')
ws.sendall(b'GET /ws HTTP/1.1\r\nHost: a.example:8080\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n')
print('ws', ws.recv(4096).decode().split(' ')[1], state(ws))
hello = ssl.MemoryBIO()
client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname='t.example')
try: client.do_handshake()
except ssl.SSLWantReadError: pass
tls = socket.create_connection(('t.example', 8443))
sent = hello.read()
tls.sendall(sent)
back = b''
while len(back) < len(sent) and not back.startswith(b'\xef'):
    more = tls.recv(8192)
    if not more: break
    back += more
    if len(back) >= 16: break
print('tls', len(back) > 0)
slow = http('a.example')
slow.sendall(b'GET /slow HTTP/1.1\r\nHost: a.example:8080\r\n\r\n')
got = b''
while not got.endswith(b'first'): got += slow.recv(4096)
print('slow begun', flush=True)
sys.stdin.readline()
slow.settimeout(20)
print('then kept', ask(kept, '/keep', 'a.example'))
print('then ws', state(ws))
tls.settimeout(5)
try:
    while True:
        if not tls.recv(8192): print('then tls closed'); break
except TimeoutError: print('then tls open')
except OSError: print('then tls closed')
print('half', flush=True)
sys.stdin.readline()
print('then slow', slow.recv(100).decode())
print('over', flush=True)
";

/// A policy file of one gateway.
fn policy(lab: &Lab, text: &str) -> PathBuf {
    let path = lab.folder("policy", Identity::Own).join("site.toml");
    write(&path, text);
    path
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
}

fn plan(file: &Path) -> Plan {
    Plan::new(&[
        "-p",
        &file.to_string_lossy(),
        "--resolve",
        "a.example=192.0.2.1",
        "--resolve",
        "b.example=192.0.2.2",
        "--resolve",
        "t.example=192.0.2.3",
    ])
}

/// Has the gateway read its files again, and waits for its word.
fn reread(gate: &Gate, word: &str) {
    let before = gate.errors().matches(word).count();
    kill(gate.front(), Signal::SIGHUP).expect("it is there");
    let said = eventually(SOON, || gate.errors().matches(word).count() > before);
    assert!(said, "{}", gate.errors());
}

const ALL: &str =
    "allow = [\"http://a.example:8080\", \"ws://a.example:8080\", \"tls://t.example:8443\"]\n";

const OFF: &str = "allow = [\"http://a.example:8080\"]\n[inspect]\nmode = \"off\"\n";

/// Sends a credential, waits for a line, and sends it once more.
fn sending() -> Vec<String> {
    let send = "curl -s -m 20 -o /dev/null -d 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 http://a.example:8080/ -w";
    crate::gate::shell(&format!(
        "{send} '%{{http_code}}\\n'; read x; {send} 'then %{{http_code}}\\n'; echo over"
    ))
}

lab_tests! {
    fn what_a_new_policy_denies_ends_and_what_runs_is_finished(lab) {
        let (origin, _tls) = (Origin::start(8080), Origin::start(8443));
        let file = policy(lab, ALL);
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let mut runs: Vec<_> = Identity::all()
            .into_iter()
            .map(|identity| gate.sandbox(lab, identity).with_input().start(&python(HOLDER)))
            .collect();
        for run in &runs {
            let said = run.wait_for("slow begun");
            assert!(said.contains("kept 200") && said.contains("ws 101 open"), "{said}");
        }
        write(&file, "allow = [\"http://a.example:8080/slow\", \"http://b.example:8080\"]\ndeny = [\"* */x\"]\n");
        reread(&gate, "policy 2:");
        for run in &mut runs {
            run.say("go\n");
            let said = run.wait_for("half");
            for line in ["then kept 403", "then ws closed", "then tls closed"] {
                assert!(said.contains(line), "{line}: {said} {}", run.errors());
            }
        }
        origin.end_slow();
        for mut run in runs {
            run.say("go\n");
            let outcome = run.finish();
            assert!(outcome.stdout.contains("then slow other"), "{outcome}");
        }
        // Whoever comes now is judged by it as well.
        for (path, code) in [("http://b.example:8080/", "200"), ("http://a.example:8080/", "403"), ("http://b.example:8080/x", "403")] {
            let outcome = gate.sandbox(lab, Identity::Own).run(&curl(path, 20));
            assert!(outcome.stdout.starts_with(code), "{path}: {outcome}");
        }
        let records = gate.records();
        assert_chained(&records);
        let generation = |record: &serde_json::Value| record["generation"].as_u64().expect("a number");
        let changed = records.iter().position(|record| record["kind"] == "policy").expect("a record");
        assert_eq!((generation(&records[0]), generation(&records[changed])), (1, 2));
        for record in &records[changed..] {
            let is_request = record["kind"] == "request" && record["verdict"] == "allow";
            let target = record["target"].as_str().expect("a text");
            assert!(!is_request || !target.contains("a.example"), "{record}");
        }
        let mut sessions = std::collections::HashMap::new();
        for record in &records {
            let last = sessions.insert(record["session"].as_u64(), generation(record));
            assert!(last.is_none_or(|last| last <= generation(record)), "{record}");
        }
        assert_eq!(gate.end().code, Some(0));
    }

    fn what_a_new_policy_still_allows_goes_on(lab) {
        let (origin, _tls) = (Origin::start(8080), Origin::start(8443));
        let file = policy(lab, ALL);
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let mut run = gate.sandbox(lab, Identity::Own).with_input().start(&python(HOLDER));
        run.wait_for("slow begun");
        write(&file, &ALL.replace('\n', "\ndeny = [\"http://a.example:8080/other\"]\n"));
        reread(&gate, "policy 2:");
        run.say("go\n");
        let said = run.wait_for("half");
        for line in ["then kept 200", "then ws open", "then tls open"] {
            assert!(said.contains(line), "{line}: {said} {}", run.errors());
        }
        origin.end_slow();
        run.say("go\n");
        assert_eq!(run.finish().code, Some(0));
    }

    fn a_faulty_file_changes_nothing(lab) {
        let _origin = Origin::start(8080);
        let file = policy(lab, "allow = [\"http://a.example:8080\"]\ndeny = [\"* */x\"]\n");
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let codes = || {
            ["/", "/x"].map(|path| {
                let url = format!("http://a.example:8080{path}");
                gate.sandbox(lab, Identity::Own).run(&curl(&url, 20)).stdout
            })
        };
        assert_eq!(codes(), ["200\n", "403\n"]);
        for (text, fault) in [
            ("allow = [\"*\"", "site.toml:1"),
            ("allow = [\"*\"]\ndenied = [\"* */x\"]\n", "denied"),
            ("allow = [\"*.com\"]\n", "*.com"),
            ("allow = [\"*\"]\nmonitor = true\n", "monitor"),
        ] {
            write(&file, text);
            reread(&gate, fault);
            assert!(gate.errors().contains("stays as it is"), "{}", gate.errors());
            assert_eq!(codes(), ["200\n", "403\n"], "{text}");
        }
        std::fs::remove_file(&file).expect("a file");
        reread(&gate, "stays as it is");
        assert_eq!(codes(), ["200\n", "403\n"]);
        // A pipe gives nothing a second time.
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a pipe");
        reread(&gate, "is no regular file");
        assert_eq!(codes(), ["200\n", "403\n"]);
        std::fs::remove_file(&file).expect("a pipe");
        // A rule that narrowed and is gone is named.
        write(&file, "allow = [\"http://a.example:8080\"]\n");
        reread(&gate, "no longer in force: deny `* */x`");
        assert_eq!(codes(), ["200\n", "200\n"]);
        // Without a word about the terminal, a hangup ends nothing.
        assert_eq!(gate.end().code, Some(0));
    }

    fn a_policy_whose_scan_cannot_be_made_is_not_taken(lab) {
        let origin = outgate_harness::origin::Origin::start(8080);
        let file = policy(lab, OFF);
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .option("--inspect", "off")
            .with_input()
            .start(&sending());
        run.wait_for("200");
        // What scans everybody from now on scans this run as well.
        let block = "allow = [\"http://a.example:8080\"]\n[inspect]\nmode = \"block\"\n";
        for fault in [
            "[[inspect.scope]]\ndetector = \"nope-token\"\nhosts = [\"a.example\"]\n",
            "[[inspect.detector]]\nid = \"nope-token\"\nmode = \"block\"\n",
        ] {
            write(&file, &format!("{block}{fault}"));
            reread(&gate, "nope-token");
            assert!(!gate.errors().contains("policy 2"), "{}", gate.errors());
        }
        write(&file, block);
        reread(&gate, "policy 2:");
        // The gateway tells the front before it tells its sessions.
        let scanned = eventually(SOON, || gate.records().iter().any(|record| {
            record["kind"] == "policy" && record["session"] != 0
        }));
        assert!(scanned, "{:?}", gate.records());
        run.say("go\n");
        let outcome = run.finish();
        assert!(outcome.stdout.contains("then 403"), "{outcome}");
        assert_eq!(origin.arrivals().len(), 1, "{outcome}");
        // Nor does a gateway begin with one.
        assert_eq!(gate.end().code, Some(0));
        write(&file, &format!("{block}[[inspect.detector]]\nid = \"nope-token\"\nmode = \"block\"\n"));
        let folder = lab.folder("gate", Identity::Own);
        let (socket, record) = (folder.join("other"), folder.join("other.jsonl"));
        let outcome = crate::gate::gateway(lab, Identity::Own, &socket, &record, &plan(&file)).finish();
        assert!(outcome.stderr.contains("nope-token"), "{outcome}");
    }

    fn a_run_whose_scan_does_not_fit_a_new_policy_is_refused_everything(lab) {
        let origin = outgate_harness::origin::Origin::start(8080);
        let file = policy(lab, OFF);
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let own = lab.folder("given", Identity::Own).join("own.toml");
        let detector = |pattern: &str| format!(
            "[[inspect.detector]]\nid = \"mycorp-token\"\ndescription = \"a token\"\npattern = '''{pattern}'''\n"
        );
        let mine = format!("[inspect]\nmode = \"off\"\n{}", detector("mycorp_[0-9A-Za-z]{24}"));
        write(&own, &mine);
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .option("-p", &own.to_string_lossy())
            .allow("http://a.example:8080")
            .with_input()
            .start(&sending());
        run.wait_for("200");
        write(&file, &format!(
            "allow = [\"http://a.example:8080\"]\n[inspect]\nmode = \"block\"\n{}",
            detector("mycorp-[0-9A-Za-z]{24}"),
        ));
        reread(&gate, "policy 2:");
        let refused = eventually(SOON, || run.errors().contains("another detector `mycorp-token`"));
        assert!(refused, "{}", run.errors());
        run.say("go\n");
        let outcome = run.finish();
        assert!(outcome.stdout.contains("then 000"), "{outcome}");
        assert_eq!(origin.arrivals().len(), 1, "{outcome}");
        // One that brings nothing of the kind runs on below it.
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
    }

    fn a_run_whose_policy_does_not_fit_a_new_one_is_refused_everything(lab) {
        let _origin = Origin::start(8080);
        let file = policy(lab, "allow = [\"http://p.example:8080\"]\n[[pin]]\nhost = \"p.example\"\naddress = \"192.0.2.7\"\n");
        let gate = Gate::start(lab, Identity::Own, &plan(&file));
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .pin("p.example=192.0.2.7")
            .with_input()
            .start(&crate::gate::shell(
                "curl -s -m 20 -o /dev/null -w '%{http_code}\\n' http://p.example:8080/; read x; \
                 curl -s -m 20 -o /dev/null -w 'then %{http_code}\\n' http://p.example:8080/; echo over",
            ));
        run.wait_for("200");
        write(&file, "allow = [\"http://p.example:8080\"]\n[[pin]]\nhost = \"p.example\"\naddress = \"192.0.2.8\"\n");
        reread(&gate, "outgate: policy 2");
        assert!(eventually(SOON, || run.errors().contains("the gateway is gone")), "{}", run.errors());
        run.say("go\n");
        let outcome = run.finish();
        assert!(outcome.stdout.contains("then 000"), "{outcome}");
        assert!(outcome.stderr.contains("--resolve"), "{outcome}");
    }
}
