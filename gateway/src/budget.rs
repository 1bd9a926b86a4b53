//! How much may still leave where a rule says how much: for each rule and each
//! host somebody registered, for as long as the sandbox lives, and for each request. Counted before
//! bytes are sent; what would go beyond is not sent, and what is nearly spent is
//! told once. Knows no policy and sends nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outgate_policy::{Budget, BudgetSpan, Host, Permit, RuleRef};
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::body::Stopped;
use crate::caller::Caller;
use crate::limits;
use crate::lock::{self, Poisoned};
use crate::refusal::Refusal;

mod filter;
mod once;

pub(crate) use filter::filter;
pub(crate) use once::{UsedGrants, filter as once};

/// The budgets of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<Key, Arc<HostQuota>>>);

/// A rule's text and place, and whose hosts it is about.
type Key = (Arc<str>, Arc<str>, String);

#[derive(Debug)]
struct HostQuota {
    rule: RuleRef,
    to: String,
    bytes: u64,
    span: BudgetSpan,
    spent: AtomicU64,
    told: AtomicBool,
}

/// What one request or tunnel spends from.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    budgets: Vec<Arc<HostQuota>>,
    caller: Arc<Caller>,
    /// What is refused when nothing is left.
    subject: String,
}

impl Budgets {
    /// What a permitted request or tunnel to a host spends from; nothing where
    /// no rule has a budget.
    ///
    /// # Errors
    /// Nobody knows what was spent.
    pub(crate) fn quota(
        &self,
        caller: &Arc<Caller>,
        permit: &Permit,
        (host, subject): (&Host, &str),
    ) -> Result<Option<Quota>, Refusal> {
        if permit.budgets().is_empty() {
            return Ok(None);
        }
        let to = match host {
            // Names below one domain are one party's: each with a budget of its own
            // would be no bound.
            Host::Name(name) => name.registered().1.to_owned(),
            Host::Address(address) => address.to_string(),
        };
        let budgets = self.of_rules(permit.budgets(), &to);
        let budgets = budgets.map_err(|poisoned| poisoned.refusal(Reason::Budget, subject))?;
        Ok(Some(Quota {
            budgets,
            caller: Arc::clone(caller),
            subject: subject.to_owned(),
        }))
    }

    /// All of them for people: the rule, whose hosts, bytes of how many.
    pub(crate) fn shown(&self) -> Vec<(String, String, u64, u64)> {
        let Ok(all) = lock::held(&self.0) else {
            return Vec::new();
        };
        let shown = all.values().map(|own| {
            let spent = own.spent.load(Ordering::Relaxed);
            (own.rule.text.to_string(), own.to.clone(), spent, own.bytes)
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort();
        shown
    }

    /// What is left of these for one host.
    ///
    /// # Errors
    /// Nobody knows what was spent.
    fn of_rules(&self, budgets: &[Budget], to: &str) -> Result<Vec<Arc<HostQuota>>, Poisoned> {
        let mut all = lock::held(&self.0)?;
        let budgets = budgets.iter().map(|own| {
            if own.span == BudgetSpan::Request {
                return Arc::new(HostQuota::of_request(own, to));
            }
            let key = (own.rule.text.clone(), own.rule.place.clone(), to.to_owned());
            if let Some(known) = all.get(&key).filter(|known| known.bytes == own.bytes) {
                return Arc::clone(known);
            }
            // Under another bound what was spent stays spent.
            let spent = all
                .get(&key)
                .map_or(0, |known| known.spent.load(Ordering::Relaxed));
            let full = all.len() >= limits::BUDGETS_MAX;
            let budget = Arc::new(HostQuota {
                rule: own.rule.clone(),
                to: to.to_owned(),
                bytes: if full { 0 } else { own.bytes },
                span: own.span,
                spent: AtomicU64::new(spent),
                told: AtomicBool::new(false),
            });
            if !full {
                all.insert(key, Arc::clone(&budget));
            }
            budget
        });
        Ok(budgets.collect())
    }
}

impl Quota {
    /// Whether so many bytes are left.
    ///
    /// # Errors
    /// They are not.
    pub(crate) fn fits(&self, bytes: u64) -> Result<(), Refusal> {
        match self.budgets.iter().find(|budget| budget.left() < bytes) {
            Some(budget) => Err(budget.refusal(&self.subject)),
            None => Ok(()),
        }
    }

    /// Bytes are about to leave.
    ///
    /// # Errors
    /// They may not; it was recorded and told.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), Stopped> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut refusal = None;
        for budget in &self.budgets {
            let before = budget.spent.load(Ordering::Relaxed);
            let after = before.saturating_add(bytes);
            if after > budget.bytes {
                refusal.get_or_insert_with(|| budget.refusal(&self.subject));
                continue;
            }
            budget.spent.store(after, Ordering::Relaxed);
            if after >= budget.alarm() && !budget.told.swap(true, Ordering::Relaxed) {
                self.tell(budget);
            }
        }
        let Some(refusal) = refusal else {
            return Ok(());
        };
        self.caller.refuse(Kind::Budget, &refusal);
        Err(Stopped::refused(refusal))
    }

    /// Records that a budget is nearly spent.
    fn tell(&self, budget: &HostQuota) {
        let because = format!(
            "{}% of the {} bytes are spent that `{}` lets go to {}",
            limits::BUDGET_ALARM_PERCENT,
            budget.bytes,
            budget.rule.text,
            budget.to
        );
        let event = Event::new(Kind::Budget, Outcome::Note, &budget.to)
            .process(self.caller.process())
            .reason(Reason::Budget, &because)
            .rule(&budget.rule);
        self.caller.recorder().record(&event).ok();
    }
}

impl HostQuota {
    /// One of which nothing is spent, and that nothing else spends from.
    fn of_request(budget: &Budget, to: &str) -> Self {
        Self {
            rule: budget.rule.clone(),
            to: to.to_owned(),
            bytes: budget.bytes,
            span: budget.span,
            spent: AtomicU64::new(0),
            // That one request is large is nothing to be warned of.
            told: AtomicBool::new(true),
        }
    }

