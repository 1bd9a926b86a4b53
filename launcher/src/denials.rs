//! What was denied, in a file for who runs inside: an agent reads there what a client
//! hides that got the words. The file lies in the private directory and is the command's to
//! spoil: nothing is ever read from it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::private::HeldDirectory;

/// The variable that names the file.
pub const VARIABLE: &str = "OUTGATE_DENIALS";

/// Its name in the private directory.
const NAME: &str = "outgate-denials.txt";

/// How the lines begin that say what was denied, or what was found on its way out.
const BEGINNINGS: [&str; 2] = ["outgate: denied ", "outgate: ALARM"];

/// Lines that are in the file at least, the last ones.
const LINES_KEPT: usize = 64;

/// Bytes of the file at most: beyond, it begins anew with the last lines.
const BYTES_MAX: u64 = 64 * 1024;

/// The file.
#[derive(Debug)]
pub struct DenialsFile {
    directory: HeldDirectory,
    file: FilePlace,
    bytes: u64,
    last: VecDeque<String>,
}

/// The file, as far as it is there.
#[derive(Debug)]
enum FilePlace {
    /// Nothing was denied yet.
    Unmade,
    /// It is there.
    Made(File),
    /// Something of the command's is in its place.
    Taken,
}

impl FilePlace {
    fn make(directory: &HeldDirectory) -> Self {
        // Nothing that lies there is followed, and nothing is waited for.
        let made = directory.make(Path::new(NAME));
        made.map_or(Self::Taken, Self::Made)
    }
}

impl DenialsFile {
    /// One below the private directory, made at the first denial.
    pub fn below(private: &HeldDirectory) -> Self {
        Self {
            directory: private.clone(),
            file: FilePlace::Unmade,
            bytes: 0,
            last: VecDeque::new(),
        }
    }

    /// The variable that says so.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.path().into())
    }

    /// Where it will be.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }

    /// Adds a line of the run, if it says that something was denied. What cannot be written
    /// is on standard error all the same.
    pub(crate) fn note(&mut self, line: &str) {
        if !BEGINNINGS.iter().any(|begin| line.starts_with(begin)) {
            return;
        }
        if self.last.len() == LINES_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(format!("{line}\n"));
        drop(self.write());
    }

    fn write(&mut self) -> io::Result<()> {
        if matches!(self.file, FilePlace::Unmade) {
            self.file = FilePlace::make(&self.directory);
        }
        let (FilePlace::Made(file), Some(line)) = (&mut self.file, self.last.back()) else {
            return Ok(());
        };
        let text = if self.bytes.saturating_add(wide(line)) > BYTES_MAX {
            file.set_len(0)?;
            file.rewind()?;
            self.bytes = 0;
            self.last.iter().map(String::as_str).collect()
        } else {
            line.clone()
        };
        file.write_all(text.as_bytes())?;
        self.bytes = self.bytes.saturating_add(wide(&text));
        Ok(())
    }
}

fn wide(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_denials_stay_within_the_bound_and_nothing_is_followed() {
        let name = format!("outgate-denials-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut denials = DenialsFile::below(&HeldDirectory::open(&directory).unwrap());
        denials.note("outgate: warning: nothing was denied");
        assert!(!denials.path().exists());
        for number in 0..5000 {
            denials.note(&format!("outgate: denied GET http://a.example/{number}"));
        }
        let text = std::fs::read_to_string(denials.path()).unwrap();
        assert!(wide(&text) <= BYTES_MAX);
        for number in 4936..5000 {
            assert!(text.contains(&format!("/{number}\n")), "{number}");
        }
        std::fs::remove_file(denials.path()).unwrap();
        let victim = directory.join("victim");
        std::fs::write(&victim, "as it was").unwrap();
        let mut denials = DenialsFile::below(&HeldDirectory::open(&directory).unwrap());
        std::os::unix::fs::symlink(&victim, denials.path()).unwrap();
        denials.note("outgate: denied GET http://a.example/");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
