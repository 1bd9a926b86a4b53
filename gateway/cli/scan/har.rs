//! HTTP archives (HAR 1.2): every request of a recorded session, towards the
//! host it went to.
//!
//! Responses are not looked at: nothing of them leaves. Reads the archive as a
//! stranger would; what is missing in it is missing, and never guessed.

use std::sync::Arc;

use outgate_dlp::{Description, Destination, Finding, Part, Place, Ruleset, Stream};
use serde_json::Value;

use super::input::keep;
use super::{Located, Outcome};

/// One recorded request, as far as it is needed.
struct Request<'a> {
    method: &'a str,
    host: String,
    port: u16,
    target: &'a str,
    fields: Vec<(&'a str, &'a str)>,
    content: Option<(&'a str, &'a str)>,
}

/// Scans an archive.
pub(crate) fn scan(
    rules: &Arc<Ruleset>,
    name: &str,
    bytes: &[u8],
    outcome: &mut Outcome,
) -> Result<(), String> {
    let archive: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("this is no HTTP archive: {error}"))?;
    let entries = archive.pointer("/log/entries").and_then(Value::as_array);
    let entries = entries.ok_or("this is no HTTP archive: it has no `log.entries`")?;
    for (number, entry) in entries.iter().enumerate() {
        let number = number.saturating_add(1);
        let Some(request) = entry.get("request").and_then(request) else {
            outcome
                .unread
                .push(format!("{name}: entry {number} has no request with a URL"));
            continue;
        };
        let part = format!(
            "entry {number}, {} to {}",
            shown(request.method),
            request.host
        );
        for finding in findings(rules, &request, name, outcome) {
            let located = Located {
                path: name.to_owned(),
                part: Some(part.clone()),
                line: None,
                action: finding.action,
                finding,
            };
            keep(outcome, located);
        }
    }
    Ok(())
}

fn findings(
    rules: &Arc<Ruleset>,
    request: &Request<'_>,
    name: &str,
    outcome: &mut Outcome,
) -> Vec<Finding> {
    let destination = Destination {
        host: &request.host,
        port: request.port,
    };
    let mut parts = vec![
        Part {
            place: Place::Method,
            bytes: request.method.as_bytes(),
        },
        Part {
            place: Place::Target,
            bytes: request.target.as_bytes(),
        },
    ];
    for (field, value) in &request.fields {
        let place = Place::Field(field.to_ascii_lowercase());
        parts.push(Part {
            place: Place::FieldName,
            bytes: field.as_bytes(),
        });
        parts.push(Part {
            place,
            bytes: value.as_bytes(),
        });
    }
    let report = rules.head(&destination, &parts);
    let mut findings = report.findings;
    let mut unscanned = report.unscanned;
    if let Some((media_type, text)) = request.content {
        let description = Description {
            place: Place::Content,
            media_type: (!media_type.is_empty()).then_some(media_type.as_bytes()),
            // Archives hold content after its codings were removed.
            content_codings: None,
            length: u64::try_from(text.len()).ok(),
        };
        let path = request.target.split('?').next().unwrap_or_default();
        let mut stream = rules.stream(&destination, &description).for_path(path);
        findings.extend(content(&mut stream, text.as_bytes()));
        unscanned = unscanned.or(stream.unscanned());
    }
    outcome
        .unscanned
        .extend(unscanned.map(|unscanned| (name.to_owned(), unscanned)));
    findings
}

fn content(stream: &mut Stream, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for piece in bytes.chunks(64 << 10) {
        let pushed = stream.push(piece);
        findings.extend(stream.warnings());
        if pushed.is_err() {
            return findings;
        }
    }
    let ended = stream.finish();
    findings.extend(stream.warnings());
    drop(ended);
    findings
}

fn request(value: &Value) -> Option<Request<'_>> {
    let url = value.get("url")?.as_str()?;
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end)?;
    let authority = authority.rsplit('@').next()?;
    let usual = if matches!(scheme, "https" | "wss") {
        443
    } else {
        80
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(usual)),
        _ => (authority, usual),
    };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches([']', '.'])
        .to_ascii_lowercase();
    let fields = value.get("headers").and_then(Value::as_array);
    let fields = fields
        .into_iter()
        .flatten()
        .filter_map(|field| Some((field.get("name")?.as_str()?, field.get("value")?.as_str()?)));
    Some(Request {
        method: value.get("method").and_then(Value::as_str).unwrap_or("GET"),
        host,
        port,
        target,
        fields: fields.collect(),
        content: value.get("postData").and_then(|data| {
            let kind = data
                .get("mimeType")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Some((kind, data.get("text")?.as_str()?))
        }),
    })
}

/// A method as it may be shown: its letters, a few of them.
fn shown(method: &str) -> String {
    let letters = method.chars().filter(char::is_ascii_alphanumeric);
    letters.take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::request;
    use serde_json::json;

    #[test]
    fn a_request_goes_to_the_host_of_its_url() {
        for (url, host, port, target) in [
            (
                "https://api.example.org/a?b=c",
                "api.example.org",
                443,
                "/a?b=c",
            ),
            (
                "http://API.example.org.:8080/",
                "api.example.org",
                8080,
                "/",
            ),
            (
                "https://user:word@api.example.org",
                "api.example.org",
                443,
                "",
            ),
            ("https://good.example@evil.test/x", "evil.test", 443, "/x"),
            ("https://[2001:db8::1]:444/x", "2001:db8::1", 444, "/x"),
            ("https://[2001:db8::1]/x", "2001:db8::1", 443, "/x"),
            (
                "wss://events.example.org?q",
                "events.example.org",
                443,
                "?q",
            ),
        ] {
            let value = json!({ "url": url });
            let found = request(&value).expect(url);
            assert_eq!(
                (found.host.as_str(), found.port, found.target),
                (host, port, target),
                "{url}"
            );
        }
        assert!(request(&json!({ "url": "nothing" })).is_none());
        assert!(request(&json!({})).is_none());
    }
}
