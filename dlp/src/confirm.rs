//! One detector, ready to run: from the place of a literal to a confirmed
//! match with its check, and from there to what follows for a destination.
//! Looks at a window around the literal only, never at a whole stream.

mod members;

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::destination::{self, HostPattern};
use crate::detector::{Anchor, Boundary, Detector, Scope, Tenants, Tier};
use crate::finding::{Action, Checked};
use crate::limits;
use crate::place::PlaceKind;
use crate::settings::{Mode, Policy};
use crate::validate::{self, Outcome, Subject};

use members::Members;

/// A detector with what the operator decided about it.
pub(crate) struct Rule {
    pub(crate) detector: Detector,
    pub(crate) mode: Option<Mode>,
    pub(crate) allowances: Vec<HostPattern>,
    pub(crate) registries: Vec<String>,
    members: OnceLock<Members>,
    regex: OnceLock<Option<Regex>>,
}

/// A confirmed match, in offsets of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) whole: Range<usize>,
    pub(crate) secret: Range<usize>,
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
pub(crate) enum Judgement {
    /// It is no credential, or nobody asks.
    Nothing,
    /// It may go where it is going.
    Settled,
    /// It may not.
    Found(Judged),
}

/// What a match means towards one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) checked: Checked,
    pub(crate) action: Action,
    pub(crate) issuers: Vec<String>,
}

