//! One detector, ready to run: from the place of a literal to a confirmed
//! match with its check, which keeps false positives few, and from there to what follows for a destination.
//! Looks at a window around the literal only, never at a whole stream.

mod boundary;
mod members;
mod weigh;

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::budget::wide;
use crate::destination::{self, IssuerPattern};
use crate::detector::{Anchor, Detector, Scope, Tenants, Texts};
use crate::detector_place::{self, PathRoute};
use crate::finding::{Action, Checked};
use crate::limits;
use crate::place::{ContentSyntax, PlaceKind};
use crate::settings::{DetectorMode, ScanPolicy};
use crate::span;
use crate::validate::{self, CheckOutcome, Subject};

use members::MatchBytes;

/// A detector with what the operator decided about it.
pub(crate) struct DetectorRule {
    pub(crate) detector: Detector,
    pub(crate) mode: Option<DetectorMode>,
    pub(crate) allowances: Vec<IssuerPattern>,
    pub(crate) registries: Vec<String>,
    /// Those names of customers that a rule of the operator's spells out.
    pub(crate) named: Vec<String>,
    members: OnceLock<MatchBytes>,
    regex: OnceLock<Option<Regex>>,
}

/// A confirmed match, in offsets of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) whole: Range<usize>,
    pub(crate) secret: Range<usize>,
}

/// Places in a layer at which pieces were put together: there a word ends and the next
/// begins, whatever letters stand beside them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Borders<'a> {
    places: &'a [u64],
    base: u64,
}

impl<'a> Borders<'a> {
    /// The places, in order, for a window that begins at `base`.
    pub(crate) fn new(places: &'a [u64], base: u64) -> Self {
        Self { places, base }
    }

    /// Whether pieces were put together at all.
    fn are_some(self) -> bool {
        !self.places.is_empty()
    }

    fn has(self, at: usize) -> bool {
        // Mostly there are none.
        let place = || self.base.saturating_add(wide(at));
        !self.places.is_empty() && self.places.binary_search(&place()).is_ok()
    }
}

/// What was made of a literal's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It belongs to a match.
    Match(Match),
    /// It does not.
    Nothing,
    /// It cannot be said: the pattern does not compile or search.
    Unknown,
}

/// What becomes of a match.
pub(crate) enum MatchJudgement {
    /// It is no credential, or nobody asks.
    Nothing,
    /// It may go where it is going.
    Settled,
    /// It may not.
    Found(JudgedMatch),
}

/// What a match means towards one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JudgedMatch {
    pub(crate) checked: Checked,
    pub(crate) action: Action,
    pub(crate) issuers: Vec<String>,
}

impl DetectorRule {
    pub(crate) fn new(detector: Detector) -> Self {
        Self {
            detector,
            mode: None,
            allowances: Vec::new(),
            registries: Vec::new(),
            named: Vec::new(),
            members: OnceLock::new(),
            regex: OnceLock::new(),
        }
    }

    /// How many bytes before its literal a match may begin.
    pub(crate) fn before(&self) -> usize {
        match self.detector.anchor {
            Anchor::Start => 0,
            Anchor::Inside | Anchor::Scan => self.detector.max,
        }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex
            .get_or_init(|| compile(&self.detector.pattern))
            .as_ref()
    }

    fn members(&self) -> &MatchBytes {
        self.members.get_or_init(|| {
            let literals = self.detector.literals.iter();
            MatchBytes::of(
                &self.detector.pattern,
                literals.map(|literal| literal.as_bytes()),
            )
        })
    }

    /// Whether the first bytes show that no match begins with the literal at `at`: never
    /// where fewer are there, nor where a match may begin before its literal. `window` as
    /// for [`DetectorRule::confirm`].
    pub(crate) fn is_hopeless(&self, window: &[u8], at: usize, borders: Borders<'_>) -> bool {
        let few = self.detector.min.min(limits::FIRST_BYTES);
        let few = window.get(at..at.saturating_add(few));
        let Some(few) = few.filter(|_| self.detector.anchor == Anchor::Start) else {
            return false;
        };
        !self.members().have(few) || !self.may_begin(window, at, borders)
    }

    /// Whether it shows without the pattern that no match has the literal at `at`, of those
    /// that begin at `first` or later and end at `end` or before.
    fn is_excluded(
        &self,
        window: &[u8],
        (first, at, end): (usize, usize, usize),
        borders: Borders<'_>,
    ) -> bool {
        let all = span::within(window, first..end);
        if self.detector.anchor == Anchor::Start {
            let least = window
                .get(at..end)
                .and_then(|all| all.get(..self.detector.min));
            let is_one = |least| self.may_begin(window, at, borders) && self.members().have(least);
            if !least.is_some_and(is_one) {
                return true;
            }
        }
        self.members().miss(all)
    }

