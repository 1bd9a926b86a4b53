//! Manifests that their user has read and accepted: where each lies, and what it and the files
//! it builds on said. Kept in the state directory for its user alone, where no command writes.
//! Written and read here only.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::Uid;
use sha2::{Digest as _, Sha256};

use crate::manifest::ManifestFiles;
use crate::record::records_directory;

/// What such a file begins with.
const MAGIC: &[u8] = b"outgate accepted 1\n";

/// Bytes of such a file that are read: far above those of a manifest.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Files of a directory that are looked at.
const FILES_MAX: usize = 4096;

/// What of a mode says who may do what.
const MODE_BITS: u32 = 0o777;

/// Hexadecimal digits of a hash that are shown.
const SHOWN_DIGITS: usize = 16;

/// Where accepted manifests are kept, by the variables `XDG_STATE_HOME` and `HOME`.
pub fn accepted_directory(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let records = records_directory(state, home)?;
    Some(records.parent()?.join("accepted"))
}

/// One manifest that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedManifest {
    /// Where it lies.
    pub path: PathBuf,
    /// It, and the files it builds on, as of [`ManifestFiles::files`].
    pub files: Vec<(String, String)>,
}

/// What was accepted, in a directory.
#[derive(Debug)]
pub struct AcceptedManifests {
    directory: PathBuf,
}

impl AcceptedManifest {
    /// What is accepted by accepting these.
    pub fn of(found: &ManifestFiles) -> Self {
        Self {
            path: found.path(),
            files: found.files.clone(),
        }
    }

    /// The hash of all that was accepted.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.encoded());
        hexadecimal(&digest)
    }

    /// The beginning of it, for people.
    pub fn shown_hash(&self) -> String {
        let digits: String = self.hash().chars().take(SHOWN_DIGITS).collect();
        format!("sha256:{digits}")
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, self.path.as_os_str().as_bytes());
        for (name, text) in &self.files {
            put(&mut out, name.as_bytes());
            put(&mut out, text.as_bytes());
        }
        out
    }

    /// Reads what was written whole; nothing else is one.
    fn decoded(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let path = taken(&mut rest)?;
        let mut files = Vec::new();
        while !rest.is_empty() {
            let name = String::from_utf8(taken(&mut rest)?).ok()?;
            let text = String::from_utf8(taken(&mut rest)?).ok()?;
            files.push((name, text));
        }
        Some(Self {
            path: OsString::from_vec(path).into(),
            files,
        })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // What is longer was not read.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend(length.to_le_bytes());
    out.extend(bytes);
}

fn taken(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (own, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(own.to_vec())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl AcceptedManifests {
    /// Those in this directory, which need not be there.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// What was accepted of the manifest at a path.
    ///
    /// # Errors
    /// The directory is not its user's alone, or the file cannot be read, or is none.
    pub fn of(&self, path: &Path) -> io::Result<Option<AcceptedManifest>> {
        if !self.is_there()? {
            return Ok(None);
        }
        let Some(own) = self.read(&name(path))? else {
            return Ok(None);
        };
        if own.path == path {
            Ok(Some(own))
        } else {
            Err(odd("it is about another manifest"))
        }
    }

    /// Keeps what was accepted, in the place of what was before.
    ///
    /// # Errors
    /// Those of open(2), write(2) and rename(2), and as of [`Self::of`].
    pub fn accept(&self, own: &AcceptedManifest) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        self.is_there()?;
        let to = self.directory.join(name(&own.path));
        let draft = to.with_extension(format!("new-{}", std::process::id()));
        let mut options = OpenOptions::new();
        let made = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft);
        let written = made.and_then(|mut file| {
            file.write_all(&own.encoded())?;
            file.sync_all()?;
            std::fs::rename(&draft, &to)
        });
        if written.is_err() {
            std::fs::remove_file(&draft).ok();
        }
        written
    }

    /// Forgets what was accepted of the manifest at a path; whether there was something.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub fn revoke(&self, path: &Path) -> io::Result<bool> {
        match std::fs::remove_file(self.directory.join(name(path))) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All of them, by their paths. What is no such file is left out.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub fn list(&self) -> io::Result<Vec<AcceptedManifest>> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&self.directory)?.take(FILES_MAX);
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let read = names.filter_map(|name| self.read(&name).ok()?);
        let mut all: Vec<AcceptedManifest> = read.collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(all)
    }

    /// Whether the directory is there.
    ///
    /// # Errors
    /// Others could write what stands in it.
    fn is_there(&self) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW);
        let found = match options.open(&self.directory) {
            Ok(directory) => directory.metadata()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if found.uid() != Uid::effective().as_raw() || found.mode() & MODE_BITS != 0o700 {
            return Err(odd(
                "it is not yours alone: `chmod 700` it, and look who wrote in it",
            ));
        }
        Ok(true)
    }

    fn read(&self, name: &OsStr) -> io::Result<Option<AcceptedManifest>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let file: File = match options.open(self.directory.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        let is_own = found.uid() == Uid::effective().as_raw() && found.mode() & MODE_BITS == 0o600;
        if !found.is_file() || !is_own {
            return Err(odd("a file in it is not yours alone"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        let own = AcceptedManifest::decoded(&bytes);
        own.map(Some)
            .ok_or_else(|| odd("a file in it is damaged: `outgate trust --revoke`"))
    }
}

/// The name of the file about the manifest at a path.
fn name(path: &Path) -> OsString {
    hexadecimal(&Sha256::digest(path.as_os_str().as_bytes())).into()
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str, files: &[(&str, &str)]) -> AcceptedManifest {
        let files = files.iter();
        AcceptedManifest {
            path: path.into(),
            files: files
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_cut_or_longer_is() {
        let own = manifest(
            "/p/outgate.toml",
            &[("outgate.toml", "a\n"), ("b.toml", "")],
        );
        let bytes = own.encoded();
        assert_eq!(AcceptedManifest::decoded(&bytes), Some(own.clone()));
        let ends = [
            bytes.len() - 4 - "b.toml".len() - 4,
            MAGIC.len() + 4 + "/p/outgate.toml".len(),
        ];
        for cut in (0..bytes.len()).filter(|cut| !ends.contains(cut)) {
            assert_eq!(AcceptedManifest::decoded(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(
            AcceptedManifest::decoded(&[&bytes[..], b"x"].concat()),
            None
        );
    }

    #[test]
    fn nothing_else_has_the_same_hash() {
        let own = manifest("/p/outgate.toml", &[("outgate.toml", "ab")]);
        for other in [
            manifest("/q/outgate.toml", &[("outgate.toml", "ab")]),
            manifest("/p/outgate.toml", &[("outgate.toml", "a")]),
            manifest("/p/outgate.toml", &[("outgate.toml", "a"), ("b", "")]),
            manifest("/p/outgate.toml", &[("outgate.tomla", "b")]),
            manifest("/p/outgate.toml", &[]),
        ] {
            assert_ne!(own.hash(), other.hash(), "{other:?}");
        }
    }
}
