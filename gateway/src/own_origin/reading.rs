//! A proposal as it is sent: JSON, a form, or a rule on the first line and the reason below
//! it. What it is told by is its content, since clients name a form whatever they send. Bytes
//! in, texts out; nothing is judged here.

use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::OwnAnswer;
use crate::body::Inner;

/// Bytes of a proposal.
const CONTENT_BYTES_MAX: usize = 4096;
/// Bytes of the rule in it, and of the sentence why.
const RULE_BYTES_MAX: usize = 1024;
const WHY_BYTES_MAX: usize = 300;
/// Time for it to come in whole.
const READ_TIME: Duration = Duration::from_secs(10);

/// What a command proposes, in its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SentProposal {
    pub(super) rule: String,
    pub(super) why: String,
}

/// Reads one.
pub(super) async fn read(content: &mut Inner) -> Result<SentProposal, OwnAnswer> {
    let Ok(bytes) = timeout(READ_TIME, whole(content)).await else {
        let because = "the proposal did not come in time";
        return Err(OwnAnswer::fault(StatusCode::REQUEST_TIMEOUT, because));
    };
    let bytes = bytes.ok_or_else(|| {
        let because = format!("a proposal has at most {CONTENT_BYTES_MAX} bytes");
        OwnAnswer::fault(StatusCode::PAYLOAD_TOO_LARGE, &because)
    })?;
    let fault = |because: &str| OwnAnswer::fault(StatusCode::BAD_REQUEST, because);
    let text = String::from_utf8(bytes).map_err(|_| fault("a proposal is UTF-8"))?;
    let sent = parse(&text).ok_or_else(|| {
        fault(
            "a proposal is {\"rule\": \"GET https://host/path\", \"why\": \"a sentence\"}, \
             or the rule on a line and why on the next",
        )
    })?;
    if sent.rule.is_empty() || sent.rule.len() > RULE_BYTES_MAX {
        let because = format!("a rule has 1 to {RULE_BYTES_MAX} bytes");
        return Err(fault(&because));
    }
    if sent.why.is_empty() || sent.why.len() > WHY_BYTES_MAX {
        let because = format!("why it is needed is a sentence of 1 to {WHY_BYTES_MAX} bytes");
        return Err(fault(&because));
    }
    Ok(sent)
}

/// The content; nothing where there is more than may be, or it broke off.
async fn whole(content: &mut Inner) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = content.frame().await {
        let data = frame.ok()?.into_data().unwrap_or_default();
        if data.len() > CONTENT_BYTES_MAX.saturating_sub(bytes.len()) {
            return None;
        }
        bytes.extend_from_slice(&data);
    }
    Some(bytes)
}

fn parse(text: &str) -> Option<SentProposal> {
    let text = text.trim();
    let (rule, why) = if text.starts_with('{') {
        json(text)?
    } else if ["rule=", "why="].iter().any(|key| text.starts_with(key)) {
        form(text)?
    } else {
        let (rule, why) = text.split_once('\n').unwrap_or((text, ""));
        (rule.to_owned(), why.to_owned())
    };
    Some(SentProposal {
        rule: rule.trim().to_owned(),
        why: why.trim().to_owned(),
    })
}

fn json(text: &str) -> Option<(String, String)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let member = |name| value.get(name)?.as_str().map(str::to_owned);
    Some((member("rule")?, member("why")?))
}

fn form(text: &str) -> Option<(String, String)> {
    let value = |name: &str| {
        let mut pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    Some((decoded(value("rule")?)?, decoded(value("why")?)?))
}

/// A value of a form: `+` for blanks, and percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_says_the_same() {
        let rule = "GET https://a.test/x?y=1";
        for text in [
            "{\"rule\": \"GET https://a.test/x?y=1\", \"why\": \"to build\"}",
            "rule=GET+https%3A%2F%2Fa.test%2Fx%3Fy%3D1&why=to%20build",
            "why=to+build&rule=GET%20https://a.test/x?y%3d1",
            "GET https://a.test/x?y=1\nto build\n",
            "\n  GET https://a.test/x?y=1\r\n  to build",
        ] {
            let sent = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (sent.rule.as_str(), sent.why.as_str()),
                (rule, "to build"),
                "{text}"
            );
        }
        for text in [
            "{\"rule\": \"x\"}",
            "{\"rule\": [\"x\"], \"why\": \"y\"}",
            "{",
            "rule=x",
            "rule=%zz&why=x",
            "rule=%f&why=x",
            "rule=%ff&why=x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let deep = format!("{{\"rule\":{}", "[".repeat(4000));
        assert_eq!(parse(&deep), None);
    }
}
