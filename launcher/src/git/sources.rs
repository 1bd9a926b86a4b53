//! What git needs as texts of a policy, beside what the user grants.

use std::path::Path;

use outgate_policy::{PathGrant, Policy, Source, SourceKind};

use super::settings::GitSettings;
use super::tree::{GitAccess, GitPlace, WorkTree};

/// Where the policy says so.
const SETTINGS: &str = "git's settings";

/// Files that the settings name.
pub(crate) fn of_settings(settings: &GitSettings) -> Vec<Source> {
    let paths = settings.readable().iter().filter_map(|path| nameable(path));
    paths
        .map(|path| Source {
            kind: SourceKind::Read,
            place: SETTINGS.to_owned(),
            text: path.to_owned(),
        })
        .collect()
}

/// The keys of the hosts that the user's ssh knows: without them it refuses every host. What
/// the user holds to log in stays closed.
pub(crate) fn of_hosts(home: &Path) -> Option<Source> {
    let path = home.join(".ssh/known_hosts");
    let is_plain = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let text = nameable(&path).filter(|_| is_plain)?.to_owned();
    Some(Source {
        kind: SourceKind::Read,
        place: "hosts that ssh knows".to_owned(),
        text,
    })
}

/// Places that a work tree needs, less those that the user granted. Where one of them can be
/// said in no policy, none of them is granted.
pub(crate) fn of_tree(tree: &WorkTree, policy: &Policy) -> Vec<Source> {
    let files = policy.filesystem();
    let by_user = |list: &[PathGrant], path: &Path| {
        let mut grants = list.iter().filter(|grant| !grant.optional);
        grants.any(|grant| path.starts_with(&grant.path))
    };
    let is_written = |path: &Path| by_user(&files.write, path);
    let is_read = |path: &Path| is_written(path) || by_user(&files.read, path);
    // Who grants all of the project means it, with what it holds.
    let is_whole = is_read(tree.root());
    let is_wanted = |place: &&GitPlace| match place.access {
        GitAccess::Read => !is_read(&place.path),
        GitAccess::Write => !is_written(&place.path),
        GitAccess::Deny => !is_whole,
    };
    let wanted = tree.places().iter().filter(is_wanted);
    let sources: Option<Vec<Source>> = wanted.map(source).collect();
    sources.unwrap_or_default()
}

/// One line that says that a repository elsewhere is written too: by files in both, which a
/// command that ran in both could have written, it is this work tree's.
pub(crate) fn said(tree: &WorkTree) -> Option<String> {
    let is_elsewhere = |place: &&GitPlace| place.access == GitAccess::Write;
    let place = tree.places().iter().rfind(is_elsewhere)?;
    let path = outgate_policy::printable(&place.path.to_string_lossy());
    Some(format!(
        "outgate: the repository of this work tree is {path}: it is granted for writing, too"
    ))
}

fn source(place: &GitPlace) -> Option<Source> {
    let path = nameable(&place.path)?;
    let (kind, text) = match place.access {
        GitAccess::Read => (SourceKind::Read, path.to_owned()),
        GitAccess::Write => (SourceKind::Write, path.to_owned()),
        GitAccess::Deny => {
            let path = crate::text::quoted(path);
            let text = format!("[filesystem]\ndeny = [{path}]\n");
            (SourceKind::Document, text)
        }
    };
    Some(Source {
        kind,
        place: place.what.to_owned(),
        text,
    })
}

/// The path as a policy writes it, where one can.
fn nameable(path: &Path) -> Option<&str> {
    let path = path.to_str()?;
    let is_plain = !path.contains('*') && !path.chars().any(char::is_control);
    (is_plain && path.starts_with('/')).then_some(path)
}
