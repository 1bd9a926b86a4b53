//! `outgate trust`: what a project's manifest grants, in words, and whether its user accepts
//! it. What was read is what is shown, what is kept, and what `outgate up` runs.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_launcher::accepted::AcceptedManifest;
use outgate_launcher::denials;
use outgate_launcher::manifest::{MANIFEST_FILE, ManifestFiles};
use outgate_policy::{ManifestCommand, Policy, Widenings, manifest, printable};

use crate::added::added;
use crate::policy_diff::tell;
use crate::report;
use crate::show::{Row, sections};
use crate::trusted::{self, Refusal, Standing, accepted, enter, policy, standing, told};
use crate::up::words_of;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate trust                                  what outgate.toml here grants; asks
  outgate trust ~/src/project                    the same there
  outgate trust --list                           what you accepted, and whether it changed since
  outgate trust --revoke                         take it back

Accepted is what is shown: the manifest and the files it extends, by their content. `outgate up`
runs nothing else of what they grant. When one of them changes, `outgate trust` shows what
changed and asks again. A command in a run reaches neither your acceptance nor this question.

Exit status: 0 it is accepted, 1 it is not, 2 there is no manifest, or it is wrong.";

/// It is not accepted, or there was nothing to take back.
const REFUSED: u8 = 1;

/// What accepts.
const YES: &str = "yes";

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 256;

/// Show what a project's manifest grants, and accept it
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trust {
    /// The directory that the manifest is for [default: the working directory]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Accept it without a question: you have read it
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
    /// List what you accepted
    #[arg(long, conflicts_with_all = ["directory", "revoke"])]
    list: bool,
    /// Take back that you accepted it
    #[arg(long)]
    revoke: bool,
}

/// Does what the options say.
pub(crate) fn trust(options: &Trust) -> ExitCode {
    let mut from = options.directory.clone().unwrap_or_else(|| ".".into());
    if from.ends_with(MANIFEST_FILE) {
        from.pop();
        from.push(".");
    }
    let done = if std::env::var_os(denials::VARIABLE).is_some() {
        let message = "nothing is accepted inside a run".to_owned();
        Err((message, Some("run `outgate trust` outside".to_owned())))
    } else if options.list {
        list()
    } else if options.revoke {
        revoke(&from)
    } else {
        trusted::manifest(&from).and_then(|own| ask(&own, options.yes.then_some(Asked::No)))
    };
    done.unwrap_or_else(|refusal| {
        told(&refusal);
        ExitCode::from(2)
    })
}

/// Whether somebody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// They said it before.
    No,
}

fn ask(own: &ManifestFiles, asked: Option<Asked>) -> Result<ExitCode, Refusal> {
    enter(own)?;
    let shown = AcceptedManifest::of(own);
    let path = printable(&own.path().display().to_string());
    let before = match standing(own)? {
        Standing::Accepted => {
            report::line(&format!("{path} ({}) is accepted", shown.shown_hash()));
            return Ok(ExitCode::SUCCESS);
        }
        Standing::Changed(before) => Some(before),
        Standing::Unread => None,
    };
    // Every fault is told before anything is asked.
    let plain = policy(None)?;
    let mut policies = Vec::new();
    for command in &own.manifest.commands {
        policies.push((command, policy(Some((own, &command.name)))?));
    }
    let names = own.files.iter().map(|(name, _)| printable(name));
    let names: Vec<String> = names.collect();
    report::line(&format!("{path} ({})", shown.shown_hash()));
    report::line(&format!("  read: {}", names.join(", ")));
    for (command, policy) in &policies {
        show(command, policy, &plain);
    }
    if let Some(before) = &before {
        report::line("");
        changed(before, own, &policies);
    }
    report::line("");
    report::line(&in_short(&policies, &plain));
    if asked.is_none() && !is_agreed()? {
        report::note("it is not accepted, and nothing changed");
        return Ok(ExitCode::from(REFUSED));
    }
    let kept = accepted()?.accept(&shown);
    kept.map_err(|error| trusted::kept(&error))?;
    report::line(&format!("accepted: {path} ({})", shown.shown_hash()));
    Ok(ExitCode::SUCCESS)
}

