//! Rules that were granted for one request, as a filter: the first request that such a rule
//! allows is sent, and none after it. TLS that passes unopened is had the same way: nobody
//! counts what is inside, so that the one connection is all of it. The launcher hears when
//! that one is over, and takes the rule back.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use outgate_handoff::ToLauncher;
use outgate_policy::Permit;
use outgate_record::Reason;

use crate::control::ControlSocket;
use crate::filter::{Filter, FilterFault, RequestContext, SentHead};
use crate::limits;
use crate::lock;
use crate::refusal::Refusal;

/// The rules that had their request, by their places, which no two rules share.
#[derive(Debug, Default)]
pub(crate) struct UsedGrants(Mutex<HashSet<Arc<str>>>);

/// What lets one request by, and no second.
pub(crate) fn filter(used: &Arc<UsedGrants>, control: &Arc<ControlSocket>) -> Box<dyn Filter> {
    Box::new(OnceFilter {
        used: Arc::clone(used),
        control: Arc::clone(control),
        had: None,
    })
}

#[derive(Debug)]
struct OnceFilter {
    used: Arc<UsedGrants>,
    control: Arc<ControlSocket>,
    /// What this request has.
    had: Option<OneUse>,
}

/// The one use of a rule, which is over when this is dropped.
#[derive(Debug)]
pub(crate) struct OneUse {
    place: Arc<str>,
    control: Arc<ControlSocket>,
}

impl UsedGrants {
    /// Takes the one use of the rule that a permit is by, where it has but one.
    ///
    /// # Errors
    /// Another had it, or nobody knows.
    pub(crate) fn one(
        &self,
        control: &Arc<ControlSocket>,
        (permit, subject): (&Permit, &str),
    ) -> Result<Option<OneUse>, Refusal> {
        let rule = permit.rule();
        if !rule.is_for_once() {
            return Ok(None);
        }
        self.take(&rule.place, subject)?;
        Ok(Some(OneUse {
            place: Arc::clone(&rule.place),
            control: Arc::clone(control),
        }))
    }

    /// Takes the one request of a rule.
    ///
    /// # Errors
    /// Another had it, or nobody knows.
    fn take(&self, place: &Arc<str>, subject: &str) -> Result<(), Refusal> {
        let used = lock::held(&self.0);
        let mut used = used.map_err(|poisoned| poisoned.refusal(Reason::Policy, subject))?;
        if used.len() < limits::USED_GRANTS_MAX && used.insert(Arc::clone(place)) {
            return Ok(());
        }
        let because = "what was granted for one request was used by another";
        Err(Refusal::own(Reason::Policy, subject, because))
    }
}

impl Filter for OnceFilter {
    fn head(
        &mut self,
        request: &RequestContext,
        _: &mut SentHead,
        permit: &Permit,
    ) -> Result<(), FilterFault> {
        if self.had.is_none() {
            let target = &request.target;
            let subject = format!("{} {}", target.method, target.origin());
            self.had = self.used.one(&self.control, (permit, &subject))?;
        }
        Ok(())
    }
}

impl Drop for OneUse {
    fn drop(&mut self) {
        // Where there is no room the rule stays, and lets nothing by.
        let place = self.place.to_string();
        self.control.offer(&ToLauncher::Spent { place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_one_request_is_had_by_one() {
        let used = UsedGrants::default();
        let place = |number: usize| Arc::from(format!("outgate grant {number} --once"));
        used.take(&place(1), "GET a.test").unwrap();
        used.take(&place(2), "GET a.test").unwrap();
        let refusal = used.take(&place(1), "GET a.test").unwrap_err();
        assert_eq!(refusal.reason(), Reason::Policy);
        for number in 3..=limits::USED_GRANTS_MAX {
            used.take(&place(number), "GET a.test").unwrap();
        }
        assert!(used.take(&place(0), "GET a.test").is_err());
        let used = UsedGrants::default();
        lock::poison(&used.0);
        assert!(used.take(&place(1), "GET a.test").is_err());
    }
}
