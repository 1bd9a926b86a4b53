//! HTTP archives (HAR 1.2): every request of a recorded session, towards the
//! host it went to.
//!
//! Responses are not looked at: nothing of them leaves. Reads the archive as a
//! stranger would; what is missing in it is missing, and never guessed.

use std::fmt::Write as _;
use std::sync::Arc;

use outgate_dlp::{
    Description, Finding, MessagePart, Place, Ruleset, ScanDestination, Stream, Unscanned,
};
use serde_json::Value;

use super::input::keep;
use super::{Located, Outcome};

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// What was found, and what nobody could look into.
type Found = (Vec<Finding>, Option<Unscanned>);

/// Where a request went, and for which path.
type Target<'a> = (ScanDestination<'a>, &'a str);

/// One recorded request, as far as it is needed.
struct Request<'a> {
    method: &'a str,
    host: String,
    port: u16,
    target: &'a str,
    fields: Pairs<'a>,
    content: Option<(&'a str, &'a str)>,
    apart: Apart<'a>,
}

/// Names and values, in order.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// What an archive says once more, taken apart, or nowhere else: some programs leave
/// out the query of a URL, the field of cookies or the text of a form.
struct Apart<'a> {
    query: Pairs<'a>,
    cookies: Pairs<'a>,
    parameters: Pairs<'a>,
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
    let destination = ScanDestination {
        host: &request.host,
        port: request.port,
    };
    let mut parts = vec![
        MessagePart {
            place: Place::Method,
            bytes: request.method.as_bytes(),
        },
        MessagePart {
            place: Place::Target,
            bytes: request.target.as_bytes(),
        },
    ];
    for (field, value) in &request.fields {
        let place = Place::Field(field.to_ascii_lowercase());
        parts.push(MessagePart {
            place: Place::FieldName,
            bytes: field.as_bytes(),
        });
        parts.push(MessagePart {
            place,
            bytes: value.as_bytes(),
        });
    }
    let report = rules.head(&destination, &parts);
    let to = (
        destination,
        request.target.split('?').next().unwrap_or_default(),
    );
    let mut findings = report.findings;
    let mut unscanned = report.unscanned;
    if let Some((media_type, text)) = request.content {
        let (found, missed) = content(rules, &to, media_type, text);
        findings.extend(found);
        unscanned = unscanned.or(missed);
    }
    let (found, missed) = apart(rules, &to, &request.apart);
    // What was found where it was sent is not told again.
    let marks: Vec<String> = findings.iter().map(|one| one.mark.clone()).collect();
    findings.extend(found.into_iter().filter(|one| !marks.contains(&one.mark)));
    unscanned = unscanned.or(missed);
    outcome
        .unscanned
        .extend(unscanned.map(|unscanned| (name.to_owned(), unscanned)));
    findings
}

/// What is found in what stands apart, as if it had been sent.
fn apart(rules: &Arc<Ruleset>, to: &Target<'_>, apart: &Apart<'_>) -> Found {
    let query = apart.query.iter().map(|pair| (Place::Target, pair));
    let cookies = apart.cookies.iter();
    let cookies = cookies.map(|pair| (Place::Field("cookie".to_owned()), pair));
    let parts: Vec<MessagePart<'_>> = query
        .chain(cookies)
        .flat_map(|(place, (name, value))| {
            [name, value].map(|text| MessagePart {
                place: place.clone(),
                bytes: text.as_bytes(),
            })
        })
        .collect();
    let report = rules.head(&to.0, &parts);
    if apart.parameters.is_empty() {
        return (report.findings, report.unscanned);
    }
    let (found, missed) = content(rules, to, FORM, &form(&apart.parameters));
    let findings = report.findings.into_iter().chain(found).collect();
    (findings, report.unscanned.or(missed))
}

/// Parameters as a form is sent, so that what is split over several is found.
fn form(parameters: &Pairs<'_>) -> String {
    let mut text = String::new();
    for (name, value) in parameters {
        if !text.is_empty() {
            text.push('&');
        }
        for (piece, end) in [(name, "="), (value, "")] {
            for byte in piece.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    text.push(char::from(byte));
                } else {
                    // Writing to a string never fails.
                    let _ = write!(text, "%{byte:02X}");
                }
            }
            text.push_str(end);
        }
    }
    text
}

/// What is found in content, and what could not be looked into.
fn content(
    rules: &Arc<Ruleset>,
    (destination, path): &Target<'_>,
    media_type: &str,
    text: &str,
) -> Found {
    let description = Description {
        place: Place::Content,
        media_type: (!media_type.is_empty()).then_some(media_type.as_bytes()),
        // Archives hold content after its codings were removed.
        content_codings: None,
        length: u64::try_from(text.len()).ok(),
    };
    let mut stream = rules.stream(destination, &description).for_path(path);
    let findings = drain(&mut stream, text.as_bytes());
    (findings, stream.unscanned())
}

fn drain(stream: &mut Stream, bytes: &[u8]) -> Vec<Finding> {
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
    Some(Request {
        method: value.get("method").and_then(Value::as_str).unwrap_or("GET"),
        host,
        port,
        target,
        fields: pairs(value, "/headers"),
        content: value.get("postData").and_then(|data| {
            let kind = data
                .get("mimeType")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Some((kind, data.get("text")?.as_str()?))
        }),
        apart: Apart {
            query: pairs(value, "/queryString"),
            cookies: pairs(value, "/cookies"),
            parameters: [
                pairs(value, "/postData/params"),
                named(value, "/postData/params", "fileName"),
            ]
            .concat(),
        },
    })
}

/// A list of names and values; a value that is missing is empty.
fn pairs<'a>(request: &'a Value, place: &str) -> Pairs<'a> {
    named(request, place, "value")
}

fn named<'a>(request: &'a Value, place: &str, member: &str) -> Pairs<'a> {
    let list = request.pointer(place).and_then(Value::as_array);
    let text = |pair: &'a Value, member: &str| pair.get(member).and_then(Value::as_str);
    list.into_iter()
        .flatten()
        .filter_map(|pair| Some((text(pair, "name")?, text(pair, member).unwrap_or_default())))
        .collect()
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