/// Asks on the terminal.
fn is_agreed() -> Result<bool, Refusal> {
    let input = io::stdin();
    if !input.is_terminal() {
        let message = "standard input is no terminal, so nobody can be asked".to_owned();
        let hint = "call it from a terminal; `--yes` accepts what you have read";
        return Err((message, Some(hint.to_owned())));
    }
    report::note_line(&format!(
        "Do you accept this? Type `{YES}`; anything else leaves it as it is."
    ));
    let mut line = String::new();
    let read = input.lock().take(ANSWER_BYTES_MAX).read_line(&mut line);
    Ok(read.is_ok() && line.trim() == YES)
}

/// What a policy says that another does not.
fn beyond(policy: &Policy, plain: &Policy) -> Vec<(&'static str, Row)> {
    let plain = sections(plain);
    let known = |title: &str, row: &Row| {
        let mut sections = plain.iter();
        sections.any(|(own, rows)| *own == title && rows.contains(row))
    };
    let all = sections(policy).into_iter();
    all.flat_map(|(title, rows)| rows.into_iter().map(move |row| (title, row)))
        .filter(|(title, row)| !known(title, row))
        .collect()
}

/// What is shown of shipped policies line by line.
const ALWAYS: [&str; 6] = [
    "rules",
    "pins",
    "certificates",
    "secrets",
    "scan",
    "listening",
];

/// The name of the shipped policy of which a line is only counted.
fn shipped<'r>((title, row): (&str, &'r Row)) -> Option<&'r str> {
    let name = row.place.strip_prefix("preset `")?;
    let (name, _) = name.split_once('`')?;
    (!ALWAYS.contains(&title)).then_some(name)
}

/// Shows one command, and what it is granted.
fn show(command: &ManifestCommand, policy: &Policy, plain: &Policy) {
    report::line("");
    report::line(&format!("{}: {}", command.name, words_of(command)));
    if !command.about.is_empty() {
        report::line(&format!("  ({})", printable(&command.about)));
    }
    let rows = beyond(policy, plain);
    if rows.is_empty() {
        report::line("  nothing beyond a plain `outgate run`");
    }
    // What is shipped was read by who installed it: how much is enough, but for hosts.
    let mut short: BTreeMap<String, usize> = BTreeMap::new();
    for (title, row) in &rows {
        if let Some(name) = shipped((title, row)) {
            let count = short.entry(name.to_owned()).or_default();
            *count = count.saturating_add(1);
            continue;
        }
        let (what, place) = (printable(&row.what), printable(&row.place));
        report::line(&format!("  {title:<12} {:<7} {what}  ({place})", row.kind));
    }
    for (name, count) in short {
        report::line(&format!(
            "  {:<12} {count} files, variables and settings of `{name}`: `outgate policy presets {name}`",
            "shipped"
        ));
    }
}

/// A kind of line that is counted.
type Counted = fn(&str, &Row) -> bool;

/// What one and several of a kind are called, and what is of it.
const COUNTED: [(&str, &str, Counted); 6] = [
    ("rule that allows", "rules that allow", |title, row| {
        title == "rules" && row.kind != "deny"
    }),
    ("path to write", "paths to write", |_, row| {
        row.kind == "write"
    }),
    ("path to read", "paths to read", |_, row| row.kind == "read"),
    ("port to listen on", "ports to listen on", |title, _| {
        title == "listening"
    }),
    ("secret", "secrets", |title, _| title == "secrets"),
    (
        "command run outside for a secret",
        "commands run outside for secrets",
        |title, row| title == "secrets" && row.what.contains("cmd:"),
    ),
];

/// What there is, counted: the last that is read before the question.
fn in_short(policies: &[(&ManifestCommand, Policy)], plain: &Policy) -> String {
    let all = policies
        .iter()
        .flat_map(|(_, policy)| beyond(policy, plain));
    let (mut rows, mut names): (Vec<(&str, Row)>, Vec<String>) = (Vec::new(), Vec::new());
    for own in all {
        match shipped((own.0, &own.1)) {
            Some(name) if !names.iter().any(|known| known == name) => names.push(name.to_owned()),
            None if !rows.contains(&own) => rows.push(own),
            Some(_) | None => {}
        }
    }
    let mut parts = Vec::new();
    for (one, several, is) in COUNTED {
        match rows.iter().filter(|(title, row)| is(title, row)).count() {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            count => parts.push(format!("{count} {several}")),
        }
    }
    parts.extend(names.iter().map(|name| format!("what `{name}` gives")));
    if rows.is_empty() && names.is_empty() {
        parts.push("nothing beyond a plain `outgate run`".to_owned());
    } else if parts.is_empty() {
        parts.push("no rules, paths, ports and secrets beyond a plain `outgate run`".to_owned());
    }
    format!("in short: {}", parts.join(", "))
}

