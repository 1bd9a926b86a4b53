//! Lines of a learnt policy: what each allows, its evidence and its risks, as text that the
//! reader of policies reads back. Text only.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::evidence::Evidence;
use super::requests::Shape;
use super::{Asked, Learnt, Place, Whole, host_of_rule, policy_of};
use crate::denial::port_unless;
use crate::facts::Scheme;
use crate::host::HostName;
use crate::learn::template::Openness;
use crate::policy::Policy;

/// Executables of one rule: with more it is not about programs.
const EXECUTABLES_MAX: usize = 6;
/// Programs of one line that are named.
const PROGRAMS_TOLD: usize = 5;
/// What is left out that is told.
const LEFT_OUT_TOLD: usize = 100;
/// Methods that hardly upload.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// What makes a line riskier than it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// The host keeps content of many tenants.
    ManyTenants,
    /// All of such a host.
    AllOfManyTenants,
    /// A method that uploads.
    Uploads,
    /// Words are left open, or everything below a directory.
    Broad,
    /// Every path, or a whole host.
    WholeHost,
    /// Without TLS.
    Plain,
    /// Nobody looks at what is sent.
    Unseen,
    /// It was denied when it was seen.
    WasDenied,
    /// Some of those who asked cannot be named.
    AnyProgram,
    /// Others on the network may connect.
    Listens,
    /// A socket of a service outside.
    Service,
    /// Addresses inside.
    Inside,
}

impl Risk {
    /// Whether it is one of what is reached, and not of how it came to be known.
    pub(super) fn is_lasting(self) -> bool {
        !matches!(self, Self::WasDenied | Self::AnyProgram)
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::ManyTenants => "the host keeps content of many tenants",
            Self::AllOfManyTenants => "all of a host that keeps content of many tenants",
            Self::Uploads => "a method that can upload",
            Self::Broad => "a broad wildcard",
            Self::WholeHost => "every path of the host",
            Self::Plain => "without TLS: anybody on the way reads and changes it",
            Self::Unseen => "nobody looks at what is sent",
            Self::WasDenied => "was denied in these runs",
            Self::AnyProgram => "for any program",
            Self::Listens => "others on the network may connect",
            Self::Service => "a service outside that does what it is told",
            Self::Inside => "an address that is not public",
        }
    }
}

/// What a line is in a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKind {
    /// An address to listen on.
    Listen,
    /// A rule that allows.
    Allow {
        /// Executables it is limited to; empty for all.
        process: Vec<String>,
        /// Special-use addresses that its name may lead to.
        addresses: Vec<String>,
    },
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntLine {
    /// What it is.
    pub kind: LineKind,
    /// The rule, or the address.
    pub text: String,
    /// What it stands on.
    pub evidence: Evidence,
    /// What to think of.
    pub risks: BTreeSet<Risk>,
    /// What lines are sorted by.
    order: (String, u16, String),
}

impl LearntLine {
    /// Where it stands among others.
    pub(super) fn place(&self) -> impl Ord + use<> {
        (self.order.clone(), self.text.clone(), self.kind.clone())
    }
}

/// A line for requests in the making.
#[derive(Debug, Default)]
pub(super) struct RequestDraft {
    pub(super) methods: BTreeSet<String>,
    pub(super) openness: Option<Openness>,
    pub(super) evidence: Evidence,
}

/// The line of requests.
pub(super) fn request(
    place: &Place,
    shape: &Shape,
    draft: RequestDraft,
    is_shared: &dyn Fn(&str) -> bool,
) -> LearntLine {
    let takes_methods = matches!(place.scheme, "http" | "https");
    let methods: Vec<&str> = draft.methods.iter().map(String::as_str).collect();
    let methods = if takes_methods {
        format!("{} ", methods.join(","))
    } else {
        String::new()
    };
    let origin = origin(place);
    let keys: Vec<String> = shape.keys.iter().map(|key| format!("{key}=*")).collect();
    let query = if keys.is_empty() {
        String::new()
    } else {
        format!("?{}", keys.join("&"))
    };
    let text = format!("{methods}{origin}{}{query}", shape.pattern);
    let mut risks = BTreeSet::new();
    let is_whole = draft.openness == Some(Openness::All);
    if is_shared(&place.host) || is_below_hosting(&place.host) {
        risks.insert(if is_whole {
            Risk::AllOfManyTenants
        } else {
            Risk::ManyTenants
        });
    } else if is_whole {
        risks.insert(Risk::WholeHost);
    }
    if matches!(draft.openness, Some(Openness::Words | Openness::Below)) {
        risks.insert(Risk::Broad);
    }
    let uploads = |method: &String| !READING.contains(&method.as_str());
    if !takes_methods || draft.methods.iter().any(uploads) {
        risks.insert(Risk::Uploads);
    }
    if matches!(place.scheme, "http" | "ws") && place.host != "localhost" {
        risks.insert(Risk::Plain);
    }
    let process = process(&shape.executables, &mut risks);
    line(Line {
        kind: LineKind::Allow {
            process,
            addresses: Vec::new(),
        },
        text,
        evidence: draft.evidence,
        risks,
        order: (place.host.clone(), place.port, shape.pattern.clone()),
    })
}

