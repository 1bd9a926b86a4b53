//! One record as a value: a line of JSON in, texts and numbers out. Reads as a
//! stranger would: what is missing or of another kind is absent, and whatever a
//! text holds may have been chosen by a command, so that nobody prints it as it
//! is.

use outgate_gateway::milliseconds;
use serde_json::Value;

/// One record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) time: String,
    /// Milliseconds from 1970 on; 0 where the time cannot be read.
    pub(crate) at: u64,
    pub(crate) seq: u64,
    pub(crate) run: String,
    pub(crate) sandbox: String,
    pub(crate) session: Option<u64>,
    pub(crate) uid: Option<u64>,
    pub(crate) generation: u64,
    pub(crate) lost: u64,
    pub(crate) kind: String,
    pub(crate) verdict: Verdict,
    pub(crate) alarm: Alarm,
    pub(crate) target: String,
    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) reason: String,
    pub(crate) detail: String,
    pub(crate) rule: Option<Rule>,
    pub(crate) flag: Option<String>,
    pub(crate) pin: String,
    pub(crate) pid: Option<u64>,
    pub(crate) executable: String,
    pub(crate) parents: Vec<String>,
    pub(crate) traffic: Option<Traffic>,
    /// Whether what leaves is looked through, as the start of a run says.
    pub(crate) scan: Option<String>,
    pub(crate) finding: Option<Found>,
    pub(crate) unscanned: Option<Unscanned>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Verdict {
    Allow,
    Deny,
    #[default]
    Note,
}

impl Verdict {
    /// As the record has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Note => "note",
        }
    }
}

/// Whether somebody should look now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Alarm {
    Raised,
    #[default]
    None,
}

/// The rule that decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: u64,
    pub(crate) text: String,
    pub(crate) place: String,
}

/// How much went each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) up: u64,
    pub(crate) down: u64,
    pub(crate) millis: u64,
}

/// What the scan found.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) detector: String,
    pub(crate) name: String,
    pub(crate) place: String,
    pub(crate) offset: u64,
    pub(crate) chain: Vec<String>,
    pub(crate) inside: Option<String>,
    pub(crate) tier: String,
    pub(crate) checked: String,
    pub(crate) action: String,
    pub(crate) issuers: Vec<String>,
    pub(crate) mark: String,
}

/// What nobody could look into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unscanned {
    pub(crate) bytes: u64,
    pub(crate) reason: String,
}

/// Bytes of a text that are read at most: whoever wrote a record that is not ours
/// had no bounds, and a report holds many texts.
const TEXT_BYTES_MAX: usize = 2048;
/// Items of a list that are read at most, and their bytes together.
const ITEMS_MAX: usize = 64;
const LIST_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the name of a host or of a program; real ones have no more.
const NAME_BYTES_MAX: usize = 255;

impl Record {
    /// Reads a line; nothing if it is no record.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let run = text(&value, "run");
        if run.is_empty() || text(&value, "kind").is_empty() {
            return None;
        }
        let time = text(&value, "time");
        Some(Self {
            at: milliseconds(&time).unwrap_or(0),
            time,
            seq: number(&value, "seq").unwrap_or(0),
            run,
            sandbox: text(&value, "sandbox"),
            session: number(&value, "session"),
            uid: number(&value, "uid"),
            generation: number(&value, "generation").unwrap_or(0),
            lost: number(&value, "lost").unwrap_or(0),
            kind: text(&value, "kind"),
            verdict: match text(&value, "verdict").as_str() {
                "allow" => Verdict::Allow,
                "deny" => Verdict::Deny,
                _ => Verdict::Note,
            },
            alarm: match value.get("alarm").and_then(Value::as_bool) {
                Some(true) => Alarm::Raised,
                Some(false) | None => Alarm::None,
            },
            target: text(&value, "target"),
            method: optional(&value, "method"),
            path: optional(&value, "path"),
            reason: text(&value, "reason"),
            detail: text(&value, "detail"),
            rule: value.get("rule").map(|rule| Rule {
                id: number(rule, "id").unwrap_or(0),
                text: text(rule, "text"),
                place: text(rule, "place"),
            }),
            flag: optional(&value, "flag"),
            pin: text(&value, "pin"),
            pid: number(&value, "pid"),
            executable: text(&value, "executable"),
            parents: list(&value, "parents"),
            traffic: traffic(&value),
            scan: optional(&value, "scan"),
            finding: value.get("finding").map(found),
            unscanned: value.get("unscanned").map(|unscanned| Unscanned {
                bytes: number(unscanned, "bytes").unwrap_or(0),
                reason: text(unscanned, "reason"),
            }),
        })
    }

    /// The host that it is about, without a port; empty where it is about none.
    pub(crate) fn host(&self) -> &str {
        within(self.whole_host(), NAME_BYTES_MAX)
    }

    fn whole_host(&self) -> &str {
        match self.kind.as_str() {
            "start" | "finish" | "policy" | "unix" | "listen" | "leftover" => return "",
            _ => {}
        }
        // The target of a flow to a Unix socket is its path.
        if self.target.starts_with('/') {
            return "";
        }
        let authority = self
            .target
            .split_once("://")
            .map_or(self.target.as_str(), |(_, rest)| rest);
        if let Some(rest) = authority.strip_prefix('[') {
            return rest.split_once(']').map_or(rest, |(host, _)| host);
        }
        match authority.rsplit_once(':') {
            // An address with colons and without brackets has no port.
            Some((host, port)) if is_port(port) && !host.contains(':') => host,
            _ => authority,
        }
    }

    /// The program that asked, without the way to it.
    pub(crate) fn program(&self) -> &str {
        short(&self.executable)
    }

    /// What it is about, as a sentence names it.
    pub(crate) fn subject(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        let target = &self.target;
        match (self.kind.as_str(), self.method.as_deref()) {
            (_, Some(method)) => format!("{method} {target}{path}"),
            ("canary", None) if target.contains("://") => format!("a response from {target}"),
            ("finding" | "canary" | "dns", None) => format!("the name {target}"),
            ("tunnel", None) => format!("TLS to {target}"),
            ("budget", None) => format!("sending to {target}"),
            ("leftover", None) => format!("left behind: {target}"),
            ("unix", None) => format!("connection to unix://{target}"),
            ("listen", None) => format!("listening on {target}"),
            ("flow", None) if target.starts_with('/') => format!("unix://{target}"),
            ("start" | "finish" | "policy", None) => self.kind.clone(),
            (_, None) => format!("connection to {target}"),
        }
    }
}

