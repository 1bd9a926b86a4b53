//! What a session says to the person: single lines, and the summary at the end.
//! Printable text of bounded length; decides nothing.

use outgate_handoff::ToLauncher;

use super::{Session, shortened};
use crate::limits;

impl Session {
    /// One line for the person.
    pub(crate) fn say(&self, line: &str) {
        let line = crate::refusal::printable(line);
        let line = shortened(&line, outgate_handoff::LINE_BYTES_MAX);
        self.control.offer(&ToLauncher::Notice { line });
    }

    /// At most five lines about what was wrong or refused, or none.
    pub(crate) fn summary(&self) -> String {
        let Ok(denials) = self.denials.lock() else {
            return String::new();
        };
        let lost = self.lost();
        let Some(counted) = denials.words() else {
            return lost.map_or(String::new(), |lost| format!("outgate: {lost}"));
        };
        let mut lines = format!("outgate: {counted}");
        if let Some(lost) = lost {
            lines.push_str("; ");
            lines.push_str(&lost);
        }
        if !denials.hints().is_empty() {
            lines.push_str("; to allow:");
        }
        let unopened = self.unopened();
        // Whoever keeps a record of their own may keep what it is signed by.
        let key = self.audit.key().filter(|_| !self.audit.is_of_one_run());
        let key = key.filter(|_| self.tenant.is_none());
        let other_lines = usize::from(unopened.is_some()) + usize::from(key.is_some());
        let targets_max = limits::SUMMARY_TARGETS_MAX.saturating_sub(other_lines);
        for hint in denials.hints().iter().take(targets_max) {
            lines.push_str("\n  ");
            lines.push_str(&shortened(hint, outgate_handoff::LINE_BYTES_MAX - 16));
        }
        if let Some(unopened) = unopened {
            lines.push_str("\noutgate: ");
            lines.push_str(&shortened(&unopened, outgate_handoff::LINE_BYTES_MAX - 16));
        }
        if let Some(key) = key {
            lines.push_str("\noutgate: the record is signed by the key ");
            lines.push_str(&key);
        }
        let path = self.audit_path();
        if self.tenant.is_some() {
            lines.push_str("\noutgate: the gateway's record holds every decision");
        } else if path.is_empty() {
            lines.push_str("\noutgate: for a record of every decision: --audit FILE");
        } else {
            let path = crate::refusal::printable(&path);
            let line = if self.audit.is_of_one_run() {
                format!("\noutgate: `outgate why last` explains; every decision is in {path}")
            } else {
                format!("\noutgate: `outgate why last --audit {path}` explains every decision")
            };
            lines.push_str(&line);
        }
        shortened(&lines, 5 * outgate_handoff::LINE_BYTES_MAX)
    }

    /// Records that could not be written, in words; those of a shared gateway
    /// are its operator's to hear of.
    fn lost(&self) -> Option<String> {
        let lost = self.audit.lost();
        let own = lost > 0 && self.tenant.is_none();
        own.then(|| format!("{lost} records could not be written"))
    }
}
