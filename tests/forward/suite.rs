//! Runs cases: one sandbox, one client in it, many connections. Then looks at
//! each from three sides (client, origin, record) and collects every fault.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, Outcome};
use serde_json::Value;

use crate::case::{Case, Cut, Want};
use crate::client::{self, Heard};
use crate::frames;
use crate::origin::Origin;
use crate::readers::{READERS, Reading, Taken};
use crate::replies::{self, Reply};

/// Cases of one run: fewer than the connections of one sandbox.
const CASES_MAX: usize = 1000;

/// A request as the record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Query values are not recorded.
    pub(crate) path: String,
}

/// What came of one case.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) case: Case,
    /// Its authority.
    pub(crate) host: String,
    pub(crate) heard: Heard,
    /// All responses, and what is left behind them.
    pub(crate) replies: (Vec<Reply>, Vec<u8>),
    /// What the origin got, per connection.
    pub(crate) arrivals: Vec<Vec<u8>>,
    pub(crate) allowed: Vec<Judged>,
    /// The reasons of what was denied.
    pub(crate) denied: Vec<String>,
}

/// The origin of a laboratory, and the numbers of cases it has seen.
static ORIGIN: OnceLock<Origin> = OnceLock::new();
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

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
  "* http://*.open.example:80,8080",
  "* http://*.case.example:80,8080/public/**",
  "ws://*.ws.example:8080/public/ws",
]
deny = ["* */public/private/**", "DELETE *"]
"#;

