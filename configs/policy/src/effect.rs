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

/// How the places of rules begin that were granted while a run goes on; a number follows.
const GRANT: &str = "outgate grant ";

/// How the place of such a rule ends where it is for one request.
const ONCE: &str = " --once";

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

impl RuleRef {
    /// The place of a rule that is granted while a run goes on, by its number there.
    pub fn granted(number: u64) -> String {
        format!("{GRANT}{number}")
    }

    /// The same for a rule that is for one request.
    pub fn granted_once(number: u64) -> String {
        format!("{GRANT}{number}{ONCE}")
    }

    /// Whether a place is that of a rule which was granted while a run goes on. A file of
    /// such a name is none: a line and a column follow it.
    pub fn is_grant(place: &str) -> bool {
        let number = place.strip_prefix(GRANT);
        let number = number.map(|number| number.strip_suffix(ONCE).unwrap_or(number));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    }

    /// Whether the rule was granted for one request.
    pub fn is_for_once(&self) -> bool {
        self.place.ends_with(ONCE) && Self::is_grant(&self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_place_is_that_of_a_grant() {
        let rule = |place: &str| RuleRef {
            id: 1,
            effect: Effect::Allow,
            text: "a.test".into(),
            place: place.into(),
        };
        assert!(RuleRef::is_grant(&RuleRef::granted(7)));
        assert!(!rule(&RuleRef::granted(7)).is_for_once());
        assert!(rule(&RuleRef::granted_once(7)).is_for_once());
        for place in [
            "-a",
            "outgate grant ",
            "outgate grant  --once",
            "outgate grant 7 --once:1:1",
            "outgate grant 7:1:1",
            "x/outgate grant 7",
            "preset `outgate grant 7`",
        ] {
            assert!(!RuleRef::is_grant(place), "{place}");
            assert!(!rule(place).is_for_once(), "{place}");
        }
    }
}
