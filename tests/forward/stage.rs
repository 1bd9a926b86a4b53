//! Runs cases: one sandbox, one client in it, many connections, with a gateway
//! of its own or a shared one. Gathers what client, origin and record saw.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, eventually};
use serde_json::Value;

use crate::case::{Carrier, Case, Versions};
use crate::client;
use crate::frames;
use crate::origin::{Origin, Part};
use crate::replies;
use crate::suite::{Judged, Seen};

/// Cases of one run: fewer than the connections of one sandbox.
const CASES_MAX: usize = 1000;

/// Longest life of a shared gateway.
const GATEWAY_SECONDS_MAX: u64 = 120;

/// The origin of a laboratory, and the numbers of cases it has seen.
static ORIGIN: OnceLock<Origin> = OnceLock::new();
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

/// What carries the requests of this process's test.
static CARRIER: OnceLock<Carrier> = OnceLock::new();

/// Chooses what carries the requests of this test; without, it is TCP alone.
pub(crate) fn carry(carrier: Carrier) {
    CARRIER.set(carrier).expect("a test has one carrier");
}

/// The same: TLS does.
pub(crate) fn open_tls() {
    carry(Carrier::Tls);
}

/// What carries the requests of this test.
pub(crate) fn carrier() -> Carrier {
    CARRIER.get().copied().unwrap_or(Carrier::Plain)
}

/// A case with its own name and address.
struct Named {
    name: String,
    address: IpAddr,
    case: Case,
}

impl Named {
    fn host_and_case(&self) -> (&str, &Case) {
        (self.case.connect.unwrap_or(&self.name), &self.case)
    }
}

/// Every name of a run: its number and its zone.
fn name(number: usize, zone: &str) -> String {
    format!("c{number}.{zone}.example")
}

fn address(number: usize) -> IpAddr {
    let (high, low) = (number / 250, number % 250);
    let octet = |number: usize| u8::try_from(number + 1).expect("a small number");
    Ipv4Addr::new(127, 7, octet(high), octet(low)).into()
}

/// The rules of all zones.
const RULES: &str = r#"
allow = [
  "* <scheme>://*.open.example:<port>,8080",
  "* <scheme>://*.case.example:<port>,8080/public/**",
  "<ws>://*.ws.example:8080/public/ws",
]
deny = ["* */public/private/**", "DELETE *"]
"#;

fn policy(rules: &str, cases: &[Named]) -> String {
    let mut text = String::from_utf8(spelt(rules.as_bytes())).expect("a text");
    for Named {
        name,
        address,
        case,
    } in cases
    {
        let port = case.port;
        writeln!(
            text,
            "[[pin]]\nhost = \"{name}:{port}\"\naddress = \"{address}:{port}\""
        )
        .expect("a string");
    }
    text
}

