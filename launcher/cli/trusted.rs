//! The manifest that the working directory belongs to, and whether its user accepted it.

use std::path::{Path, PathBuf};

use outgate_launcher::accepted::{AcceptedManifest, AcceptedManifests, accepted_directory};
use outgate_launcher::manifest::{ManifestFiles, ManifestTrust, found};
use outgate_policy::{Policy, Source, legible};

use crate::policy_options::PolicyOptions;
use crate::report;

/// A sentence about what went wrong, and what to do.
pub(crate) type Refusal = (String, Option<String>);

/// Where what was accepted is kept.
pub(crate) fn directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    accepted_directory(variable("XDG_STATE_HOME"), variable("HOME"))
}

/// What was accepted.
pub(crate) fn accepted() -> Result<AcceptedManifests, Refusal> {
    let directory = directory().ok_or_else(|| {
        let message = "neither XDG_STATE_HOME nor HOME says where acceptance is kept";
        (message.to_owned(), None)
    })?;
    Ok(AcceptedManifests::at(directory))
}

/// The manifest for a directory.
pub(crate) fn manifest(from: &Path) -> Result<ManifestFiles, Refusal> {
    found(from).map_err(|error| (report::chain(&error), error.hint()))
}

/// How a manifest stands to what was accepted.
pub(crate) enum Standing {
    /// It is what was accepted.
    Accepted,
    /// This was accepted, and it is another.
    Changed(AcceptedManifest),
    /// Nothing was accepted.
    Unread,
}

/// How a manifest stands to what was accepted.
pub(crate) fn standing(own: &ManifestFiles) -> Result<Standing, Refusal> {
    let before = accepted()?.of(&own.path()).map_err(|error| kept(&error))?;
    Ok(match before {
        Some(before) if before == AcceptedManifest::of(own) => Standing::Accepted,
        Some(before) => Standing::Changed(before),
        None => Standing::Unread,
    })
}

/// What is wrong with what is kept.
pub(crate) fn kept(error: &std::io::Error) -> Refusal {
    let directory = directory().unwrap_or_default();
    (format!("`{}`: {error}", directory.display()), None)
}

/// Goes where a manifest lies: paths in it begin there, and its commands run there.
pub(crate) fn enter(own: &ManifestFiles) -> Result<(), Refusal> {
    let shown = own.directory.display();
    let went = std::env::set_current_dir(own.place.reach()).and_then(|()| std::env::current_dir());
    match went {
        Ok(here) if here == own.directory => Ok(()),
        Ok(_) => Err((format!("`{shown}` is elsewhere by now"), None)),
        Err(error) => Err((format!("`{shown}`: {error}"), None)),
    }
}

/// The policy that a command of a manifest has once it is accepted, or a plain run.
pub(crate) fn policy(own: Option<(&ManifestFiles, &str)>) -> Result<Policy, Refusal> {
    options(own)
        .compile()
        .map_err(|error| (report::chain(&error), error.hint()))
}

fn options(own: Option<(&ManifestFiles, &str)>) -> PolicyOptions {
    PolicyOptions {
        // What narrows it besides is not what it grants.
        no_project: true,
        manifest: own.map(|(own, command)| own.policy(command, ManifestTrust::Accepted)),
        ..PolicyOptions::default()
    }
}

/// What a command of a manifest may once that is accepted, and what it is made of.
pub(crate) struct CommandPolicy {
    /// Its name; empty where the manifest has no commands.
    pub(crate) command: String,
    pub(crate) policy: Policy,
    pub(crate) sources: Vec<Source>,
}

/// The policies of the manifest at a path, as their commands would have them once it is
/// accepted, and where it lies.
pub(crate) fn policies(path: &Path) -> Result<(PathBuf, Vec<CommandPolicy>), Refusal> {
    let above = path.parent().unwrap_or(path);
    let own = manifest(&Path::new(".").join(above))?;
    let here = std::env::current_dir().map_err(|error| (error.to_string(), None))?;
    enter(&own)?;
    let mut names: Vec<&str> = own.manifest.commands.iter().map(|own| &*own.name).collect();
    if names.is_empty() {
        names.push("");
    }
    let all = names
        .into_iter()
        .map(|name| of_command(&own, name))
        .collect();
    let back = std::env::set_current_dir(here);
    let all: Result<Vec<CommandPolicy>, Refusal> =
        back.map_err(|error| (error.to_string(), None)).and(all);
    all.map(|all| (own.directory, all))
}

fn of_command(own: &ManifestFiles, name: &str) -> Result<CommandPolicy, Refusal> {
    let manifest = Some((own, name));
    let sources = options(manifest).sources();
    Ok(CommandPolicy {
        command: name.to_owned(),
        policy: policy(manifest)?,
        sources: sources.map_err(|error| (report::chain(&error), error.hint()))?,
    })
}

/// Tells a refusal.
pub(crate) fn told((message, hint): &Refusal) {
    // Names in it are of whoever wrote the manifest.
    let mut text = String::new();
    for line in message.lines() {
        text.push_str(match (text.is_empty(), line.starts_with(' ')) {
            (true, _) => "",
            (false, true) => "\n",
            (false, false) => "\noutgate: ",
        });
        text.push_str(&legible(line));
    }
    match hint {
        Some(hint) => drop(report::wrong_with_hint(&text, &legible(hint))),
        None => drop(report::wrong(&text)),
    }
}
