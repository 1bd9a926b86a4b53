//! `outgate policy check`: every fault and warning of policy files, and of manifests for each
//! of their commands. Reads files, and asks the program with the engine about detectors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_launcher::enforced::refuse_unenforced;
use outgate_launcher::manifest::MANIFEST_FILE;
use outgate_launcher::run::{RunError, gateway_program};
use outgate_launcher::sources::{PolicyTextError, SourceCollector};
use outgate_policy::{
    Expectation, Expectations, Policy, Source, SourceKind, compile, expectations,
};

use crate::doubts::{missing, unseen};
use crate::policy_options::{context, surroundings};
use crate::report;
use crate::trusted::{policies, told};

/// Exit status when a policy is wrong.
const WRONG: u8 = 2;

/// A sound policy, and what stands beside its rules.
pub(crate) struct JudgedPolicy {
    /// The command of a manifest that it is for.
    pub(crate) command: Option<String>,
    pub(crate) policy: Policy,
    /// What it is expected to decide.
    pub(crate) tests: Vec<Expectation>,
    sources: Vec<Source>,
    /// Where the places of its sources begin.
    directory: PathBuf,
}

/// Reports every fault and warning of these files.
pub(crate) fn check(files: &[PathBuf]) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for path in files {
        let policies = match judged(path) {
            Ok(policies) => policies,
            Err(failed) => {
                status = failed;
                continue;
            }
        };
        let faults: BTreeSet<String> = policies.iter().filter_map(detector_faults).collect();
        for fault in &faults {
            report::wrong(fault);
            status = ExitCode::from(WRONG);
        }
        if faults.is_empty() {
            tell(path, &policies);
        }
    }
    status
}

/// The policies that a file is: one, or those of the commands of a manifest. Every fault of
/// them is told.
pub(crate) fn judged(path: &Path) -> Result<Vec<JudgedPolicy>, ExitCode> {
    if path.file_name().is_none_or(|name| name != MANIFEST_FILE) {
        let judged = of_file(path).map(|own| vec![own]);
        return judged.map_err(|error| report::failure(&error));
    }
    let (directory, commands) = policies(path).map_err(|refusal| {
        told(&refusal);
        ExitCode::from(WRONG)
    })?;
    let all = commands.into_iter().map(|own| {
        let mut tests = Vec::new();
        for source in own
            .sources
            .iter()
            .filter(|one| one.kind == SourceKind::Manifest)
        {
            tests.extend(expectations(source).map_err(PolicyTextError::from)?.list);
        }
        Ok(JudgedPolicy {
            command: Some(own.command).filter(|name| !name.is_empty()),
            policy: own.policy,
            tests,
            sources: own.sources,
            directory: directory.clone(),
        })
    });
    let all: Result<Vec<JudgedPolicy>, RunError> = all.collect();
    all.map_err(|error| report::failure(&error))
}

/// The policy of a file and its expectations, or every fault of both.
fn of_file(path: &Path) -> Result<JudgedPolicy, RunError> {
    let (sources, tests) = read(path)?;
    let policy = compile(&sources, &context()?)?;
    refuse_unenforced(&policy).map_err(|key| RunError::NotEnforced { key })?;
    Ok(JudgedPolicy {
        command: None,
        policy,
        tests: tests.list,
        sources,
        directory: PathBuf::new(),
    })
}

/// The sources of the policy that a file is or names, and its expectations.
fn read(path: &Path) -> Result<(Vec<Source>, Expectations), RunError> {
    let source = outgate_launcher::sources::document(path)?;
    let tests = expectations(&source).map_err(PolicyTextError::from)?;
    let mut collector = SourceCollector::new(surroundings());
    if tests.policies.is_empty() {
        collector.file(path)?;
    }
    let base = path.parent().unwrap_or(Path::new(""));
    for name in &tests.policies {
        collector.named(name, base)?;
    }
    collector.base()?;
    Ok((collector.finish(), tests))
}

/// What is wrong with the detectors that a policy names or describes, in the words of the
/// program with the engine; nothing where there are they all.
fn detector_faults(own: &JudgedPolicy) -> Option<String> {
    let settings = own.policy.settings();
    if settings.inspect_detectors.is_empty() && settings.inspect_scopes.is_empty() {
        return None;
    }
    // What is shipped names none. A manifest is the last of its sources.
    let is_text = |source: &&Source| {
        let is_document = matches!(source.kind, SourceKind::Document | SourceKind::Manifest);
        is_document && own.directory.join(&source.place).is_file()
    };
    let program = gateway_program();
    let mut asked = std::process::Command::new(&program);
    asked.args(["detectors", env!("CARGO_PKG_VERSION")]);
    if own
        .sources
        .iter()
        .any(|source| source.kind == SourceKind::Manifest)
    {
        asked
            .arg("--command")
            .arg(own.command.as_deref().unwrap_or_default());
        asked.current_dir(&own.directory);
    }
    asked.args(
        own.sources
            .iter()
            .filter(is_text)
            .map(|source| &source.place),
    );
    match asked.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim_end();
            Some(said.strip_prefix("outgate: ").unwrap_or(said).to_owned())
        }
        Err(error) => Some(format!("`{}`: {error}", program.display())),
    }
}

/// Says that all of these are sound, and what to think of.
fn tell(path: &Path, policies: &[JudgedPolicy]) {
    let own = policies.iter().flat_map(|own| {
        let warnings = own.policy.warnings().iter().map(ToString::to_string);
        let doubts = [missing(&own.policy), unseen(&own.policy)].concat();
        warnings.chain(doubts)
    });
    // Those of a manifest are mostly of all its commands.
    let mut told = BTreeSet::new();
    for warning in own {
        if told.insert(warning.clone()) {
            report::warning(&warning);
        }
    }
    let tests = policies.iter().map(|own| own.tests.len()).sum();
    let tests = match tests {
        0 => String::new(),
        count => format!(", {}", counted(count, "test")),
    };
    let what = match policies {
        [
            JudgedPolicy {
                policy, directory, ..
            },
        ] if directory.as_os_str().is_empty() => counted(policy.rules().count(), "rule"),
        all => {
            let commands = all.iter().filter(|own| own.command.is_some());
            counted(commands.count(), "command")
        }
    };
    let warnings = counted(told.len(), "warning");
    report::line(&format!(
        "{}: ok, {what}{tests}, {warnings}",
        path.display()
    ));
}

/// So many of something.
pub(crate) fn counted(count: usize, word: &str) -> String {
    match count {
        0 => format!("no {word}s"),
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
