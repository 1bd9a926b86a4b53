//! How rules match a request: the one place where a rule and a request are compared, part by
//! part. One pass over the rules collects what the decision, the inspection mode, the budgets
//! and the nearest miss are read from, so that none of them can see a request in another way.
//!
//! What lets more pass is read as narrowly as a rule allows, what lets less pass as widely
//! as a rule that denies: no spelling of a request chooses the weaker of the two.

use crate::effect::{Effect, RuleRef};
use crate::policy::Policy;
use crate::rule::{Match, NetworkTarget, Precision, RequestFacts, Rule};
use crate::settings::Inspect;
use crate::survey::{Cause, SurveyDestination, counting};
use crate::verdict::{Budget, DenialReason, Terms};

/// Which matches a rule needs to know: one that denies no exact one, and one that only
/// grants no loose one. One that counts, or has an inspection mode, needs both.
fn precision(rule: &Rule) -> Precision {
    match rule.reference.effect {
        Effect::Deny => Precision::Loose,
        Effect::Allow | Effect::Only if rule.keys.look_beyond() => Precision::Both,
        Effect::Allow | Effect::Only => Precision::Strict,
    }
}

/// A rule beside a request, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleMatch {
    /// Protocol, port and host.
    pub(crate) place: Match,
    pub(crate) method: Match,
    pub(crate) path: Match,
    pub(crate) query: Match,
    pub(crate) process: Match,
}

impl RuleMatch {
    /// A rule about other places or requests, whatever their queries and processes.
    const OTHER: Self = Self {
        place: Match::No,
        method: Match::No,
        path: Match::No,
        query: Match::No,
        process: Match::No,
    };

    fn of(
        rule: &Rule,
        target: &NetworkTarget,
        to: SurveyDestination<'_>,
        request: RequestFacts<'_>,
    ) -> Self {
        let precision = precision(rule);
        // What may be for somewhere else grants nothing there, and counts nothing.
        let place = match rule.reference.effect {
            Effect::Deny => Precision::Loose,
            Effect::Allow | Effect::Only => Precision::Strict,
        };
        let place = place.judge(
            || target.grants_port(request.protocol, to.port) && to.is_granted_host(&target.host),
            || target.denies_port(request.protocol, to.port) && to.is_denied_host(&target.host),
        );
        if place == Match::No {
            return Self::OTHER;
        }
        let method = target.method(request, precision);
        if method == Match::No {
            return Self {
                place,
                ..Self::OTHER
            };
        }
        let path = target.path(request, precision);
        if path == Match::No {
            return Self {
                place,
                method,
                ..Self::OTHER
            };
        }
        Self {
            place,
            method,
            path,
            query: target.query(request, precision),
            process: rule.process(to.process),
        }
    }

    /// Method, path and query.
    fn request(self) -> Match {
        self.method.min(self.path).min(self.query)
    }

    /// All of it.
    fn whole(self) -> Match {
        self.place.min(self.request()).min(self.process)
    }

    /// Whether every part but this one surely matches, and this one does not.
    fn misses_only(self, part: fn(&mut Self) -> &mut Match) -> bool {
        let mut other = self;
        let missed = std::mem::replace(part(&mut other), Match::Surely);
        missed != Match::Surely && other.whole() == Match::Surely
    }
}

/// What the rules say of one request: the first of each kind.
#[derive(Debug, Default)]
pub(crate) struct RequestMatches<'p> {
    denying: Option<&'p Rule>,
    /// An `only` rule that covers the host, also where it grants nothing.
    covering: Option<&'p Rule>,
    only: Granting<'p>,
    allow: Granting<'p>,
    /// It would grant to another process.
    other_process: Option<&'p Rule>,
    /// It would grant but for the query.
    other_query: Option<(&'p Rule, &'p NetworkTarget)>,
    /// The strictest mode of what the request may be for.
    at_least: Option<Inspect>,
    /// What the request may be for, and counts it.
    counted: Vec<&'p Rule>,
}

/// What grants by rules of one effect.
#[derive(Debug, Default)]
struct Granting<'p> {
    rule: Option<&'p Rule>,
    /// The strictest mode that such rules have.
    mode: Option<Inspect>,
}

impl Granting<'_> {
    /// Whether a rule would take the place of the one that grants: one that counts does so
    /// wherever it grants, whatever grants besides.
    fn takes(&self, rule: &Rule) -> bool {
        self.rule
            .is_none_or(|own| !own.keys.counts() && rule.keys.counts())
    }
}

