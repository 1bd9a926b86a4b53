//! Everything a scan needs that stays the same from stream to stream: the
//! detectors, what the operator decided about them, and the key of marks.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::confirm::DetectorRule;
use crate::destination::{IssuerPattern, ScanDestination};
use crate::detector::{Scope, Tenants};
use crate::detector_set::Detectors;
use crate::finding::Finding;
use crate::index::{LiteralIndex, LiteralMeaning};
use crate::known::{KnownNature, KnownValue, KnownValues};
use crate::limits;
use crate::mark::mark;
use crate::pieces::{self, PieceLook};
use crate::place::{MessagePart, PlaceKind};
use crate::prefilter::Prefilter;
use crate::settings::{ScanPolicy, ScanSettings, UnscannableAction};
use crate::shapes::Shapes;

/// Everything a scan needs that stays the same. Immutable, shared by [`Arc`].
pub struct Ruleset {
    rules: Vec<DetectorRule>,
    /// Rules by the end of their issuers' names.
    near: HashMap<String, Vec<usize>>,
    shapes: Shapes,
    index: LiteralIndex,
    known: Option<Arc<KnownValues>>,
    /// Where known values may go besides: by name, and host.
    homes: Vec<(String, IssuerPattern)>,
    /// Marks of texts that look like credentials and are none.
    placeholders: Vec<String>,
    pub(crate) watching: Option<Arc<Ruleset>>,
    policy: ScanPolicy,
    unscannable: UnscannableAction,
    key: [u8; 32],
}

impl fmt::Debug for Ruleset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key stays out of it.
        formatter
            .debug_struct("Ruleset")
            .field("detectors", &self.rules.len())
            .field("policy", &self.policy)
            .field("unscannable", &self.unscannable)
            .finish_non_exhaustive()
    }
}

/// What is wrong with detectors or settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RulesetError {
    /// More detectors than a ruleset may have.
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// A detector has no literal, or one that is too short or too long.
    Literal {
        /// The detector.
        detector: String,
    },
    /// A detector's matches may be longer than what is ever held.
    TooLong {
        /// The detector.
        detector: String,
        /// Its longest match, in bytes.
        max: usize,
    },
    /// Settings name a detector that does not exist.
    Unknown {
        /// The name.
        detector: String,
    },
    /// Settings allow what nobody can allow.
    Never {
        /// The detector.
        detector: String,
    },
}

impl fmt::Display for RulesetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = limits::DETECTORS_MAX;
        match self {
            Self::TooMany { count } => write!(formatter, "{count} detectors, at most {most}"),
            Self::Literal { detector } => write!(
                formatter,
                "detector `{detector}` needs literals of {} to {} bytes",
                limits::LITERAL_BYTES_MIN,
                limits::LITERAL_BYTES_MAX
            ),
            Self::TooLong { detector, max } => write!(
                formatter,
                "detector `{detector}` matches up to {max} bytes, at most {}",
                limits::MATCH_BYTES_MAX
            ),
            Self::Unknown { detector } => write!(formatter, "no detector `{detector}`"),
            Self::Never { detector } => write!(
                formatter,
                "what `{detector}` finds may go nowhere; nobody can allow it"
            ),
        }
    }
}

impl Error for RulesetError {}

impl Ruleset {
    /// Builds a ruleset.
    ///
    /// # Errors
    /// When a detector is beyond a limit, or settings name one that does not
    /// exist or allow what [`Scope::Never`] forbids.
    pub fn new(detectors: &Detectors, settings: &ScanSettings) -> Result<Self, RulesetError> {
        let mut rules: Vec<DetectorRule> = Vec::new();
        for detector in detectors.iter() {
            check(detector)?;
            let mut rule = DetectorRule::new(detector.clone());
            rule.name(&settings.named);
            rules.push(rule);
        }
        if rules.len() > limits::DETECTORS_MAX {
            return Err(RulesetError::TooMany { count: rules.len() });
        }
        let places: HashMap<String, usize> = rules
            .iter()
            .enumerate()
            .map(|(place, rule)| (rule.detector.id.to_string(), place))
            .collect();
        let mut with =
            |id: &str, change: &mut dyn FnMut(&mut DetectorRule) -> Result<(), RulesetError>| {
                let rule = places.get(id).and_then(|place| rules.get_mut(*place));
                let detector = id.to_owned();
                change(rule.ok_or(RulesetError::Unknown { detector })?)
            };
        let mut shapes = Shapes::new(settings.policy);
        for (id, mode) in &settings.modes {
            if shapes.weigh(id, *mode) {
                continue;
            }
            with(id, &mut |rule| {
                rule.mode = Some(*mode);
                Ok(())
            })?;
        }
        for allowance in &settings.allowances {
            if shapes.allow(&allowance.detector, &allowance.hosts) {
                continue;
            }
            with(&allowance.detector, &mut |rule| {
                if rule.detector.scope == Scope::Never {
                    let detector = allowance.detector.clone();
                    return Err(RulesetError::Never { detector });
                }
                rule.allowances.push(allowance.hosts.clone());
                Ok(())
            })?;
        }
        for issuer in &settings.registries {
            with(&issuer.detector, &mut |rule| {
                rule.registries.push(issuer.host.clone());
                Ok(())
            })?;
        }
        Ok(Self {
            index: LiteralIndex::new(&rules, settings.policy),
            near: near(&rules),
            known: None,
            homes: Vec::new(),
            placeholders: Vec::new(),
            watching: None,
            rules,
            shapes,
            policy: settings.policy,
            unscannable: settings.unscannable,
            key: settings.key,
        })
    }

