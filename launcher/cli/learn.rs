//! `outgate learn`: records of runs become the smallest policy that a person would sign, each
//! line with its evidence. What is added to a file is shown; nothing in it goes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_dlp::{Detectors, IssuerPattern, Tenants};
use outgate_launcher::run::RunError;
use outgate_launcher::sources::SourceCollector;
use outgate_policy::{
    Learner, Learnt, PastEvent, Policy, Sighted, Sighting, Source, SourceKind, compile,
};
use outgate_record::{Alarm, Kind, Outcome, Reason, Record, Word};

use crate::added::added;
use crate::failure::{Failure, ended};
use crate::past::{self, Past, PastOutcome};
use crate::policy_options::{PolicyOptions, context, surroundings};
use crate::report;
use crate::rotation::RotationOptions;
use crate::run::{RunMode, launched};
use crate::run_options::{Leave, Run, TrustWay};
use crate::targets::Targets;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate learn -o agent.toml -- npm install             run it with everything public let through
  outgate learn -p base.toml --merge agent.toml -- ./agent
  outgate learn --from last -o agent.toml                what the latest run did, and was denied
  outgate learn --from monday.jsonl --from tuesday.jsonl -o agent.toml
  outgate learn --from last --merge agent.toml           add what it does not allow yet

With a COMMAND it runs in a marked mode: everything public is let through and looked into; what
rules deny, credentials on their way out, private addresses and services of metadata stay
refused. What is neither HTTP nor TLS is refused too, since nobody can look into it, and learnt
as denied.

Each line says how often it was seen, by whom, the first and the last time, and what is risky
about it. Read it, take out what the command is not to have, and then
  outgate policy test agent.toml --replay last           what would change
  outgate run -p agent.toml -- COMMAND

Nothing is learnt for services of metadata, for private and loopback addresses that no rule had
granted, and for hosts to which a credential was on its way; what is left out is said.
What -p, -P, -a and --merge allow already is not learnt again.

A RECORD is a record, a directory of them, or `last`: the record of the latest run.

Exit status: the command's own; with --from, 0 a policy was written, 1 there was nothing to
learn; 2 bad usage or a bad policy.";

/// Make a policy of what runs did
#[derive(Debug, Args)]
pub(crate) struct Learn {
    #[command(flatten)]
    pub(crate) lesson: Lesson,
    #[command(flatten)]
    pub(crate) written: Written,
}

/// What is learnt from: a command, or records.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Lesson {
    /// Learn from this record
    #[arg(long, value_name = "RECORD", required_unless_present = "command")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// Write the record of decisions to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "from", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Verify origins with the certificates in FILE too (PEM), beside the system's
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) upstream_ca: Vec<PathBuf>,
    /// How the command is made to trust what is opened
    #[arg(long, value_name = "HOW", default_value = "variables")]
    pub(crate) trust: TrustWay,
    /// Connect through this proxy [default: https_proxy, http_proxy, no_proxy]
    #[arg(long, value_name = "URL|none", conflicts_with = "from")]
    pub(crate) upstream_proxy: Option<String>,
    /// Say at the end which files the command opened in vain, and what would grant them: no
    /// record has them
    #[arg(long = "watch-files", conflicts_with = "from")]
    pub(crate) watch_files: bool,
    /// What is done about written files that run later: git hooks, tasks, start files
    #[arg(long, value_name = "WHAT", default_value = "tell")]
    pub(crate) leftovers: Leave,
    /// Name of the sandbox in records
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) name: Option<String>,
    /// Set an environment variable of the command
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "from")]
    pub(crate) set: Vec<OsString>,
    /// Inherit this variable: a credential that no rule needs, or with --clean-env any
    #[arg(long = "pass-env", value_name = "NAME", conflicts_with = "from")]
    pub(crate) pass: Vec<OsString>,
    /// Inherit only PATH, HOME, TERM, LANG and what --pass-env names
    #[arg(long = "clean-env", conflicts_with = "from")]
    pub(crate) clean: bool,
    /// Run this, with everything public let through, and learn from it
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        conflicts_with = "from"
    )]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Where what is learnt goes.
#[derive(Debug, Args)]
pub(crate) struct Written {
    /// Write the policy to FILE, not to standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Add what FILE does not allow yet to it (with -o, to a copy), and show the difference
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) merge: Option<PathBuf>,
}

/// Exit status when there was nothing to learn.
pub(crate) const NOTHING: u8 = 1;

/// Learns from records, or from a run.
pub(crate) fn learn(options: Learn) -> ExitCode {
    let Learn { lesson, written } = options;
    let known = match known(&lesson.policy, written.merge.as_deref()) {
        Ok(known) => known,
        Err(error) => return report::failure(&error),
    };
    // A command may write there, and lay links, as soon as it runs.
    let targets = match Targets::of(written.output.as_deref(), written.merge.as_deref()) {
        Ok(targets) => targets,
        Err(failure) => return ended(Err(failure)),
    };
    let taught = match taught(lesson, &known) {
        Ok(taught) => taught,
        Err(failed) => return failed,
    };
    taught.end(|records, is_meant| {
        if records.is_empty() {
            return Ok(ExitCode::from(NOTHING));
        }
        learnt(Learner::beyond(&known), records, is_meant)
            .and_then(|learnt| write(&learnt, &targets))
    })
}

