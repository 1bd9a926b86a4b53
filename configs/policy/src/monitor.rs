//! A run that monitors: what rules deny passes, and the permit carries the denial that the
//! rules would have made. Called by the one decision for what it denied, and by nobody else.
//!
//! Rules about hosts, methods and paths are let go; what protects the machine and the user's
//! own network is not. Nothing passes unopened or straight: whatever is let through is looked
//! into.

use std::net::IpAddr;

use crate::denial::{self, DeniedEvent};
use crate::effect::Effect;
use crate::evaluate::{Lead, lets_lead};
use crate::facts::{AddressSource, Facts, Peer};
use crate::host::{HostName, HostPattern};
use crate::policy::Policy;
use crate::rule::{NetworkTarget, Protocol, RuleTarget};
use crate::settings::{Enforcement, Inspect, Intercept, Settings, Switch, Unscannable};
use crate::special::{OWN_HOST, is_never_class, special_use};
use crate::survey::{Cause, SurveyDestination};
use crate::verdict::{Denial, DenialReason, Permit, Route, Terms, Verdict};

/// How far a run that monitors lets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What is public.
    Public,
    /// Private and loopback addresses and networks that rules deny, too.
    Inside,
}

impl Policy {
    /// Whether what rules deny passes.
    pub fn monitors(&self) -> bool {
        self.reach().is_some()
    }

    /// Whether anything may be let out over the network, by rules or in spite of them.
    pub fn reaches_out(&self) -> bool {
        self.has_network_rules() || self.monitors()
    }

    /// By which mode the scan weighs what passes in spite of the rules; none where nothing does.
    pub(crate) fn mode_of_monitored(&self) -> Option<Inspect> {
        Some(match self.reach()? {
            Reach::Public => Inspect::Block,
            Reach::Inside => Inspect::Warn,
        })
    }

    fn reach(&self) -> Option<Reach> {
        match self.settings.enforcement {
            Enforcement::Enforced | Enforcement::Learning => None,
            Enforcement::Monitor => Some(Reach::Public),
            Enforcement::MonitorAll => Some(Reach::Inside),
        }
    }

    /// What becomes of what the rules denied.
    pub(crate) fn monitored(&self, facts: &Facts<'_>, denial: Denial) -> Verdict {
        let Some(reach) = self.reach() else {
            return Verdict::Deny(denial);
        };
        let is_of_rules = match denial.reason() {
            DenialReason::NoRule
            | DenialReason::DenyRule
            | DenialReason::OnlyRule
            | DenialReason::Process
            | DenialReason::OtherMethod => true,
            // TLS that has to be opened is not denied.
            DenialReason::NeedsInspection => !matches!(facts, Facts::Tunnel { .. }),
            DenialReason::SpecialUse => reach == Reach::Inside,
            DenialReason::Malformed => false,
        };
        if !is_of_rules {
            return Verdict::Deny(denial);
        }
        let route = match *facts {
            Facts::Connect {
                process,
                peer,
                port,
            } if self.is_open(reach, SurveyDestination::new(process, peer, port)) => Route::Gateway,
            Facts::Dial {
                process,
                peer,
                port,
                address,
                source,
            } => {
                let to = SurveyDestination::new(process, peer, port);
                if !self.is_open_at(reach, to, (address.to_canonical(), source)) {
                    return Verdict::Deny(denial);
                }
                Route::Gateway
            }
            Facts::Request {
                process,
                peer,
                port,
                ..
            } if self.is_open(reach, SurveyDestination::new(process, peer, port)) => Route::Forward,
            Facts::Tunnel {
                process,
                peer,
                port,
            } if self.settings.intercept != Intercept::Never
                && self.is_open(reach, SurveyDestination::new(process, peer, port)) =>
            {
                // Requests inside are judged one by one.
                let cause = Cause::plain(DenialReason::NeedsInspection);
                let opened = DeniedEvent::of(facts);
                return Verdict::Deny(denial::denial(&opened, cause, self.settings.intercept));
            }
            Facts::Connect { .. }
            | Facts::Request { .. }
            | Facts::Tunnel { .. }
            | Facts::Unix { .. }
            | Facts::Listen { .. } => return Verdict::Deny(denial),
        };
        let rule = denial::built_in("monitor");
        let mode = self.mode_of_monitored().unwrap_or_default();
        let terms = Terms::of(&rule, None).by(mode);
        Verdict::Allow(Permit::new((route, rule), terms, facts).in_spite_of(denial))
    }