    /// Takes none of these texts for what they look like: they stand for values
    /// that are elsewhere. Only a whole match counts, so nothing hides in one.
    #[must_use]
    pub fn with_placeholders<'a>(mut self, texts: impl Iterator<Item = &'a [u8]>) -> Self {
        self.placeholders = texts.map(|text| mark(&self.key, text)).collect();
        self
    }

    /// Whether a value with this mark is a placeholder.
    pub(crate) fn is_placeholder(&self, mark: &str) -> bool {
        self.placeholders.iter().any(|own| own == mark)
    }

    /// Looks for known values as well, which may go to these hosts besides: each
    /// is named as it is labelled.
    #[must_use]
    pub fn with_known(
        mut self,
        known: Arc<KnownValues>,
        homes: Vec<(String, IssuerPattern)>,
    ) -> Self {
        self.known = Some(known).filter(|known| !known.is_empty());
        self.homes = homes;
        self
    }

    /// Whether a known value may go to a host.
    pub(crate) fn lets(&self, value: &KnownValue, host: &str) -> bool {
        value.nature != KnownNature::Canary && (value.may_go_to(host) || self.names(value, host))
    }

    /// Whether the operator lets a known value go to a host, wherever it stands.
    pub(crate) fn names(&self, value: &KnownValue, host: &str) -> bool {
        self.besides(value).any(|home| home.covers(host))
    }

    /// Whether a known value may stand at such a place of what goes to a host that
    /// it may go to. What its owner's files and its form say of hosts does not say
    /// that others cannot read there what is sent.
    pub(crate) fn takes(&self, value: &KnownValue, host: &str, kind: PlaceKind<'_>) -> bool {
        let form = match kind {
            PlaceKind::Head | PlaceKind::Pieces => return true,
            PlaceKind::Content => None,
            PlaceKind::Form(form) => Some(form),
        };
        let mut rules = self.rules.iter();
        self.names(value, host)
            || self.tenants(host) == Tenants::One
            || form.is_some_and(|form| rules.any(|rule| rule.takes_form(host, form)))
    }

    /// Whose content a host keeps, as far as the detectors say.
    pub(crate) fn tenants(&self, host: &str) -> Tenants {
        if self.rules.iter().any(|rule| rule.keeps(host)) {
            Tenants::Many
        } else {
            Tenants::One
        }
    }

    /// Where a known value may go, as host patterns.
    pub(crate) fn homes(&self, value: &KnownValue) -> Vec<String> {
        let all = value.issuers.iter().chain(self.besides(value));
        all.map(ToString::to_string).collect()
    }

    /// Where the operator lets a known value go.
    fn besides<'a>(&'a self, value: &'a KnownValue) -> impl Iterator<Item = &'a IssuerPattern> {
        let own = self.homes.iter();
        let named =
            own.filter(|(name, _)| value.nature == KnownNature::Sent && value.is_named(name));
        named.map(|(_, home)| home)
    }

    /// Watches the other direction for values that must not come back.
    #[must_use]
    pub fn with_watched(mut self, watched: Arc<KnownValues>) -> Self {
        let rules = Vec::new();
        let watching = Self {
            index: LiteralIndex::new(&rules, self.policy),
            near: HashMap::new(),
            rules,
            shapes: Shapes::new(self.policy),
            known: Some(watched),
            homes: Vec::new(),
            placeholders: Vec::new(),
            watching: None,
            policy: self.policy,
            // Responses are the origin's: what cannot be read there is no leak.
            unscannable: UnscannableAction::Record,
            key: self.key,
        };
        self.watching = Some(Arc::new(watching));
        self
    }

    /// The known values.
    pub(crate) fn known(&self) -> Option<&KnownValues> {
        self.known.as_deref()
    }

    /// What happens to bytes that cannot be scanned.
    pub fn unscannable(&self) -> UnscannableAction {
        self.unscannable
    }

    /// Judges the labels of a name left of the part that somebody registered, by
    /// their shape: what is asked for leaves with the question.
    pub fn labels(&self, destination: &ScanDestination<'_>, below: &str) -> Vec<Finding> {
        self.shapes.name(&self.key, destination, below)
    }

    /// Judges the segments of request targets by their shape.
    pub(crate) fn segments(
        &self,
        to: &ScanDestination<'_>,
        parts: &[MessagePart<'_>],
    ) -> Vec<Finding> {
        self.shapes.targets(&self.key, to, parts)
    }

    /// A rule by its place.
    pub(crate) fn rule(&self, place: usize) -> Option<&DetectorRule> {
        self.rules.get(place)
    }

    /// The rules whose credentials have places of their own in requests to a host.
    pub(crate) fn shown_at<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a DetectorRule> {
        let near = self.near.get(tail(host)).into_iter().flatten();
        let rules = near.filter_map(|place| self.rules.get(*place));
        rules.filter(move |rule| rule.is_shown_at(host))
    }

    /// The search for literals.
    pub(crate) fn prefilter(&self) -> &Prefilter {
        &self.index.prefilter
    }

    /// What a piece looks like: no word and no number where it could be of a credential, or
    /// begins as one does.
    pub(crate) fn look(&self, piece: &[u8]) -> PieceLook {
        // Prose may begin with the name of a form.
        let is_word = || !piece.trim_ascii().iter().any(u8::is_ascii_whitespace);
        if pieces::is_dense(piece) || self.index.begins(piece) && is_word() {
            PieceLook::Dense
        } else {
            PieceLook::Word
        }
    }

    /// Whether a credential of a strong form may begin with these bytes.
    pub(crate) fn begins(&self, piece: &[u8]) -> bool {
        self.index.begins(piece)
    }

    /// The length of the longest literal of a strong form that all of stands at the beginning
    /// of these bytes; 0 where none does.
    pub(crate) fn literal(&self, bytes: &[u8]) -> usize {
        self.index.literal(bytes)
    }

    /// What a literal means.
    pub(crate) fn hits(&self, literal: usize) -> &[LiteralMeaning] {
        self.index.hits.get(literal).map_or(&[], Vec::as_slice)
    }

    /// The rules that have no literal.
    pub(crate) fn searches(&self) -> &[usize] {
        &self.index.searches
    }

    /// How many bytes before a literal a match that must stay may begin.
    pub(crate) fn before(&self) -> usize {
        self.index.before
    }

    /// How many bytes before a literal any match may begin.
    pub(crate) fn reach(&self) -> usize {
        self.index.reach
    }

    /// Whether what a rule finds may have to stay.
    pub(crate) fn can_block(&self, place: usize) -> bool {
        self.rule(place)
            .is_some_and(|rule| rule.can_block(self.policy))
    }

    /// The same of what stands back to front or with letters moved.
    pub(crate) fn can_block_transformed(&self, place: usize) -> bool {
        self.rule(place)
            .is_some_and(|rule| rule.can_block_transformed(self.policy))
    }

    /// How doubtful findings weigh.
    pub(crate) fn policy(&self) -> ScanPolicy {
        self.policy
    }

    /// The key of marks.
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

/// Rules by the end of their issuers' names, which each of these spells out.
fn near(rules: &[DetectorRule]) -> HashMap<String, Vec<usize>> {
    let mut near: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, rule) in rules.iter().enumerate() {
        for host in rule.hosts() {
            let own = near.entry(tail(host).to_owned()).or_default();
            if own.last() != Some(&place) {
                own.push(place);
            }
        }
    }
    near
}

/// The last two labels of a name or a pattern.
fn tail(host: &str) -> &str {
    let mut dots = host.rmatch_indices('.');
    let second = dots.nth(1);
    second.map_or(host, |(dot, _)| {
        host.get(dot.saturating_add(1)..).unwrap_or(host)
    })
}

fn check(detector: &crate::Detector) -> Result<(), RulesetError> {
    let id = || detector.id.to_string();
    let lengths = limits::LITERAL_BYTES_MIN..=limits::LITERAL_BYTES_MAX;
    let is_scan = detector.anchor == crate::Anchor::Scan;
    let fits = |literal: &crate::Text| lengths.contains(&literal.len());
    if is_scan != detector.literals.is_empty() || !detector.literals.iter().all(fits) {
        return Err(RulesetError::Literal { detector: id() });
    }
    let longest = match detector.anchor {
        crate::Anchor::Inside => limits::INSIDE_BYTES_MAX,
        crate::Anchor::Start | crate::Anchor::Scan => limits::MATCH_BYTES_MAX,
    };
    if detector.max == 0 || detector.max > longest {
        let max = detector.max;
        return Err(RulesetError::TooLong {
            detector: id(),
            max,
        });
    }
    Ok(())
}