/// The parts of a line before its last note.
struct Line {
    kind: LineKind,
    text: String,
    evidence: Evidence,
    risks: BTreeSet<Risk>,
    order: (String, u16, String),
}

fn line(mut line: Line) -> LearntLine {
    if line.evidence.denied > 0 {
        line.risks.insert(Risk::WasDenied);
    }
    LearntLine {
        kind: line.kind,
        text: line.text,
        evidence: line.evidence,
        risks: line.risks,
        order: line.order,
    }
}

/// The line of a whole destination, a socket or a port.
pub(super) fn whole(whole: &Whole, asked: &Asked, is_shared: &dyn Fn(&str) -> bool) -> LearntLine {
    let mut evidence = Evidence::default();
    for own in asked.values() {
        evidence.join(own.clone());
    }
    let mut risks = BTreeSet::new();
    let (rule, addresses) = match whole {
        Whole::Rule(rule, addresses) => (rule, addresses),
        Whole::Listen(address) => {
            risks.insert(Risk::Listens);
            return line(Line {
                kind: LineKind::Listen,
                text: address.clone(),
                evidence,
                risks,
                order: (String::new(), 0, address.clone()),
            });
        }
    };
    let host = host_of_rule(whole);
    risks.extend(match rule.split_once("://").map(|(scheme, _)| scheme) {
        Some("unix") => vec![Risk::Service],
        Some("tcp" | "tls") => vec![Risk::Unseen],
        Some("http") => vec![Risk::Plain, Risk::WholeHost, Risk::Uploads],
        Some(_) | None => vec![Risk::WholeHost, Risk::Uploads],
    });
    if !host.is_empty() && (is_shared(&host) || is_below_hosting(&host)) {
        risks.remove(&Risk::WholeHost);
        risks.insert(Risk::AllOfManyTenants);
    }
    if !addresses.is_empty() {
        risks.insert(Risk::Inside);
    }
    let executables = asked.keys().cloned().collect();
    let process = process(&executables, &mut risks);
    line(Line {
        kind: LineKind::Allow {
            process,
            addresses: addresses.iter().cloned().collect(),
        },
        text: rule.clone(),
        evidence,
        risks,
        order: (host, 0, rule.clone()),
    })
}

/// The executables that a rule names, if all are known.
fn process(executables: &BTreeSet<String>, risks: &mut BTreeSet<Risk>) -> Vec<String> {
    if executables.contains("") || executables.len() > EXECUTABLES_MAX {
        risks.insert(Risk::AnyProgram);
        return Vec::new();
    }
    executables.iter().cloned().collect()
}

fn origin(place: &Place) -> String {
    let default = match place.scheme {
        "http" | "ws" => Scheme::Http.default_port(),
        _ => Scheme::Https.default_port(),
    };
    let port = port_unless(place.port, default);
    format!("{}://{}{port}", place.scheme, place.host)
}

/// Whether a host is one of those that a hosting service hands out (public-suffix list).
fn is_below_hosting(host: &str) -> bool {
    HostName::parse(host).is_ok_and(|name| name.is_hosted())
}

/// The policy of one pattern at a place, for any method and program.
pub(super) fn alone(place: &Place, pattern: &str) -> Option<Policy> {
    let rule = quoted(&format!("{}{pattern}", origin(place)));
    policy_of(&format!("allow = [{rule}]\n"))
}

/// Printable text as a basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            ' '..='~' => out.push(character),
            other => {
                // Writing into a text cannot fail.
                write!(out, "\\U{:08X}", u32::from(other)).ok();
            }
        }
    }
    out.push('"');
    out
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