    /// What the literal at `at` belongs to. `window` holds two bytes before the
    /// earliest start of a match and one after its latest end, unless the
    /// stream begins or ends there.
    pub(crate) fn confirm(&self, window: &[u8], at: usize, borders: Borders<'_>) -> Confirmed {
        let end = window.len().min(at.saturating_add(self.detector.max));
        let first = at.saturating_sub(self.before());
        if self.is_excluded(window, (first, at, end), borders) {
            return Confirmed::Nothing;
        }
        self.ask(window, at, borders)
    }

    /// How many bytes a match has that a text begins with; of forms with a literal inside
    /// too.
    pub(crate) fn first(&self, text: &[u8]) -> Option<usize> {
        let literals = self.detector.literals.iter();
        let mut places = literals.filter_map(|own| memchr::memmem::find(text, own.as_bytes()));
        places.find_map(|at| match self.confirm(text, at, Borders::default()) {
            Confirmed::Match(found) if found.whole.start == 0 => Some(found.whole.end),
            _ => None,
        })
    }

    /// How many bytes of a value the credential has that it begins with, if it is one only
    /// behind its label (`dd-api-key: `).
    pub(crate) fn labelled(&self, label: &[u8], value: &[u8]) -> Option<usize> {
        let text = [label, value].concat();
        let literals = self.detector.literals.iter();
        let mut places = literals.filter_map(|own| memchr::memmem::find(&text, own.as_bytes()));
        places.find_map(|at| match self.confirm(&text, at, Borders::default()) {
            Confirmed::Match(found) if found.secret.start == label.len() => {
                Some(found.secret.len())
            }
            _ => None,
        })
    }

    /// Whether it is shown in places of its own to this host.
    pub(crate) fn is_shown_at(&self, host: &str) -> bool {
        self.detector.is_placed() && self.mode != Some(DetectorMode::Off) && self.is_issuer(host)
    }

    /// Whether a host is one of its issuers: one that all know, the registry that the client
    /// is configured for, or a customer's name that the operator spelt out.
    pub(crate) fn is_issuer(&self, host: &str) -> bool {
        let covers = |own: &Texts| own.iter().any(|own| destination::covers(own, host));
        let is_own = covers(&self.detector.issuers) && !covers(&self.detector.except);
        let mut named = self.registries.iter().chain(&self.named);
        is_own || named.any(|own| destination::covers(own, host))
    }

    /// Whether only places that name a path are open to it at this host.
    pub(crate) fn is_routed(&self, host: &str) -> bool {
        let mut routed = self.detector.routed.iter();
        routed.any(|own| destination::covers(own, host))
    }