    /// Whether a host may be reached in spite of the rules. What a name leads to is judged when
    /// that is known.
    fn is_open(&self, reach: Reach, to: SurveyDestination<'_>) -> bool {
        match to.peer {
            Peer::Name(name) => name.as_str() != OWN_HOST,
            Peer::Address(address) => self.is_open_at(reach, to, (address, AddressSource::Pinned)),
        }
    }

    /// The same of an address.
    fn is_open_at(
        &self,
        reach: Reach,
        to: SurveyDestination<'_>,
        (address, source): (IpAddr, AddressSource),
    ) -> bool {
        let name = match to.peer {
            Peer::Name(name) if name.as_str() == OWN_HOST => return false,
            Peer::Name(name) => Some(name),
            Peer::Address(own) if own == address => None,
            Peer::Address(_) => return false,
        };
        let is_in_reach = match special_use(address) {
            None => true,
            Some(class) if is_never_class(class) => return false,
            Some(class) => {
                reach == Reach::Inside && !is_of_services(class)
                    || self.is_granted_at(to, name, (address, source))
            }
        };
        is_in_reach && (reach == Reach::Inside || !self.is_fenced(to, name, address))
    }

    /// Whether rules grant some use of an address that is not public.
    fn is_granted_at(
        &self,
        to: SurveyDestination<'_>,
        name: Option<&HostName>,
        (address, source): (IpAddr, AddressSource),
    ) -> bool {
        let Some(name) = name else {
            let facts = Facts::Connect {
                process: to.process,
                peer: to.peer,
                port: to.port,
            };
            return matches!(self.judge(&facts), Verdict::Allow(_));
        };
        let survey = self.survey(to);
        survey.is_ok_and(|survey| {
            matches!(
                self.leads((to, &survey), name, (address, source)),
                Lead::Granted
            )
        })
    }

    /// Whether a rule denies the address or its network, whoever wrote it.
    fn is_fenced(
        &self,
        to: SurveyDestination<'_>,
        name: Option<&HostName>,
        address: IpAddr,
    ) -> bool {
        let mut rules = self.all_rules().iter().chain(self.narrowing_rules());
        rules.any(|rule| {
            let RuleTarget::Network(target) = &rule.target else {
                return false;
            };
            rule.reference.effect == Effect::Deny
                && rule.restricts_process(to.process)
                && matches!(target.host, HostPattern::Net(_) | HostPattern::Localhost)
                && target.host.denies_address(address)
                && denies_some(target, to.port)
                && !lets_lead(target, (name, address), to.port)
        })
    }
}

fn denies_some(target: &NetworkTarget, port: u16) -> bool {
    let mut all = Protocol::ALL.iter();
    all.any(|protocol| target.denies_port(*protocol, port))
}

/// Whether addresses of this class serve the credentials of the machine itself. Link-local
/// ones do in containers.
fn is_of_services(class: &str) -> bool {
    matches!(class, "metadata" | "link-local")
}

impl Settings {
    /// What is switched off where everything passes: credentials in what is let through are
    /// told, and what cannot be looked into is recorded.
    pub(crate) fn let_go(&mut self) {
        if self.enforcement == Enforcement::MonitorAll {
            self.strict = Switch::Off;
            self.unscannable = Unscannable::Record;
            if self.inspect == Inspect::Block {
                self.inspect = Inspect::Warn;
            }
        }
    }
}

#[cfg(test)]
mod tests;
