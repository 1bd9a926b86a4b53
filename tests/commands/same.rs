//! What `outgate why` answers is what a run does: every question is asked and
//! then tried, by a real client against a real origin.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use outgate_ca::{Authority, LeafSubject, Leaves};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Sandbox, lab_tests};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::call;

/// The policy of all questions. Every address is local in the laboratory.
const POLICY: &str = r#"
extends = ["base"]
allow = ["GET,HEAD http://api.example.org:8080/repos/**", "tcp://raw.example.org:8080", "*:8080"]
deny = ["http://api.example.org/repos/secret", "POST http://files.example.org"]
[[only]]
rule = "GET http://only.example.org:8080/a"
[[pin]]
host = "api.example.org"
address = "127.0.0.1"
[[pin]]
host = "raw.example.org"
address = "127.0.0.1"
[[pin]]
host = "files.example.org"
address = "127.0.0.1"
[[pin]]
host = "only.example.org"
address = "127.0.0.1"
"#;

/// Method and URL, and whether it is allowed: neighbours differ in one thing.
const QUESTIONS: [(&str, &str, bool); 14] = [
    ("GET", "http://api.example.org:8080/repos/a", true),
    ("POST", "http://api.example.org:8080/repos/a", true),
    ("GET", "http://api.example.org:8080/repos/secret", false),
    ("GET", "http://api.example.org:8080/repos/%73ecret", false),
    ("GET", "http://api.example.org:8080/repos//secret", false),
    ("GET", "http://api.example.org:8081/repos/a", false),
    ("GET", "http://files.example.org:8080/x", true),
    ("POST", "http://files.example.org:8080/x", false),
    ("GET", "http://only.example.org:8080/a", true),
    ("GET", "http://only.example.org:8080/b", false),
    ("POST", "http://only.example.org:8080/a", false),
    ("GET", "http://127.0.0.1:8080/", false),
    ("GET", "http://raw.example.org:8080/any", true),
    ("GET", "http://raw.example.org:8081/any", false),
];

/// The same for TLS, which is opened where rules have to see inside.
const TLS_POLICY: &str = r#"
extends = ["base"]
allow = [
  "GET,HEAD https://api.example.org:8443/repos/**", "https://files.example.org:8443",
  "https://whole.example.org:8443", "tls://pinned.example.org:8443",
]
deny = ["https://api.example.org/repos/secret", "POST https://files.example.org"]
"#;

/// Hosts of that policy, and one that no rule is about.
const TLS_HOSTS: [&str; 5] = ["api", "files", "whole", "pinned", "other"];

/// When TLS is opened, method and URL, and whether it is allowed.
const TLS_QUESTIONS: [(&str, &str, &str, bool); 18] = [
    (
        "when-needed",
        "GET",
        "https://api.example.org:8443/repos/a?x=1",
        true,
    ),
    (
        "when-needed",
        "POST",
        "https://api.example.org:8443/repos/a",
        false,
    ),
    (
        "when-needed",
        "GET",
        "https://api.example.org:8443/other",
        false,
    ),
    (
        "when-needed",
        "GET",
        "https://api.example.org:8443/repos/secret",
        false,
    ),
    (
        "when-needed",
        "GET",
        "https://api.example.org:8443/repos/%73ecret",
        false,
    ),
    (
        "when-needed",
        "GET",
        "https://api.example.org:8444/repos/a",
        false,
    ),
    (
        "when-needed",
        "GET",
        "https://files.example.org:8443/x",
        true,
    ),
    (
        "when-needed",
        "POST",
        "https://files.example.org:8443/x",
        false,
    ),
    (
        "when-needed",
        "POST",
        "https://whole.example.org:8443/x",
        true,
    ),
    (
        "when-needed",
        "POST",
        "https://pinned.example.org:8443/x",
        true,
    ),
    (
        "when-needed",
        "GET",
        "https://other.example.org:8443/x",
        false,
    ),
    ("always", "POST", "https://whole.example.org:8443/x", true),
    ("always", "POST", "https://files.example.org:8443/x", false),
    ("always", "POST", "https://pinned.example.org:8443/x", true),
    (
        "never",
        "GET",
        "https://api.example.org:8443/repos/a",
        false,
    ),
    ("never", "GET", "https://files.example.org:8443/x", false),
    ("never", "POST", "https://whole.example.org:8443/x", true),
    ("never", "GET", "https://other.example.org:8443/x", false),
];