fn replace(bytes: &[u8], token: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(token) {
            out.extend(with);
            at += token.len();
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

/// Puts in what the carrier is called.
fn spelt(bytes: &[u8]) -> Vec<u8> {
    let (scheme, other) = carrier().schemes();
    let ws = scheme.replace("http", "ws");
    [
        ("<scheme>", scheme),
        ("<SCHEME>", &scheme.to_ascii_uppercase()),
        ("<other>", other),
        ("<ws>", &ws),
        ("<port>", &carrier().port().to_string()),
    ]
    .iter()
    .fold(bytes.to_vec(), |bytes, (token, with)| {
        replace(&bytes, token.as_bytes(), with.as_bytes())
    })
}

fn authority(name: &str, port: u16) -> String {
    if port == carrier().port() {
        return name.to_owned();
    }
    format!("{name}:{port}")
}

/// Puts the names in.
fn named(number: usize, mut case: Case) -> Named {
    use crate::case::{Pace, Step};
    let name = name(number, case.zone);
    if case.port == 80 {
        case.port = carrier().port();
    }
    let offers = case.offers();
    let known: Versions = case.versions.map_or(offers, |(_, origin)| origin);
    case.versions = Some((offers, known));
    let host = authority(&name, case.port);
    let fill = |bytes: &[u8]| {
        let bytes = replace(&spelt(bytes), b"<host>", host.as_bytes());
        replace(&bytes, b"<name>", name.as_bytes())
    };
    for step in &mut case.steps {
        match step {
            Step::Send(bytes) | Step::SendSingly(bytes) | Step::Below(bytes) => {
                *bytes = fill(bytes);
            }
            Step::Streams(streams, pace) => {
                let mut bytes = frames::beginning();
                for (stream, fields) in (1..).step_by(2).zip(streams) {
                    let filled = fields
                        .iter()
                        .map(|(name, value)| (name.as_str(), fill(value.as_bytes())));
                    bytes.extend(frames::request(stream, filled));
                }
                *step = match pace {
                    Pace::AtOnce => Step::Send(bytes),
                    Pace::Singly => Step::SendSingly(bytes),
                };
            }
            Step::Await(_) | Step::Pause(_) => {}
        }
    }
    Named {
        name,
        address: address(number),
        case,
    }
}

/// Runs all cases in one sandbox.
pub(crate) fn run(lab: &Lab, cases: Vec<Case>) -> Vec<Seen> {
    run_under(lab, RULES, cases)
}

/// Every address that somebody connected to in this laboratory.
pub(crate) fn reached() -> Vec<IpAddr> {
    ORIGIN.get().map(Origin::reached).unwrap_or_default()
}

/// The same under other rules.
pub(crate) fn run_under(lab: &Lab, rules: &str, cases: Vec<Case>) -> Vec<Seen> {
    let stage = Stage::set(lab, rules, cases);
    let sandbox = lab
        .sandbox(Identity::Own)
        .option("-p", &stage.document.to_string_lossy())
        .option("--audit", &stage.audit.to_string_lossy())
        .option("--upstream-ca", &stage.authority.to_string_lossy());
    let outcome = stage.play(sandbox);
    stage.collect(&outcome)
}

/// The same behind a shared gateway, which has the rules.
pub(crate) fn run_shared(lab: &Lab, cases: Vec<Case>) -> Vec<Seen> {
    let stage = Stage::set(lab, RULES, cases);
    let socket = lab.folder("gate", Identity::Own).join("gate");
    let mut gateway = Command::new(lab.tools.programs.join("outgate"));
    gateway
        .args(["gateway", "--listen"])
        .arg(&socket)
        .arg("--audit")
        .arg(&stage.audit)
        .arg("-p")
        .arg(&stage.document)
        .arg("--upstream-ca")
        .arg(&stage.authority)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", lab.folder("home", Identity::Own))
        .env("XDG_STATE_HOME", lab.folder("state", Identity::Own))
        .stdin(Stdio::null());
    let gateway = Running::start(&mut gateway, Duration::from_secs(GATEWAY_SECONDS_MAX));
    let listens = eventually(Duration::from_secs(20), || {
        gateway.errors().contains("listens at")
    });
    assert!(listens, "no gateway: {}", gateway.errors());
    let sandbox = lab.sandbox(Identity::Own);
    let outcome = stage.play(sandbox.option("--gateway", &socket.to_string_lossy()));
    gateway.signal(Signal::SIGTERM);
    let ended = gateway.finish();
    assert_eq!(ended.code, Some(0), "{ended}");
    stage.collect(&outcome)
}

/// Cases with all that their run needs.
struct Stage {
    cases: Vec<Named>,
    origin: &'static Origin,
    folder: PathBuf,
    document: PathBuf,
    audit: PathBuf,
    /// What verifies the origin.
    authority: PathBuf,
}

impl Stage {
    fn set(lab: &Lab, rules: &str, cases: Vec<Case>) -> Self {
        assert!(cases.len() <= CASES_MAX, "{} cases at once", cases.len());
        let origin = ORIGIN.get_or_init(|| Origin::start(&[80, 443, 8080]));
        // Numbers, and so names and addresses, are used once in a laboratory.
        let first = NUMBERS.fetch_add(cases.len(), Ordering::Relaxed);
        let cases: Vec<Named> = (first..)
            .zip(cases)
            .map(|(number, case)| named(number, case))
            .collect();
        for Named { address, case, .. } in &cases {
            let part = Part {
                answer: case.answer.clone(),
                versions: case.versions.map_or(&["http/1.1"], |(_, origin)| origin),
            };
            origin.plays(*address, part);
        }
        let folder = lab.folder("work", Identity::Own);
        let document = lab.directory.join(format!("forward-{first}.toml"));
        fs::write(&document, policy(rules, &cases)).expect("the policy");
        let plan = client::plan(cases.iter().map(Named::host_and_case), carrier());
        fs::write(folder.join("plan.json"), plan).expect("the plan");
        let authority = lab.directory.join("origins.pem");
        fs::write(&authority, origin.authority()).expect("a certificate");
        let audit = lab
            .folder("audit", Identity::Own)
            .join(format!("{first}.jsonl"));
        Self {
            cases,
            origin,
            folder,
            document,
            audit,
            authority,
        }
    }

    /// Runs the client in the sandbox.
    fn play(&self, sandbox: Sandbox<'_>) -> Outcome {
        let program = std::env::current_exe().expect("this program");
        let command: Vec<String> = [&*program.to_string_lossy(), "--exact", client::TEST]
            .iter()
            .chain(&["--nocapture", "--include-ignored", "--test-threads=1"])
            .map(|word| (*word).to_owned())
            .collect();
        let outcome = sandbox
            .environment(client::PLAN, &self.folder.to_string_lossy())
            .run(&command);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        outcome
    }

    fn collect(&self, outcome: &Outcome) -> Vec<Seen> {
        let heard = fs::read_to_string(self.folder.join("heard.json"));
        let heard = client::heard(&heard.unwrap_or_else(|error| panic!("{error}\n{outcome}")));
        let records = records(&self.audit);
        let seen = self.cases.iter().zip(heard).map(|(named, heard)| {
            let Named {
                name,
                address,
                case,
            } = named;
            let (allowed, denied) = decisions(&records, name);
            let arrivals = self.origin.arrivals(*address);
            let wires = arrivals
                .iter()
                .map(|one| (one.carrier, one.version.clone()));
            Seen {
                case: case.clone(),
                host: authority(name, case.port),
                replies: replies::read(&heard.bytes, case.method),
                heard,
                wires: wires.collect(),
                arrivals: arrivals.into_iter().map(|one| one.bytes).collect(),
                allowed,
                denied,
            }
        });
        seen.collect()
    }
}

/// What was recorded of a name: requests that were allowed, and the reasons of
/// what was denied.
fn decisions(records: &[Value], name: &str) -> (Vec<Judged>, Vec<String>) {
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    let mine = |record: &&Value| is_about(text(record, "target"), name);
    for record in records.iter().filter(mine) {
        match (text(record, "kind"), text(record, "verdict")) {
            ("request", "allow") => allowed.push(Judged {
                method: text(record, "method").to_owned(),
                target: text(record, "target").to_owned(),
                path: text(record, "path").to_owned(),
            }),
            (_, "deny") => denied.push(text(record, "reason").to_owned()),
            _ => {}
        }
    }
    (allowed, denied)
}

/// Whether the target of a record is this very name.
fn is_about(target: &str, name: &str) -> bool {
    let host = target.split_once("://").map_or(target, |(_, rest)| rest);
    host.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
}
