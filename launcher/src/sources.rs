//! Policy texts in merge order: presets and files are read here, once, with
//! what they extend before them. The compiler and the gateway get the texts.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use outgate_handoff::{POLICY_BYTES_MAX, SOURCES_MAX};
use outgate_policy::{
    Client, ClientError, Configuration, PolicyErrors, Source, SourceKind, extends, preset,
    preset_names,
};

use crate::project::{project, project_files};
use crate::secrets::quoted;

/// Bytes of one policy file at most.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Files and presets of one run at most, those extended included.
const DOCUMENTS_MAX: usize = 64;

/// Why a policy text cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file cannot be read: whoever named it.
    #[error("policy file `{path}`")]
    File {
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A project's own file cannot be read: whoever made it.
    #[error("the project's policy file `{path}` (to go without it: --no-project)")]
    Project {
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is too large.
    #[error("policy file `{path}` is larger than {FILE_BYTES_MAX} bytes")]
    Large {
        /// The path.
        path: String,
    },
    /// No such preset.
    #[error("there is no preset `{name}`; there are: {}", preset_names().join(", "))]
    Preset {
        /// The name.
        name: String,
    },
    /// A client's configuration names no registries to allow.
    #[error("{place}: {error}")]
    Client {
        /// The preset.
        place: String,
        /// What is missing or wrong.
        error: ClientError,
    },
    /// Too many documents.
    #[error("more than {DOCUMENTS_MAX} policy documents extend one another")]
    Many,
    /// More text than a session takes: whoever wrote it.
    #[error("the policy has {what}, more than {max}")]
    Total {
        /// What there is too much of, counted.
        what: String,
        /// The limit, in the same unit.
        max: usize,
    },
    /// A document's `extends` cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
}

/// What presets about clients read: the user's home, and the variables that a
/// user can set.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home directory; may be empty.
    pub home: String,
    /// Names and values, in the order of the names.
    pub variables: Vec<(String, String)>,
}

/// Collects documents in merge order.
#[derive(Debug, Default)]
pub struct Collector {
    surroundings: Surroundings,
    sources: Vec<Source>,
    seen: HashSet<String>,
    consulted: Vec<PathBuf>,
}

impl Collector {
    /// One that finds the configuration of clients here.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            ..Self::default()
        }
    }

    /// Files beside policies that say what is allowed: a command that may write
    /// one would say it.
    pub fn consulted(&self) -> &[PathBuf] {
        &self.consulted
    }

    /// Adds a shipped preset and what it extends.
    ///
    /// # Errors
    /// [`SourceError::Preset`] when there is none of that name.
    pub fn preset(&mut self, name: &str) -> Result<(), SourceError> {
        let text = preset(name).ok_or_else(|| SourceError::Preset {
            name: name.to_owned(),
        })?;
        let place = format!("preset `{name}`");
        match Client::named(name) {
            Some(client) => self.registries(client, &place),
            None => self.document(place, text.to_owned(), Path::new("/")),
        }
    }

    /// Adds the registries that the user configured for a client.
    fn registries(&mut self, client: Client, place: &str) -> Result<(), SourceError> {
        if !self.seen.insert(place.to_owned()) {
            return Ok(());
        }
        let Surroundings { home, variables } = &self.surroundings;
        let variable = |name: &str| {
            let mut all = variables.iter();
            all.find(|(own, _)| own == name)
                .map(|(_, value)| value.clone())
        };
        let mut files = Vec::new();
        for path in client.files(home, &variable) {
            let path = PathBuf::from(path);
            if let Some(text) = configuration(&path)? {
                let shown = path.display().to_string();
                let below = shown
                    .strip_prefix(home.as_str())
                    .filter(|_| !home.is_empty());
                let place = below.map(|below| format!("~{below}")).unwrap_or(shown);
                files.push(Configuration { place, text });
            }
            // One that is not there yet counts as well.
            self.consulted.push(path);
        }
        let registries = client.registries(&files, variables);
        let registries = registries.map_err(|error| SourceError::Client {
            place: place.to_owned(),
            error,
        })?;
        let handed = client.handed(&files, variables);
        for registry in registries {
            let place = format!("{place}: {}", registry.place);
            self.text(SourceKind::Allow, &place, &registry.rule);
        }
        // The files hold tokens, so no command reads them: it would ask another registry.
        let lines: Vec<String> = handed
            .iter()
            .map(|(name, value)| format!("{} = {}\n", quoted(name), quoted(value)))
            .collect();
        if !lines.is_empty() {
            let text = format!("[environment.set]\n{}", lines.concat());
            self.text(SourceKind::Document, place, &text);
        }
        Ok(())
    }

    /// Adds a policy file and what it extends.
    ///
    /// # Errors
    /// [`SourceError`] names the file.
    pub fn file(&mut self, path: &Path) -> Result<(), SourceError> {
        let Source { place, text, .. } = document(path)?;
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        self.document(place, text, &base)
    }

    /// Adds what `extends` would mean by this name: a preset, or a file whose
    /// path has a slash or a dot and begins in `base`.
    ///
    /// # Errors
    /// [`SourceError`] names the preset or the file.
    pub fn named(&mut self, name: &str, base: &Path) -> Result<(), SourceError> {
        if preset(name).is_some() {
            self.preset(name)
        } else if name.contains(['/', '.']) {
            self.file(&base.join(PathBuf::from(name)))
        } else {
            Err(SourceError::Preset {
                name: name.to_owned(),
            })
        }
    }

    fn document(&mut self, place: String, text: String, base: &Path) -> Result<(), SourceError> {
        if !self.seen.insert(place.clone()) {
            return Ok(());
        }
        if self.seen.len() > DOCUMENTS_MAX {
            return Err(SourceError::Many);
        }
        let source = Source {
            kind: SourceKind::Document,
            place,
            text,
        };
        for name in extends(&source)? {
            self.named(&name, base)?;
        }
        self.sources.push(source);
        Ok(())
    }

    /// Adds the files of the project that `directory` belongs to.
    ///
    /// # Errors
    /// [`SourceError`] names the file.
    pub fn project(&mut self, directory: &Path, home: &Path) -> Result<(), SourceError> {
        for path in project_files(directory, home) {
            self.sources.push(project(&path, directory)?);
        }
        Ok(())
    }

    /// Adds a text from the command line.
    pub fn text(&mut self, kind: SourceKind, place: &str, text: &str) {
        self.sources.push(Source {
            kind,
            place: place.to_owned(),
            text: text.to_owned(),
        });
    }

    /// All texts, in merge order.
    pub fn finish(self) -> Vec<Source> {
        self.sources
    }
}

