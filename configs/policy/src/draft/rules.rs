//! Rules of a policy in the making: texts become rules, purposes several of them.

use super::{Draft, unknown_directory};
use crate::effect::Effect;
use crate::grammar::{self, EXCEPT};
use crate::intent;
use crate::limits::RULES_MAX;
use crate::location::At;
use crate::net::Net;
use crate::pattern::PathPattern;
use crate::rule::{self, Rule, RuleKeys, RuleTarget};
use crate::servers::doubts;

/// What stands beside the text of a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleExtras {
    /// Where a name may lead beside public addresses.
    pub(crate) addresses: Vec<Net>,
    pub(crate) keys: RuleKeys,
}

/// Whether a lock says what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LockState {
    /// There is none.
    #[default]
    Open,
    /// There is one, and another text is read.
    Beside,
    /// It is read.
    Within,
}

impl Draft<'_> {
    /// Adds a rule, or those that a purpose stands for.
    pub(crate) fn rule(&mut self, at: At<'_>, effect: Effect, text: &str, extras: RuleExtras) {
        let (main, except) = match text.find(EXCEPT) {
            Some(at) => text.split_at_checked(at).unwrap_or((text, "")),
            None => (text, ""),
        };
        let rules = match intent::expand(main, effect) {
            None => return self.plain_rule(at, effect, text, extras),
            Some(Ok(rules)) => rules,
            Some(Err(error)) => {
                return self.fault(at.error(error.offset, error.message, error.hint));
            }
        };
        if extras.keys.budget.is_some() {
            let hint =
                "`outgate policy show` prints the rules it stands for: give it to one of them";
            let message = "a purpose is several rules, and a budget is that of one";
            self.fault(at.error(0, message.to_owned(), Some(hint.to_owned())));
        }
        let first = self.faults();
        for rule in rules {
            // What is wrong with the place is wrong in each of them.
            if self.faults() == first {
                let whole = At {
                    verbatim: false,
                    ..at
                };
                let rule = format!("{rule}{except}");
                self.plain_rule(whole, effect, &rule, extras.clone());
            }
        }
    }

    /// Says what is wrong with the text of a rule that is not added for another reason.
    pub(crate) fn check_rule(&mut self, at: At<'_>, effect: Effect, text: &str) {
        let wrong = match intent::expand(text, effect) {
            Some(rules) => rules.err(),
            None => grammar::parse(text, effect).err(),
        };
        if let Some(error) = wrong {
            self.fault(at.error(error.offset, error.message, error.hint));
        }
    }

    fn plain_rule(&mut self, at: At<'_>, effect: Effect, text: &str, extras: RuleExtras) {
        let (mut target, warning) = match grammar::parse(text, effect) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.fault(at.error(error.offset, error.message, error.hint));
                return;
            }
        };
        match (self.lock, effect) {
            // It grants nothing beside a lock.
            (LockState::Beside, Effect::Allow) => return,
            (LockState::Beside, Effect::Only) => {
                let message = "`only` grants by itself, and beside a lock nothing else does";
                let hint = "write what it keeps out under `deny`, or run without --locked";
                return self.fault(at.error(0, message.to_owned(), Some(hint.to_owned())));
            }
            (LockState::Open | LockState::Within, _) | (LockState::Beside, Effect::Deny) => {}
        }
        if let Some(warning) = warning {
            let warning = at.error(warning.offset, warning.message, warning.hint);
            self.policy.warnings.push(warning);
        }
        for (message, hint) in extras.keys.idle(&target) {
            self.fault(at.error(0, message.to_owned(), Some(hint.to_owned())));
        }
        match &mut target {
            RuleTarget::Network(network) => network.addresses = extras.addresses,
            RuleTarget::Unix { path, pattern } => {
                if path.starts_with('~') {
                    if self.context.home.is_empty() {
                        self.fault(unknown_directory(at, "home"));
                        return;
                    }
                    *path = path.replacen('~', self.context.home.trim_end_matches('/'), 1);
                    *pattern = PathPattern::file(path);
                }
                if effect == Effect::Allow {
                    self.policy.warnings.extend(doubts(at, path));
                }
            }
        }
        if self.policy.rules.len() == RULES_MAX {
            self.fault(at.error(
                0,
                format!("the policy has more than {RULES_MAX} rules"),
                Some("use wildcards to cover several targets with one rule".to_owned()),
            ));
        }
        let Ok(id) = u32::try_from(self.policy.rules.len() + 1) else {
            return;
        };
        if self.policy.rules.len() < RULES_MAX {
            self.policy.rules.push(Rule {
                reference: rule::reference(id, effect, text, at.place()),
                target,
                keys: extras.keys,
            });
        }
    }
}
