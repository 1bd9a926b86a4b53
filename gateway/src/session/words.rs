//! What a session says to the person at its end: the summary.
//! Printable text of bounded length; decides nothing.

use outgate_handoff::{LINE_BYTES_MAX, SUMMARY_BYTES_MAX, SUMMARY_LINES_MAX};
use outgate_policy::{DenialGroup, Enforcement, Urgency};

use super::Session;
use crate::limits::DIGEST_LINE_BYTES_MAX;
use crate::text::shortened;

impl Session {
    /// A screen about what was wrong or refused, or nothing; of a run whose rules were not
    /// enforced, that too.
    pub(crate) fn summary(&self) -> String {
        let own = self.wrong_or_refused();
        let marked = match self.rules().enforcement() {
            Enforcement::Enforced => return own,
            Enforcement::Learning => "outgate: learning: everything public was let through",
            Enforcement::Monitor => "outgate: monitor: what rules deny was let through",
            Enforcement::MonitorAll => {
                "outgate: monitor=all: what rules deny was let through, and credentials too"
            }
        };
        let lines = [marked, &own];
        let lines = lines.into_iter().filter(|line| !line.is_empty());
        shortened(&lines.collect::<Vec<_>>().join("\n"), SUMMARY_BYTES_MAX)
    }

    /// A screen about what was wrong or refused, or nothing.
    fn wrong_or_refused(&self) -> String {
        let Some(denials) = self.recorder.denials() else {
            return String::new();
        };
        let lost = self.lost();
        let Some(counted) = denials.words() else {
            return lost.map_or(String::new(), |lost| format!("outgate: {lost}"));
        };
        let mut foot: Vec<String> = Vec::new();
        foot.extend(self.unopened());
        // Whoever keeps a record of their own may keep what it is signed by.
        let key = self
            .recorder
            .audit()
            .key()
            .filter(|_| !self.recorder.audit().is_of_one_run());
        let key = key.filter(|_| self.tenant.is_none());
        foot.extend(key.map(|key| format!("the record is signed by the key {key}")));
        foot.push(self.where_more_is());
        // Beside head, foot and how many are left out.
        let room = SUMMARY_LINES_MAX.saturating_sub(foot.len() + 3);
        let groups = denials.groups();
        let is_allowed = groups
            .iter()
            .any(|group| group.urgency >= Urgency::Denied && !group.flags.is_empty());
        let to_allow = if is_allowed { "; to allow:" } else { ":" };
        let counted: Vec<String> = std::iter::once(counted).chain(lost).collect();
        let mut lines = vec![format!("outgate: {}{to_allow}", counted.join("; "))];
        let left = digest(&mut lines, &groups, room);
        lines.extend(self.left_out(left, denials.beyond()));
        let long = foot.iter().map(|line| format!("outgate: {line}"));
        lines.extend(long.map(|line| shortened(&line, LINE_BYTES_MAX)));
        shortened(&lines.join("\n"), SUMMARY_BYTES_MAX)
    }

    /// Where every decision is told.
    fn where_more_is(&self) -> String {
        let path = outgate_policy::printable(&self.recorder.audit_path());
        if self.tenant.is_some() {
            "the gateway's record holds every decision".to_owned()
        } else if path.is_empty() {
            "for a record of every decision: --audit FILE".to_owned()
        } else if self.recorder.audit().is_of_one_run() {
            format!("`outgate why last` explains; every decision is in {path}")
        } else {
            format!("`outgate why last --audit {path}` explains every decision")
        }
    }

    /// What the digest leaves out.
    fn left_out(&self, groups: usize, beyond: u64) -> Option<String> {
        let groups = match groups {
            0 => None,
            1 => Some("1 more group".to_owned()),
            groups => Some(format!("{groups} more groups")),
        };
        let beyond = (beyond > 0).then(|| format!("{beyond} denials in no group"));
        let left: Vec<String> = groups.into_iter().chain(beyond).collect();
        let tells = self.tenant.is_none() && !self.recorder.audit_path().is_empty();
        let how = if tells {
            ": outgate why last --all"
        } else {
            ""
        };
        (!left.is_empty()).then(|| format!("  ... and {}{how}", left.join(" and ")))
    }

    /// Records that could not be written, in words; those of a shared gateway
    /// are its operator's to hear of.
    fn lost(&self) -> Option<String> {
        let lost = self.recorder.audit().lost();
        let own = lost > 0 && self.tenant.is_none();
        own.then(|| format!("{lost} records could not be written"))
    }
}

/// Adds the lines of the first groups, as many as there is room for; how many groups are
/// left.
fn digest(lines: &mut Vec<String>, groups: &[&DenialGroup], mut room: usize) -> usize {
    for (index, group) in groups.iter().enumerate() {
        let told = group.lines();
        if told.len() > room && index > 0 {
            return groups.len().saturating_sub(index);
        }
        let told = told.iter().take(room);
        lines.extend(told.map(|line| format!("  {}", shortened(line, DIGEST_LINE_BYTES_MAX))));
        room = room.saturating_sub(group.lines().len());
    }
    0
}
