//! A project's manifest: found from a directory upward, and read with the files that it builds
//! on. Each is read once, and what was read is what is shown, accepted and run. Whoever wrote
//! them is trusted with nothing here; what others could write is refused, and nothing is
//! waited for.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::Uid;
use outgate_policy::{
    Manifest, PolicyErrors, Source, SourceKind, extends, manifest, of_command, preset, printable,
};

use crate::limits::DOCUMENTS_MAX;
use crate::private::HeldDirectory;
use crate::sources::{PolicyTextError, SourceCollector};

/// The name of such a file.
pub const MANIFEST_FILE: &str = "outgate.toml";

/// Directories looked into at most.
const DEPTH_MAX: usize = 64;

/// Bytes of a manifest and all files it builds on, at most: somebody reads what they grant.
const MANIFEST_BYTES_MAX: usize = 256 * 1024;

/// Bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The one by which everybody may.
const ANYBODY_WRITES: u32 = 0o002;

/// Why there is no manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// None was found.
    #[error("there is no `{MANIFEST_FILE}` from `{from}` upward, to {end}")]
    Absent {
        /// Where the search began.
        from: String,
        /// Where it ended, in words.
        end: String,
    },
    /// It cannot be read: whoever made it.
    #[error("`{path}`")]
    File {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is not for this user to take: its owner's.
    #[error("`{path}` {what}")]
    Odd {
        /// The file.
        path: String,
        /// What is odd, in words.
        what: &'static str,
    },
    /// There is too much of it.
    #[error("`{path}` and what it extends have more than {MANIFEST_BYTES_MAX} bytes")]
    Large {
        /// The manifest.
        path: String,
    },
    /// It extends a file that is not beside it: its author's.
    #[error("`{path}` extends `{name}`, which is not a file beside or below it")]
    Elsewhere {
        /// The file that extends.
        path: String,
        /// The name.
        name: String,
    },
    /// It extends too much.
    #[error("`{path}` extends more than {DOCUMENTS_MAX} files")]
    Many {
        /// The manifest.
        path: String,
    },
    /// It is wrong: its author's.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
}

impl ManifestError {
    /// What to do.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Absent { .. } => "write one: `outgate up --help` shows how it looks".to_owned(),
            Self::Odd { path, what } if *what == WRITABLE => {
                format!("look who wrote it, and take that away: `chmod go-w '{path}'`")
            }
            Self::Odd { what, .. } if *what == FOREIGN => {
                "have a copy of your own, which you read".to_owned()
            }
            Self::Odd { .. } => "put a regular file there".to_owned(),
            Self::Elsewhere { .. } => {
                "write its path from there, as `./ci/npm.toml`: letters, digits, `.`, `-` and `_`, \
                 without `..`"
                    .to_owned()
            }
            Self::Large { .. } | Self::Many { .. } => "take some out".to_owned(),
            Self::File { .. } | Self::Policy(_) => return None,
        };
        Some(text)
    }
}

const WRITABLE: &str = "may be written by others than its owner";
const FOREIGN: &str = "belongs to another user";

/// A manifest and the files that it builds on, as they were read.
#[derive(Debug, Clone)]
pub struct ManifestFiles {
    /// The directory itself, whatever its path leads to by now.
    pub place: HeldDirectory,
    /// The directory it lies in, without links.
    pub directory: PathBuf,
    /// What it says beside policies.
    pub manifest: Manifest,
    /// Each by its path from the directory, with its text; the manifest first.
    pub files: Vec<(String, String)>,
}

/// A directory while a manifest is looked for.
struct Looked {
    directory: OwnedFd,
    found: FileStat,
}

impl Looked {
    fn at(directory: OwnedFd) -> io::Result<Self> {
        let found = fstat(&directory)?;
        Ok(Self { directory, found })
    }

    /// Why nobody looks here; nothing where somebody does.
    fn end(&self) -> Option<&'static str> {
        if self.found.st_uid != Uid::effective().as_raw() {
            Some("which is another user's")
        } else if self.found.st_mode & ANYBODY_WRITES != 0 {
            Some("where anybody may write")
        } else {
            None
        }
    }

    fn path(&self) -> PathBuf {
        let number = self.directory.as_raw_fd();
        std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_else(|_| "?".into())
    }
}

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

