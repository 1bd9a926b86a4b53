//! What a command leaves running: the run goes on until it has ended, so whoever waits at the
//! prompt is told for what.

use outgate_policy::printable;

use super::Supervisor;
use crate::process::{executable, nearest_descendants};

/// Programs that are named at most.
const NAMED_MAX: usize = 3;
/// Processes that are looked at for that.
const LOOKED_AT_MAX: usize = 16;

impl Supervisor<'_> {
    /// Says what the run waits for.
    pub(super) fn tell_what_is_left(&mut self) {
        let mut names: Vec<String> = Vec::new();
        for process in nearest_descendants(self.root, LOOKED_AT_MAX) {
            let path = executable(process);
            let name = path.rsplit('/').next().unwrap_or_default();
            let name = format!("`{}`", printable(name));
            if name.len() > 2 && !names.contains(&name) && names.len() < NAMED_MAX {
                names.push(name);
            }
        }
        let what = match names.as_slice() {
            [] => "something".to_owned(),
            names => names.join(", "),
        };
        self.voice.say(&format!(
            "outgate: note: the command has ended and left {what} running: the run ends with that \
             (`outgate ps`, `outgate kill`)"
        ));
    }
}
