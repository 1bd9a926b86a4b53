//! What a rule does, and the rule as its author wrote it.

use std::sync::Arc;

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Allows what it matches.
    Allow,
    /// Denies what it matches, whatever else allows it.
    Deny,
    /// Allows what it matches, and nothing else for the same host.
    Only,
}

impl Effect {
    /// The word of the policy document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Only => "only",
        }
    }
}

/// A rule as its author wrote it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// Number of the rule in its policy, from 1; 0 is what is built in.
    pub id: u32,
    /// What it does.
    pub effect: Effect,
    /// Its text.
    pub text: Arc<str>,
    /// Its place: source, line and column.
    pub place: Arc<str>,
}
