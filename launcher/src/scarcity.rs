//! Whom the kernel ends first where memory runs out (proc_pid_oom_score_adj(5)): the command,
//! however little each of its processes has, and only then the launcher and the guardian,
//! without which the rest of its tree would be ended by nobody.
//!
//! A process inherits the value, may raise it without any privilege, and may lower it to no
//! less than what it began with. That takes a write below `/proc`, which no command may.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// Where this process keeps its own.
const PATH: &str = "/proc/self/oom_score_adj";

/// The highest value there is: such a process goes before all that have a lower one.
const FIRST: i32 = 1000;

/// The value of this process, opened for writing.
#[derive(Debug)]
pub(crate) struct Score {
    file: File,
    own: i32,
}

/// The value of this process is the command's until this is dropped.
#[derive(Debug)]
pub(crate) struct Raised<'s>(&'s mut Score);

impl Score {
    /// Opens it. To be done before the process hides itself, by which its files become root's.
    /// `None` where a machine shows none: the order there is the kernel's own.
    pub(crate) fn open() -> Option<Self> {
        let own = std::fs::read_to_string(PATH).ok()?.trim().parse().ok()?;
        let file = OpenOptions::new().write(true).open(PATH).ok()?;
        Some(Self { file, own })
    }

    /// Raises it, for the guardian and the command to inherit. When that is dropped, the value
    /// is as before for this process and all that share its memory, the guardian among them;
    /// the command has memory of its own by then, and keeps the raised one.
    pub(crate) fn raise(&mut self) -> Raised<'_> {
        self.write(FIRST);
        Raised(self)
    }

    /// Where it cannot be written, all of them have the same value, as without this.
    fn write(&mut self, value: i32) {
        drop(self.file.write_all(value.to_string().as_bytes()));
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        let own = self.0.own;
        self.0.write(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i32 {
        let text = std::fs::read_to_string(PATH).unwrap();
        text.trim().parse().unwrap()
    }

    #[test]
    fn what_is_raised_is_lowered_again() {
        let before = now();
        let mut score = Score::open().unwrap();
        let raised = score.raise();
        assert_eq!(now(), FIRST);
        drop(raised);
        assert_eq!(now(), before);
    }
}
