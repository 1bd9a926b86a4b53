//! What `outgate audit` says: lines on standard output without controls, errors
//! on standard error. Nothing that a record holds reaches a terminal as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outgate_policy::printable;

use crate::records::Go;

/// Names that are tried for a file in the making. A command may have put something
/// under each in a directory that it shares.
const DRAFTS_MAX: u32 = 64;

/// One line on standard output, made printable.
pub(crate) fn line(text: &str) {
    // Nobody may read any more.
    drop(writeln!(io::stdout().lock(), "{}", printable(text)));
}

/// An error.
pub(crate) fn error(message: &str) {
    drop(writeln!(
        io::stderr().lock(),
        "outgate: {}",
        printable(message)
    ));
}

/// A remark beside the output.
pub(crate) fn note(message: &str) {
    drop(writeln!(
        io::stderr().lock(),
        "outgate: {}",
        printable(message)
    ));
}

/// Whether people see standard output, in colour.
pub(crate) fn is_coloured() -> bool {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    colours && io::stdout().is_terminal()
}

/// What is written to a file or to standard output. A file takes the place of
/// what is there once it is whole.
pub(crate) struct Sheet {
    out: Box<dyn Write>,
    place: String,
    /// The file in the making, and what it becomes.
    draft: Option<(PathBuf, PathBuf)>,
}

impl Sheet {
    /// An empty one.
    pub(crate) fn new(output: Option<&Path>) -> Result<Self, String> {
        let Some(path) = output else {
            return Ok(Self {
                out: Box::new(BufWriter::new(io::stdout().lock())),
                place: "standard output".to_owned(),
                draft: None,
            });
        };
        let place = path.to_string_lossy().into_owned();
        let wrong = |error: io::Error| format!("`{place}`: {error}");
        // What is no regular file, such as a terminal, stays what it is.
        let is_other = path.exists() && !path.is_file();
        let (file, draft) = if is_other {
            (existing(path).map_err(wrong)?, None)
        } else {
            let (file, draft) = fresh(path).map_err(wrong)?;
            (file, Some((draft, path.to_owned())))
        };
        Ok(Self {
            out: Box::new(BufWriter::new(file)),
            place,
            draft,
        })
    }

    /// Adds a line; whether more are wanted.
    pub(crate) fn line(&mut self, text: &str) -> Result<Go, String> {
        match writeln!(self.out, "{text}") {
            // Whoever read has enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Go::Stop),
            Err(error) => Err(self.wrong(&error)),
            Ok(()) => Ok(Go::On),
        }
    }

    /// Puts it in its place.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        match self.out.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(self.wrong(&error)),
            Ok(()) => {}
        }
        match self.draft.take() {
            Some((draft, path)) => fs::rename(draft, path).map_err(|error| self.wrong(&error)),
            None => Ok(()),
        }
    }

    fn wrong(&self, error: &io::Error) -> String {
        format!("`{}`: {error}", self.place)
    }
}

/// A file beside a path that nobody made before, and that nobody else reads: what
/// is there already, such as a link to elsewhere, is not written through.
fn fresh(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..DRAFTS_MAX {
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".new-{}-{number}", std::process::id()));
        match options.open(&draft) {
            Ok(file) => return Ok((file, PathBuf::from(draft))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// What is no regular file, as it is: nothing is made or emptied, whatever stands
/// there by now.
fn existing(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.is_file() {
        return Err(io::Error::other("it became another file meanwhile"));
    }
    Ok(file)
}

impl Drop for Sheet {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.draft {
            fs::remove_file(draft).ok();
        }
    }
}
