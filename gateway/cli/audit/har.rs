//! Records as an HTTP archive (HAR 1.2): every request, the denied ones with the
//! answer that their client got. What nobody recorded is absent or -1, never
//! guessed: fields, contents and values of queries are in no record.

use serde_json::{Value, json};

use super::record::{Record, Verdict};

/// Requests that one archive holds: programs read it whole.
const REQUESTS_MAX: usize = 200_000;
/// Requests among which that of a finding is looked for.
const NEAR: usize = 512;

/// An archive in the making.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    entries: Vec<(Record, Value)>,
    /// Requests that do not fit.
    pub(crate) left_out: u64,
}

impl Archive {
    /// Takes a record; what is no request, and what was found in one that came
    /// before, changes the entry of that.
    pub(crate) fn add(&mut self, record: Record) {
        let is_request = match record.kind.as_str() {
            "request" => true,
            "finding" | "canary" => record.verdict == Verdict::Deny && record.method.is_some(),
            _ => false,
        };
        if !is_request {
            return;
        }
        if record.kind != "request"
            && let Some((before, entry)) = self.before(&record)
        {
            *entry = self::entry(&record, before.path.as_deref());
            return;
        }
        if self.entries.len() >= REQUESTS_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let entry = entry(&record, record.path.as_deref());
        self.entries.push((record, entry));
    }

    /// The allowed request in which something was found.
    fn before(&mut self, record: &Record) -> Option<&mut (Record, Value)> {
        let is_same = |(before, _): &&mut (Record, Value)| {
            before.verdict == Verdict::Allow
                && before.run == record.run
                && before.pid == record.pid
                && before.target == record.target
                && before.method == record.method
        };
        self.entries.iter_mut().rev().take(NEAR).find(is_same)
    }

    /// The document.
    pub(crate) fn document(self) -> Value {
        let entries: Vec<Value> = self.entries.into_iter().map(|(_, entry)| entry).collect();
        json!({
            "log": {
                "version": "1.2",
                "creator": { "name": "outgate", "version": env!("CARGO_PKG_VERSION") },
                "pages": [],
                "entries": entries,
            }
        })
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
            "verdict": record.verdict.word(),
            "reason": record.reason,
            "detail": record.detail,
            "rule": record.rule.as_ref().map(|rule| json!({ "text": rule.text, "place": rule.place })),
            "to_allow": record.flag,
            "finding": record.finding.as_ref().map(|found| json!({
                "detector": found.detector,
                "chain": found.chain,
                "place": found.place,
                "mark": found.mark,
            })),
            "executable": record.executable,
            "pid": record.pid,
            "sandbox": record.sandbox,
            "run": record.run,
            "seq": record.seq,
        },
    });
    if !record.pin.is_empty()
        && let Some(entry) = entry.as_object_mut()
    {
        entry.insert("serverIPAddress".to_owned(), json!(record.pin));
    }
    entry
}

/// The denial, or that nothing is known: answers of origins are not recorded.
fn response(record: &Record) -> Value {
    let denied = record.verdict == Verdict::Deny;
    let (status, phrase) = if denied { (403, "Forbidden") } else { (0, "") };
    let text = denied.then(|| format!("outgate denied {}: {}", record.subject(), record.detail));
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
        let document = archive.document();
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
}