    /// The names and patterns of its issuers.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        let own = self.detector.issuers.iter().map(AsRef::as_ref);
        let named = self.registries.iter().chain(&self.named);
        own.chain(named.map(String::as_str))
    }

    /// Takes those of the names that the operator spelt out that are customers' of its issuers;
    /// all of them for what anybody may issue.
    pub(crate) fn name(&mut self, hosts: &[String]) {
        let tenants = &self.detector.tenant_hosts;
        let is_anybodys = self.detector.scope == Scope::Claims;
        let is_one = |host: &&String| {
            is_anybodys || tenants.iter().any(|own| destination::covers(own, host))
        };
        self.named = hosts.iter().filter(is_one).cloned().collect();
    }

    /// Whether all of a text is a match with the literal at `at`.
    pub(crate) fn is_whole(&self, text: &[u8], at: usize) -> bool {
        let all = 0..text.len();
        matches!(self.confirm(text, at, Borders::default()), Confirmed::Match(found) if found.whole == all)
    }

    /// The same by the pattern alone.
    fn ask(&self, window: &[u8], at: usize, borders: Borders<'_>) -> Confirmed {
        let Some(regex) = self.regex() else {
            return Confirmed::Unknown;
        };
        let end = window.len().min(at.saturating_add(self.detector.max));
        let first = at.saturating_sub(self.before());
        let is_anchored = self.detector.anchor == Anchor::Start;
        let anchored = if is_anchored {
            Anchored::Yes
        } else {
            Anchored::No
        };
        let mut start = first;
        // A match that fails its tests must not hide another that begins within it.
        for _ in 0..limits::INSIDE_STARTS_MAX {
            let input = Input::new(window).range(start..end).anchored(anchored);
            let Some(found) = regex.search(&input) else {
                return Confirmed::Nothing;
            };
            if found.start() > at {
                return Confirmed::Nothing;
            }
            if found.end() > at && self.stands_alone(window, &found.range(), borders) {
                let secret = group(regex, window, &found.range());
                let text = window.get(secret.clone()).unwrap_or_default();
                if self.is_dense(text) {
                    let whole = found.range();
                    return Confirmed::Match(Match { whole, secret });
                }
            }
            if is_anchored {
                return Confirmed::Nothing;
            }
            start = found.start().saturating_add(1);
        }
        Confirmed::Nothing
    }

    /// The first match from `from` on of a rule without literals.
    pub(crate) fn search(&self, window: &[u8], from: usize, borders: Borders<'_>) -> Option<Match> {
        let regex = self.regex()?;
        let mut start = from;
        // A match of nothing, or one that does not stand alone, ends no search.
        while start <= window.len() {
            let input = Input::new(window).range(start..window.len());
            let found = regex.search(&input)?;
            let is_some = !found.range().is_empty();
            if is_some && self.stands_alone(window, &found.range(), borders) {
                let secret = group(regex, window, &found.range());
                let text = window.get(secret.clone()).unwrap_or_default();
                if self.is_dense(text) {
                    let whole = found.range();
                    return Some(Match { whole, secret });
                }
            }
            start = found.end().max(found.start().saturating_add(1));
        }
        None
    }

    fn is_dense(&self, text: &[u8]) -> bool {
        validate::entropy::is_dense(text, f64::from(self.detector.min_entropy))
    }

    /// What a match means on its way to a host, at such a place; nothing where it may
    /// go there, is a placeholder, or the detector is off.
    pub(crate) fn judge(
        &self,
        secret: &[u8],
        (host, kind): (&str, PlaceKind<'_>),
        policy: ScanPolicy,
    ) -> MatchJudgement {
        if self.mode == Some(DetectorMode::Off) {
            return MatchJudgement::Nothing;
        }
        let subject = Subject { secret };
        let (checked, claims) = match self.detector.check(&subject) {
            CheckOutcome::Placeholder => return MatchJudgement::Nothing,
            CheckOutcome::Checked(checked) => (checked, Vec::new()),
            CheckOutcome::Claims { checked, hosts } => (checked, hosts),
        };
        let claimed = |host| claims.iter().any(|own| own == host);
        // A host that the credential itself names gets it wherever it stands.
        let is_open = claimed(host) || self.is_issuer(host) && self.takes(host, kind);
        if is_open || self.is_allowed(host) {
            return MatchJudgement::Settled;
        }
        let issuers = self.issuers(claims);
        let action = self.action(checked, policy);
        MatchJudgement::Found(JudgedMatch {
            checked,
            action,
            issuers,
        })
    }

    /// Whether it may stand at such a place of what goes to those who issued it.
    pub(crate) fn takes(&self, host: &str, kind: PlaceKind<'_>) -> bool {
        let is_placed = self.detector.is_placed();
        let keeps = self.detector.tenants == Tenants::Many;
        match kind {
            // What stands in its place was taken out before.
            PlaceKind::Head | PlaceKind::Pieces => !is_placed,
            PlaceKind::Content => !is_placed && !keeps,
            PlaceKind::Form(form) => !is_placed && !keeps || self.takes_form(host, form),
        }
    }

    /// The same of a value that the user's own configuration binds to a host: where that is
    /// no issuer of its form, nobody knows where it is shown.
    pub(crate) fn takes_own(&self, host: &str, kind: PlaceKind<'_>) -> bool {
        let is_head = matches!(kind, PlaceKind::Head | PlaceKind::Pieces);
        let is_open = is_head || self.detector.tenants == Tenants::One;
        self.takes(host, kind) || is_open && !self.is_issuer(host)
    }

    /// Whether it may stand in such a form.
    pub(crate) fn takes_form(&self, host: &str, form: ContentSyntax<'_>) -> bool {
        let routes = if form.is_json {
            &self.detector.documents
        } else {
            &self.detector.forms
        };
        routes.iter().any(|route| {
            let Some((route, key)) = PathRoute::parse(route) else {
                return false;
            };
            let own = || {
                if form.is_json {
                    detector_place::member_before(form.before)
                } else {
                    detector_place::name_before(form.before)
                }
            };
            route.covers(host, form.path)
                && key.is_none_or(|key| own().is_some_and(|own| own == key.as_bytes()))
        })
    }

    /// Whether this host of its issuers keeps what anybody sends.
    pub(crate) fn keeps(&self, host: &str) -> bool {
        let mut tenants = self.detector.tenant_hosts.iter();
        let mut own = self.detector.issuers.iter();
        let is_home = match self.detector.scope {
            // What anybody may issue says nothing of the hosts that the operator spelt out.
            Scope::Claims => own.any(|own| destination::covers(own, host)),
            Scope::Issuers | Scope::User | Scope::Registry(_) | Scope::Never => {
                self.is_issuer(host)
            }
        };
        self.detector.tenants == Tenants::Many
            && (is_home || tenants.any(|own| destination::covers(own, host)))
    }

    /// Whether the operator lets it go there, wherever it stands.
    fn is_allowed(&self, host: &str) -> bool {
        self.detector.scope != Scope::Never && self.allowances.iter().any(|own| own.covers(host))
    }

    /// Where the credential may go, as host patterns.
    fn issuers(&self, claims: Vec<String>) -> Vec<String> {
        let detector = &self.detector;
        let mut issuers = match detector.scope {
            Scope::Never => return Vec::new(),
            Scope::Claims => claims,
            Scope::Issuers | Scope::User | Scope::Registry(_) => Vec::new(),
        };
        issuers.extend(detector.issuers.iter().map(ToString::to_string));
        issuers.extend(detector.tenant_hosts.iter().map(ToString::to_string));
        issuers.extend(self.registries.iter().cloned());
        issuers.extend(self.allowances.iter().map(ToString::to_string));
        issuers
    }
}

