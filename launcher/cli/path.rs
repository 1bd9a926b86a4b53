//! `outgate why PATH`: whether a command may read or write a file, by which grant, and what
//! would grant it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_launcher::reachable::{
    self, Granting, PathPresence, Reachable, account_reads, account_writes,
};
use outgate_launcher::run::RunError;
use outgate_launcher::text::shell_word;
use outgate_policy::{Policy, printable};

use crate::ca;
use crate::policy_options::{PRIVATE, context};
use crate::report;
use crate::why_options::{DENIED, Why};

/// Whether a question is about a file: it begins as paths do, and no URL does.
pub(crate) fn is_path(question: &str) -> bool {
    let begins = ["/", "./", "../", "~/"];
    begins.iter().any(|begin| question.starts_with(begin)) || [".", "..", "~"].contains(&question)
}

/// Prints the answer.
pub(crate) fn path(arguments: &Why) -> ExitCode {
    let path = match absolute(&arguments.question) {
        Ok(path) => path,
        Err(message) => return report::wrong(&message),
    };
    let policy = match policy_of(arguments) {
        Ok(policy) => policy,
        Err(error) => return report::failure(&error),
    };
    let found = Reachable::of(&policy, &path);
    for line in answer(&found) {
        report::line(&line);
    }
    let options = arguments.policy.about_files();
    let words = options.iter().map(|word| shell_word(&printable(word)));
    let line: Vec<String> = ["outgate".to_owned(), "run".to_owned()]
        .into_iter()
        .chain(words)
        .collect();
    report::line(&format!(
        "judged    as `{} -- ...` in this directory; a run with other options may differ",
        line.join(" ")
    ));
    match found.read {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(DENIED),
    }
}

/// The policy of a run with these options, here.
fn policy_of(arguments: &Why) -> Result<Policy, RunError> {
    let sources = arguments.policy.sources()?;
    let authority = ca::own_authority();
    reachable::policy(&sources, &context()?, authority.as_deref())
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = match text.strip_prefix('~') {
        Some(rest) => {
            let home = std::env::var_os("HOME").ok_or("`~` leads nowhere: HOME is not set")?;
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        None => PathBuf::from(text),
    };
    let working = std::env::current_dir();
    let working = working.map_err(|error| format!("the working directory: {error}"))?;
    Ok(working.join(path))
}

fn answer(found: &Reachable<'_>) -> Vec<String> {
    let shown = printable(&found.place.to_string_lossy());
    let absent = match found.presence {
        PathPresence::There => "",
        PathPresence::Absent => " (nothing is there)",
    };
    let mut lines = vec![format!("path      {shown}{absent}")];
    lines.push(format!("read      {}", verdict(found, found.read)));
    lines.push(format!("write     {}", verdict(found, found.write)));
    let missing = match found.presence {
        PathPresence::There if !account_reads(&found.place) => Some("read"),
        PathPresence::There if !account_writes(&found.place) => Some("write"),
        PathPresence::There | PathPresence::Absent => None,
    };
    if let Some(missing) = missing {
        lines.push(format!(
            "besides   its mode lets this account not {missing} it, anywhere"
        ));
    }
    lines.extend(repair(found));
    lines
}

fn verdict(found: &Reachable<'_>, granting: Option<Granting<'_>>) -> String {
    match (granting, found.hidden) {
        (Some(Granting::EveryRun), _) => "allowed in every run".to_owned(),
        (Some(Granting::Policy(grant)), _) => {
            let path = match grant.path.strip_prefix(PRIVATE) {
                Some(rest) => format!("$TMPDIR{rest}"),
                None => printable(&grant.path),
            };
            format!(
                "allowed by the grant `{path}` ({})",
                printable(&grant.place)
            )
        }
        (None, Some(deny)) if found.place.starts_with(&deny.path) => {
            let (path, place) = (printable(&deny.path), printable(&deny.place));
            format!("denied: `{path}` is hidden ({place}), whatever else is granted")
        }
        (None, Some(deny)) => {
            let (path, place) = (printable(&deny.path), printable(&deny.place));
            format!("denied: `{path}` is hidden ({place}), and only what lies beside it is granted")
        }
        (None, None) => "denied: no grant is at it or above it".to_owned(),
    }
}

/// What to write, where nothing hides it.
fn repair(found: &Reachable<'_>) -> Option<String> {
    if found.write.is_some() || found.hidden.is_some() {
        return None;
    }
    let path = found
        .place
        .to_str()
        .filter(|path| printable(path) == **path)?;
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(&found.place)) {
        return Some(
            "to allow  name what is needed below it: it holds the home directory".to_owned(),
        );
    }
    // What is not there cannot be granted, and a directory around it would be too much.
    let make = match found.presence {
        PathPresence::There => "",
        PathPresence::Absent => "make it, and ",
    };
    let path = shell_word(path);
    Some(match found.read {
        Some(_) => format!("to allow  {make}add -w {path} to write"),
        None => format!("to allow  {make}add -r {path} to read, -w {path} to write as well"),
    })
}
