//! How much may still leave where a rule says how much: for each rule and each
//! host somebody registered, for as long as the sandbox lives. Counted before
//! bytes are sent; what would go beyond is not sent, and what is nearly spent is
//! told once. Knows no policy and sends nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, request};
use outgate_policy::{Host, Permit, RuleRef};

use crate::audit::{Event, Kind, Outcome};
use crate::caller::Caller;
use crate::limits;
use crate::refusal::Refusal;

/// The budgets of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<Key, Arc<Budget>>>);

/// A rule's text and place, and whose hosts it is about.
type Key = (Arc<str>, Arc<str>, String);

#[derive(Debug)]
struct Budget {
    rule: RuleRef,
    to: String,
    bytes: u64,
    spent: AtomicU64,
    told: AtomicBool,
}

/// What one request or tunnel spends from.
#[derive(Debug, Clone)]
pub(crate) struct Purse {
    budgets: Vec<Arc<Budget>>,
    caller: Arc<Caller>,
    /// What is refused when nothing is left.
    subject: String,
    slot: Slot,
}

/// Where it is said why nothing more is sent.
pub(crate) type Slot = Arc<Mutex<Option<Refusal>>>;

/// Nothing more may leave; why is in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the budget of the rule is spent")]
pub(crate) struct Spent;

impl Budgets {
    /// What a permitted request or tunnel to a host spends from; nothing where
    /// no rule has a budget.
    pub(crate) fn purse(
        &self,
        caller: &Arc<Caller>,
        permit: &Permit,
        (host, subject): (&Host, &str),
    ) -> Option<Purse> {
        if permit.budgets().is_empty() {
            return None;
        }
        let to = match host {
            // Names below one domain are one party's: each with a budget of its own
            // would be no bound.
            Host::Name(name) => name.registered().1.to_owned(),
            Host::Address(address) => address.to_string(),
        };
        let mut all = self.0.lock().ok()?;
        let budgets = permit.budgets().iter().map(|own| {
            let key = (own.rule.text.clone(), own.rule.place.clone(), to.clone());
            if let Some(known) = all.get(&key).filter(|known| known.bytes == own.bytes) {
                return Arc::clone(known);
            }
            // Under another bound what was spent stays spent.
            let spent = all
                .get(&key)
                .map_or(0, |known| known.spent.load(Ordering::Relaxed));
            let full = all.len() >= limits::BUDGETS_MAX;
            let budget = Arc::new(Budget {
                rule: own.rule.clone(),
                to: to.clone(),
                bytes: if full { 0 } else { own.bytes },
                spent: AtomicU64::new(spent),
                told: AtomicBool::new(false),
            });
            if !full {
                all.insert(key, Arc::clone(&budget));
            }
            budget
        });
        let budgets = budgets.collect();
        Some(Purse {
            budgets,
            caller: Arc::clone(caller),
            subject: subject.to_owned(),
            slot: Slot::default(),
        })
    }
}

impl Purse {
    /// Where it will be said why nothing more is sent.
    pub(crate) fn slot(&self) -> Slot {
        Arc::clone(&self.slot)
    }

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
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), Spent> {
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
        if let Ok(mut slot) = self.slot.lock()
            && slot.is_none()
        {
            self.caller.refuse(Kind::Budget, &refusal);
            *slot = Some(refusal);
        }
        Err(Spent)
    }

    /// Records that a budget is nearly spent.
    fn tell(&self, budget: &Budget) {
        let because = format!(
            "{}% of the {} bytes are spent that `{}` lets go to {}",
            limits::BUDGET_ALARM_PERCENT,
            budget.bytes,
            budget.rule.text,
            budget.to
        );
        let event = Event::new(Kind::Budget, Outcome::Note, &budget.to)
            .process(self.caller.process())
            .reason("budget", &because)
            .rule(&budget.rule);
        self.caller.recorder().record(&event).ok();
    }
}

impl Budget {
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
        let because = format!(
            "`{}` lets {} bytes go to {} in one run, and {} are left; raise `budget` at {}",
            self.rule.text,
            self.bytes,
            self.to,
            self.left(),
            self.rule.place
        );
        Refusal::own("budget", subject, &because)
    }
}

/// About how many bytes a request's head has on the wire (RFC 9112 3, 5).
pub(crate) fn head_bytes(head: &request::Parts, resource: &str) -> usize {
    let line = head.method.as_str().len().saturating_add(resource.len());
    let line = line.saturating_add(12);
    line.saturating_add(field_bytes(&head.headers))
}

/// About how many bytes fields have there, in a head or behind content.
pub(crate) fn field_bytes(fields: &HeaderMap) -> usize {
    let each = fields.iter().map(|(name, value)| {
        let both = name.as_str().len().saturating_add(value.len());
        both.saturating_add(4)
    });
    each.fold(0, usize::saturating_add)
}