/// Leaves for whatever name a client asks for.
#[derive(Debug)]
struct Every(Leaves);

impl ResolvesServerCert for Every {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_owned();
        self.0.get(&LeafSubject::Name(name)).ok()
    }
}

/// An origin with TLS on this port, which counts the requests it gets.
fn tls_origin(port: u16, authority: Authority) -> Arc<AtomicUsize> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Every(Leaves::new(authority))));
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a TCP port");
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, counted) = (Arc::clone(&config), Arc::clone(&counted));
            thread::spawn(move || answer(stream, config, &counted));
        }
    });
    requests
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>, requests: &AtomicUsize) {
    let Ok(connection) = ServerConnection::new(config) else {
        return;
    };
    let mut stream = StreamOwned::new(connection, stream);
    let mut buffer = [0; 8192];
    let mut bytes = Vec::new();
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend(buffer.iter().take(count));
        if !bytes.ends_with(b"\r\n\r\n") {
            continue;
        }
        bytes.clear();
        requests.fetch_add(1, Ordering::SeqCst);
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfrom-here\n";
        if stream
            .write_all(text)
            .and_then(|()| stream.flush())
            .is_err()
        {
            return;
        }
    }
}

lab_tests! {
    fn a_run_judges_inside_tls_as_why_answered(lab) {
        let mut text = TLS_POLICY.to_owned();
        for host in TLS_HOSTS {
            text.push_str("[[pin]]\naddress = \"127.0.0.1\"\nhost = \"");
            text.push_str(host);
            text.push_str(".example.org\"\n");
        }
        let policy = lab.directory.join("tls.toml");
        std::fs::write(&policy, text).expect("a policy");
        let policy = policy.to_string_lossy().into_owned();
        let authority = Authority::for_run("origin").expect("an authority");
        let roots = authority.pem().to_owned();
        let requests = tls_origin(8443, authority);
        for (switch, method, url, is_allowed) in TLS_QUESTIONS {
            let why = ["why", "-p", &policy, "--intercept", switch, "-X", method, url];
            let said = call(&why, &lab.directory, &lab.directory);
            let place = format!("{switch}: {method} {url}");
            assert_eq!(said.status, i32::from(!is_allowed), "{place}: {}{}", said.stdout, said.stderr);
            let sandbox = Sandbox::plain(lab, Identity::Own);
            // What verifies the origin: the client where TLS passes, else the gateway.
            let file = sandbox.work().join("roots.pem");
            std::fs::write(&file, &roots).expect("a file");
            let file = file.to_string_lossy().into_owned();
            let before = requests.load(Ordering::SeqCst);
            let fetch = ["curl", "-sS", "--path-as-is", "--max-time", "20", "-X", method, url].map(str::to_owned);
            let run = sandbox
                .option("-p", &policy)
                .option("--intercept", switch)
                .option("--upstream-ca", &file)
                .environment("CURL_CA_BUNDLE", &file)
                .run(&fetch);
            let arrived = requests.load(Ordering::SeqCst) - before;
            assert_eq!(arrived, usize::from(is_allowed), "{place}: {run}");
            assert_eq!(run.stdout.contains("from-here"), is_allowed, "{place}: {run}");
            assert_eq!(run.stderr.contains("outgate: denied"), !is_allowed, "{place}: {run}");
        }
    }

    fn a_run_does_what_why_answered(lab) {
        let policy = lab.directory.join("same.toml");
        std::fs::write(&policy, POLICY).expect("a policy");
        let policy = policy.to_string_lossy().into_owned();
        let origin = Origin::start(8080);
        for (method, url, is_allowed) in QUESTIONS {
            let why = ["why", "-p", &policy, "-X", method, url];
            let said = call(&why, &lab.directory, &lab.directory);
            assert_eq!(said.status, i32::from(!is_allowed), "{method} {url}: {}{}", said.stdout, said.stderr);
            let before = origin.arrivals().len();
            let fetch = ["curl", "-sS", "--path-as-is", "--max-time", "20", "-X", method, url].map(str::to_owned);
            let run = Sandbox::plain(lab, Identity::Own).option("-p", &policy).run(&fetch);
            let arrived = origin.arrivals().len() - before;
            assert_eq!(arrived, usize::from(is_allowed), "{method} {url}: {run}");
            assert_eq!(run.stderr.contains("outgate: denied"), !is_allowed, "{method} {url}: {run}");
        }
    }
}
