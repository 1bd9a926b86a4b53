//! `outgate why`: asks the policy of a run about a request and prints what it
//! decides, by which rule, what comes nearest and what would allow it.
//! `outgate why last` reads a record instead, in `last.rs`, and `outgate why PATH` judges a
//! file, in `path.rs`.

use std::process::ExitCode;

use outgate_policy::{
    Denial, Inspect, NearestRule, Permit, Policy, Process, Question, Route, RuleRef, Verdict,
};

use crate::last::last;
use crate::path::{is_path, path};
use crate::record::Record;
use crate::report;
use crate::why_options::{DENIED, Why, repair};

/// Prints the answer.
pub(crate) fn why(arguments: &Why) -> ExitCode {
    if arguments.question == "last" {
        return last(arguments, Record::latest(arguments.audit.as_deref()));
    }
    if is_path(&arguments.question) {
        return path(arguments);
    }
    let question = match Question::parse(&arguments.question) {
        Ok(question) => question,
        Err(error) => {
            return match Record::of_run(&arguments.question) {
                Some(record) => last(arguments, Ok(record)),
                None => report::wrong_with_hint(&error.to_string(), error.hint()),
            };
        }
    };
    let question = match &arguments.method {
        Some(method) => question.with_method(method),
        None => question,
    };
    let policy = match arguments.policy.compile() {
        Ok(policy) => policy,
        Err(error) => return report::failure(&error),
    };
    let process = Process {
        executable: arguments.executable.as_deref().unwrap_or_default(),
    };
    match policy.answer(&question, process) {
        Verdict::Allow(permit) => {
            for line in allowed(&policy, &question, &permit) {
                report::line(&line);
            }
            ExitCode::SUCCESS
        }
        Verdict::Deny(denial) => {
            let near = policy.nearest(&question, process);
            for line in denied(&policy, &denial, &near) {
                report::line(&line);
            }
            ExitCode::from(DENIED)
        }
    }
}

fn allowed(policy: &Policy, question: &Question, permit: &Permit) -> Vec<String> {
    let how = match permit.route() {
        Route::Direct => "straight to its destination; what is sent is not looked at",
        Route::Gateway => "through the gateway, which judges what it finds inside",
        Route::Tunnel => "as TLS that stays closed; what is inside is not judged",
        Route::Forward if question.is_inside_tls() => {
            "as this request, in TLS that is opened; every further one is judged anew"
        }
        Route::Forward => "as this request; every further one is judged anew",
    };
    let mut lines = vec![
        format!("allowed   {question}"),
        format!("by        {}", shown(permit.rule())),
        format!("passes    {how}"),
    ];
    let is_by_rule = policy
        .rules()
        .any(|rule| policy.inspect_of(&rule).is_some());
    let mode = permit.inspect();
    if permit.route() == Route::Forward && (is_by_rule || mode != Inspect::Block) {
        let what = match mode {
            Inspect::Block => "block: no credential leaves with it but to its issuer",
            Inspect::Warn => "warn: credentials in it are recorded and leave",
            Inspect::Off => "off: nobody looks for credentials in it",
        };
        lines.push(format!("scanned   {what}"));
    }
    lines
}

fn denied(policy: &Policy, denial: &Denial, near: &[NearestRule]) -> Vec<String> {
    let mut lines = vec![
        format!("denied    {}", denial.subject()),
        format!("because   {}", denial.because()),
    ];
    let decided = denial.rule();
    let others = near.iter().filter(|near| Some(&near.rule) != decided);
    for (index, near) in others.enumerate() {
        let head = if index == 0 { "nearest" } else { "" };
        lines.push(format!("{head:<9} {}", shown(&near.rule)));
        for difference in &near.differs {
            lines.push(format!("            {difference}"));
        }
        if near.differs.is_empty() {
            lines.push("            would allow it, but for the reason above".to_owned());
        }
    }
    if near.is_empty() && policy.rules().next().is_none() {
        lines.push("nearest   the policy has no rules at all".to_owned());
    }
    let place = decided.map_or("", |rule| &rule.place);
    let repair = match denial.hint() {
        Some(flag) => format!("add {flag}"),
        None => repair(denial.reason(), place),
    };
    lines.push(format!("to allow  {repair}"));
    lines
}

/// A rule with its place.
fn shown(rule: &RuleRef) -> String {
    match rule.id {
        0 => format!("{} ({})", rule.text, rule.place),
        _ => format!("{} `{}` ({})", rule.effect.as_str(), rule.text, rule.place),
    }
}
