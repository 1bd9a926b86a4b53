//! What the rules say of requests inside TLS to one destination, before any is seen.
//! Collected by the survey, read by the decision.

use crate::effect::Effect;
use crate::facts::Process;
use crate::rule::{Extent, NetworkTarget, Protocol, Rule};
use crate::settings::Inspect;

/// What rules that grant say of requests inside TLS to one destination.
#[derive(Debug, Default)]
pub(crate) struct SurveyInside<'p> {
    /// The first that has what it lets out scanned.
    pub(crate) scanned: Option<&'p Rule>,
    /// The first that counts requests apart, which are only some of it.
    pub(crate) counted: Option<&'p Rule>,
    /// Those that let everything pass and ask for no look.
    off: FirstOfEffect<'p>,
    /// Those that leave the look to the policy, for what no other lets pass as a whole.
    silent: FirstOfEffect<'p>,
}

/// The first rule of each effect that grants.
#[derive(Debug, Clone, Copy, Default)]
struct FirstOfEffect<'p> {
    only: Option<&'p Rule>,
    allow: Option<&'p Rule>,
}

impl<'p> FirstOfEffect<'p> {
    fn add(&mut self, rule: &'p Rule) {
        match rule.reference.effect {
            Effect::Only => self.only.get_or_insert(rule),
            Effect::Allow => self.allow.get_or_insert(rule),
            Effect::Deny => return,
        };
    }

    /// Whether one of them may allow something: where an `only` rule covers the host, no
    /// other does.
    fn any(self, covering: Option<&Rule>) -> bool {
        self.only.is_some() || self.allow.is_some() && covering.is_none()
    }
}

impl<'p> SurveyInside<'p> {
    /// Adds a rule that grants something at the host of a destination, with its own mode.
    pub(crate) fn add(
        &mut self,
        (rule, target): (&'p Rule, &NetworkTarget),
        (process, port): (Process<'_>, u16),
        mode: Option<Inspect>,
    ) {
        let carries = |protocol| target.grants_port(protocol, port);
        let (https, wss) = (carries(Protocol::Https), carries(Protocol::Wss));
        if !(https || wss) {
            return;
        }
        let extent = if target.is_restricted() || !https {
            Extent::Some
        } else {
            Extent::All
        };
        if rule.restricts_process(process) {
            if rule.keys.tells_requests_apart(extent) {
                self.counted.get_or_insert(rule);
            }
            if matches!(mode, Some(Inspect::Block | Inspect::Warn)) {
                self.scanned.get_or_insert(rule);
            }
        }
        if rule.grants_process(process) {
            match mode {
                Some(Inspect::Off) if extent == Extent::All => self.off.add(rule),
                // What it allows is no part of what another lets pass as a whole.
                None if !https => self.silent.add(rule),
                Some(_) | None => {}
            }
        }
    }

    /// Whether all that is allowed may pass without a look.
    pub(crate) fn lets_pass(&self, covering: Option<&Rule>) -> bool {
        self.off.any(covering) && !self.silent.any(covering)
    }
}