fn stricter(one: Option<Inspect>, other: Option<Inspect>) -> Option<Inspect> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.stricter(other)),
        (one, other) => one.or(other),
    }
}

impl<'p> RequestMatches<'p> {
    /// One pass over the rules, up to the first that denies.
    pub(crate) fn of(
        policy: &'p Policy,
        to: SurveyDestination<'_>,
        request: RequestFacts<'_>,
    ) -> Self {
        let mut matches = Self::default();
        for (rule, target) in policy.network_rules() {
            let found = RuleMatch::of(rule, target, to, request);
            match rule.reference.effect {
                Effect::Deny
                    if found.whole() >= Match::Perhaps
                        && !target
                            .is_excepted(request, to.port, |host| to.is_granted_host(host)) =>
                {
                    matches.denying = Some(rule);
                    return matches;
                }
                Effect::Deny => {}
                Effect::Allow | Effect::Only => {
                    let is_covering = rule.reference.effect == Effect::Only
                        && rule.restricts_process(to.process)
                        && to.is_covered_host(&target.host);
                    if is_covering {
                        matches.covering.get_or_insert(rule);
                    }
                    matches.add((rule, target), found, policy.own_mode(rule));
                }
            }
        }
        matches
    }

    fn add(
        &mut self,
        (rule, target): (&'p Rule, &'p NetworkTarget),
        found: RuleMatch,
        mode: Option<Inspect>,
    ) {
        if found.place == Match::Surely && found.whole() >= Match::Perhaps {
            self.at_least = stricter(self.at_least, mode);
            let is_new = |own: &&Rule| own.reference.id != rule.reference.id;
            if rule.keys.counts() && self.counted.iter().all(is_new) {
                self.counted.push(rule);
            }
        }
        let granting = match rule.reference.effect {
            Effect::Only => &mut self.only,
            Effect::Allow | Effect::Deny => &mut self.allow,
        };
        let is_open = granting.takes(rule);
        if found.whole() == Match::Surely {
            granting.mode = stricter(granting.mode, mode);
            if is_open {
                granting.rule = Some(rule);
            }
        } else if is_open && found.misses_only(|own| &mut own.process) {
            self.other_process.get_or_insert(rule);
        } else if is_open && found.misses_only(|own| &mut own.query) {
            self.other_query.get_or_insert((rule, target));
        }
    }

    /// The rule that lets the request pass.
    ///
    /// # Errors
    /// Why none does.
    pub(crate) fn granting(
        &self,
        policy: &Policy,
        to: SurveyDestination<'_>,
        request: RequestFacts<'_>,
    ) -> Result<&'p Rule, Cause> {
        if let Some(rule) = self.denying {
            return Err(Cause::rule(DenialReason::DenyRule, rule));
        }
        let granting = match self.covering {
            Some(_) => counting(self.only.rule, self.allow.rule),
            None => self.only.rule.or(self.allow.rule),
        };
        granting.ok_or_else(|| {
            policy
                .nothing_grants(to, self.covering, self.other_process)
                .but_for_query(self.other_query, request)
        })
    }

    /// What holds for the request, where this rule lets it pass.
    pub(crate) fn terms(&self, policy: &Policy, granting: &RuleRef) -> Terms {
        let mut terms = Terms::of(granting, policy.keys_of(granting));
        terms.budgets.extend(self.more_budgets(granting));
        Terms {
            inspect: self.mode(policy.settings().inspect),
            ..terms
        }
    }

    /// By which mode the request is inspected, where the policy says this of what has no mode
    /// of its own.
    fn mode(&self, of_others: Inspect) -> Inspect {
        let own = match self.covering {
            Some(_) => self.only.mode,
            None => stricter(self.only.mode, self.allow.mode),
        };
        let own = own.unwrap_or(of_others);
        self.at_least.map_or(own, |mode| own.stricter(mode))
    }

    /// The budgets beside that of the rule which allows the request: what may be for a rule
    /// counts against it, whichever allows it.
    fn more_budgets(&self, granting: &RuleRef) -> Vec<Budget> {
        let others = self
            .counted
            .iter()
            .filter(|rule| rule.reference.id != granting.id);
        let terms = others.map(|rule| Terms::of(&rule.reference, Some(&rule.keys)));
        terms.flat_map(|terms| terms.budgets).collect()
    }
}
