//! What a command may read of its own run: the rules that hold for it, and what was denied to
//! it lately. No values of secrets, no places of files, and nothing of other runs.

use std::fmt::Write as _;

use http::StatusCode;
use outgate_policy::{Enforcement, Policy, is_proposable, printable};
use serde_json::json;

use super::OwnAnswer;
use super::proposing::UNASKED;
use crate::recorder::RecentDenial;
use crate::respond::OWN_URL;
use crate::session::Session;

/// Rules that are shown: more than a person writes.
const RULES_MAX: usize = 500;

/// How a rule is proposed, for those who read.
const HOW: &str = "\
To ask for a rule, one of those above marked `propose`, once, and wait for the answer:
  curl -d 'RULE
  why, in a sentence' http://outgate.invalid/proposals
  curl http://outgate.invalid/proposals/1?wait=30
JSON: {\"rule\": \"GET https://host/path\", \"why\": \"a sentence\"}. A person reads it and answers.
";

/// One rule of the run.
struct ShownRule {
    effect: &'static str,
    rule: String,
    programs: Vec<String>,
}

/// All of it.
pub(super) fn page(session: &Session) -> OwnAnswer {
    let rules = session.rules();
    let shown = |text: &str| {
        let text = session
            .recorder()
            .masked(text)
            .unwrap_or_else(|| text.to_owned());
        printable(&text)
    };
    let (list, more) = list(rules.own(), &shown);
    let denied = session.recorder().recent();
    let is_shared = rules.above().is_some();
    let asks = session.open_questions().are_asked();
    let (mode, marked) = mode(rules.enforcement());
    let entries = denied.iter().map(|own| {
        json!({
            "subject": own.subject,
            "because": own.because,
            "reason": own.reason,
            "hint": own.hint,
            "note": own.note,
            "propose": proposable(own),
        })
    });
    let rules = list
        .iter()
        .map(|own| json!({ "effect": own.effect, "rule": own.rule, "programs": own.programs }));
    OwnAnswer {
        status: StatusCode::OK,
        json: json!({
            "mode": mode,
            "rules": rules.collect::<Vec<_>>(),
            "rules_not_shown": more,
            "within_gateway_policy": is_shared,
            "denied": entries.collect::<Vec<_>>(),
            "proposals": {
                "url": format!("{OWN_URL}proposals"),
                "taken": asks,
                "because": (!asks).then_some(UNASKED),
            },
        }),
        text: text(
            &list,
            more,
            &denied,
            (
                &[marked, if is_shared { SHARED } else { "" }].concat(),
                asks.then_some(HOW),
            ),
        ),
        about: None,
    }
}

/// What is said of a run below the policy of a shared gateway.
const SHARED: &str = "  and of that only what the policy of the shared gateway allows\n";

/// How the rules hold: a word, and what is said of them where they are not enforced.
fn mode(enforcement: Enforcement) -> (&'static str, &'static str) {
    match enforcement {
        Enforcement::Enforced => ("enforced", ""),
        Enforcement::Learning => (
            "learning",
            "  they are not enforced: this run learns, and everything public is let through\n",
        ),
        Enforcement::Monitor => (
            "monitor",
            "  they are not enforced: this run monitors, and what they deny is let through, but\n  \
             for credentials and private addresses\n",
        ),
        Enforcement::MonitorAll => (
            "monitor-all",
            "  they are not enforced: this run monitors, and what they deny is let through\n",
        ),
    }
}

fn text(
    rules: &[ShownRule],
    more: usize,
    denied: &[RecentDenial],
    (after, how): (&str, Option<&str>),
) -> String {
    let mut out = "outgate decides what leaves this run.\n\nRules:\n".to_owned();
    for rule in rules {
        let _ = write!(out, "  {:<5} {}", rule.effect, rule.rule);
        if !rule.programs.is_empty() {
            let _ = write!(out, "  for {}", rule.programs.join(", "));
        }
        out.push('\n');
    }
    if rules.is_empty() {
        out.push_str("  nothing leaves: no rule allows a host\n");
    }
    if more > 0 {
        let _ = writeln!(out, "  and {more} more");
    }
    out.push_str(after);
    out.push_str("\nDenied lately, the newest first:\n");
    for own in denied {
        let _ = writeln!(out, "  {}: {}", own.subject, own.because);
        if let Some(note) = &own.note {
            let _ = writeln!(out, "    {note}");
        }
        match (how.and(proposable(own)), &own.hint) {
            (Some(rule), _) => drop(writeln!(out, "    propose  {rule}")),
            (None, Some(hint)) => drop(writeln!(out, "    the user may allow it: {hint}")),
            (None, None) => {}
        }
    }
    if denied.is_empty() {
        out.push_str("  nothing\n");
    }
    out.push('\n');
    match how {
        Some(how) => out.push_str(how),
        None => drop(writeln!(out, "{UNASKED}")),
    }
    out
}

/// The rule that may be proposed of a denial.
fn proposable(denial: &RecentDenial) -> Option<&str> {
    let rule = denial.narrowest.as_deref();
    rule.filter(|rule| is_proposable(rule))
}

/// The rules of a policy as they may be shown, and how many are not.
fn list(policy: &Policy, shown: &dyn Fn(&str) -> String) -> (Vec<ShownRule>, usize) {
    let rules = policy.rules().filter(|rule| rule.id > 0).map(|rule| {
        let (programs, _) = policy.limits_of(&rule);
        ShownRule {
            effect: rule.effect.as_str(),
            rule: shown(&rule.text),
            programs: programs.into_iter().map(shown).collect(),
        }
    });
    let mut rules: Vec<ShownRule> = rules.collect();
    let more = rules.len().saturating_sub(RULES_MAX);
    rules.truncate(RULES_MAX);
    (rules, more)
}