    fn left(&self) -> u64 {
        self.bytes
            .saturating_sub(self.spent.load(Ordering::Relaxed))
    }

    /// From how many bytes on it is told.
    fn alarm(&self) -> u64 {
        self.bytes / 100 * limits::BUDGET_ALARM_PERCENT
            + self.bytes % 100 * limits::BUDGET_ALARM_PERCENT / 100
    }

    fn refusal(&self, subject: &str) -> Refusal {
        let (key, span) = match self.span {
            BudgetSpan::Run => ("budget", "run"),
            BudgetSpan::Request => ("budget_each", "request"),
        };
        let because = format!(
            "`{}` lets {} bytes go to {} in one {span}, and {} are left; raise `{key}` at {}",
            self.rule.text,
            self.bytes,
            self.to,
            self.left(),
            self.rule.place
        );
        Refusal::own(Reason::Budget, subject, &because)
    }
}

#[cfg(test)]
mod tests {
    use outgate_policy::Effect;

    use super::*;

    #[test]
    fn nothing_leaves_once_nobody_knows_what_was_spent() {
        let budgets = Budgets::default();
        let rule = RuleRef {
            id: 1,
            effect: Effect::Allow,
            text: "a.test".into(),
            place: "a.toml:1:1".into(),
        };
        let span = BudgetSpan::Run;
        let own = [Budget {
            rule,
            bytes: 10,
            span,
        }];
        let known = budgets.of_rules(&own, "a.test").unwrap();
        assert_eq!(known.iter().map(|quota| quota.left()).sum::<u64>(), 10);
        lock::poison(&budgets.0);
        assert_eq!(budgets.of_rules(&own, "a.test").unwrap_err(), Poisoned);
    }

    #[test]
    fn each_request_begins_with_all_that_a_request_may_have() {
        let rule = RuleRef {
            id: 1,
            effect: Effect::Allow,
            text: "a.test".into(),
            place: "a.toml:1:1".into(),
        };
        let of = |span, bytes| Budget {
            rule: rule.clone(),
            bytes,
            span,
        };
        let each = of(BudgetSpan::Request, 10);
        let own = [of(BudgetSpan::Run, 25), each.clone()];
        let budgets = Budgets::default();
        let spend = |bytes| {
            for budget in budgets.of_rules(&own, "a.test").unwrap() {
                budget.spent.fetch_add(bytes, Ordering::Relaxed);
            }
        };
        let left = || {
            let budgets = budgets.of_rules(&own, "a.test").unwrap();
            budgets.iter().map(|own| own.left()).collect::<Vec<u64>>()
        };
        spend(8);
        assert_eq!(left(), [17, 10]);
        let refusal = HostQuota::of_request(&each, "a.test").refusal("x");
        let advice = "in one request, and 10 are left; raise `budget_each` at a.toml:1:1";
        assert!(format!("{refusal:?}").contains(advice), "{refusal:?}");
    }
}
