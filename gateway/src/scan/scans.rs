//! The scans of one sandbox: one for each mode by which its rules have something
//! inspected. What they count together they share. In which mode a request is
//! inspected its permit says; looks at nothing itself.

use std::sync::Arc;

use outgate_policy::Inspect;

use super::SandboxScan;
use crate::audit::Event;
use crate::broker::SessionSecrets;
use crate::known::CredentialInventory;
use crate::rules::SessionPolicies;
use crate::target::{Target, TargetVisibility};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Scans {
    /// The only one, or the one that refuses.
    strictest: Arc<SandboxScan>,
    /// The one that records, where there is one beside.
    report_only: Option<Arc<SandboxScan>>,
    purpose: Purpose,
}

/// What the scans are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// What leaves is inspected.
    Inspect,
    /// Nothing is: records and answers leave values out all the same.
    Mask,
}

impl Scans {
    /// The scans that the policies ask for; where they turn them off, one that only tells
    /// what records may say.
    ///
    /// # Errors
    /// A sentence for the user: the policy names detectors that do not exist,
    /// or allows what nobody can allow.
    pub(crate) fn of(
        rules: &SessionPolicies,
        secrets: Option<&SessionSecrets>,
        inventory: &CredentialInventory,
    ) -> Result<Self, String> {
        let modes = rules.modes();
        let scan = |mode: Inspect| {
            let made = modes
                .contains(&mode)
                .then(|| SandboxScan::of((rules, mode), secrets, inventory));
            made.transpose()
        };
        Ok(match (scan(Inspect::Block)?, scan(Inspect::Warn)?) {
            (None, None) => Self {
                strictest: Arc::new(SandboxScan::of((rules, Inspect::Warn), secrets, inventory)?),
                report_only: None,
                purpose: Purpose::Mask,
            },
            (Some(only), None) | (None, Some(only)) => Self {
                strictest: Arc::new(only),
                report_only: None,
                purpose: Purpose::Inspect,
            },
            (Some(block), Some(warn)) => {
                let report_only = Arc::new(warn.counting_with(&block));
                Self {
                    strictest: Arc::new(block.beside(&report_only)),
                    report_only: Some(report_only),
                    purpose: Purpose::Inspect,
                }
            }
        })
    }

    /// The same behind others of this sandbox: what left under their rules is
    /// not forgotten, or every change of them would begin a new budget.
    pub(crate) fn after(self, before: &Self) -> Self {
        // What records has seen what left under both.
        let widest = before.report_only.as_ref().unwrap_or(&before.strictest);
        match self.report_only {
            None => Self {
                strictest: Arc::new(self.strictest.after(widest)),
                ..self
            },
            Some(report_only) => {
                let report_only = Arc::new(report_only.after(widest));
                let strictest = self.strictest.after(&before.strictest);
                Self {
                    strictest: Arc::new(strictest.beside(&report_only)),
                    report_only: Some(report_only),
                    ..self
                }
            }
        }
    }

    /// The one that inspects in this mode, or else by a stricter one; nothing where
    /// nothing is to be scanned.
    pub(crate) fn by(&self, mode: Inspect) -> Option<&Arc<SandboxScan>> {
        match (self.purpose, mode) {
            (Purpose::Mask, _) | (_, Inspect::Off) => None,
            (Purpose::Inspect, Inspect::Block) => Some(&self.strictest),
            (Purpose::Inspect, Inspect::Warn) => {
                Some(self.report_only.as_ref().unwrap_or(&self.strictest))
            }
        }
    }

    /// Itself, where what leaves is inspected.
    pub(crate) fn inspecting(&self) -> Option<&Self> {
        (self.purpose == Purpose::Inspect).then_some(self)
    }

    /// How much of a target may be shown, whatever else is said of it.
    pub(crate) fn shown(&self, target: &Target) -> TargetVisibility {
        self.strictest.shown(target)
    }

    /// A text without the values in it, for people and records; nothing where there
    /// are none.
    pub(crate) fn masked(&self, text: &str) -> Option<String> {
        self.strictest.masked(text)
    }

