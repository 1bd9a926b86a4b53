//! Everything a scan needs that stays the same from stream to stream: the
//! detectors, what the operator decided about them, and the key of marks.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::confirm::{Confirmed, Match, Rule};
use crate::destination::Destination;
use crate::detector::Scope;
use crate::detector_set::Detectors;
use crate::finding::{Finding, Report, Unscanned, UnscannedReason};
use crate::limits;
use crate::mark::mark;
use crate::place::{Description, Part, Place};
use crate::settings::{Policy, Settings, Unscannable};
use crate::stream::Stream;

/// Everything a scan needs that stays the same. Immutable, shared by [`Arc`].
pub struct Ruleset {
    rules: Vec<Rule>,
    policy: Policy,
    unscannable: Unscannable,
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
    pub fn new(detectors: &Detectors, settings: &Settings) -> Result<Self, RulesetError> {
        let mut rules: Vec<Rule> = Vec::new();
        for detector in detectors.iter() {
            check(detector)?;
            rules.push(Rule::new(detector.clone()));
        }
        if rules.len() > limits::DETECTORS_MAX {
            return Err(RulesetError::TooMany { count: rules.len() });
        }
        let places: HashMap<String, usize> = rules
            .iter()
            .enumerate()
            .map(|(place, rule)| (rule.detector.id.to_string(), place))
            .collect();
        let mut with = |id: &str, change: &mut dyn FnMut(&mut Rule) -> Result<(), RulesetError>| {
            let rule = places.get(id).and_then(|place| rules.get_mut(*place));
            let detector = id.to_owned();
            change(rule.ok_or(RulesetError::Unknown { detector })?)
        };
        for (id, mode) in &settings.modes {
            with(id, &mut |rule| {
                rule.mode = Some(*mode);
                Ok(())
            })?;
        }
        for allowance in &settings.allowances {
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
            rules,
            policy: settings.policy,
            unscannable: settings.unscannable,
            key: settings.key,
        })
    }

    /// What happens to bytes that cannot be scanned.
    pub fn unscannable(&self) -> Unscannable {
        self.unscannable
    }

    /// Scans small parts, whole: method, target, field names and values.
    pub fn head(&self, destination: &Destination<'_>, parts: &[Part<'_>]) -> Report {
        let mut report = Report::default();
        for part in parts {
            let found = self.whole(destination, part.bytes);
            report
                .findings
                .extend(found.findings.into_iter().map(|mut finding| {
                    finding.place = part.place.clone();
                    finding
                }));
            report.unscanned = report.unscanned.or(found.unscanned);
        }
        report
    }

    /// Begins a stream.
    pub fn stream(
        self: &Arc<Self>,
        destination: &Destination<'_>,
        description: &Description<'_>,
    ) -> Stream {
        Stream::new(self, destination, description)
    }

    /// Scans one buffer, without decoding.
    pub(crate) fn whole(&self, destination: &Destination<'_>, bytes: &[u8]) -> Report {
        let mut report = Report::default();
        for rule in &self.rules {
            for literal in rule.detector.literals.iter() {
                let places = memchr::memmem::find_iter(bytes, literal.as_bytes());
                for at in places {
                    match rule.confirm(bytes, at) {
                        Confirmed::Match(found) => {
                            let finding = self.finding(rule, destination, bytes, &found);
                            let known = |finding: &Finding| report.findings.contains(finding);
                            let finding = finding.filter(|finding| !known(finding));
                            report.findings.extend(finding);
                        }
                        Confirmed::Nothing => {}
                        Confirmed::Unknown => {
                            report.unscanned = Some(Unscanned {
                                reason: UnscannedReason::Work,
                                bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                            });
                        }
                    }
                }
            }
        }
        report
    }

    fn finding(
        &self,
        rule: &Rule,
        destination: &Destination<'_>,
        bytes: &[u8],
        found: &Match,
    ) -> Option<Finding> {
        let secret = bytes.get(found.secret.clone())?;
        let judged = rule.judge(secret, destination.host, self.policy)?;
        Some(Finding {
            detector: rule.detector.id.clone(),
            name: rule.detector.name.clone(),
            place: Place::Content,
            offset: u64::try_from(found.whole.start).unwrap_or(u64::MAX),
            chain: Vec::new(),
            inside: None,
            tier: rule.detector.tier,
            checked: judged.checked,
            action: judged.action,
            issuers: judged.issuers,
            mark: mark(&self.key, secret),
        })
    }
}

fn check(detector: &crate::Detector) -> Result<(), RulesetError> {
    let id = || detector.id.to_string();
    let lengths = limits::LITERAL_BYTES_MIN..=limits::LITERAL_BYTES_MAX;
    let is_scan = detector.anchor == crate::Anchor::Scan;
    let fits = |literal: &crate::Text| lengths.contains(&literal.len());
    if is_scan != detector.literals.is_empty() || !detector.literals.iter().all(fits) {
        return Err(RulesetError::Literal { detector: id() });
    }
    if detector.max == 0 || detector.max > limits::MATCH_BYTES_MAX {
        let max = detector.max;
        return Err(RulesetError::TooLong {
            detector: id(),
            max,
        });
    }
    Ok(())
}
