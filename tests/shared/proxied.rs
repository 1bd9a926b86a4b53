//! A shared gateway as an explicit proxy, with origins behind it and clients before it that
//! no launcher holds.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use outgate_harness::servers::{is_there, serve};
use outgate_harness::{Identity, Lab, Outcome, eventually};
use serde_json::Value;

use crate::gate::{Gate, Plan, outgate};

/// Where the proxy listens.
pub(crate) const PROXY: &str = "127.0.0.1:3128";
/// Where the origins are, as any public address.
pub(crate) const ORIGIN: &str = "93.184.216.34";
/// Another address of theirs, which no rule names.
pub(crate) const UNNAMED: &str = "93.184.216.35";
/// Longest wait for what comes soon.
const SOON: Duration = Duration::from_secs(20);

/// Rules of the gateway, one of each kind, by a name and by the address.
const ALLOW: [&str; 17] = [
    "http://host.example",
    "GET http://method.example",
    "http://path.example/a/**",
    "GET https://opened.example/a",
    "tls://passed.example",
    "tcp://raw.example:5432",
    "tcp://raw.example:7000",
    "ws://ws.example/live",
    "http://deny.example",
    "GET http://93.184.216.34/a/**",
    "GET https://93.184.216.34/a",
    // No name leads there: what denies an address denies names that do.
    "GET http://93.184.216.36/a/**",
    "tcp://93.184.216.34:5432",
    "ws://93.184.216.34/live",
    "http://nowhere.example",
    "http://inside.example",
    "tls://inside.example",
];
const DENY: [&str; 2] = [
    "http://deny.example/secret",
    "http://93.184.216.36/a/secret",
];
/// Names that lead to the origins.
const NAMES: [&str; 10] = [
    "host", "method", "path", "opened", "passed", "raw", "ws", "deny", "other", "denied",
];

/// The gateway with its origins.
pub(crate) struct Stage<'lab> {
    lab: &'lab Lab,
    identity: Identity,
    pub(crate) gate: Gate,
    log: PathBuf,
    /// What clients trust: the gateway's authority, and that of the origin.
    pub(crate) trusted: PathBuf,
    pub(crate) origin_certificate: PathBuf,
}

