//! Records as an HTTP archive (HAR 1.2): every request, the denied ones with the
//! answer that their client got. What nobody recorded is absent or -1, never
//! guessed: fields, contents and values of queries are in no record.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Record;
use outgate_record::Outcome;

/// Requests that one archive holds, and their bytes: programs read it whole.
const REQUESTS_MAX: usize = 200_000;
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// Requests among which that of a finding is looked for.
const NEAR: usize = 512;

/// An archive in the making.
#[derive(Debug)]
pub(crate) struct Archive {
    entries: Vec<Entry>,
    bytes: usize,
    bytes_max: usize,
    /// Requests that do not fit.
    pub(crate) left_out: u64,
}

/// One request: what tells it from others, and what is written of it.
#[derive(Debug)]
struct Entry {
    verdict: Outcome,
    run: String,
    pid: Option<u32>,
    target: String,
    method: Option<String>,
    path: Option<String>,
    text: String,
}

impl Entry {
    fn of(record: Record, text: String) -> Self {
        Self {
            text,
            verdict: record.verdict,
            run: record.run.into_owned(),
            pid: record.pid,
            target: record.target.into_owned(),
            method: record.method.map(Cow::into_owned),
            path: record.path.map(Cow::into_owned),
        }
    }

    /// Bytes that it takes.
    fn cost(&self) -> usize {
        let names = self.run.len().saturating_add(self.target.len());
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let request = optional(&self.method).saturating_add(optional(&self.path));
        let texts = names
            .saturating_add(request)
            .saturating_add(self.text.len());
        texts.saturating_add(size_of::<Self>())
    }
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
            bytes_max: BYTES_MAX,
            left_out: 0,
        }
    }
}

impl Archive {
    /// Takes a record; what is no request, and what was found in one that came
    /// before, changes the entry of that.
    pub(crate) fn add(&mut self, record: Record) {
        let is_request = match record.kind.as_str() {
            "request" => true,
            "finding" | "canary" => record.verdict == Outcome::Deny && record.method.is_some(),
            _ => false,
        };
        if !is_request {
            return;
        }
        let before = match record.kind.as_str() {
            "request" => None,
            _ => self.before(&record),
        };
        let Some(position) = before else {
            let text = entry(&record, record.path.as_deref()).to_string();
            self.put(self.entries.len(), Entry::of(record, text));
            return;
        };
        let mut before = self.entries.remove(position);
        self.bytes = self.bytes.saturating_sub(before.cost());
        before.text = entry(&record, before.path.as_deref()).to_string();
        // If it is too long by now it goes, and is not left as it was before.
        self.put(position, before);
    }

