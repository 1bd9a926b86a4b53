//! What the rules say about a destination before any request is seen.
//!
//! One pass over the rules makes a table of effects by protocol; the decision
//! reads the table. Also the causes of denials, before they are put into words.

use std::net::IpAddr;

use crate::effect::{Effect, RuleRef};
use crate::facts::{Peer, Process};
use crate::host::HostPattern;
use crate::inside::SurveyInside;
use crate::policy::Policy;
use crate::rule::{Excepted, NetworkTarget, Protocol, RequestFacts, Rule};
use crate::special::{OWN_CLASS, OWN_HOST, never_a_destination, special_use};
use crate::verdict::DenialReason;

/// A destination as rules see it: IPv4 in IPv6 unwrapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurveyDestination<'a> {
    pub(crate) process: Process<'a>,
    pub(crate) peer: Peer<'a>,
    pub(crate) port: u16,
}

impl<'a> SurveyDestination<'a> {
    pub(crate) fn new(process: Process<'a>, peer: Peer<'a>, port: u16) -> Self {
        let peer = match peer {
            Peer::Name(name) => Peer::Name(name),
            Peer::Address(ip) => Peer::Address(ip.to_canonical()),
        };
        Self {
            process,
            peer,
            port,
        }
    }

    pub(crate) fn is_granted_host(&self, pattern: &HostPattern) -> bool {
        match self.peer {
            Peer::Name(name) => pattern.grants_name(name),
            Peer::Address(ip) => pattern.grants_address(ip),
        }
    }

    /// Whether an `only` rule is about this host, also where it grants nothing.
    pub(crate) fn is_covered_host(&self, pattern: &HostPattern) -> bool {
        match pattern {
            HostPattern::Everything | HostPattern::Any => self.is_granted_host(pattern),
            HostPattern::Localhost
            | HostPattern::Exact(_)
            | HostPattern::Below(_)
            | HostPattern::AtOrBelow(_)
            | HostPattern::Net(_) => self.is_denied_host(pattern),
        }
    }

    pub(crate) fn is_denied_host(&self, pattern: &HostPattern) -> bool {
        match self.peer {
            Peer::Name(name) => pattern.denies_name(name),
            Peer::Address(ip) => pattern.denies_address(ip),
        }
    }
}

/// One kind of rules, by protocol: the first that covers every request, and
/// the first that covers some.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SurveyColumn<'p> {
    pub(crate) whole: Option<&'p Rule>,
    pub(crate) part: Option<&'p Rule>,
}

impl<'p> SurveyColumn<'p> {
    pub(crate) fn add(&mut self, rule: &'p Rule, target: &NetworkTarget) {
        let slot = if target.is_restricted() {
            &mut self.part
        } else {
            &mut self.whole
        };
        // A rule that counts does so wherever it grants, whatever grants besides.
        if slot.is_none_or(|own| !own.keys.counts() && rule.keys.counts()) {
            *slot = Some(rule);
        }
    }

    /// Adds a rule that denies all but what its exceptions say.
    fn add_denial(&mut self, rule: &'p Rule, target: &NetworkTarget, excepted: Excepted) {
        match excepted {
            Excepted::All => {}
            Excepted::Some => {
                self.part.get_or_insert(rule);
            }
            Excepted::Nothing => self.add(rule, target),
        }
    }

    pub(crate) fn any(self) -> Option<&'p Rule> {
        self.whole.or(self.part)
    }
}

/// What the rules say about a destination before any request is seen.
#[derive(Debug, Default)]
pub(crate) struct Survey<'p> {
    pub(crate) allow: [SurveyColumn<'p>; 6],
    pub(crate) only: [SurveyColumn<'p>; 6],
    pub(crate) deny: [SurveyColumn<'p>; 6],
    /// The first `only` rule that covers the host.
    pub(crate) covering: Option<&'p Rule>,
    /// The first rule that would grant to another process.
    pub(crate) other_process: Option<&'p Rule>,
    /// What is said of requests inside TLS.
    pub(crate) inside: SurveyInside<'p>,
}

impl<'p> Survey<'p> {
    pub(crate) fn grants(&self, protocol: Protocol) -> SurveyColumn<'p> {
        let (only, allow) = (column(&self.only, protocol), column(&self.allow, protocol));
        if self.covering.is_none() {
            return SurveyColumn {
                whole: only.whole.or(allow.whole),
                part: only.part.or(allow.part),
            };
        }
        SurveyColumn {
            whole: counting(only.whole, allow.whole),
            part: only.part,
        }
    }

    pub(crate) fn denies(&self, protocol: Protocol) -> SurveyColumn<'p> {
        column(&self.deny, protocol)
    }

    /// The rule by which some use of the protocol may pass.
    pub(crate) fn surviving(&self, protocol: Protocol) -> Option<&'p Rule> {
        match self.denies(protocol).whole {
            Some(_) => None,
            None => self.grants(protocol).any(),
        }
    }
}

/// What permits where only `only` rules do: one that allows as well counts if it
/// counts what leaves and the other does not.
pub(crate) fn counting<'p>(only: Option<&'p Rule>, allow: Option<&'p Rule>) -> Option<&'p Rule> {
    let only = only?;
    let counts = allow.filter(|allow| !only.keys.counts() && allow.keys.counts());
    Some(counts.unwrap_or(only))
}