impl LearntLine {
    /// The comment above it: what it stands on, and what to think of.
    pub(super) fn comment(&self) -> Vec<String> {
        let Evidence {
            allowed,
            denied,
            programs,
            first,
            last,
        } = &self.evidence;
        let times = |count: u64| match count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let mut seen = match (allowed, denied) {
            (allowed, 0) => times(*allowed),
            (0, denied) => format!("denied {}", times(*denied)),
            (allowed, denied) => format!("{}, denied {}", times(*allowed), times(*denied)),
        };
        if !programs.is_empty() {
            let told: Vec<&str> = programs
                .iter()
                .take(PROGRAMS_TOLD)
                .map(String::as_str)
                .collect();
            write!(seen, ", by {}", told.join(", ")).ok();
            let more = programs.len().saturating_sub(PROGRAMS_TOLD);
            if more > 0 {
                write!(seen, " and {more} more").ok();
            }
        }
        let mut lines = vec![format!("# {seen}")];
        if first == last {
            lines.push(format!("#   {} {}", first.0, first.1));
        } else {
            lines.push(format!("#   first {} {}", first.0, first.1));
            lines.push(format!("#   last  {} {}", last.0, last.1));
        }
        if !self.risks.is_empty() {
            let risks: Vec<&str> = self.risks.iter().map(|risk| risk.words()).collect();
            lines.push(format!("# risk: {}", risks.join("; ")));
        }
        lines
    }

    /// The line as an item of a list.
    pub(super) fn item(&self) -> String {
        match &self.kind {
            LineKind::Listen => quoted(&self.text),
            LineKind::Allow { process, addresses }
                if process.is_empty() && addresses.is_empty() =>
            {
                quoted(&self.text)
            }
            LineKind::Allow { process, addresses } => {
                let mut item = format!("{{ rule = {}", quoted(&self.text));
                if !process.is_empty() {
                    write!(item, ", process = {}", list(process)).ok();
                }
                if !addresses.is_empty() {
                    write!(item, ", addresses = {}", list(addresses)).ok();
                }
                item.push_str(" }");
                item
            }
        }
    }

    /// The line as a table of its own.
    pub(super) fn table(&self) -> Vec<String> {
        let LineKind::Allow { process, addresses } = &self.kind else {
            return Vec::new();
        };
        let mut lines = vec![
            "[[allow]]".to_owned(),
            format!("rule = {}", quoted(&self.text)),
        ];
        if !process.is_empty() {
            lines.push(format!("process = {}", list(process)));
        }
        if !addresses.is_empty() {
            lines.push(format!("addresses = {}", list(addresses)));
        }
        lines
    }
}

impl Learnt {
    /// The policy as a document.
    pub fn document(&self) -> String {
        let mut lines = vec![
            format!(
                "# Learnt from {} by `outgate learn`.",
                counted(self.total, "decision")
            ),
            "# Read each line, and take out what the command is not to have. Then".to_owned(),
            "#   outgate policy test THIS-FILE --replay RECORD   # what would change".to_owned(),
            "#   outgate run -p THIS-FILE -- COMMAND".to_owned(),
        ];
        let listen: Vec<&LearntLine> = self
            .lines
            .iter()
            .filter(|line| line.kind == LineKind::Listen)
            .collect();
        if !listen.is_empty() {
            lines.push("\nlisten = [".to_owned());
            for line in listen {
                lines.extend(line.comment().into_iter().map(|text| format!("    {text}")));
                lines.push(format!("    {},", line.item()));
            }
            lines.push("]".to_owned());
        }
        for line in self
            .lines
            .iter()
            .filter(|line| line.kind != LineKind::Listen)
        {
            lines.push(String::new());
            lines.extend(line.comment());
            lines.extend(line.table());
        }
        lines.extend(self.left_out_in_words());
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    /// What there is no line for, as a comment.
    pub fn left_out_in_words(&self) -> Vec<String> {
        if self.left_out.is_empty() {
            return Vec::new();
        }
        let mut lines = vec!["\n# Left out:".to_owned()];
        for (subject, why, count) in self.left_out.iter().take(LEFT_OUT_TOLD) {
            let times = if *count == 1 {
                String::new()
            } else {
                format!(", {count} times")
            };
            lines.push(format!("#   {subject}{times}: {why}"));
        }
        let more = self.left_out.len().saturating_sub(LEFT_OUT_TOLD);
        if more > 0 {
            lines.push(format!("#   and {more} more"));
        }
        lines
    }
}

fn counted(count: u64, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}
