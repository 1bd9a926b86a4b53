//! Policy texts in merge order: presets and files are read here, once, with
//! what they extend before them. The compiler and the gateway get the texts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use outgate_policy::{PolicyErrors, Source, SourceKind, extends, preset, preset_names};

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
        source: std::io::Error,
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
    /// Too many documents, or a document extends itself.
    #[error("more than {DOCUMENTS_MAX} policy documents extend one another")]
    Many,
    /// A document's `extends` cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
}

/// Collects documents in merge order.
#[derive(Debug, Default)]
pub struct Collector {
    sources: Vec<Source>,
    seen: HashSet<String>,
}

impl Collector {
    /// Adds a shipped preset and what it extends.
    ///
    /// # Errors
    /// [`SourceError::Preset`] when there is none of that name.
    pub fn preset(&mut self, name: &str) -> Result<(), SourceError> {
        let text = preset(name).ok_or_else(|| SourceError::Preset {
            name: name.to_owned(),
        })?;
        let place = format!("preset `{name}`");
        self.document(place, text.to_owned(), Path::new("/"))
    }

    /// Adds a policy file and what it extends.
    ///
    /// # Errors
    /// [`SourceError`] names the file.
    pub fn file(&mut self, path: &Path) -> Result<(), SourceError> {
        let shown = path.display().to_string();
        let failed = |source| SourceError::File {
            path: shown.clone(),
            source,
        };
        let size = std::fs::metadata(path).map_err(failed)?.len();
        if size > FILE_BYTES_MAX {
            return Err(SourceError::Large { path: shown });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        self.document(shown, text, &base)
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
            if preset(&name).is_some() {
                self.preset(&name)?;
            } else if name.contains(['/', '.']) {
                self.file(&base.join(PathBuf::from(name)))?;
            } else {
                return Err(SourceError::Preset { name });
            }
        }
        self.sources.push(source);
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
