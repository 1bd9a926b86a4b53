//! What an answer says, in a person's words and in a program's. Decides nothing: whether it
//! may be, the run's launcher says.

use outgate_launcher::runs::OpenQuestion;
use outgate_policy::printable;

use crate::duration::seconds;

/// Signs of what is no answer that are shown.
const SHOWN_SIGNS_MAX: usize = 200;

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Deny,
    Grant(GrantKind, RuleKind),
}

/// For how much a rule is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantKind {
    Once,
    Run,
    For(u32),
    Always,
}

/// Which of the rules that a question offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    Narrow,
    Host,
}

/// The answers that a question offers, each as it is written: one request cannot be told from
/// another in what is no request, and some have no rule for all of their host.
pub(super) fn offered(question: &OpenQuestion) -> Vec<&'static str> {
    let no_requests = ["tcp://", "tls://", "unix://", "listen "];
    let is_request = !no_requests
        .iter()
        .any(|scheme| question.narrow.starts_with(scheme));
    let has_host = !question.broad.is_empty();
    let all = [
        ("once", is_request),
        ("run", true),
        ("10m", true),
        ("host run", has_host),
        ("deny", true),
    ];
    let offered = all.into_iter().filter(|(_, is_offered)| *is_offered);
    offered.map(|(word, _)| word).collect()
}

/// `1 once`, `1 host 10m`, `1 deny`.
pub(super) fn parsed(line: &str) -> Result<(u64, Said), String> {
    let mut words = line.split_whitespace();
    let number = words.next().unwrap_or_default();
    let wrong = || "write the number of a question and once, run, 10m, always or deny".to_owned();
    let number = number.parse().map_err(|_| wrong())?;
    let mut word = words.next().ok_or_else(wrong)?;
    let mut rule = RuleKind::Narrow;
    if word == "host" {
        rule = RuleKind::Host;
        word = words.next().ok_or_else(wrong)?;
    }
    if words.next().is_some() {
        return Err(wrong());
    }
    said(word, rule)
        .map(|said| (number, said))
        .ok_or_else(wrong)
}

/// One JSON object of a program.
pub(super) fn parsed_json(line: &str) -> Result<(u64, Said), String> {
    let wrong = || {
        let start: String = line.chars().take(SHOWN_SIGNS_MAX).collect();
        format!("the program said what is no answer: {}", printable(&start))
    };
    let value: serde_json::Value = serde_json::from_str(line).map_err(|_| wrong())?;
    let number = value.get("id").and_then(serde_json::Value::as_u64);
    let word = value.get("answer").and_then(serde_json::Value::as_str);
    let rule = match value.get("rule").map(serde_json::Value::as_str) {
        // No is no, whatever rule stands beside it.
        Some(Some("narrow" | "host")) if word == Some("deny") => RuleKind::Narrow,
        None | Some(Some("narrow")) => RuleKind::Narrow,
        Some(Some("host")) => RuleKind::Host,
        Some(_) => return Err(wrong()),
    };
    let (number, word) = number.zip(word).ok_or_else(wrong)?;
    // Files are for a person to fill.
    let said = said(word, rule).filter(|said| !matches!(said, Said::Grant(GrantKind::Always, _)));
    said.map(|said| (number, said)).ok_or_else(wrong)
}

fn said(word: &str, rule: RuleKind) -> Option<Said> {
    let kind = match word {
        "deny" => return (rule == RuleKind::Narrow).then_some(Said::Deny),
        "once" => GrantKind::Once,
        "run" => GrantKind::Run,
        "always" => GrantKind::Always,
        time => GrantKind::For(seconds(time).ok()?),
    };
    Some(Said::Grant(kind, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_nothing_else_is_one() {
        let narrow = |kind| Said::Grant(kind, RuleKind::Narrow);
        for (line, read) in [
            ("1 deny", Some((1, Said::Deny))),
            ("12 once", Some((12, narrow(GrantKind::Once)))),
            ("1 run", Some((1, narrow(GrantKind::Run)))),
            ("1 10m", Some((1, narrow(GrantKind::For(600))))),
            ("1 always", Some((1, narrow(GrantKind::Always)))),
            (
                "1 host 1h",
                Some((1, Said::Grant(GrantKind::For(3600), RuleKind::Host))),
            ),
            ("1 host deny", None),
            ("1", None),
            ("once", None),
            ("1 yes please", None),
            ("1 once more", None),
            ("-1 once", None),
        ] {
            assert_eq!(parsed(line).ok(), read, "{line}");
        }
        for (line, read) in [
            (r#"{"id":1,"answer":"deny"}"#, Some((1, Said::Deny))),
            (
                r#"{"id":1,"answer":"10m","rule":"host"}"#,
                Some((1, Said::Grant(GrantKind::For(600), RuleKind::Host))),
            ),
            (
                r#"{"id":1,"answer":"once","rule":"narrow"}"#,
                Some((1, narrow(GrantKind::Once))),
            ),
            (r#"{"id":1,"answer":"always"}"#, None),
            (r#"{"id":1,"answer":"once","rule":"*"}"#, None),
            (r#"{"id":1,"answer":"once","rule":1}"#, None),
            (r#"{"id":-1,"answer":"once"}"#, None),
            (r#"{"answer":"once"}"#, None),
            ("once", None),
        ] {
            assert_eq!(parsed_json(line).ok(), read, "{line}");
        }
    }
}