pub(crate) fn column<'p>(columns: &[SurveyColumn<'p>; 6], protocol: Protocol) -> SurveyColumn<'p> {
    Protocol::ALL
        .iter()
        .zip(columns)
        .find(|(own, _)| **own == protocol)
        .map(|(_, column)| *column)
        .unwrap_or_default()
}

impl Policy {
    /// Surveys the rules for a destination.
    pub(crate) fn survey(&self, to: SurveyDestination<'_>) -> Result<Survey<'_>, Cause> {
        check_destination(to)?;
        let mut survey = Survey::default();
        for (rule, target) in self.network_rules() {
            let effect = rule.reference.effect;
            let restricts = rule.restricts_process(to.process);
            if effect == Effect::Only && restricts && to.is_covered_host(&target.host) {
                survey.covering.get_or_insert(rule);
            }
            let covered = match effect {
                Effect::Deny => to.is_denied_host(&target.host),
                Effect::Allow | Effect::Only => to.is_granted_host(&target.host),
            };
            if !covered {
                continue;
            }
            if effect != Effect::Deny {
                let mode = self.own_mode(rule);
                survey
                    .inside
                    .add((rule, target), (to.process, to.port), mode);
            }
            let columns = match effect {
                Effect::Deny => &mut survey.deny,
                Effect::Allow => &mut survey.allow,
                Effect::Only => &mut survey.only,
            };
            for (protocol, column) in Protocol::ALL.into_iter().zip(columns) {
                if effect == Effect::Deny {
                    if restricts && target.denies_port(protocol, to.port) {
                        let is_named = |host: &HostPattern| to.is_granted_host(host);
                        let excepted = target.excepted((protocol, to.port), is_named);
                        column.add_denial(rule, target, excepted);
                    }
                } else if target.grants_port(protocol, to.port) {
                    if rule.grants_process(to.process) {
                        column.add(rule, target);
                    } else {
                        survey.other_process.get_or_insert(rule);
                    }
                }
            }
        }
        Ok(survey)
    }
}

/// Why an event is denied, before it is put into words.
#[derive(Debug)]
pub(crate) struct Cause {
    pub(crate) reason: DenialReason,
    pub(crate) rule: Option<RuleRef>,
    pub(crate) class: Option<&'static str>,
    pub(crate) executables: Vec<Box<str>>,
    /// Keys of the query that a rule names which allows all but the query.
    pub(crate) query: Vec<Box<str>>,
    pub(crate) look: InsideLook,
}

/// For what somebody looks inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsideLook {
    /// To judge requests one by one.
    Requests,
    /// To scan them, as the rule asks.
    Scan,
}

impl Cause {
    pub(crate) fn plain(reason: DenialReason) -> Self {
        Self {
            reason,
            rule: None,
            class: None,
            executables: Vec::new(),
            query: Vec::new(),
            look: InsideLook::Requests,
        }
    }

    pub(crate) fn rule(reason: DenialReason, rule: &Rule) -> Self {
        Self {
            rule: Some(rule.reference.clone()),
            ..Self::plain(reason)
        }
    }

    /// No rule allows it, and one does but for the query.
    pub(crate) fn other_query(rule: &Rule, keys: Vec<Box<str>>) -> Self {
        Self {
            query: keys,
            ..Self::rule(DenialReason::NoRule, rule)
        }
    }

    pub(crate) fn inspection(rule: &Rule) -> Self {
        Self::rule(DenialReason::NeedsInspection, rule)
    }

    /// The rule has what it lets out scanned.
    pub(crate) fn scan(rule: &Rule) -> Self {
        Self {
            look: InsideLook::Scan,
            ..Self::inspection(rule)
        }
    }

    pub(crate) fn other_process(rule: &Rule) -> Self {
        Self {
            executables: rule.keys.process.clone(),
            ..Self::rule(DenialReason::Process, rule)
        }
    }

    /// The same, said of the query where a rule allows all else.
    pub(crate) fn but_for_query(
        self,
        nearest: Option<(&Rule, &NetworkTarget)>,
        request: RequestFacts<'_>,
    ) -> Self {
        let Some((rule, target)) = nearest.filter(|_| self.reason == DenialReason::NoRule) else {
            return self;
        };
        let query = request.target.query().unwrap_or("");
        let there = target.query.iter().filter(|pattern| pattern.is_in(query));
        let keys = there
            .filter_map(|pattern| pattern.shown_key())
            .map(Box::from);
        Self::other_query(rule, keys.collect())
    }

    pub(crate) fn special(ip: IpAddr) -> Self {
        Self {
            class: special_use(ip),
            ..Self::plain(DenialReason::SpecialUse)
        }
    }

    /// The name that only the gateway answers.
    fn own() -> Self {
        Self {
            class: Some(OWN_CLASS),
            ..Self::plain(DenialReason::SpecialUse)
        }
    }
}

/// Refuses what no rule can make a destination.
pub(crate) fn check_destination(to: SurveyDestination<'_>) -> Result<(), Cause> {
    if to.port == 0 {
        return Err(Cause::plain(DenialReason::Malformed));
    }
    match to.peer {
        Peer::Address(ip) if never_a_destination(ip) => Err(Cause::special(ip)),
        Peer::Name(name) if name.as_str() == OWN_HOST => Err(Cause::own()),
        Peer::Address(_) | Peer::Name(_) => Ok(()),
    }
}