/// How files are opened: never through a link, and never waiting for anybody.
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

/// Finds the manifest for a directory, in it or above, and reads it. Looked for up to the
/// root, and to the first directory that is another user's or that anybody may write.
///
/// # Errors
/// [`ManifestError`].
pub fn found(from: &Path) -> Result<ManifestFiles, ManifestError> {
    let failed = |source| ManifestError::File {
        path: from.display().to_string(),
        source,
    };
    let begun = open(from, DIRECTORY, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let mut here = Looked::at(begun).map_err(failed)?;
    let start = here.path();
    let absent = |end: String| ManifestError::Absent {
        from: start.display().to_string(),
        end,
    };
    for _ in 0..DEPTH_MAX {
        if let Some(why) = here.end() {
            return Err(absent(format!("`{}`, {why}", here.path().display())));
        }
        match openat(&here.directory, MANIFEST_FILE, FILE, Mode::empty()) {
            Ok(file) => return read(&here, file),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(unopened(&here.path().join(MANIFEST_FILE), errno)),
        }
        let above = openat(&here.directory, "..", DIRECTORY, Mode::empty());
        let above = above.map_err(io::Error::from).and_then(Looked::at);
        let above = above.map_err(failed)?;
        let same = |one: &FileStat, other: &FileStat| {
            (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
        };
        if same(&above.found, &here.found) {
            return Err(absent("the root".to_owned()));
        }
        here = above;
    }
    Err(absent(format!("{DEPTH_MAX} directories above")))
}

fn unopened(path: &Path, errno: Errno) -> ManifestError {
    let path = path.display().to_string();
    match errno {
        Errno::ELOOP => ManifestError::Odd {
            path,
            what: "is a link",
        },
        errno => ManifestError::File {
            path,
            source: errno.into(),
        },
    }
}

/// What is read, and how much may still be.
struct Reading<'a> {
    here: &'a Looked,
    directory: PathBuf,
    files: Vec<(String, String)>,
    left: usize,
}

fn read(here: &Looked, file: OwnedFd) -> Result<ManifestFiles, ManifestError> {
    let mut reading = Reading {
        here,
        directory: here.path(),
        files: Vec::new(),
        left: MANIFEST_BYTES_MAX,
    };
    let text = reading.take(MANIFEST_FILE, file)?;
    let found = manifest(MANIFEST_FILE, &text)?;
    reading.files.push((MANIFEST_FILE.to_owned(), text));
    let mut names = found.extends.clone().unwrap_or_default();
    for command in &found.commands {
        names.extend(command.extends.clone().unwrap_or_default());
    }
    let mut open: Vec<(String, String)> = names
        .into_iter()
        .map(|name| (MANIFEST_FILE.to_owned(), name))
        .collect();
    while let Some((by, name)) = open.pop() {
        let Some(path) = reading.named(&by, &name)? else {
            continue;
        };
        if reading.files.iter().any(|(known, _)| *known == path) {
            continue;
        }
        if reading.files.len() > DOCUMENTS_MAX {
            return Err(ManifestError::Many {
                path: reading.shown(MANIFEST_FILE),
            });
        }
        let text = reading.beside(&path)?;
        let source = document(&path, &text);
        let further = extends(&source)?.unwrap_or_default();
        open.extend(further.into_iter().map(|name| (path.clone(), name)));
        reading.files.push((path, text));
    }
    // The order in which they were found says nothing.
    if let Some(files) = reading.files.get_mut(1..) {
        files.sort();
    }
    let number = here.directory.as_raw_fd();
    let held = HeldDirectory::open(Path::new(&format!("/proc/self/fd/{number}")));
    Ok(ManifestFiles {
        place: held.map_err(|source| ManifestError::File {
            path: reading.directory.display().to_string(),
            source,
        })?,
        directory: reading.directory,
        manifest: found,
        files: reading.files,
    })
}

impl Reading<'_> {
    fn shown(&self, path: &str) -> String {
        self.directory.join(path).display().to_string()
    }

    /// The path from the directory of what a file extends; none for a shipped policy.
    fn named(&self, by: &str, name: &str) -> Result<Option<String>, ManifestError> {
        match beside(by, name) {
            Beside::Preset => Ok(None),
            Beside::File(path) => Ok(Some(path)),
            Beside::Elsewhere => Err(ManifestError::Elsewhere {
                path: self.shown(by),
                name: printable(name),
            }),
        }
    }

    /// Reads a file below the directory, through no link.
    fn beside(&mut self, path: &str) -> Result<String, ManifestError> {
        let how = OpenHow::new()
            .flags(FILE)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
        let opened = openat2(&self.here.directory, path, how);
        let file = opened.map_err(|errno| unopened(&self.directory.join(path), errno))?;
        self.take(path, file)
    }

    /// The text of an open file.
    fn take(&mut self, path: &str, file: OwnedFd) -> Result<String, ManifestError> {
        let shown = self.shown(path);
        let failed = |source| ManifestError::File {
            path: shown.clone(),
            source,
        };
        let found = fstat(&file).map_err(|errno| failed(errno.into()))?;
        if let Some(what) = odd(&found) {
            return Err(ManifestError::Odd { path: shown, what });
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(self.left).unwrap_or(0).saturating_add(1);
        let count = File::from(file).take(most).read_to_end(&mut bytes);
        let count = count.map_err(failed)?;
        self.left = self.left.checked_sub(count).ok_or(ManifestError::Large {
            path: self.shown(MANIFEST_FILE),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into());
        text.map_err(failed)
    }
}

/// What keeps a file from being taken, in words.
fn odd(found: &FileStat) -> Option<&'static str> {
    let kind = found.st_mode & SFlag::S_IFMT.bits();
    if kind != SFlag::S_IFREG.bits() {
        Some("is no regular file")
    } else if found.st_uid != Uid::effective().as_raw() {
        Some(FOREIGN)
    } else if found.st_mode & OTHERS_WRITE != 0 {
        Some(WRITABLE)
    } else {
        None
    }
}

/// What a name in `extends` means.
#[derive(Debug, PartialEq, Eq)]
enum Beside {
    /// A shipped policy, or nothing.
    Preset,
    /// A file, by its path from the directory of the manifest.
    File(String),
    /// One that lies elsewhere.
    Elsewhere,
}

/// What a name means in a file, which is named by its path from the directory.
fn beside(by: &str, name: &str) -> Beside {
    if preset(name).is_some() || !name.contains(['/', '.']) {
        return Beside::Preset;
    }
    let base = Path::new(by).parent().unwrap_or(Path::new(""));
    let mut parts = Vec::new();
    for part in base.join(name).components() {
        match (part, part.as_os_str().to_str()) {
            (Component::CurDir, _) => {}
            (Component::Normal(_), Some(own)) if own.chars().all(is_plain) => {
                parts.push(own.to_owned());
            }
            _ => return Beside::Elsewhere,
        }
    }
    if parts.is_empty() {
        return Beside::Elsewhere;
    }
    Beside::File(parts.join("/"))
}

/// Whether a sign may stand in the name of a file: it is told as the place of what the file
/// says, and no other may pass for one of a shipped policy, or as several.
fn is_plain(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "._-+@".contains(sign)
}

fn document(path: &str, text: &str) -> Source {
    Source {
        kind: SourceKind::Document,
        place: path.to_owned(),
        text: text.to_owned(),
    }
}

/// Whether its user has accepted a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestTrust {
    /// They have: it grants what it says.
    Accepted,
    /// They have not: it narrows, and what would grant is refused.
    Unread,
}

