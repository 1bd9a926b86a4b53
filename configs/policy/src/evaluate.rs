//! The one decision: total, deterministic, without side effects.
//!
//! Every event ends in [`Policy::evaluate`], which alone makes permits. Default
//! deny; a deny rule beats whatever allows; where an `only` rule covers the
//! host, nothing but `only` rules allows. What is not known counts against.

use std::net::{IpAddr, SocketAddr};

use crate::denial::{self, Event};
use crate::effect::{Effect, RuleRef};
use crate::facts::{AddressSource, Facts, Peer, Process};
use crate::host::{HostName, HostPattern};
use crate::policy::Policy;
use crate::rule::{Protocol, RequestFacts, Rule, Target};
use crate::special::{never_a_destination, special_use};
use crate::survey::{Cause, Destination, Survey, check_destination, column, counting};
use crate::verdict::{Permit, Reason, Route, Verdict};
use crate::weight::Inside;

impl Policy {
    /// Judges one event. Total and pure; the only maker of a [`Permit`].
    pub fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        match (self.judge(facts), &self.narrowing) {
            (Verdict::Allow(permit), Some(narrowing)) => narrowing.confirm(facts, permit),
            (verdict, _) => verdict,
        }
    }

    /// The same, whatever projects say.
    pub(crate) fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let event = Event::of(facts);
        let mut weighed = None;
        let outcome = match *facts {
            Facts::Connect {
                process,
                peer,
                port,
            } => self.connect(Destination::new(process, peer, port)),
            Facts::Dial {
                process,
                peer,
                port,
                address,
                source,
            } => self.dial(
                Destination::new(process, peer, port),
                address.to_canonical(),
                source,
            ),
            Facts::Tunnel {
                process,
                peer,
                port,
            } => self.tunnel(Destination::new(process, peer, port)),
            Facts::Request {
                process,
                peer,
                port,
                scheme,
                method,
                target,
            } => {
                let request = RequestFacts {
                    protocol: scheme.into(),
                    method,
                    target,
                };
                let to = Destination::new(process, peer, port);
                let outcome = self.request(to, request);
                let allowed = outcome.as_ref().ok();
                weighed = allowed.map(|(_, rule)| {
                    (
                        self.mode_of(to, request),
                        self.more_budgets(to, request, rule),
                    )
                });
                outcome
            }
            Facts::Unix { process, path } => self.unix(process, path),
            Facts::Listen { address, .. } => self.listening(address),
        };
        match outcome {
            Ok((route, rule)) => {
                let budget = self.budget_of(&rule);
                let permit = Permit::new(route, rule, budget);
                Verdict::Allow(match weighed {
                    Some((inspect, budgets)) => permit.weighed(inspect, budgets),
                    None => permit,
                })
            }
            Err(cause) => {
                let intercept = self.settings().intercept;
                Verdict::Deny(denial::denial(&event, cause, intercept))
            }
        }
    }

    fn connect(&self, to: Destination<'_>) -> Result<(Route, RuleRef), Cause> {
        let survey = self.survey(to)?;
        let inspected = [Protocol::Https, Protocol::Http, Protocol::Wss, Protocol::Ws];
        let through_gateway = inspected
            .into_iter()
            .chain([Protocol::Tls])
            .find_map(|protocol| survey.surviving(protocol));
        if let Some(raw) = survey.surviving(Protocol::Tcp) {
            let blocking = inspected
                .into_iter()
                .chain([Protocol::Tls])
                .find_map(|protocol| {
                    survey
                        .denies(protocol)
                        .any()
                        .or_else(|| column(&survey.only, protocol).part)
                });
            return match (blocking, through_gateway) {
                (None, _) => Ok((Route::Direct, raw.reference.clone())),
                (Some(_), Some(rule)) => Ok((Route::Gateway, rule.reference.clone())),
                (Some(rule), None) => Err(Cause::inspection(rule)),
            };
        }
        match through_gateway {
            Some(rule) => Ok((Route::Gateway, rule.reference.clone())),
            None => Err(self.refusal(to, &survey)),
        }
    }

    fn tunnel(&self, to: Destination<'_>) -> Result<(Route, RuleRef), Cause> {
        let survey = self.survey(to)?;
        let inside = [Protocol::Https, Protocol::Wss];
        let survives = inside
            .into_iter()
            .chain([Protocol::Tls])
            .find_map(|protocol| survey.surviving(protocol));
        let Some(nearest) = survives else {
            return Err(self.refusal(to, &survey));
        };
        let denied_inside = inside
            .into_iter()
            .find_map(|protocol| survey.denies(protocol).any());
        if let Some(rule) = denied_inside {
            return Err(Cause::inspection(rule));
        }
        if let Some(rule) = survey.surviving(Protocol::Tls) {
            return Ok((Route::Tunnel, rule.reference.clone()));
        }
        let opened = survey.denies(Protocol::Tls).any();
        let whole = survey.grants(Protocol::Https).whole;
        let whole = match (opened, whole) {
            (Some(rule), _) => return Err(Cause::inspection(rule)),
            (None, None) => return Err(Cause::inspection(nearest)),
            (None, Some(whole)) => whole,
        };
        if let Some(rule) = self.counted_inside(to) {
            return Err(Cause::inspection(rule));
        }
        // A placeholder must be found wherever it goes.
        let opens = !self.secrets().is_empty() || self.presents(to.peer);
        match self.inside(to) {
            Inside::Closed if !opens => Ok((Route::Tunnel, whole.reference.clone())),
            Inside::ByRule(rule) => Err(Cause::scan(rule)),
            // The scan, `tls.intercept` or a secret asks to open what the rule would let
            // pass, or a certificate is presented inside.
            Inside::Closed | Inside::ByPolicy => Err(Cause::plain(Reason::NeedsInspection)),
        }
    }

    fn request(
        &self,
        to: Destination<'_>,
        request: RequestFacts<'_>,
    ) -> Result<(Route, RuleRef), Cause> {
        check_destination(to)?;
        if !is_method(request.method)
            || request.target.as_str() == "*" && request.method != "OPTIONS"
        {
            return Err(Cause::plain(Reason::Malformed));
        }
        let mut allow: Option<&Rule> = None;
        let mut only: Option<&Rule> = None;
        let mut covering = None;
        let mut other_process = None;
        let mut other_query = None;
        for (rule, target) in self.network_rules() {
            match rule.reference.effect {
                Effect::Deny => {
                    if rule.restricts_process(to.process)
                        && target.denies_port(request.protocol, to.port)
                        && to.is_denied_host(&target.host)
                        && target.denies_request(request)
                    {
                        return Err(Cause::rule(Reason::DenyRule, rule));
                    }
                    continue;
                }
                Effect::Only => {
                    if rule.restricts_process(to.process) && to.is_covered_host(&target.host) {
                        covering.get_or_insert(rule);
                    }
                }
                Effect::Allow => {}
            }
            let slot = if rule.reference.effect == Effect::Only {
                &mut only
            } else {
                &mut allow
            };
            // A rule with a budget counts wherever it grants, whatever grants besides.
            let is_open = slot.is_none_or(|own| own.budget.is_none() && rule.budget.is_some());
            if is_open
                && target.grants_port(request.protocol, to.port)
                && to.is_granted_host(&target.host)
                && target.grants_method(request)
                && target.grants_path(request)
            {
                if !target.grants_query(request) {
                    if rule.grants_process(to.process) {
                        other_query.get_or_insert((rule, target));
                    }
                } else if rule.grants_process(to.process) {
                    *slot = Some(rule);
                } else {
                    other_process.get_or_insert(rule);
                }
            }
        }
        let granting = match covering {
            Some(_) => counting(only, allow),
            None => only.or(allow),
        };
        match granting {
            Some(rule) => Ok((Route::Forward, rule.reference.clone())),
            None => Err(self
                .nothing_grants(to, covering, other_process)
                .but_for_query(other_query, request)),
        }
    }

    fn dial(
        &self,
        to: Destination<'_>,
        address: IpAddr,
        source: AddressSource,
    ) -> Result<(Route, RuleRef), Cause> {
        let permitted = self.connect(to)?;
        if never_a_destination(address) {
            return Err(Cause::special(address));
        }
        let name = match to.peer {
            Peer::Address(ip) if ip == address => return Ok(permitted),
            Peer::Address(_) => return Err(Cause::plain(Reason::Malformed)),
            Peer::Name(name) => name,
        };
        let denying = self.network_rules().find(|(rule, target)| {
            rule.reference.effect == Effect::Deny
                && rule.restricts_process(to.process)
                && matches!(target.host, HostPattern::Net(_) | HostPattern::Localhost)
                && target.host.denies_address(address)
                && Protocol::ALL
                    .iter()
                    .any(|protocol| target.denies_port(*protocol, to.port))
        });
        if let Some((rule, _)) = denying {
            return Err(Cause::rule(Reason::DenyRule, rule));
        }
        if special_use(address).is_none() || self.may_lead_inside(to, name, address, source) {
            return Ok(permitted);
        }
        Err(Cause::special(address))
    }

    /// Whether a name may lead to this special-use address: the operator
    /// pinned it, or a rule that grants the name says so.
    fn may_lead_inside(
        &self,
        to: Destination<'_>,
        name: &HostName,
        address: IpAddr,
        source: AddressSource,
    ) -> bool {
        let pinned = self
            .pin(name, to.port)
            .is_some_and(|pin| pin.ip() == address);
        if pinned && source == AddressSource::Pinned {
            return true;
        }
        if self.grants_everything() {
            return true;
        }
        let Ok(survey) = self.survey(to) else {
            return false;
        };
        self.network_rules().any(|(rule, target)| {
            let grants = match rule.reference.effect {
                Effect::Deny => false,
                Effect::Only => true,
                Effect::Allow => survey.covering.is_none(),
            };
            grants
                && rule.grants_process(to.process)
                && target.host.grants_name(name)
                && Protocol::ALL
                    .iter()
                    .any(|protocol| target.grants_port(*protocol, to.port))
                && match source {
                    AddressSource::Pinned => target.host != HostPattern::Any,
                    AddressSource::Resolved => {
                        target.host == HostPattern::Localhost && target.host.grants_address(address)
                            || target
                                .addresses
                                .iter()
                                .any(|net| net.is_special() && net.contains(address))
                    }
                }
        })
    }

    fn unix(&self, process: Process<'_>, path: &str) -> Result<(Route, RuleRef), Cause> {
        let resolved = path.starts_with('/')
            && !path.contains('\0')
            && path
                .split('/')
                .skip(1)
                .all(|s| !matches!(s, "" | "." | ".."));
        if !resolved {
            return Err(Cause::plain(Reason::Malformed));
        }
        let mut granting = None;
        let mut other_process = None;
        for rule in self.all_rules() {
            let Target::Unix { pattern, .. } = &rule.target else {
                continue;
            };
            if !pattern.matches_file(path) {
                continue;
            }
            if rule.reference.effect == Effect::Deny {
                if rule.restricts_process(process) {
                    return Err(Cause::rule(Reason::DenyRule, rule));
                }
            } else if rule.grants_process(process) {
                granting.get_or_insert(rule);
            } else {
                other_process.get_or_insert(rule);
            }
        }
        match (granting, other_process) {
            (Some(rule), _) => Ok((Route::Direct, rule.reference.clone())),
            (None, Some(rule)) => Err(Cause::other_process(rule)),
            (None, None) => Err(Cause::plain(Reason::NoRule)),
        }
    }

    fn listening(&self, address: SocketAddr) -> Result<(Route, RuleRef), Cause> {
        let ip = address.ip().to_canonical();
        if address.port() == 0 {
            return Err(Cause::plain(Reason::Malformed));
        }
        if ip.is_loopback() {
            return Ok((Route::Direct, denial::built_in("listen on loopback")));
        }
        match self.listen().iter().find(|grant| grant.covers(address)) {
            Some(grant) => Ok((
                Route::Direct,
                RuleRef {
                    place: grant.place.clone(),
                    ..denial::built_in("listen")
                },
            )),
            None => Err(Cause::plain(Reason::NoRule)),
        }
    }

    /// Why nothing may be sent to a destination.
    fn refusal(&self, to: Destination<'_>, survey: &Survey<'_>) -> Cause {
        let denying = Protocol::ALL.iter().find_map(|p| survey.denies(*p).whole);
        match denying {
            Some(rule) => Cause::rule(Reason::DenyRule, rule),
            None => self.nothing_grants(to, survey.covering, survey.other_process),
        }
    }

    fn nothing_grants(
        &self,
        to: Destination<'_>,
        covering: Option<&Rule>,
        other_process: Option<&Rule>,
    ) -> Cause {
        if let Some(rule) = other_process {
            return Cause::other_process(rule);
        }
        if let Some(rule) = covering {
            return Cause::rule(Reason::OnlyRule, rule);
        }
        match to.peer {
            Peer::Address(ip) if special_use(ip).is_some() && self.grants_any_host() => {
                Cause::special(ip)
            }
            Peer::Address(_) | Peer::Name(_) => Cause::plain(Reason::NoRule),
        }
    }

    fn grants_any_host(&self) -> bool {
        self.network_rules().any(|(rule, target)| {
            rule.reference.effect != Effect::Deny && target.host == HostPattern::Any
        })
    }
}

/// A method as RFC 9110 9.1 defines it: a token.
fn is_method(text: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_token)
}