/// Compiles a pattern over bytes.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(limits::PATTERN_BYTES_MAX))
        .hybrid_cache_capacity(limits::PATTERN_BYTES_MAX);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build(pattern)
        .ok()
}

/// Group 1 of the match, or all of it.
fn group(regex: &Regex, window: &[u8], found: &Range<usize>) -> Range<usize> {
    if regex.captures_len() < 2 {
        return found.clone();
    }
    let mut captures = regex.create_captures();
    let input = Input::new(window)
        .range(found.clone())
        .anchored(Anchored::Yes);
    regex.search_captures(&input, &mut captures);
    match captures.get_group(1) {
        Some(span) => span.start..span.end,
        None => found.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector_sample::expand;
    use crate::detector_set::Detectors;

    #[test]
    fn what_is_excluded_matches_no_pattern() {
        let (mut matches, mut excluded, mut hopeless, mut missing) = (0, 0, 0, 0);
        for detector in Detectors::shipped().iter() {
            let rule = DetectorRule::new(detector.clone());
            let templates = detector.samples.iter().chain(detector.near_misses.iter());
            for (template, seed) in templates.zip(0..) {
                let text = expand(template, seed);
                for change in 0..=text.len() {
                    let mut text = [b" ", text.as_slice(), b" "].concat();
                    // Nothing is changed in the first turn.
                    for byte in text.iter_mut().skip(change).take(change.min(1)) {
                        *byte ^= 0x12;
                    }
                    for literal in detector.literals.iter() {
                        let mut places = text.windows(literal.len());
                        let Some(at) = places.position(|one| one == literal.as_bytes()) else {
                            continue;
                        };
                        let none = Borders::default();
                        let asked = rule.ask(&text, at, none);
                        assert_eq!(
                            rule.confirm(&text, at, none),
                            asked,
                            "{}: {text:?}",
                            detector.id
                        );
                        let is_hopeless = rule.is_hopeless(&text, at, none);
                        assert!(!is_hopeless || asked == Confirmed::Nothing, "{text:?}");
                        hopeless += usize::from(is_hopeless);
                        matches += usize::from(matches!(asked, Confirmed::Match(_)));
                        let end = text.len().min(at + detector.max);
                        let first = at.saturating_sub(rule.before());
                        let is_excluded = rule.is_excluded(&text, (first, at, end), none);
                        excluded += usize::from(is_excluded);
                        // Of these only a byte that is missing tells.
                        let is_inside = detector.anchor != Anchor::Start;
                        missing += usize::from(is_excluded && is_inside);
                    }
                }
            }
        }
        let least = matches.min(excluded).min(hopeless);
        assert!(least > 1000, "{matches} {excluded} {hopeless}");
        assert!(missing > 100, "{missing}");
    }
}
