//! What holds for whatever leaves under a permit: how it is inspected, and how much it may be.
//! Made of the keys of the rules that allow it, and of those that it may be for.

use crate::effect::RuleRef;
use crate::rule::RuleKeys;
use crate::settings::Inspect;

/// How many bytes may leave under a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The rule.
    pub rule: RuleRef,
    /// The bytes.
    pub bytes: u64,
    /// In what.
    pub span: BudgetSpan,
}

/// What a budget is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetSpan {
    /// All that goes to one host in a run.
    Run,
    /// One request; where nobody tells requests apart, one connection.
    Request,
}

/// What holds for whatever leaves under a permit: of several terms the strictest.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// By which mode the scan inspects it; for what is no request, and so is not scanned, the
    /// strictest.
    pub(crate) inspect: Inspect,
    /// How much of it there may be, at most.
    pub(crate) budgets: Vec<Budget>,
}

impl Terms {
    /// Those of a rule with these keys, where nothing else is known.
    pub(crate) fn of(rule: &RuleRef, keys: Option<&RuleKeys>) -> Self {
        let bytes = keys.and_then(|keys| keys.budget);
        // What a request may carry for another is not for a rule that is for one: it counts.
        let once = rule.is_for_once().then_some(u64::MAX);
        let each = keys.and_then(|keys| keys.budget_each);
        let budget = |bytes, span| Budget {
            rule: rule.clone(),
            bytes,
            span,
        };
        let run = bytes.or(once).map(|bytes| budget(bytes, BudgetSpan::Run));
        let each = each.map(|bytes| budget(bytes, BudgetSpan::Request));
        Self {
            inspect: Inspect::Block,
            budgets: run.into_iter().chain(each).collect(),
        }
    }

    /// The same, inspected by this mode.
    pub(crate) fn by(self, inspect: Inspect) -> Self {
        Self { inspect, ..self }
    }

    /// Both.
    pub(super) fn add(&mut self, other: &Self) {
        self.inspect = self.inspect.stricter(other.inspect);
        self.budgets.extend_from_slice(&other.budgets);
    }

    /// Whether nothing of the other is missing here.
    pub(super) fn cover(&self, other: &Self) -> bool {
        self.inspect.stricter(other.inspect) == self.inspect
            && other.budgets.iter().all(|own| self.budgets.contains(own))
    }
}
