//! The one decision: total, deterministic, without side effects.
//!
//! Every event ends in [`Policy::evaluate`], which alone makes permits. Default
//! deny; a deny rule beats whatever allows; where an `only` rule covers the
//! host, nothing but `only` rules allows. What is not known counts against.

use std::net::{IpAddr, SocketAddr};

use crate::denial::{self, DeniedEvent};
use crate::effect::{Effect, RuleRef};
use crate::facts::{AddressSource, Facts, Peer, Process};
use crate::host::{HostName, HostPattern};
use crate::inspection::InspectInside;
use crate::matching::RequestMatches;
use crate::policy::Policy;
use crate::rule::{Excepted, NetworkTarget, Protocol, RequestFacts, Rule, RuleTarget};
use crate::special::{never_a_destination, special_use};
use crate::survey::{Cause, Survey, SurveyDestination, check_destination, column};
use crate::verdict::{DenialReason, Permit, Route, Terms, Verdict};

impl Policy {
    /// Judges one event. Total and pure; the only maker of a [`Permit`].
    pub fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let verdict = match (self.judge(facts), &self.narrowing) {
            (Verdict::Allow(permit), Some(narrowing)) => narrowing.confirm(facts, permit),
            (verdict, _) => verdict,
        };
        match verdict {
            Verdict::Deny(denial) => self.monitored(facts, denial),
            verdict @ Verdict::Allow(_) => verdict,
        }
    }

    /// The same, whatever projects say.
    pub(crate) fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let event = DeniedEvent::of(facts);
        let mut terms = None;
        let outcome = match *facts {
            Facts::Connect {
                process,
                peer,
                port,
            } => {
                let to = SurveyDestination::new(process, peer, port);
                let survey = self.survey(to);
                survey.and_then(|survey| self.connect(to, &survey))
            }
            Facts::Dial {
                process,
                peer,
                port,
                address,
                source,
            } => self.dial(
                SurveyDestination::new(process, peer, port),
                address.to_canonical(),
                source,
            ),
            Facts::Tunnel {
                process,
                peer,
                port,
            } => self.tunnel(SurveyDestination::new(process, peer, port)),
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
                let to = SurveyDestination::new(process, peer, port);
                self.request(to, request).map(|(rule, own)| {
                    terms = Some(own);
                    (Route::Forward, rule)
                })
            }
            Facts::Unix { process, path } => self.unix(process, path),
            Facts::Listen { address, .. } => self.listening(address),
        };
        match outcome {
            Ok((route, rule)) => {
                let terms = terms.unwrap_or_else(|| Terms::of(&rule, self.keys_of(&rule)));
                Verdict::Allow(Permit::new((route, rule), terms, facts))
            }
            Err(cause) => {
                let intercept = self.settings().intercept;
                Verdict::Deny(denial::denial(&event, cause, intercept))
            }
        }
    }

    fn connect(
        &self,
        to: SurveyDestination<'_>,
        survey: &Survey<'_>,
    ) -> Result<(Route, RuleRef), Cause> {
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
            None => Err(self.refusal(to, survey)),
        }
    }

    fn tunnel(&self, to: SurveyDestination<'_>) -> Result<(Route, RuleRef), Cause> {
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
        if let Some(rule) = survey.inside.counted {
            return Err(Cause::inspection(rule));
        }
        // A placeholder must be found wherever it goes.
        let opens = !self.secrets().is_empty() || self.presents(to.peer);
        match self.inside(&survey) {
            InspectInside::Closed if !opens => Ok((Route::Tunnel, whole.reference.clone())),
            InspectInside::ByRule(rule) => Err(Cause::scan(rule)),
            // The scan, `tls.intercept` or a secret asks to open what the rule would let
            // pass, or a certificate is presented inside.
            InspectInside::Closed | InspectInside::ByPolicy => {
                Err(Cause::plain(DenialReason::NeedsInspection))
            }
        }
    }

    /// The rule by which a request passes, and what holds for it.
    fn request(
        &self,
        to: SurveyDestination<'_>,
        request: RequestFacts<'_>,
    ) -> Result<(RuleRef, Terms), Cause> {
        check_destination(to)?;
        if !is_method(request.method)
            || request.target.as_str() == "*" && request.method != "OPTIONS"
        {
            return Err(Cause::plain(DenialReason::Malformed));
        }
        let matches = RequestMatches::of(self, to, request);
        let rule = matches.granting(self, to, request)?.reference.clone();
        let terms = matches.terms(self, &rule);
        Ok((rule, terms))
    }

    fn dial(
        &self,
        to: SurveyDestination<'_>,
        address: IpAddr,
        source: AddressSource,
    ) -> Result<(Route, RuleRef), Cause> {
        let survey = self.survey(to)?;
        let permitted = self.connect(to, &survey)?;
        if never_a_destination(address) {
            return Err(Cause::special(address));
        }
        let name = match to.peer {
            Peer::Address(ip) if ip == address => return Ok(permitted),
            Peer::Address(_) => return Err(Cause::plain(DenialReason::Malformed)),
            Peer::Name(name) => name,
        };
        match self.leads((to, &survey), name, (address, source)) {
            Lead::Denied(rule) => Err(Cause::rule(DenialReason::DenyRule, rule)),
            Lead::Granted => Ok(permitted),
            Lead::Open if special_use(address).is_none() => Ok(permitted),
            Lead::Open => Err(Cause::special(address)),
        }
    }

    /// What the rules, and what the operator pinned, say of an address that a name leads to.
    pub(crate) fn leads(
        &self,
        (to, survey): (SurveyDestination<'_>, &Survey<'_>),
        name: &HostName,
        (address, source): (IpAddr, AddressSource),
    ) -> Lead<'_> {
        let pin = self.pin(name, to.port).map(|pin| pin.ip());
        let is_pinned = pin == Some(address) && source == AddressSource::Pinned;
        let mut lead = if is_pinned || self.grants_everything() {
            Lead::Granted
        } else {
            Lead::Open
        };
        for (rule, target) in self.network_rules() {
            let covers = |covers: fn(&NetworkTarget, Protocol, u16) -> bool| {
                let mut all = Protocol::ALL.iter();
                all.any(|protocol| covers(target, *protocol, to.port))
            };
            let grants = match rule.reference.effect {
                Effect::Deny => {
                    if rule.restricts_process(to.process)
                        && matches!(target.host, HostPattern::Net(_) | HostPattern::Localhost)
                        && target.host.denies_address(address)
                        && covers(NetworkTarget::denies_port)
                        && !lets_lead(target, (Some(name), address), to.port)
                    {
                        return Lead::Denied(rule);
                    }
                    false
                }
                Effect::Only => true,
                Effect::Allow => survey.covering.is_none(),
            };
            if grants
                && rule.grants_process(to.process)
                && target.host.grants_name(name)
                && covers(NetworkTarget::grants_port)
                && target.may_lead(address, source)
            {
                lead = Lead::Granted;
            }
        }
        lead
    }

    fn unix(&self, process: Process<'_>, path: &str) -> Result<(Route, RuleRef), Cause> {
        let resolved = path.starts_with('/')
            && !path.contains('\0')
            && path
                .split('/')
                .skip(1)
                .all(|s| !matches!(s, "" | "." | ".."));
        if !resolved {
            return Err(Cause::plain(DenialReason::Malformed));
        }
        let mut granting = None;
        let mut other_process = None;
        for rule in self.all_rules() {
            let RuleTarget::Unix { pattern, .. } = &rule.target else {
                continue;
            };
            if !pattern.matches_file(path) {
                continue;
            }
            if rule.reference.effect == Effect::Deny {
                if rule.restricts_process(process) {
                    return Err(Cause::rule(DenialReason::DenyRule, rule));
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
            (None, None) => Err(Cause::plain(DenialReason::NoRule)),
        }
    }

    fn listening(&self, address: SocketAddr) -> Result<(Route, RuleRef), Cause> {
        let ip = address.ip().to_canonical();
        if address.port() == 0 {
            return Err(Cause::plain(DenialReason::Malformed));
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
            None => Err(Cause::plain(DenialReason::NoRule)),
        }
    }

    /// Why nothing may be sent to a destination.
    fn refusal(&self, to: SurveyDestination<'_>, survey: &Survey<'_>) -> Cause {
        let denying = Protocol::ALL.iter().find_map(|p| survey.denies(*p).whole);
        match denying {
            Some(rule) => Cause::rule(DenialReason::DenyRule, rule),
            None => self.nothing_grants(to, survey.covering, survey.other_process),
        }
    }

    pub(crate) fn nothing_grants(
        &self,
        to: SurveyDestination<'_>,
        covering: Option<&Rule>,
        other_process: Option<&Rule>,
    ) -> Cause {
        if let Some(rule) = other_process {
            return Cause::other_process(rule);
        }
        if let Some(rule) = covering {
            return Cause::rule(DenialReason::OnlyRule, rule);
        }
        match to.peer {
            Peer::Address(ip) if special_use(ip).is_some() && self.grants_any_host() => {
                Cause::special(ip)
            }
            Peer::Address(_) | Peer::Name(_) => Cause::plain(DenialReason::NoRule),
        }
    }

    fn grants_any_host(&self) -> bool {
        self.network_rules().any(|(rule, target)| {
            rule.reference.effect != Effect::Deny && target.host == HostPattern::Any
        })
    }
}

/// What the rules say of an address that a name leads to.
pub(crate) enum Lead<'p> {
    /// Nothing: a public address will do.
    Open,
    /// It may be one of a special use.
    Granted,
    Denied(&'p Rule),
}

/// Whether exceptions of a rule that denies addresses let a name lead to one of them, whatever
/// is spoken there: what is asked in requests is judged by the name, so none limits this.
pub(crate) fn lets_lead(
    target: &NetworkTarget,
    (name, address): (Option<&HostName>, IpAddr),
    port: u16,
) -> bool {
    let is_named = |host: &HostPattern| {
        name.is_some_and(|name| host.grants_name(name)) || host.grants_address(address)
    };
    let mut denied = Protocol::ALL
        .into_iter()
        .filter(|protocol| target.denies_port(*protocol, port));
    denied.all(|protocol| target.excepted((protocol, port), is_named) == Excepted::All)
}

/// A method as RFC 9110 9.1 defines it: a token.
fn is_method(text: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_token)
}
