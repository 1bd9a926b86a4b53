//! The work tree that the working directory belongs to (gitrepository-layout(5)):
//! where it begins, and where its repository lies when that is elsewhere, as in
//! linked work trees and submodules. Looks at names and small files; grants nothing
//! by itself.
//!
//! A command may have written the working directory before, so nothing in it is
//! believed alone: a repository elsewhere counts only if it names this work tree as
//! this work tree names it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::limits::{DEPTH_MAX, LINK_BYTES_MAX, NEIGHBOURS_MAX};
use super::syntax::parse;
use super::{read_file, read_text};

/// What a command gets of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitAccess {
    /// To read it.
    Read,
    /// To write it as well.
    Write,
    /// Nothing, whatever is granted around it.
    Deny,
}

/// What places are, in words: the beginnings of the places of their grants.
const ROOT: &str = "the project's root";
const REPOSITORY: &str = "the repository of this work tree";

/// Whether a grant with this place is of what was looked at here: then it is granted only
/// if no link leads elsewhere by now.
pub(crate) fn is_looked_at(place: &str) -> bool {
    [ROOT, REPOSITORY]
        .iter()
        .any(|what| place.starts_with(what))
}

/// A place that git, or a tool that looks upward, needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPlace {
    /// What the command gets of it.
    pub access: GitAccess,
    /// The path, without links.
    pub path: PathBuf,
    /// What it is, in words.
    pub what: &'static str,
}

/// A work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTree {
    /// Its first directory.
    root: PathBuf,
    places: Vec<GitPlace>,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
struct TreeOwner<'o> {
    user: u32,
    /// The home directory, without links.
    home: &'o Path,
}

impl WorkTree {
    /// The work tree around `directory`, a path without links. Nothing where there is none
    /// below the home directory or beside it, or where it is not this user's.
    pub fn of(directory: &Path, home: &Path, user: u32) -> Option<Self> {
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        let owner = TreeOwner { user, home: &home };
        let root = root(directory, owner)?;
        let mut places = Vec::new();
        let is_root = root == directory;
        if !is_root {
            places.push(GitPlace {
                access: GitAccess::Read,
                path: root.clone(),
                what: ROOT,
            });
            let above = directory.ancestors().skip(1);
            for above in above.take_while(|above| above.starts_with(&root)) {
                places.extend(secrets(above)?);
            }
        }
        let access = if is_root {
            GitAccess::Write
        } else {
            GitAccess::Read
        };
        for path in elsewhere(&root, owner).into_iter().flatten() {
            // What lies in the working directory is granted with it.
            if !path.starts_with(directory) {
                places.push(GitPlace {
                    access,
                    path,
                    what: REPOSITORY,
                });
            }
        }
        Some(Self { root, places })
    }

    /// Its first directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What a command needs beside the working directory.
    pub fn places(&self) -> &[GitPlace] {
        &self.places
    }
}

/// The nearest directory upward with a `.git`, as git looks for it; never the home
/// directory, nor one around it.
fn root(directory: &Path, owner: TreeOwner<'_>) -> Option<PathBuf> {
    for above in directory.ancestors().take(DEPTH_MAX) {
        let Ok(mark) = above.join(".git").symlink_metadata() else {
            continue;
        };
        let is_wide = owner.home.starts_with(above) || above.parent().is_none();
        let is_own = mark.uid() == owner.user && owns(above, owner);
        return (is_own && !is_wide).then(|| above.to_owned());
    }
    None
}

/// Whether a directory is the user's; others' may say anything.
fn owns(path: &Path, owner: TreeOwner<'_>) -> bool {
    let is_own = |found: Metadata| found.is_dir() && found.uid() == owner.user;
    fs::symlink_metadata(path).is_ok_and(is_own)
}

/// The directories in which the repository of a work tree lies, if its `.git` is a file
/// that names one which names it.
fn elsewhere(root: &Path, owner: TreeOwner<'_>) -> Option<Vec<PathBuf>> {
    let mark = root.join(".git");
    if !mark.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = read_text(&mark, LINK_BYTES_MAX)?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let directory = fs::canonicalize(root.join(named)).ok()?;
    let common = linked(&directory, &mark).or_else(|| submodule(&directory, root))?;
    let is_sound = |path: &Path| {
        let holds_home = owner.home.starts_with(path);
        owns(path, owner) && !holds_home && path.to_str().is_some()
    };
    let is_repository = common.join("HEAD").is_file() && common.join("objects").is_dir();
    (is_repository && is_sound(&directory) && is_sound(&common)).then(|| {
        if directory.starts_with(&common) {
            vec![common]
        } else {
            vec![directory, common]
        }
    })
}

/// The repository that a linked work tree belongs to: `COMMON/worktrees/NAME`, whose
/// `commondir` and `gitdir` say so (gitrepository-layout(5)).
fn linked(directory: &Path, mark: &Path) -> Option<PathBuf> {
    let worktrees = directory.parent()?;
    let common = worktrees.parent()?;
    let named = |name: &str| {
        let text = read_text(&directory.join(name), LINK_BYTES_MAX)?;
        fs::canonicalize(directory.join(text.trim())).ok()
    };
    let is_named = worktrees.ends_with("worktrees")
        && named("commondir")? == common
        && named("gitdir")? == fs::canonicalize(mark).ok()?;
    is_named.then(|| common.to_owned())
}

/// The repository of a submodule: one whose `core.worktree` is this work tree.
fn submodule(directory: &Path, root: &Path) -> Option<PathBuf> {
    let entries = parse(&read_file(&directory.join("config"))?).ok()?;
    let named = |entry: &&super::syntax::ConfigEntry| {
        entry.subsection.is_none() && entry.name() == "core.worktree"
    };
    let worktree = entries.iter().rfind(named)?.value.as_deref()?;
    let is_named = fs::canonicalize(directory.join(worktree)).ok()? == root;
    is_named.then(|| directory.to_owned())
}

/// The files of one directory that hold secrets by their names; nothing where it has more
/// entries than are looked at.
fn secrets(directory: &Path) -> Option<Vec<GitPlace>> {
    let mut found = Vec::new();
    for (count, entry) in fs::read_dir(directory).ok()?.enumerate() {
        if count >= NEIGHBOURS_MAX {
            return None;
        }
        let entry = entry.ok()?;
        if is_secret(&entry.file_name().to_string_lossy()) {
            found.push(GitPlace {
                access: GitAccess::Deny,
                path: entry.path(),
                what: "secrets above the working directory",
            });
        }
    }
    Some(found)
}

/// Whether a file of this name holds secrets, as people and programs name them.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let samples = ["example", "sample", "template", "dist", "defaults"];
    let is_sample = samples.iter().any(|sample| name.contains(sample));
    let exact = [
        ".env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pypirc",
        ".git-credentials",
        ".htpasswd",
        ".aws",
        ".ssh",
        ".gnupg",
        ".azure",
        ".kube",
        ".docker",
        ".password-store",
        "credentials.json",
        "credentials.toml",
        "terraform.tfstate",
    ];
    let beginnings = [
        ".env.",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        "service-account",
        "secrets.",
    ];
    let ends = [
        ".pem",
        ".key",
        ".p12",
        ".pfx",
        ".jks",
        ".keystore",
        ".kdbx",
        ".tfvars",
    ];
    let is_public = name.rsplit_once('.').is_some_and(|(_, end)| end == "pub");
    exact.contains(&name.as_str())
        || (!is_sample
            && !is_public
            && (beginnings.iter().any(|begin| name.starts_with(begin))
                || ends.iter().any(|end| name.ends_with(end))))
}