    fn put(&mut self, position: usize, entry: Entry) {
        let bytes = self.bytes.saturating_add(entry.cost());
        if self.entries.len() >= REQUESTS_MAX || bytes > self.bytes_max {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.bytes = bytes;
        self.entries.insert(position, entry);
    }

    /// The place of the allowed request in which something was found.
    fn before(&self, record: &Record) -> Option<usize> {
        let is_same = |before: &Entry| {
            before.verdict == Outcome::Allow
                && before.run == record.run
                && before.pid == record.pid
                && before.target == record.target
                && before.method.as_deref() == record.method.as_deref()
        };
        let mut near = self.entries.iter().enumerate().rev().take(NEAR);
        let found = near.find(|(_, before)| is_same(before));
        found.map(|(position, _)| position)
    }

    /// The document, in lines.
    pub(crate) fn lines(self) -> impl Iterator<Item = String> {
        let creator = json!({ "name": "outgate", "version": env!("CARGO_PKG_VERSION") });
        let head =
            format!(r#"{{"log":{{"version":"1.2","creator":{creator},"pages":[],"entries":["#);
        let last = self.entries.len().saturating_sub(1);
        let entries = self.entries.into_iter().enumerate();
        let entries = entries.map(move |(position, mut entry)| {
            if position < last {
                entry.text.push(',');
            }
            entry.text
        });
        let end = "]}}".to_owned();
        std::iter::once(head).chain(entries).chain([end])
    }
}

fn entry(record: &Record, path: Option<&str>) -> Value {
    let path = path.unwrap_or("/");
    let query: Vec<Value> = path
        .split_once('?')
        .map(|(_, query)| query.split('&').map(pair).collect())
        .unwrap_or_default();
    let mut entry = json!({
        "startedDateTime": record.time,
        "time": 0,
        "request": {
            "method": record.method,
            "url": format!("{}{path}", record.target),
            "httpVersion": "",
            "cookies": [],
            "headers": [],
            "queryString": query,
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": response(record),
        "cache": {},
        "timings": { "send": 0, "wait": 0, "receive": 0 },
        "_outgate": {
            "verdict": record.verdict.token(),
            "monitor": record.monitor,
            "reason": record.reason(),
            "detail": record.detail(),
            "rule": record.rule.as_ref().map(|rule| json!({ "text": rule.text, "place": rule.place })),
            "to_allow": record.flag,
            "finding": record.finding.as_ref().map(|found| json!({
                "detector": found.detector,
                "chain": found.chain,
                "place": found.place,
                "mark": found.mark,
            })),
            "executable": record.executable(),
            "pid": record.pid,
            "sandbox": record.sandbox,
            "run": record.run,
            "seq": record.seq,
        },
    });
    if !record.pin().is_empty()
        && let Some(entry) = entry.as_object_mut()
    {
        entry.insert("serverIPAddress".to_owned(), json!(record.pin()));
    }
    entry
}

/// The denial, or that nothing is known: answers of origins are not recorded.
fn response(record: &Record) -> Value {
    let denied = record.verdict == Outcome::Deny;
    let (status, phrase) = if denied { (403, "Forbidden") } else { (0, "") };
    let text = denied.then(|| format!("outgate denied {}: {}", record.subject(), record.detail()));
    json!({
        "status": status,
        "statusText": phrase,
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {
            "size": text.as_deref().map_or(0, str::len),
            "mimeType": if denied { "text/plain" } else { "x-unknown" },
            "text": text.unwrap_or_default(),
        },
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
    })
}

fn pair(text: &str) -> Value {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    json!({ "name": name, "value": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: &str, verdict: &str, path: &str) -> Record {
        let line = format!(
            r#"{{"run":"r","kind":"{kind}","verdict":"{verdict}","target":"https://a.test","method":"POST","path":"{path}","pid":7,"detail":"why"}}"#
        );
        Record::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_finding_changes_the_request_it_was_found_in() {
        let mut archive = Archive::default();
        archive.add(record("request", "allow", "/a?k=*&*"));
        archive.add(record("connect", "deny", ""));
        archive.add(record("finding", "note", "/a"));
        archive.add(record("finding", "deny", "/a"));
        archive.add(record("request", "deny", "/b"));
        let lines: String = archive.lines().collect();
        let document: Value = serde_json::from_str(&lines).unwrap();
        let entries = document["log"]["entries"].as_array().unwrap();
        let seen: Vec<_> = entries
            .iter()
            .map(|entry| (&entry["request"]["url"], &entry["response"]["status"]))
            .collect();
        let expected = [
            (json!("https://a.test/a?k=*&*"), json!(403)),
            (json!("https://a.test/b"), json!(403)),
        ];
        let expected: Vec<_> = expected.iter().map(|(url, status)| (url, status)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_archive_is_bounded_in_bytes_and_hides_no_denial_that_does_not_fit() {
        let allowed = record("request", "allow", "/a");
        let mut archive = Archive::default();
        archive.add(allowed.clone());
        let cost = archive.bytes;
        let mut archive = Archive {
            bytes_max: 3 * cost,
            ..Archive::default()
        };
        for _ in 0..5 {
            archive.add(allowed.clone());
        }
        assert_eq!((archive.entries.len(), archive.left_out), (3, 2));
        assert_eq!(archive.bytes, 3 * cost);
        archive.add(Record {
            detail: Some("why".repeat(cost).into()),
            ..record("finding", "deny", "/a")
        });
        assert_eq!((archive.entries.len(), archive.left_out), (2, 3));
        let lines: String = archive.lines().collect();
        let document: Value = serde_json::from_str(&lines).unwrap();
        assert_eq!(document["log"]["entries"].as_array().unwrap().len(), 2);
    }
}
