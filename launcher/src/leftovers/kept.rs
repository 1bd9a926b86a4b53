//! What is kept of a run's leftovers, beside its record, for its user alone: what each file
//! held before and after. Written and read here only.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use super::file::{FileContent, FileState};
use super::limits::{KEPT_BYTES_MAX, KEPT_RUNS_MAX, LEFTOVERS_MAX};
use super::table::KINDS;
use super::{Leftover, LeftoverChange, LeftoverLook, LeftoversError, Was};

/// The end of such a file's name; before it stands the name of the run's record.
pub(super) const EXTENSION: &str = "leftovers";
const MAGIC: &[u8] = b"outgate leftovers 1\n";

/// Leftovers of one run.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptLeftovers {
    /// Name of the sandbox.
    pub run: String,
    /// Where the run began.
    pub directory: PathBuf,
    /// Each of them.
    pub left: Vec<Leftover>,
}

impl KeptLeftovers {
    /// Writes a file for its user alone; where it is.
    ///
    /// # Errors
    /// Those of open(2) and write(2).
    pub fn write(
        look: LeftoverLook,
        directory: &Path,
        to: (&Path, &str),
        run: &str,
    ) -> io::Result<PathBuf> {
        let kept = Self {
            run: run.to_owned(),
            directory: directory.to_owned(),
            left: look.left,
        };
        let (records, stem) = to;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(records)?;
        prune(records);
        let path = records.join(format!("{stem}.{EXTENSION}"));
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let written = file.write_all(&kept.encoded());
        if written.is_err() {
            // Half of it would say that there was no more.
            std::fs::remove_file(&path).ok();
        }
        written.map(|()| path)
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`LeftoversError::File`] and [`LeftoversError::Form`].
    pub fn read(path: &Path) -> Result<Self, LeftoversError> {
        let named = |source| LeftoversError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let file: File = options.open(path).map_err(named)?;
        let mut bytes = Vec::new();
        file.take(KEPT_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(named)?;
        let read = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| KeptReader { rest }.kept());
        read.ok_or_else(|| LeftoversError::Form {
            path: path.to_owned(),
        })
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, self.run.as_bytes());
        put(&mut out, self.directory.as_os_str().as_bytes());
        for left in &self.left {
            put(&mut out, left.token().as_bytes());
            put(&mut out, left.path.as_os_str().as_bytes());
            put(&mut out, left.change.word().as_bytes());
            match &left.was {
                Was::Absent => put(&mut out, b"absent"),
                Was::Unknown => put(&mut out, b"unknown"),
                Was::Known { content, mode } => {
                    put(&mut out, b"known");
                    put(&mut out, &mode.to_le_bytes());
                    put_content(&mut out, content);
                }
            }
            put_content(&mut out, &left.is);
            let state = left.state;
            let numbers = [state.device, state.inode, state.mode.into()];
            let signed = [state.changed.0, state.changed.1, state.size];
            let numbers = numbers.into_iter().chain(signed.map(i64::cast_unsigned));
            put(
                &mut out,
                &numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>(),
            );
        }
        out
    }
}

/// Removes the oldest so that with a new one the limit is kept, and what was kept of files
/// that were put back.
fn prune(records: &Path) {
    let kept = list(records).unwrap_or_default();
    let surplus = kept.len().saturating_add(1).saturating_sub(KEPT_RUNS_MAX);
    for path in kept.iter().take(surplus) {
        std::fs::remove_file(path).ok();
    }
    // Those of runs of which nothing else is kept any more, by us or by who keeps records.
    for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_backup = path
            .extension()
            .is_some_and(|end| end.as_bytes().starts_with(b"reverted"));
        if is_backup && !path.with_extension(EXTENSION).exists() {
            std::fs::remove_dir_all(&path).ok();
        }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // No field is longer: files are read up to a bound far below.
    let length = u32::try_from(bytes.len()).unwrap_or(0);
    out.extend(length.to_le_bytes());
    out.extend(bytes.iter().take(usize::try_from(length).unwrap_or(0)));
}