fn policy(rules: &str, cases: &[Named]) -> String {
    let mut text = rules.to_owned();
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

fn authority(name: &str, port: u16) -> String {
    match port {
        80 => name.to_owned(),
        port => format!("{name}:{port}"),
    }
}

/// Puts the names in.
fn named(number: usize, mut case: Case) -> Named {
    use crate::case::{Pace, Step};
    let name = name(number, case.zone);
    let host = authority(&name, case.port);
    let fill = |bytes: &[u8]| {
        let bytes = replace(bytes, b"<host>", host.as_bytes());
        replace(&bytes, b"<name>", name.as_bytes())
    };
    for step in &mut case.steps {
        match step {
            Step::Send(bytes) | Step::SendSingly(bytes) => *bytes = fill(bytes),
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
    assert!(cases.len() <= CASES_MAX, "{} cases at once", cases.len());
    let origin = ORIGIN.get_or_init(|| Origin::start(&[80, 8080]));
    // Numbers, and so names and addresses, are used once in a laboratory.
    let first = NUMBERS.fetch_add(cases.len(), Ordering::Relaxed);
    let cases: Vec<Named> = (first..)
        .zip(cases)
        .map(|(number, case)| named(number, case))
        .collect();
    for Named { address, case, .. } in &cases {
        origin.answers(*address, case.answer.clone());
    }
    let folder = lab.folder("work", Identity::Own);
    let document = lab.directory.join(format!("forward-{first}.toml"));
    fs::write(&document, policy(rules, &cases)).expect("the policy");
    fs::write(
        folder.join("plan.json"),
        client::plan(cases.iter().map(Named::host_and_case)),
    )
    .expect("the plan");
    let audit = lab.folder("audit", Identity::Own);
    let audit = audit.join(format!("{first}.jsonl"));
    let program = std::env::current_exe().expect("this program");
    let command: Vec<String> = [&*program.to_string_lossy(), "--exact", client::TEST]
        .iter()
        .chain(&["--nocapture", "--include-ignored", "--test-threads=1"])
        .map(|word| (*word).to_owned())
        .collect();
    let outcome = lab
        .sandbox(Identity::Own)
        .option("-p", &document.to_string_lossy())
        .option("--audit", &audit.to_string_lossy())
        .environment(client::PLAN, &folder.to_string_lossy())
        .run(&command);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    collect(&cases, origin, &records(&audit), &outcome, &folder)
}

fn collect(
    cases: &[Named],
    origin: &Origin,
    records: &[Value],
    outcome: &Outcome,
    folder: &std::path::Path,
) -> Vec<Seen> {
    let heard = fs::read_to_string(folder.join("heard.json"));
    let heard = client::heard(&heard.unwrap_or_else(|error| panic!("{error}\n{outcome}")));
    cases
        .iter()
        .zip(heard)
        .map(
            |(
                Named {
                    name,
                    address,
                    case,
                },
                heard,
            )| {
                let mut allowed = Vec::new();
                let mut denied = Vec::new();
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
                Seen {
                    case: case.clone(),
                    host: authority(name, case.port),
                    replies: replies::read(&heard.bytes, case.method),
                    heard,
                    arrivals: origin.arrivals(*address),
                    allowed,
                    denied,
                }
            },
        )
        .collect()
}

/// Whether the target of a record is this very name.
fn is_about(target: &str, name: &str) -> bool {
    let host = target.split_once("://").map_or(target, |(_, rest)| rest);
    host.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
}

/// Asserts that every case came out as wanted.
pub(crate) fn check(seen: &[Seen]) {
    let faults: Vec<String> = seen.iter().filter_map(Seen::faults).collect();
    assert!(
        faults.is_empty(),
        "{} of {} cases:\n{}",
        faults.len(),
        seen.len(),
        faults.join("\n")
    );
}

/// Runs all cases, also byte by byte, and asserts that each comes out as wanted.
pub(crate) fn hold(lab: &Lab, cases: Vec<Case>) -> Vec<Seen> {
    let singly: Vec<Case> = cases.iter().cloned().map(Case::singly).collect();
    let seen = run(lab, [cases, singly].concat());
    check(&seen);
    seen
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

impl Seen {
    /// Everything that is not as wanted, with all that was seen.
    pub(crate) fn faults(&self) -> Option<String> {
        let faults: Vec<String> = [self.laws(), self.wanted()].concat();
        (!faults.is_empty()).then(|| {
            let mut text = format!("=== {}\n  {}\n", self.case.name, faults.join("\n  "));
            for step in &self.case.steps {
                if let crate::case::Step::Send(bytes) | crate::case::Step::SendSingly(bytes) = step
                {
                    let bytes = bytes.escape_ascii().to_string();
                    writeln!(text, "  said    {}", shown(&bytes)).ok();
                }
            }
            let heard = self.heard.bytes.escape_ascii().to_string();
            writeln!(text, "  heard   {} [{}]", shown(&heard), self.heard.end).ok();
            for bytes in &self.arrivals {
                let bytes = bytes.escape_ascii().to_string();
                writeln!(text, "  arrived {}", shown(&bytes)).ok();
            }
            writeln!(text, "  allowed {:?}", self.allowed).ok();
            writeln!(text, "  denied  {:?}", self.denied).ok();
            text
        })
    }

    /// The first response's own words.
    pub(crate) fn reply(&self) -> &Reply {
        self.replies
            .0
            .first()
            .unwrap_or_else(|| panic!("no response: {self:?}"))
    }

    /// What arrived first, as text.
    pub(crate) fn arrived(&self) -> String {
        let first = self.arrivals.first();
        String::from_utf8_lossy(first.map_or(&[], Vec::as_slice)).into_owned()
    }

    /// What holds whatever was said: every reader takes what arrived for the
    /// requests that were judged, and without a judged request nothing arrives.
    pub(crate) fn laws(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let judged = &self.allowed;
        if judged.is_empty() && !self.arrivals.is_empty() {
            faults.push("a connection arrived although nothing was allowed".to_owned());
        }
        let mut contents: Option<Vec<Vec<u8>>> = None;
        for (name, read) in READERS {
            let mut readings: Vec<Reading> =
                self.arrivals.iter().map(|bytes| read(bytes)).collect();
            // Who knows no transfer codings stops at the first chunk size.
            let knows_codings = name != "first length";
            if !knows_codings {
                let stop = readings.iter().position(|one| one.fault.is_some());
                readings.truncate(stop.map_or(readings.len(), |at| at + 1));
            }
            let taken: Vec<&Taken> = readings.iter().flat_map(|one| &one.requests).collect();
            if taken.len() > judged.len() {
                faults.push(format!(
                    "{name}: takes {} requests, {} were judged",
                    taken.len(),
                    judged.len()
                ));
            }
            for (taken, judged) in taken.iter().zip(judged) {
                let judged_host = judged.target.split_once("://").map(|(_, host)| host);
                let host = taken.host == self.host && judged_host == Some(&*self.host);
                let path = path_of(&taken.target) == path_of(&judged.path);
                if !host || !path || taken.method != judged.method {
                    faults.push(format!("{name}: takes {taken:?} for {judged:?}"));
                }
            }
            if !knows_codings {
                continue;
            }
            let all = taken.iter().map(|taken| taken.content.clone()).collect();
            if contents.get_or_insert_with(|| Vec::clone(&all)) != &all {
                faults.push(format!("{name}: other contents"));
            }
            let whole = readings.iter().all(|one| one.fault.is_none());
            let bad = readings
                .iter()
                .filter_map(|one| one.fault)
                .find(|fault| *fault != "incomplete");
            if let Some(fault) = bad {
                faults.push(format!("{name}: {fault}"));
            }
            let may_fail = self.case.want.cut == Cut::Last;
            if whole && !may_fail && taken.len() != judged.len() {
                faults.push(format!(
                    "{name}: {} of {} arrived",
                    taken.len(),
                    judged.len()
                ));
            }
        }
        faults
    }

    fn wanted(&self) -> Vec<String> {
        let Want {
            sent,
            statuses,
            cut,
        } = &self.case.want;
        let mut faults = Vec::new();
        let readings = self.arrivals.iter().map(|bytes| READERS[0].1(bytes));
        let readings: Vec<Reading> = readings.collect();
        let whole: usize = readings.iter().map(|one| one.requests.len()).sum();
        if whole != *sent {
            faults.push(format!("{whole} whole requests arrived instead of {sent}"));
        }
        let is_cut = readings.iter().any(|one| one.fault.is_some());
        if is_cut && *cut == Cut::No {
            faults.push("a request arrived in part".to_owned());
        }
        let finals: Vec<u16> = self.replies.0.iter().map(|reply| reply.status).collect();
        let finals: Vec<u16> = finals.into_iter().filter(|status| *status > 100).collect();
        if let Some(statuses) = statuses {
            if finals != *statuses {
                faults.push(format!("responses {finals:?} instead of {statuses:?}"));
            }
            if !self.replies.1.is_empty() && !finals.contains(&101) {
                faults.push("bytes after the last response".to_owned());
            }
        }
        // Each is recorded, whether the parser, the target or a rule refused it.
        let refused = finals.iter().filter(|status| (400..500).contains(*status));
        let refused = refused.count().min(finals.len().saturating_sub(*sent));
        let silent = usize::from(*sent == 0 && *cut == Cut::No);
        if self.denied.len() < refused.max(silent) {
            faults.push("no record says that it was denied".to_owned());
        }
        if matches!(self.heard.end.as_str(), "reset" | "late") {
            faults.push(format!("the connection ended with `{}`", self.heard.end));
        }
        faults
    }
}

fn shown(text: &str) -> &str {
    text.get(..600).unwrap_or(text)
}