/// The last part of a path.
pub(crate) fn short(path: &str) -> &str {
    let name = path.rsplit('/').find(|part| !part.is_empty());
    within(name.unwrap_or(""), NAME_BYTES_MAX)
}

/// The beginning of a text, cut at a character.
fn within(text: &str, bytes: usize) -> &str {
    let end = text.floor_char_boundary(bytes);
    text.get(..end).unwrap_or_default()
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn traffic(value: &Value) -> Option<Traffic> {
    let up = number(value, "bytes_up");
    let down = number(value, "bytes_down");
    (up.is_some() || down.is_some()).then(|| Traffic {
        up: up.unwrap_or(0),
        down: down.unwrap_or(0),
        millis: number(value, "duration_ms").unwrap_or(0),
    })
}

fn found(value: &Value) -> Found {
    Found {
        detector: text(value, "detector"),
        name: text(value, "name"),
        place: text(value, "place"),
        offset: number(value, "offset").unwrap_or(0),
        chain: list(value, "chain"),
        inside: optional(value, "inside"),
        tier: text(value, "tier"),
        checked: text(value, "checked"),
        action: text(value, "action"),
        issuers: list(value, "issuers"),
        mark: text(value, "mark"),
    }
}

fn optional(value: &Value, member: &str) -> Option<String> {
    let text = value.get(member).and_then(Value::as_str);
    text.map(|text| within(text, TEXT_BYTES_MAX).to_owned())
}

fn text(value: &Value, member: &str) -> String {
    optional(value, member).unwrap_or_default()
}

fn number(value: &Value, member: &str) -> Option<u64> {
    value.get(member).and_then(Value::as_u64)
}

fn list(value: &Value, member: &str) -> Vec<String> {
    let items = value.get(member).and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    let mut room = LIST_BYTES_MAX;
    let mut list = Vec::new();
    for text in texts.take(ITEMS_MAX) {
        let text = within(text, TEXT_BYTES_MAX.min(room));
        room = room.saturating_sub(text.len());
        list.push(text.to_owned());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_target_has_no_port() {
        for (kind, target, host) in [
            ("request", "https://a.test", "a.test"),
            ("request", "http://a.test:8080", "a.test"),
            ("connect", "a.test:443", "a.test"),
            ("connect", "[2001:db8::1]:443", "2001:db8::1"),
            ("dns", "a.test", "a.test"),
            ("connect", "192.0.2.7:80", "192.0.2.7"),
            ("flow", "2001:db8::1", "2001:db8::1"),
            ("flow", "/run/x.sock", ""),
            ("unix", "/run/x.sock", ""),
            ("start", "", ""),
        ] {
            let record = Record {
                kind: kind.to_owned(),
                target: target.to_owned(),
                ..Record::default()
            };
            assert_eq!(record.host(), host, "{target}");
        }
    }

    #[test]
    fn texts_of_a_record_are_bounded_whoever_wrote_it() {
        let long = "ä".repeat(400_000);
        let items = format!("\"{long}\",").repeat(9) + "\"x\"";
        let line = format!(
            r#"{{"run":"{long}","kind":"request","target":"https://{long}","path":"{long}","executable":"/{long}","parents":[{items}],"finding":{{"name":"{long}","chain":[{items}]}}}}"#
        );
        let record = Record::parse(line.as_bytes()).unwrap();
        assert_eq!(record.run, "ä".repeat(TEXT_BYTES_MAX / 2));
        let found = record.finding.as_ref().unwrap();
        for text in [&record.target, &found.name, record.path.as_ref().unwrap()] {
            assert!(text.len() <= TEXT_BYTES_MAX, "{} bytes", text.len());
        }
        for list in [&record.parents, &found.chain] {
            assert_eq!(list.concat().len(), LIST_BYTES_MAX);
        }
        assert_eq!((record.host().len(), record.program().len()), (254, 254));
    }

    #[test]
    fn what_is_no_record_is_none_and_wrong_members_are_absent() {
        for line in [
            "",
            "{",
            "[]",
            "{}",
            "1",
            r#"{"run":"r"}"#,
            r#"{"kind":"x"}"#,
        ] {
            assert_eq!(Record::parse(line.as_bytes()), None, "{line}");
        }
        let line = br#"{"run":"r","kind":"flow","seq":"1","bytes_up":-1,"pid":"x","rule":7,"finding":[],"alarm":1,"parents":"p"}"#;
        let record = Record::parse(line).unwrap();
        assert_eq!((record.seq, record.traffic, record.pid), (0, None, None));
        assert_eq!(record.rule, Some(Rule::default()));
        assert_eq!(record.finding, Some(Found::default()));
        assert_eq!(record.alarm, Alarm::None);
    }
}