fn put_content(out: &mut Vec<u8>, content: &FileContent) {
    let (word, bytes): (&[u8], &[u8]) = match content {
        FileContent::Text(bytes) => (b"text", bytes),
        FileContent::Link(target) => (b"link", target.as_bytes()),
        FileContent::Unknown(why) => (b"unknown", why.as_bytes()),
    };
    put(out, word);
    put(out, bytes);
}

struct KeptReader<'b> {
    rest: &'b [u8],
}

impl<'b> KeptReader<'b> {
    fn field(&mut self) -> Option<&'b [u8]> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(field)
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(PathBuf::from(OsString::from_vec(self.field()?.to_vec())))
    }

    fn kept(mut self) -> Option<KeptLeftovers> {
        let run = String::from_utf8(self.field()?.to_vec()).ok()?;
        let directory = self.path()?;
        let mut left = Vec::new();
        while !self.rest.is_empty() {
            if left.len() >= LEFTOVERS_MAX {
                return None;
            }
            left.push(self.leftover()?);
        }
        Some(KeptLeftovers {
            run,
            directory,
            left,
        })
    }

    fn leftover(&mut self) -> Option<Leftover> {
        let token = self.field()?;
        let row = KINDS
            .iter()
            .position(|kind| kind.token.as_bytes() == token)?;
        let path = self.path().filter(|path| path.is_absolute())?;
        let word = self.field()?;
        let changes = [
            LeftoverChange::New,
            LeftoverChange::Changed,
            LeftoverChange::Either,
        ];
        let change = changes
            .into_iter()
            .find(|change| change.word().as_bytes() == word)?;
        let was = match self.field()? {
            b"absent" => Was::Absent,
            b"unknown" => Was::Unknown,
            b"known" => Was::Known {
                mode: u32::from_le_bytes(self.field()?.try_into().ok()?),
                content: self.content()?,
            },
            _ => return None,
        };
        let is = self.content()?;
        let mut numbers = self.field()?.chunks_exact(8);
        let mut number = || Some(u64::from_le_bytes(numbers.next()?.try_into().ok()?));
        let state = FileState {
            device: number()?,
            inode: number()?,
            mode: u32::try_from(number()?).ok()?,
            changed: (number()?.cast_signed(), number()?.cast_signed()),
            size: number()?.cast_signed(),
        };
        Some(Leftover {
            path,
            change,
            row,
            was,
            is,
            state,
        })
    }

    fn content(&mut self) -> Option<FileContent> {
        let word = self.field()?;
        let bytes = self.field()?;
        match word {
            b"text" => Some(FileContent::Text(bytes.to_vec())),
            b"link" => Some(FileContent::Link(OsString::from_vec(bytes.to_vec()))),
            b"unknown" => Some(FileContent::Unknown("nobody could look into it")),
            _ => None,
        }
    }
}

/// Files of all runs that left something, the newest last.
///
/// # Errors
/// The directory cannot be read.
pub fn list(records: &Path) -> Result<Vec<PathBuf>, LeftoversError> {
    let read = match std::fs::read_dir(records) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| LeftoversError::File {
            path: records.to_owned(),
            source,
        })?,
    };
    let paths = read.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == EXTENSION))
        .collect();
    // Their names have more than one form, so that the order of names is none of time. What is
    // kept is written once, and its directory is closed to the command.
    paths.sort_by_cached_key(|path| (written_at(path), path.clone()));
    Ok(paths)
}

/// When a file was written; what nobody can say is the oldest.
fn written_at(path: &Path) -> (i64, i64) {
    std::fs::symlink_metadata(path).map_or((i64::MIN, 0), |data| (data.mtime(), data.mtime_nsec()))
}