/// The policy that a manifest has for one of its commands, as it was read.
#[derive(Debug, Clone)]
pub struct ManifestPolicy {
    files: ManifestFiles,
    command: String,
    trust: ManifestTrust,
}

impl ManifestPolicy {
    /// Adds it, and what it builds on.
    ///
    /// # Errors
    /// [`PolicyTextError`]: a shipped policy that there is none of, or a fault.
    pub fn collect(&self, collector: &mut SourceCollector) -> Result<(), PolicyTextError> {
        self.files.collect(collector, (&self.command, self.trust))
    }
}

impl ManifestFiles {
    /// Where the manifest lies.
    pub fn path(&self) -> PathBuf {
        self.directory.join(MANIFEST_FILE)
    }

    /// The text of the manifest.
    pub fn text(&self) -> &str {
        self.files.first().map_or("", |(_, text)| text)
    }

    /// The policy of one of the commands, by its name.
    pub fn policy(&self, command: &str, trust: ManifestTrust) -> ManifestPolicy {
        ManifestPolicy {
            files: self.clone(),
            command: command.to_owned(),
            trust,
        }
    }

    fn collect(
        &self,
        collector: &mut SourceCollector,
        (command, trust): (&str, ManifestTrust),
    ) -> Result<(), PolicyTextError> {
        let own = self.manifest.command(Some(command));
        if trust == ManifestTrust::Accepted {
            let all = [
                self.manifest.extends.as_ref(),
                own.and_then(|own| own.extends.as_ref()),
            ];
            let mut seen = HashSet::new();
            for names in all.into_iter().flatten() {
                self.extended((collector, &mut seen), (MANIFEST_FILE, names))?;
            }
        }
        let kind = match trust {
            ManifestTrust::Accepted => SourceKind::Manifest,
            ManifestTrust::Unread => SourceKind::UntrustedManifest,
        };
        collector.add(of_command(kind, MANIFEST_FILE, (command, self.text())));
        Ok(())
    }

