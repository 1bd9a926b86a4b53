//! The halves of pairs of keys that sign, in content that goes where the ids of such pairs
//! were shown: an id that anybody may have, and the other half of somebody's pair behind it.

use crate::detector::Tier;
use crate::finding::{Action, Checked, Finding};
use crate::limits;
use crate::mark::mark;
use crate::pieces::PieceSource;
use crate::place::{Joined, Place};
use crate::ruleset::Ruleset;
use crate::settings::ScanPolicy;
use crate::signed;

use super::NewPiece;

/// Where an id was shown last, by the number of the message.
#[derive(Debug, Default)]
pub(super) struct ShownIds {
    last: Option<u64>,
}

impl ShownIds {
    /// Takes note of ids in the head of a message to a host of their issuer.
    pub(super) fn note(&mut self, rules: &Ruleset, host: &str, (message, new): (u64, &[NewPiece])) {
        let has = |piece: &NewPiece, literal: &[u8]| {
            memchr::memmem::find(&piece.bytes, literal).is_some()
        };
        let is_shown = |piece: &NewPiece| {
            let mut pairs = rules
                .shown_at(host)
                .filter(|rule| !rule.detector.secret.is_empty());
            pairs.any(|rule| {
                let mut literals = rule.detector.literals.iter();
                literals.any(|literal| has(piece, literal.as_bytes()))
            })
        };
        if new
            .iter()
            .filter(|piece| is_of_fields(piece.source))
            .any(is_shown)
        {
            self.last = Some(message);
        }
    }

    /// The halves that values of content hold, in this message and in some behind the last
    /// that showed an id.
    pub(super) fn find(
        &self,
        rules: &Ruleset,
        host: &str,
        (message, joined, new): (u64, Joined, &[NewPiece]),
    ) -> Vec<Finding> {
        let is_near = |last: u64| message.saturating_sub(last) <= limits::HALVES_MESSAGES_MAX;
        if !self.last.is_some_and(is_near) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for rule in rules.shown_at(host) {
            let detector = &rule.detector;
            let mut allowances = rule.allowances.iter();
            if detector.secret.is_empty() || allowances.any(|own| own.covers(host)) {
                continue;
            }
            let values = new.iter().filter(|piece| !piece.source.is_head());
            for value in values.filter(|piece| signed::holds(&detector.secret, &piece.bytes)) {
                // Its form alone is that of much that chance makes.
                let action = match rules.policy() {
                    ScanPolicy::Strict => Action::Block,
                    ScanPolicy::Tiered | ScanPolicy::Monitor | ScanPolicy::MonitorForms => {
                        Action::Warn
                    }
                };
                found.push(Finding {
                    detector: detector.id.clone(),
                    name: detector.name.clone(),
                    place: Place::Joined(joined),
                    offset: 0,
                    chain: Vec::new(),
                    inside: None,
                    tier: Tier::Context,
                    checked: Checked::None,
                    action,
                    issuers: Vec::new(),
                    mark: mark(rules.key(), &value.bytes),
                });
            }
        }
        found.truncate(limits::FINDINGS_MAX);
        found
    }
}

/// Whether clients show ids there.
fn is_of_fields(source: PieceSource) -> bool {
    matches!(
        source,
        PieceSource::Field | PieceSource::Client | PieceSource::Query
    )
}