/// What is kept of the newest run, or of the newest that is called so: by its name, or by the
/// name of its record.
///
/// # Errors
/// See [`LeftoversError`].
pub fn find(records: &Path, run: Option<&str>) -> Result<(PathBuf, KeptLeftovers), LeftoversError> {
    for path in list(records)?.into_iter().rev() {
        let Some(wanted) = run else {
            let kept = KeptLeftovers::read(&path)?;
            return Ok((path, kept));
        };
        let is_stem = path.file_stem().is_some_and(|stem| stem == wanted);
        match KeptLeftovers::read(&path) {
            Ok(kept) if is_stem || kept.run == wanted => return Ok((path, kept)),
            Err(error) if is_stem => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Err(LeftoversError::None {
        run: run.unwrap_or("at all").to_owned(),
        directory: records.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn left(path: &str, was: Was, is: FileContent) -> Leftover {
        Leftover {
            path: PathBuf::from(path),
            change: LeftoverChange::Either,
            row: 0,
            was,
            is,
            state: FileState {
                device: 7,
                inode: u64::MAX,
                changed: (-1, 999),
                size: 12,
                mode: 0o100_755,
            },
        }
    }

    #[test]
    fn what_is_kept_is_read_again_and_what_is_cut_is_not() {
        let records = nix::unistd::mkdtemp("/tmp/outgate-kept-XXXXXX").unwrap();
        let link = FileContent::Link(OsString::from_vec(b"a\xff".to_vec()));
        let known = Was::Known {
            content: FileContent::Text(b"\0old\n".to_vec()),
            mode: 0o100_600,
        };
        let all = vec![
            left("/w/a\n", Was::Absent, FileContent::Text(vec![0xff; 100])),
            left("/w/b", Was::Unknown, link),
            left("/w/c", known, FileContent::Text(Vec::new())),
        ];
        let look = LeftoverLook {
            left: all.clone(),
            unseen: None,
        };
        let directory = Path::new("/w");
        let path = KeptLeftovers::write(look, directory, (&records, "20260101"), "name").unwrap();
        let kept = KeptLeftovers::read(&path).unwrap();
        assert_eq!((&kept.left, kept.run.as_str()), (&all, "name"));
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o600
        );
        assert_eq!(find(&records, Some("20260101")).unwrap().1, kept);
        assert_eq!(find(&records, Some("name")).unwrap().1, kept);
        assert!(find(&records, Some("other")).is_err());
        let bytes = std::fs::read(&path).unwrap();
        let mut whole = 0;
        for end in 0..bytes.len() {
            std::fs::write(&path, &bytes[..end]).unwrap();
            whole += usize::from(KeptLeftovers::read(&path).is_ok());
        }
        // At the ends of entries alone.
        assert_eq!(whole, 3);
        std::fs::remove_dir_all(records).unwrap();
    }

    #[test]
    fn the_newest_is_the_one_that_was_written_last_whatever_its_name() {
        let records = nix::unistd::mkdtemp("/tmp/outgate-kept-XXXXXX").unwrap();
        let directory = Path::new("/w");
        for (age, stem) in [(2, "run-1767225600-77"), (1, "20260101T000000Z-78")] {
            let look = LeftoverLook::default();
            let path = KeptLeftovers::write(look, directory, (&records, stem), stem).unwrap();
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
            File::open(path).unwrap().set_modified(then).unwrap();
        }
        assert_eq!(find(&records, None).unwrap().1.run, "20260101T000000Z-78");
        // Those of the one form do not push out those of the other.
        for number in 0..KEPT_RUNS_MAX - 1 {
            let (look, stem) = (LeftoverLook::default(), format!("run-1767225700-{number}"));
            KeptLeftovers::write(look, directory, (&records, &stem), &stem).unwrap();
        }
        assert!(find(&records, Some("20260101T000000Z-78")).is_ok());
        assert!(find(&records, Some("run-1767225600-77")).is_err());
        std::fs::remove_dir_all(records).unwrap();
    }

    #[test]
    fn the_oldest_go_and_what_was_replaced_with_them() {
        let records = nix::unistd::mkdtemp("/tmp/outgate-kept-XXXXXX").unwrap();
        for number in 0..KEPT_RUNS_MAX + 3 {
            std::fs::write(records.join(format!("2026{number:04}.{EXTENSION}")), "").unwrap();
        }
        for number in ["0000", "0066"] {
            std::fs::create_dir(records.join(format!("2026{number}.reverted"))).unwrap();
        }
        let directory = Path::new("/w");
        KeptLeftovers::write(
            LeftoverLook::default(),
            directory,
            (&records, "2027"),
            "name",
        )
        .unwrap();
        assert_eq!(list(&records).unwrap().len(), KEPT_RUNS_MAX);
        assert!(!records.join("20260000.reverted").exists());
        assert!(records.join("20260066.reverted").exists());
        std::fs::remove_dir_all(records).unwrap();
    }
}