impl Rule {
    pub(crate) fn new(detector: Detector) -> Self {
        Self {
            detector,
            mode: None,
            allowances: Vec::new(),
            registries: Vec::new(),
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

    fn members(&self) -> &Members {
        self.members.get_or_init(|| {
            let literals = self.detector.literals.iter();
            Members::of(
                &self.detector.pattern,
                literals.map(|literal| literal.as_bytes()),
            )
        })
    }

    /// Whether the first bytes show that no match begins with the literal at `at`: never
    /// where fewer are there, nor where a match may begin before its literal. `window` as
    /// for [`Rule::confirm`].
    pub(crate) fn is_hopeless(&self, window: &[u8], at: usize) -> bool {
        let few = self.detector.min.min(limits::FIRST_BYTES);
        let few = window.get(at..at.saturating_add(few));
        let Some(few) = few.filter(|_| self.detector.anchor == Anchor::Start) else {
            return false;
        };
        !self.members().have(few) || !self.may_begin(window, at)
    }

    /// Whether it shows without the pattern that no match has the literal at `at`, of those
    /// that begin at `first` or later and end at `end` or before.
    fn is_excluded(&self, window: &[u8], (first, at, end): (usize, usize, usize)) -> bool {
        let all = window.get(first..end).unwrap_or_default();
        if self.detector.anchor == Anchor::Start {
            let least = window
                .get(at..end)
                .and_then(|all| all.get(..self.detector.min));
            let is_one = |least| self.may_begin(window, at) && self.members().have(least);
            if !least.is_some_and(is_one) {
                return true;
            }
        }
        self.members().miss(all)
    }

    /// What the literal at `at` belongs to. `window` holds two bytes before the
    /// earliest start of a match and one after its latest end, unless the
    /// stream begins or ends there.
    pub(crate) fn confirm(&self, window: &[u8], at: usize) -> Confirmed {
        let end = window.len().min(at.saturating_add(self.detector.max));
        let first = at.saturating_sub(self.before());
        if self.is_excluded(window, (first, at, end)) {
            return Confirmed::Nothing;
        }
        self.ask(window, at)
    }

    /// The same by the pattern alone.
    fn ask(&self, window: &[u8], at: usize) -> Confirmed {
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
            if found.end() > at && self.stands_alone(window, &found.range()) {
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
    pub(crate) fn search(&self, window: &[u8], from: usize) -> Option<Match> {
        let regex = self.regex()?;
        let mut start = from;
        // A match of nothing, or one that does not stand alone, ends no search.
        while start <= window.len() {
            let input = Input::new(window).range(start..window.len());
            let found = regex.search(&input)?;
            let is_some = !found.range().is_empty();
            if is_some && self.stands_alone(window, &found.range()) {
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

    fn stands_alone(&self, window: &[u8], found: &Range<usize>) -> bool {
        let behind = self.detector.boundary == Boundary::Word && is_word(window.get(found.end));
        self.may_begin(window, found.start) && !behind
    }

    /// Whether a match may stand behind what stands before `start`.
    fn may_begin(&self, window: &[u8], start: usize) -> bool {
        if self.detector.boundary == Boundary::None {
            return true;
        }
        let before = start.checked_sub(1).and_then(|place| window.get(place));
        let escape = start.checked_sub(2).and_then(|place| window.get(place));
        // `\n` before a credential in a document is the end of a line, not a letter.
        let is_escaped = escape == Some(&b'\\')
            && before.is_some_and(|byte| matches!(byte, b'n' | b'r' | b't' | b'f' | b'b'));
        !is_word(before) || is_escaped
    }

    /// What a match means on its way to a host, at such a place; nothing where it may
    /// go there, is a placeholder, or the detector is off.
    pub(crate) fn judge(
        &self,
        secret: &[u8],
        (host, kind): (&str, PlaceKind<'_>),
        policy: Policy,
    ) -> Judgement {
        if self.mode == Some(Mode::Off) {
            return Judgement::Nothing;
        }
        let subject = Subject { secret };
        let (checked, claims) = match self.detector.check(&subject) {
            Outcome::Placeholder => return Judgement::Nothing,
            Outcome::Checked(checked) => (checked, Vec::new()),
            Outcome::Claims { checked, hosts } => (checked, hosts),
        };
        let issuers = self.issuers(claims);
        let is_home = issuers
            .iter()
            .any(|pattern| destination::covers(pattern, host));
        if is_home && (self.takes(host, kind) || self.is_allowed(host)) {
            return Judgement::Settled;
        }
        let action = self.action(checked, policy);
        Judgement::Found(Judged {
            checked,
            action,
            issuers,
        })
    }

    /// Whether it may stand at such a place of what goes to those who issued it.
    pub(crate) fn takes(&self, host: &str, kind: PlaceKind<'_>) -> bool {
        match (self.detector.tenants, kind) {
            (Tenants::One, _) | (Tenants::Many, PlaceKind::Head) => true,
            (Tenants::Many, PlaceKind::Content) => false,
            (Tenants::Many, PlaceKind::Form(path)) => self.takes_form(host, path),
        }
    }

    /// Whether it may stand in a form for this path.
    pub(crate) fn takes_form(&self, host: &str, path: &str) -> bool {
        self.detector.forms.iter().any(|form| {
            let (hosts, own) = form.split_at(form.find('/').unwrap_or(form.len()));
            own == path && destination::covers(hosts, host)
        })
    }

    /// Whether this host of its issuers keeps what anybody sends.
    pub(crate) fn keeps(&self, host: &str) -> bool {
        let own = self.detector.issuers.iter().map(AsRef::as_ref);
        let mut issuers = own.chain(self.registries.iter().map(String::as_str));
        self.detector.tenants == Tenants::Many
            && issuers.any(|pattern| destination::covers(pattern, host))
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
        issuers.extend(self.registries.iter().cloned());
        issuers.extend(self.allowances.iter().map(ToString::to_string));
        issuers
    }

    fn action(&self, checked: Checked, policy: Policy) -> Action {
        match (policy, self.mode) {
            (Policy::Monitor, _) | (_, Some(Mode::Warn | Mode::Off)) => Action::Warn,
            // What is said of one detector holds against what is said of all.
            (Policy::Strict, None) | (_, Some(Mode::Block)) => Action::Block,
            (Policy::Tiered, None) => match (self.detector.tier, checked) {
                // One letter changed on the way and sent after it, and a checksum fails:
                // where the form alone is certain, it does not decide.
                (Tier::Strong, _) | (Tier::Structured, Checked::Passed | Checked::None) => {
                    Action::Block
                }
                (Tier::Structured, Checked::Failed) | (Tier::Context, _) => Action::Warn,
            },
        }
    }

    /// Whether any match could have to stay here.
    pub(crate) fn can_block(&self, policy: Policy) -> bool {
        [Checked::Passed, Checked::None, Checked::Failed]
            .into_iter()
            .any(|checked| self.action(checked, policy) == Action::Block)
    }
}

/// A letter, a digit or an underscore.
fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
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
            let rule = Rule::new(detector.clone());
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
                        let asked = rule.ask(&text, at);
                        assert_eq!(rule.confirm(&text, at), asked, "{}: {text:?}", detector.id);
                        let is_hopeless = rule.is_hopeless(&text, at);
                        assert!(!is_hopeless || asked == Confirmed::Nothing, "{text:?}");
                        hopeless += usize::from(is_hopeless);
                        matches += usize::from(matches!(asked, Confirmed::Match(_)));
                        let end = text.len().min(at + detector.max);
                        let first = at.saturating_sub(rule.before());
                        let is_excluded = rule.is_excluded(&text, (first, at, end));
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
