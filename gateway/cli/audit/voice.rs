//! What `outgate audit` says: lines on standard output without controls, errors
//! on standard error. Nothing that a record holds reaches a terminal as it is.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use outgate_policy::printable;

use super::input::Go;

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
        // What is no regular file, such as a terminal, stays what it is.
        let is_other = path.exists() && !path.is_file();
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".new-{}", std::process::id()));
        let draft = (!is_other).then(|| (PathBuf::from(draft), path.to_owned()));
        let made = draft.as_ref().map_or(path, |(draft, _)| draft);
        let place = path.to_string_lossy().into_owned();
        let file = File::create(made).map_err(|error| format!("`{place}`: {error}"))?;
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

impl Drop for Sheet {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.draft {
            fs::remove_file(draft).ok();
        }
    }
}
