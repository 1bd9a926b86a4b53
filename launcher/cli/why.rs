//! `outgate why`: asks the policy of a run about a request and prints what it
//! decides, by which rule, what comes nearest and what would allow it.
//! `outgate why last` reads a record instead, in `last.rs`, and `outgate why PATH` judges a
//! file, in `path.rs`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_policy::{
    Denial, DenialReason, Inspect, NearestRule, Permit, Policy, Process, Question, Route, RuleRef,
    Verdict,
};

use crate::last::last;
use crate::path::{is_path, path};
use crate::policy_options::PolicyOptions;
use crate::record::Record;
use crate::report;

/// Exit status when the answer is no.
pub(crate) const DENIED: u8 = 1;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate why -p agent.toml https://api.example.org/repos/a
  outgate why -p agent.toml 'POST https://api.example.org/repos/a'
  outgate why -a '*' http://127.0.0.1:3000/                what `*` leaves out
  outgate why -p agent.toml tcp://db.example.org:5432
  outgate why -p agent.toml --as /usr/bin/git https://git.example.org/
  outgate why ./data/key.pem                               may a command read or write it?
  outgate why last                                         what the last run was denied
  outgate why last --as-policy                             the same as a policy file

No name is resolved: where a name leads to a private address that no rule grants, a run
denies what is allowed here.

Exit status: 0 allowed, 1 denied, 2 bad usage or a bad policy.";

/// Explain what a policy decides about a request, or what was denied last
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// What to judge: a URL, with a method before it or not; a path; a run, or the word `last`
    ///
    /// URLs begin with http, https, ws, wss, tls, tcp or unix and `://`. Without method it
    /// is a GET. Paths begin with `/`, `./`, `../` or `~/`. The word `last` explains what the
    /// last run was denied, and so does the name of any other that left a record.
    #[arg(value_name = "URL|PATH|RUN|last")]
    pub(crate) question: String,
    /// Judge a request with this method
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Judge what this executable asks for, for rules with `process`
    #[arg(long = "as", value_name = "PATH")]
    pub(crate) executable: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// Of a run: each denial instead of groups, the latest first
    #[arg(long, conflicts_with = "count")]
    pub(crate) all: bool,
    /// Of a run: the rules that would have allowed it, as a policy file
    #[arg(long, conflicts_with_all = ["count", "all"])]
    pub(crate) as_policy: bool,
    /// Of a run: this many denials instead of groups, the latest first
    #[arg(short = 'n', long = "count", value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    /// Of a run: read this record instead of the latest run's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Of a run: the one of this name in the record
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

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

/// What to do where no flag helps, for every reason.
pub(crate) fn repair(reason: DenialReason, place: &str) -> String {
    match reason {
        DenialReason::DenyRule => {
            format!("take out or narrow the deny rule at {place}; no rule that allows beats it")
        }
        DenialReason::OnlyRule => {
            format!("widen the rule at {place}, or add another `only` rule for this host")
        }
        DenialReason::Process => format!("add the executable to `process` at {place}"),
        DenialReason::SpecialUse | DenialReason::OtherMethod => {
            "no flag does; see the reason".to_owned()
        }
        DenialReason::NeedsInspection => {
            format!("narrow a deny rule, or widen one that allows to the whole host, at {place}")
        }
        DenialReason::NoRule | DenialReason::Malformed => {
            "nothing can: such a thing is never sent".to_owned()
        }
    }
}

/// A rule with its place.
fn shown(rule: &RuleRef) -> String {
    match rule.id {
        0 => format!("{} ({})", rule.text, rule.place),
        _ => format!("{} `{}` ({})", rule.effect.as_str(), rule.text, rule.place),
    }
}