/// Says what changed since a manifest was accepted.
fn changed(
    before: &AcceptedManifest,
    own: &ManifestFiles,
    policies: &[(&ManifestCommand, Policy)],
) {
    report::line("since you accepted it:");
    let old = before.files.first().map_or("", |(_, text)| text);
    let old = manifest(MANIFEST_FILE, old)
        .ok()
        .map(|manifest| ManifestFiles {
            manifest,
            files: before.files.clone(),
            ..own.clone()
        });
    let commands = |files: &ManifestFiles| files.manifest.commands.clone();
    let gone = old.iter().flat_map(commands);
    for command in gone.filter(|one| own.manifest.command(Some(&one.name)).is_none()) {
        report::line(&format!("  `{}` is gone", command.name));
    }
    for (command, policy_now) in policies {
        let known = old.as_ref().and_then(|old| {
            let command = old.manifest.command(Some(&command.name))?;
            Some((command, policy(Some((old, &command.name)))))
        });
        let Some((was, policy_then)) = known else {
            report::line(&format!("  `{}` is new", command.name));
            continue;
        };
        if was.command != command.command {
            report::line(&format!("  `{}` ran {}", command.name, words_of(was)));
        }
        match policy_then {
            Ok(then) => {
                let title = |what: &str| format!("  `{}` {what}:", command.name);
                let (wider, narrower) = (
                    Widenings::between(&then, policy_now),
                    Widenings::between(policy_now, &then),
                );
                tell(&title("may now, and might not before"), &wider);
                tell(&title("might before, and may not now"), &narrower);
            }
            Err(_) => report::line(&format!(
                "  `{}`: what you accepted is no policy of this version of outgate",
                command.name
            )),
        }
    }
    for line in texts(before, own) {
        report::line(&line);
    }
}

/// The lines of the files that differ.
fn texts(before: &AcceptedManifest, own: &ManifestFiles) -> Vec<String> {
    let text = |files: &[(String, String)], name: &str| {
        let own = files.iter().find(|(own, _)| own == name);
        own.map_or_else(String::new, |(_, text)| text.clone())
    };
    let mut names: Vec<&String> = before
        .files
        .iter()
        .chain(&own.files)
        .map(|(name, _)| name)
        .collect();
    names.sort();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        let differ = added(&text(&before.files, name), &text(&own.files, name));
        if !differ.is_empty() {
            lines.push(format!("--- {}", printable(name)));
            lines.extend(differ.iter().map(|line| printable(line)));
        }
    }
    lines
}

fn list() -> Result<ExitCode, Refusal> {
    let all = accepted()?.list().map_err(|error| trusted::kept(&error))?;
    for own in all {
        let now = own.path.parent().map(trusted::manifest);
        let state = match now {
            Some(Ok(now)) if AcceptedManifest::of(&now) == own => "as accepted",
            Some(Ok(now)) if now.path() == own.path => "changed since",
            _ => "cannot be read now",
        };
        let path = printable(&own.path.display().to_string());
        report::line(&format!("{}  {path}  {state}", own.shown_hash()));
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(from: &Path) -> Result<ExitCode, Refusal> {
    // One that is gone, or that nobody can read by now, is revoked as well.
    let directory = from.canonicalize().or_else(|_| std::path::absolute(from));
    let own = directory.unwrap_or_else(|_| from.to_owned());
    let own = own.join(MANIFEST_FILE);
    // That of the directory itself before one further up.
    let above = trusted::manifest(from).map(|found| found.path());
    let path = above.unwrap_or_else(|_| own.clone());
    for path in [&own, &path] {
        let was = accepted()?.revoke(path);
        if was.map_err(|error| trusted::kept(&error))? {
            let shown = printable(&path.display().to_string());
            report::line(&format!("{shown} is no longer accepted"));
            return Ok(ExitCode::SUCCESS);
        }
    }
    let shown = printable(&path.display().to_string());
    report::note(&format!("`{shown}` was not accepted"));
    Ok(ExitCode::from(REFUSED))
}
