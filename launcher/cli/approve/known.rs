//! What is known of a host without asking anybody about it: whether earlier runs reached it,
//! where it led, and whether it keeps content of many. Reads the user's own records, in a
//! thread of its own and within bounds; resolves no name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use outgate_dlp::IssuerPattern;
use outgate_launcher::record::records_directory;
use outgate_policy::printable;
use outgate_record::{Outcome, Record};
use outgate_report::records::{self, Go};

use crate::learn::shared_hosts;

/// Newest files of records that are read: those of some weeks.
const FILES_MAX: usize = 64;
/// Lines of them that are read: a second or two.
const LINES_MAX: u64 = 500_000;
/// Readings of the records, which are read once.
const READINGS_MAX: usize = 1;
/// Hosts that are remembered: more than anybody meets.
const HOSTS_MAX: usize = 16_384;

/// What records say of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    allowed: u64,
    denied: u64,
    /// The day of the last time.
    last: String,
    /// Where it led, the last time that it is known.
    pin: String,
}

/// Hosts that earlier runs reached or asked for.
#[derive(Debug)]
pub(super) struct KnownHosts {
    coming: Option<Receiver<BTreeMap<String, Seen>>>,
    seen: BTreeMap<String, Seen>,
    /// Hosts that keep content of many.
    shared: Vec<IssuerPattern>,
}

impl KnownHosts {
    /// Begins to read.
    pub(super) fn begin() -> Self {
        let (sender, coming) = sync_channel(READINGS_MAX);
        thread::spawn(move || drop(sender.send(read())));
        Self {
            coming: Some(coming),
            seen: BTreeMap::new(),
            shared: shared_hosts(),
        }
    }

    /// Nothing known, for tests.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            coming: None,
            seen: BTreeMap::new(),
            shared: Vec::new(),
        }
    }

    /// What is known of the host of a rule, in lines.
    pub(super) fn about(&mut self, rule: &str) -> Vec<String> {
        if let Some(seen) = self
            .coming
            .as_ref()
            .and_then(|coming| coming.try_recv().ok())
        {
            self.seen = seen;
            self.coming = None;
        }
        let Some(host) = host_of(rule) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        match self.seen.get(&host) {
            Some(seen) => {
                let Seen {
                    allowed,
                    denied,
                    last,
                    pin,
                } = seen;
                lines.push(format!(
                    "in your records: allowed {allowed} times, denied {denied}, last on {last}"
                ));
                if !pin.is_empty() {
                    lines.push(format!("it led to {pin} then"));
                }
            }
            None if self.coming.is_some() => lines.push("your records are being read".to_owned()),
            None => {
                lines.push("not in your records: no run of yours asked for it before".to_owned());
            }
        }
        if self.shared.iter().any(|own| own.covers(&host)) {
            lines.push("it keeps content of many: who may write there is not one".to_owned());
        }
        lines
    }
}

/// The host of a rule or of the target of a record.
fn host_of(text: &str) -> Option<String> {
    let target = text.split(' ').next_back().unwrap_or_default();
    let rest = match target.split_once("://") {
        Some(("unix", _)) => return None,
        Some((_, rest)) => rest,
        None => target,
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn read() -> BTreeMap<String, Seen> {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut lines = 0_u64;
    for file in newest() {
        // What cannot be read is not known.
        let whole = records::each(&[file], |line| {
            lines += 1;
            if let Some(record) = Record::parse(line.bytes) {
                note(&mut seen, &record);
            }
            Ok(if lines >= LINES_MAX { Go::Stop } else { Go::On })
        });
        if whole.is_ok() && lines >= LINES_MAX {
            break;
        }
    }
    seen
}

fn note(seen: &mut BTreeMap<String, Seen>, record: &Record<'_>) {
    let Some(host) = host_of(&record.target).filter(|host| host.contains('.')) else {
        return;
    };
    if seen.len() >= HOSTS_MAX && !seen.contains_key(&host) {
        return;
    }
    let count = |own: &mut Seen| match record.verdict {
        // What rules deny, they did not allow, whoever let it through.
        Outcome::Allow if record.is_monitored() => own.denied = own.denied.saturating_add(1),
        // What is inside a connection that is looked into counts by itself.
        Outcome::Allow if record.kind.as_str() == "connect" && record.is_looked_into() => {}
        Outcome::Allow => own.allowed = own.allowed.saturating_add(1),
        Outcome::Deny => own.denied = own.denied.saturating_add(1),
        Outcome::Note => {}
    };
    let own = seen.entry(host).or_default();
    count(own);
    let day = record.time.split('T').next().unwrap_or_default();
    if day > own.last.as_str() {
        day.clone_into(&mut own.last);
    }
    let pin = record.pin();
    if let Some(pin) = pin.split(' ').next().filter(|pin| !pin.is_empty()) {
        own.pin = printable(pin);
    }
}

/// The newest files of records: their names begin with the time.
fn newest() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let entries = records.and_then(|records| std::fs::read_dir(records).ok());
    let paths = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    files.reverse();
    files.truncate(FILES_MAX);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_rule_is_found_and_of_a_socket_there_is_none() {
        for (text, host) in [
            (
                "GET https://API.example.org/x?y=1:2",
                Some("api.example.org"),
            ),
            ("tcp://db.example.org:5432", Some("db.example.org")),
            ("https://api.example.org", Some("api.example.org")),
            ("db.example.org:5432", Some("db.example.org")),
            ("tcp://[2001:db8::1]:22", Some("[2001:db8::1]")),
            ("unix:///run/x.sock", None),
            ("", None),
        ] {
            assert_eq!(host_of(text).as_deref(), host, "{text}");
        }
    }
}