    /// Adds what one of the files builds on, of what was read.
    fn extended(
        &self,
        (collector, seen): (&mut SourceCollector, &mut HashSet<String>),
        (by, names): (&str, &[String]),
    ) -> Result<(), PolicyTextError> {
        if names.is_empty() {
            collector.begin_with_nothing();
        }
        for name in names {
            let path = match beside(by, name) {
                Beside::Preset => {
                    collector.preset(name)?;
                    continue;
                }
                Beside::File(path) => path,
                Beside::Elsewhere => continue,
            };
            let text = self.files.iter().find(|(known, _)| *known == path);
            let Some((_, text)) = text.filter(|_| seen.insert(path.clone())) else {
                continue;
            };
            let source = document(&path, text);
            if let Some(names) = extends(&source)? {
                self.extended((&mut *collector, &mut *seen), (&path, &names))?;
            }
            collector.add(source);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_file_beside_the_one_it_stands_in_or_none() {
        let file = |path: &str| Beside::File(path.to_owned());
        for (by, name, meant) in [
            ("outgate.toml", "dev-tools", Beside::Preset),
            ("outgate.toml", "no-such-preset", Beside::Preset),
            ("outgate.toml", "./a.toml", file("a.toml")),
            ("outgate.toml", "a.toml", file("a.toml")),
            ("outgate.toml", "ci//./a.toml", file("ci/a.toml")),
            ("ci/a.toml", "./b.toml", file("ci/b.toml")),
            ("ci/a.toml", "../b.toml", Beside::Elsewhere),
            ("outgate.toml", "ci/../a.toml", Beside::Elsewhere),
            ("outgate.toml", "/etc/a.toml", Beside::Elsewhere),
            ("outgate.toml", "~/a.toml", Beside::Elsewhere),
            ("outgate.toml", "./preset `base`", Beside::Elsewhere),
            ("outgate.toml", "./a b.toml", Beside::Elsewhere),
            ("outgate.toml", "./a\n.toml", Beside::Elsewhere),
            ("outgate.toml", "./\u{e4}.toml", Beside::Elsewhere),
            ("outgate.toml", ".", Beside::Elsewhere),
            ("outgate.toml", "/", Beside::Elsewhere),
        ] {
            assert_eq!(beside(by, name), meant, "{by}: {name:?}");
        }
    }
}