impl<'lab> Stage<'lab> {
    /// Starts both; `None`, with a word why, where something is not installed.
    pub(crate) fn start(lab: &'lab Lab, identity: Identity, more: &[&str]) -> Option<Self> {
        if !["openssl", "curl", "python3"].into_iter().all(is_there) {
            return None;
        }
        let folder = lab.folder("origins", Identity::Own);
        let (certificate, log) = (folder.join("certificate.pem"), folder.join("log"));
        let key = folder.join("key.pem");
        if !log.exists() {
            certify(&[&certificate, &key]);
            fs::write(&log, "").expect("a log");
            let shown = [&certificate, &key, &log].map(|path| path.to_string_lossy().into_owned());
            let script = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/shared/proxied_origin.py"
            );
            let words = [
                "/usr/bin/python3",
                script,
                "::",
                &shown[0],
                &shown[1],
                &shown[2],
            ];
            serve(
                &words,
                &folder,
                &["127.0.0.1:80", "127.0.0.1:443", "127.0.0.1:7000"],
            );
        }
        let authority = lab.folder("authority", identity).join("ca");
        let authority_place = authority.to_string_lossy().into_owned();
        if !authority.exists() {
            let made = outgate(lab, identity, &["ca", "create", &authority_place]);
            assert_eq!(made.code, Some(0), "{made}");
        }
        let certificate_place = certificate.to_string_lossy().into_owned();
        let mut plan = Plan::new(&["--proxy", PROXY, "--ca", &authority_place]);
        plan.options
            .extend(["--upstream-ca".to_owned(), certificate_place]);
        plan.options
            .extend(more.iter().map(|&word| word.to_owned()));
        let mut option = |name: &str, value: String| plan.options.extend([name.to_owned(), value]);
        for rule in ALLOW {
            option("-a", rule.to_owned());
        }
        for rule in DENY {
            option("-d", rule.to_owned());
        }
        for name in NAMES {
            option("--resolve", format!("{name}.example={ORIGIN}"));
        }
        let gate = Gate::start(lab, identity, &plan);
        Some(Self {
            lab,
            identity,
            gate,
            log,
            trusted: authority.join("authority.pem"),
            origin_certificate: certificate,
        })
    }

    /// `outgate token WORDS…`.
    pub(crate) fn token(&self, words: &[&str]) -> Outcome {
        outgate(self.lab, self.identity, &[&["token"][..], words].concat())
    }

    /// A token of this name, once it is good.
    pub(crate) fn make(&self, name: &str, options: &[&str]) -> String {
        let made = self.token(&[&["create", name][..], options].concat());
        assert_eq!(made.code, Some(0), "{made}");
        let token = made.stdout.trim().to_owned();
        let good = eventually(SOON, || self.is_good(name, &token));
        assert!(good, "{name} is not good: {}", self.gate.errors());
        token
    }

    /// Whether the proxy knows these credentials: its own page says so.
    pub(crate) fn is_good(&self, name: &str, token: &str) -> bool {
        let head = format!(
            "GET http://outgate.invalid/ HTTP/1.1\r\nHost: outgate.invalid\r\n{}\r\n",
            authorization(name, token)
        );
        self.says(head.as_bytes()).starts_with("HTTP/1.1 200")
    }

    /// What the proxy answers to these bytes, to its end.
    #[expect(
        clippy::unused_self,
        reason = "there is a proxy where there is a stage"
    )]
    pub(crate) fn says(&self, bytes: &[u8]) -> String {
        let mut stream = dial();
        stream.write_all(bytes).expect("the proxy reads");
        rest(stream)
    }

    /// All that arrived at the origins since this was called last.
    pub(crate) fn arrived(&self) -> String {
        let arrived = fs::read_to_string(&self.log).expect("a log");
        fs::write(&self.log, "").expect("a log");
        arrived
    }

    /// Everything recorded so far.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.gate.records()
    }

    /// `curl` with these words: `STATUS OF CONNECT/STATUS`, and what came.
    pub(crate) fn curl(&self, words: &[&str]) -> (String, String) {
        let mut command = Command::new("curl");
        command.args([
            "-q",
            "-sS",
            "-m",
            "20",
            "-w",
            "\n%{http_connect}/%{http_code}",
        ]);
        command.arg("--cacert").arg(&self.trusted).args(words);
        let output = command.stdin(Stdio::null()).output().expect("curl runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let (content, status) = said.rsplit_once('\n').unwrap_or(("", &said));
        (status.to_owned(), format!("{content}{errors}"))
    }
}

/// A connection to the proxy.
pub(crate) fn dial() -> TcpStream {
    let address: SocketAddr = PROXY.parse().expect("an address");
    #[expect(clippy::disallowed_methods, reason = "a client that no launcher holds")]
    let stream = TcpStream::connect(address).expect("the proxy accepts");
    let limit = Some(Duration::from_secs(40));
    stream.set_read_timeout(limit).expect("a limit");
    stream
}

/// What comes on it until its end.
pub(crate) fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    stream.read_to_end(&mut bytes).ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The field by which a client says who it is.
pub(crate) fn authorization(name: &str, token: &str) -> String {
    let pair = format!("{name}:{token}");
    let pair = base64::engine::general_purpose::STANDARD.encode(pair);
    format!("Proxy-Authorization: Basic {pair}\r\n")
}

/// A certificate of the origins, which vouches for itself.
fn certify(files: &[&PathBuf; 2]) {
    let names = NAMES.map(|name| format!("DNS:{name}.example"));
    let subject = format!("subjectAltName={},IP:{ORIGIN}", names.join(","));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]);
    command.args([
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=origins",
        "-addext",
        &subject,
    ]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command
        .arg("-out")
        .arg(files[0])
        .arg("-keyout")
        .arg(files[1]);
    let made = command.output().expect("openssl runs");
    assert!(made.status.success(), "{made:?}");
}