    /// The same of a record.
    pub(crate) fn masked_event<'e>(&self, event: &Event<'e>) -> Option<Event<'e>> {
        self.strictest.masked_event(event)
    }

    /// How many bytes left without a look inside.
    pub(crate) fn unscanned_bytes(&self) -> u64 {
        self.strictest.unscanned_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::destination;
    use super::*;
    use outgate_dlp::Piece;
    use outgate_policy::{Context, Source, SourceKind, compile};

    const BOTH: &str =
        "allow = [\"http://a.test\", { rule = \"http://a.test/x\", inspect = \"warn\" }]";
    const BLOCK: &str = "allow = [\"http://a.test\"]";
    const WARN: &str = "allow = [\"http://a.test\"]\n[inspect]\nmode = \"warn\"";

    fn scans(text: &str) -> Scans {
        let source = Source {
            kind: SourceKind::Document,
            place: "a.toml".to_owned(),
            text: text.to_owned(),
        };
        let context = Context {
            home: "/".to_owned(),
            working_directory: "/".to_owned(),
            private_directory: String::new(),
            ..Context::default()
        };
        let rules = SessionPolicies::private(compile(&[source], &context).unwrap());
        Scans::of(&rules, None, &CredentialInventory::default()).unwrap()
    }

    /// Sends a piece by a mode; whether it may not leave, if anything was found.
    fn send(scans: &Scans, mode: Inspect, piece: &str) -> Option<bool> {
        let scan = scans.by(mode).unwrap();
        let to = destination("a.test", 80);
        let found = scan
            .joined(&to, &[Piece::of_content(piece.as_bytes())])
            .unwrap()
            .findings;
        let blocks = |found: &outgate_dlp::Finding| found.action == outgate_dlp::Action::Block;
        (!found.is_empty()).then(|| found.iter().any(blocks))
    }

    const TOKEN: &str = "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";

    #[test]
    fn there_is_a_scan_for_every_mode_that_occurs() {
        for (text, block, warn) in [
            (BOTH, true, true),
            (BLOCK, true, true),
            (WARN, true, true),
            (
                "allow = [\"a.test\"]\n[inspect]\nmode = \"off\"",
                false,
                false,
            ),
            (
                "allow = [{ rule = \"a.test\", inspect = \"warn\" }]\n[inspect]\nmode = \"off\"",
                true,
                true,
            ),
        ] {
            let scans = scans(text);
            let has = |mode| scans.by(mode).is_some();
            assert_eq!(has(Inspect::Block), block, "{text}");
            assert_eq!(has(Inspect::Warn), warn, "{text}");
            assert!(!has(Inspect::Off), "{text}");
        }
    }

    #[test]
    fn pieces_under_several_modes_are_put_together() {
        use Inspect::{Block, Warn};
        let (one, other) = TOKEN.split_at(20);
        for (first, second, found) in [
            (Block, Block, Some(true)),
            (Warn, Warn, Some(false)),
            // All of it could have gone by the report-only way: it is recorded, not less.
            (Warn, Block, Some(false)),
            (Block, Warn, Some(false)),
        ] {
            let scans = scans(BOTH);
            assert_eq!(send(&scans, first, one), None);
            assert_eq!(send(&scans, second, other), found, "{first:?} {second:?}");
        }
    }

    #[test]
    fn what_was_recorded_under_one_rule_refuses_nothing_under_another() {
        let scans = scans(BOTH);
        let (one, other) = TOKEN.split_at(20);
        send(&scans, Inspect::Warn, one);
        assert_eq!(send(&scans, Inspect::Warn, other), Some(false));
        for _ in 0..3 {
            assert_eq!(send(&scans, Inspect::Block, "harmless"), None);
        }
        // Sent once more it is found once more.
        send(&scans, Inspect::Block, one);
        assert_eq!(send(&scans, Inspect::Block, other), Some(true));
    }

    #[test]
    fn pieces_are_put_together_over_a_change_of_modes() {
        use Inspect::{Block, Warn};
        let (one, other) = TOKEN.split_at(20);
        for (before, first, after, second, found) in [
            (WARN, Warn, BLOCK, Block, true),
            (BLOCK, Block, WARN, Warn, false),
            (BLOCK, Block, BOTH, Block, true),
            (BOTH, Block, BLOCK, Block, true),
            (BOTH, Warn, BLOCK, Block, true),
            (BOTH, Warn, WARN, Warn, false),
            (BOTH, Block, WARN, Warn, false),
        ] {
            let then = scans(before);
            assert_eq!(send(&then, first, one), None);
            let now = scans(after).after(&then);
            assert_eq!(send(&now, second, other), Some(found), "{before} {after}");
        }
    }
}