/// Records that there are to learn from.
pub(crate) struct Taught {
    records: Vec<PathBuf>,
    /// How the run is called that is meant, where a record may hold others, and how it ended.
    run: Option<(String, u8)>,
}

impl Taught {
    /// Makes what is to be made of them; the status of it all.
    pub(crate) fn end(
        &self,
        make: impl FnOnce(&[PathBuf], &dyn Fn(&Record<'_>) -> bool) -> Result<ExitCode, Failure>,
    ) -> ExitCode {
        let Some((mark, status)) = &self.run else {
            return ended(make(&self.records, &|_| true));
        };
        let done = make(&self.records, &|record| record.run.ends_with(mark));
        match ended(done) {
            // The command's own failure is told before that of learning.
            learning if *status == 0 && learning != ExitCode::from(NOTHING) => learning,
            _ => ExitCode::from(*status),
        }
    }
}

/// The records that are named, or that of the command, which is run with everything public
/// let through.
pub(crate) fn taught(lesson: Lesson, policy: &Policy) -> Result<Taught, ExitCode> {
    if !lesson.from.is_empty() {
        return Ok(Taught {
            records: lesson.from,
            run: None,
        });
    }
    let named = lesson.audit.clone();
    let named = named.or_else(|| policy.audit_file().map(PathBuf::from));
    report::note(
        "learning: everything public is let through and recorded; denials, credentials and \
         private addresses stay refused",
    );
    let run = Run {
        policy: lesson.policy,
        audit: lesson.audit,
        rotation: RotationOptions::default(),
        gateway: None,
        gateway_user: None,
        upstream_ca: lesson.upstream_ca,
        trust: lesson.trust,
        upstream_proxy: lesson.upstream_proxy,
        name: lesson.name,
        set: lesson.set,
        pass: lesson.pass,
        clean: lesson.clean,
        auto: false,
        ask: None,
        ask_with: None,
        monitor: None,
        locked: None,
        step: None,
        sealed: false,
        no_summary: false,
        watch_files: lesson.watch_files,
        leftovers: lesson.leftovers,
        counters: false,
        command: lesson.command,
    };
    let status = launched(run, RunMode::Learning)?;
    if status != 0 {
        report::note(&format!(
            "the command ended with {status}: what it would have done after is not learnt; \
             whether it missed a file, `--watch-files` and `outgate why PATH` say"
        ));
    }
    // A record may hold the lines of other runs.
    let mark = format!("-{}", std::process::id());
    let records = match named {
        Some(file) => vec![file],
        None => past::of_run(&mark),
    };
    if records.is_empty() {
        report::note("the command asked for nothing, so there was nothing to learn");
    }
    Ok(Taught {
        records,
        run: Some((mark, status)),
    })
}

/// What is allowed already.
pub(crate) fn known(options: &PolicyOptions, merge: Option<&Path>) -> Result<Policy, RunError> {
    let mut sources = options.sources()?;
    if let Some(path) = merge.filter(|path| path.exists()) {
        let mut collector = SourceCollector::new(surroundings());
        collector.file(path)?;
        sources.extend(collector.finish());
    }
    Ok(compile(&sources, &context()?)?)
}

/// What these records teach a learner.
pub(crate) fn learnt(
    mut learner: Learner<'_>,
    records: &[PathBuf],
    is_meant: &dyn Fn(&Record<'_>) -> bool,
) -> Result<Learnt, Failure> {
    let read = past::read(records, |record| {
        if is_meant(&record) {
            see(&mut learner, &record);
        }
    });
    read.map_err(|(message, hint)| Failure::Words(message, hint))?;
    let shared = shared_hosts();
    Ok(learner.learnt(&|host| shared.iter().any(|pattern| pattern.covers(host))))
}

/// Learns from one record.
fn see(learner: &mut Learner<'_>, record: &Record<'_>) {
    const CREDENTIAL: &str = "a credential was on its way there";
    let is_found = matches!(record.kind.known(), Some(Kind::Finding | Kind::Canary));
    let is_stopped = record.verdict == Outcome::Deny || record.alarm == Alarm::Raised;
    let reason = record.reason.as_ref().and_then(Word::known);
    let is_of_credential = reason.is_some_and(Reason::is_of_credential);
    if is_stopped && (is_found || is_of_credential) {
        learner.refuse(record.host(), CREDENTIAL);
    }
    let subject = record.subject();
    let (outcome, event) = match Past::of(record) {
        // What it was found in has no other record, where nothing of it left.
        Past::Other if is_stopped && is_found => return learner.leave(&subject, CREDENTIAL),
        Past::Other => return,
        Past::Refusal(_) if is_of_credential => return learner.leave(&subject, CREDENTIAL),
        Past::Refusal(_) if reason == Some(Reason::Tls) => {
            const PINS: &str = "its TLS could not be opened; a client that pins certificates needs \
                                a tls:// rule";
            return learner.leave(&subject, PINS);
        }
        Past::Refusal(_) => {
            return learner.leave(&subject, "it was refused for another reason than rules");
        }
        Past::Unspoken(event) => return add(learner, record, Sighted::Raw, event),
        Past::Decision(outcome, event) => (outcome, event),
    };
    let sighted = match outcome {
        PastOutcome::Allowed => Sighted::Allowed,
        PastOutcome::Denied => Sighted::Denied,
        PastOutcome::DeniedByRule => return learner.leave(&subject, "a rule denies it"),
        PastOutcome::DeniedOverride => {
            return learner.leave(&subject, "it asked for another method than its own");
        }
        PastOutcome::DeniedAddress => {
            const INSIDE: &str = "it led to an address that is not public";
            learner.refuse(record.host(), INSIDE);
            return learner.leave(&subject, INSIDE);
        }
    };
    add(learner, record, sighted, event);
}

/// Adds what a record tells.
fn add(
    learner: &mut Learner<'_>,
    record: &Record<'_>,
    sighted: Sighted,
    event: Result<PastEvent, &'static str>,
) {
    let subject = record.subject();
    match event {
        Ok(event) => learner.add(&Sighting {
            event: &event,
            sighted,
            executable: record.executable(),
            time: &record.time,
            subject: &subject,
        }),
        Err(why) => learner.leave(&subject, why),
    }
}

/// Hosts that keep what anybody sends them, as the detectors say.
pub(crate) fn shared_hosts() -> Vec<IssuerPattern> {
    let detectors = Detectors::shipped();
    let many = detectors.iter().filter(|own| own.tenants == Tenants::Many);
    let hosts = many.flat_map(|own| own.issuers.iter().chain(own.tenant_hosts.iter()));
    hosts
        .filter_map(|host| IssuerPattern::parse(host).ok())
        .collect()
}

/// Writes what was learnt.
fn write(learnt: &Learnt, to: &Targets) -> Result<ExitCode, Failure> {
    let Some((merge, before)) = &to.merge else {
        if learnt.lines.is_empty() {
            report::note("there was nothing to learn");
            for line in learnt.left_out_in_words() {
                report::note_line(&line);
            }
            return Ok(ExitCode::from(NOTHING));
        }
        let document = learnt.document();
        match &to.output {
            Some(target) => {
                target.put(&document)?;
                report_learnt(learnt, &target.shown);
            }
            None => report::text(&document),
        }
        return Ok(ExitCode::SUCCESS);
    };
    if learnt.lines.is_empty() {
        report::note(&format!("`{}` allows all of it already", merge.display()));
        return Ok(ExitCode::from(NOTHING));
    }
    let after = learnt.added_to(before).filter(|after| keeps(before, after));
    let Some(after) = after else {
        let message = format!(
            "`{}` has a form that nothing can be added to",
            merge.display()
        );
        let hint = "write what is learnt to a file of its own with -o, and name both with -p";
        return Err(Failure::Words(message, hint));
    };
    let Some(target) = &to.output else {
        return Ok(ExitCode::from(NOTHING));
    };
    target.put(&after)?;
    let path = target.shown.display();
    report::line(&format!("--- {}\n+++ {path}", merge.display()));
    for line in added(before, &after) {
        report::line(&line);
    }
    report_learnt(learnt, &target.shown);
    Ok(ExitCode::SUCCESS)
}

/// Says what was written.
fn report_learnt(learnt: &Learnt, path: &Path) {
    let lines = match learnt.lines.len() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    let left = match learnt.left_out.len() {
        0 => String::new(),
        count => format!(", {count} left out"),
    };
    let path = path.display();
    report::note(&format!(
        "{path}: {lines} learnt{left}; read them before a run has them"
    ));
}

/// Whether all rules of a document stand in another, in their order, before what was added.
fn keeps(before: &str, after: &str) -> bool {
    let rules = |text: &str| {
        let source = Source {
            kind: SourceKind::Document,
            place: "FILE".to_owned(),
            text: text.to_owned(),
        };
        let policy = compile(&[source], &context().ok()?).ok()?;
        let texts = policy.rules().map(|rule| rule.text.to_string());
        let rules: Vec<String> = texts.collect();
        let listen: Vec<String> = policy.listen().iter().map(ToString::to_string).collect();
        Some((rules, listen))
    };
    let (Some(before), Some(after)) = (rules(before), rules(after)) else {
        return false;
    };
    let is_kept = |own: &[String], all: &[String]| own.iter().all(|one| all.contains(one));
    is_kept(&before.0, &after.0) && is_kept(&before.1, &after.1)
}