/// The text of a client's configuration; nothing where it is not there.
fn configuration(path: &Path) -> Result<Option<String>, SourceError> {
    let shown = || path.display().to_string();
    let failed = |source| SourceError::File {
        path: shown(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(None);
    }
    let bytes = bounded(file).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| SourceError::Large { path: shown() })?;
    text(bytes).map(Some).map_err(failed)
}

/// Reads a policy file, without what it extends.
///
/// # Errors
/// [`SourceError`] names the file.
pub fn document(path: &Path) -> Result<Source, SourceError> {
    let shown = path.display().to_string();
    let failed = |source| SourceError::File {
        path: shown.clone(),
        source,
    };
    let bytes = File::open(path).and_then(bounded).map_err(failed)?;
    let Some(bytes) = bytes else {
        return Err(SourceError::Large { path: shown });
    };
    let text = text(bytes).map_err(failed)?;
    Ok(Source {
        kind: SourceKind::Document,
        place: shown,
        text,
    })
}

/// The bytes of a file, or `None` when there are more than the limit. What is
/// read counts: pipes and devices have no size of their own.
pub(crate) fn bounded(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = file
        .take(FILE_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(u64::try_from(read)
        .is_ok_and(|read| read <= FILE_BYTES_MAX)
        .then_some(bytes))
}

/// Bytes of a file as text.
pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into())
}

/// Checks that the texts together are what one session takes, so that too
/// many are refused at the start and not at the first connection.
///
/// # Errors
/// [`SourceError::Total`] names the limit.
pub fn check_total(sources: &[Source]) -> Result<(), SourceError> {
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let within = |count: usize, unit: &str, max: usize| {
        if count <= max {
            return Ok(());
        }
        Err(SourceError::Total {
            what: format!("{count} {unit}"),
            max,
        })
    };
    within(
        sources.len(),
        "documents, rules, paths and pins",
        SOURCES_MAX,
    )?;
    within(bytes, "bytes", POLICY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_file_is_read_within_its_bound_whatever_it_is() {
        for path in ["/dev/zero", "/dev/urandom"] {
            let error = Collector::default().file(Path::new(path)).unwrap_err();
            assert!(matches!(error, SourceError::Large { .. }), "{error}");
        }
        let error = Collector::default()
            .file(Path::new("/proc/self/exe"))
            .unwrap_err();
        assert!(matches!(error, SourceError::Large { .. }), "{error}");
        assert!(Collector::default().file(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn more_than_a_session_takes_is_refused_before_it_starts() {
        let source = |text: &str| Source {
            kind: SourceKind::Allow,
            place: "-a".to_owned(),
            text: text.to_owned(),
        };
        let many = vec![source("a.test"); SOURCES_MAX];
        assert!(check_total(&many).is_ok());
        assert!(check_total(&[many, vec![source("b.test")]].concat()).is_err());
        let long = source(&"x".repeat(POLICY_BYTES_MAX));
        assert!(check_total(std::slice::from_ref(&long)).is_ok());
        assert!(check_total(&[long, source("x")]).is_err());
    }
}
