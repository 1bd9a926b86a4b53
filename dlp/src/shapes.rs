//! Shapes of what is no known credential and yet is data on its way out: labels
//! of a name and segments of a path that somebody made to carry something.
//!
//! They are judged whole and by themselves, never in a stream, so no pattern and
//! no literal describes them; for modes and allowances they count as detectors.

use crate::destination::{IssuerPattern, ScanDestination};
use crate::detector::{Text, Tier};
use crate::finding::{Action, Checked, Finding};
use crate::mark::mark;
use crate::place::{MessagePart, Place};
use crate::settings::{DetectorMode, ScanPolicy};
use crate::validate::random;

mod labels;

/// Shortest segment that is judged, in bytes: identifiers of many services have fewer.
const SEGMENT_BYTES_MIN: usize = 24;
/// Longest segment that is judged, in bytes: longer ones are documents, which
/// the detectors look into.
const SEGMENT_BYTES_MAX: usize = 128;
/// Least entropy of a segment, in bits a byte: more than hexadecimal digits have.
const SEGMENT_BITS_MIN: f64 = 4.15;

/// One of the shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Labels that are text in hexadecimal or in base32.
    EncodedLabel,
    /// Labels of one length, one after the other.
    ChunkedName,
    /// A segment of a path that was made by chance.
    RandomSegment,
}

const SHAPES: [Shape; 3] = [
    Shape::EncodedLabel,
    Shape::ChunkedName,
    Shape::RandomSegment,
];

impl Shape {
    fn id(self) -> &'static str {
        match self {
            Self::EncodedLabel => "encoded-label",
            Self::ChunkedName => "chunked-name",
            Self::RandomSegment => "random-segment",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::EncodedLabel => "encoded text in a name",
            Self::ChunkedName => "a name in pieces of one length",
            Self::RandomSegment => "random segment of a path",
        }
    }

    fn tier(self) -> Tier {
        match self {
            // By chance one hash in a million looks so.
            Self::EncodedLabel => Tier::Structured,
            Self::ChunkedName | Self::RandomSegment => Tier::Context,
        }
    }

    /// Whether it is looked for only where somebody asks.
    fn is_asked_for(self) -> bool {
        match self {
            Self::EncodedLabel | Self::ChunkedName => false,
            Self::RandomSegment => true,
        }
    }
}

/// Whether an id is that of a shape.
pub(crate) fn is_shape(id: &str) -> bool {
    SHAPES.iter().any(|shape| shape.id() == id)
}

/// Whether an id is that of a shape which is looked for only where somebody asks.
pub(crate) fn is_asked_for(id: &str) -> bool {
    let mut shapes = SHAPES.iter();
    shapes.any(|shape| shape.id() == id && shape.is_asked_for())
}

/// The shapes with what the operator decided about them.
#[derive(Debug)]
pub(crate) struct Shapes {
    rules: [ShapeRule; SHAPES.len()],
    policy: ScanPolicy,
}

#[derive(Debug)]
struct ShapeRule {
    shape: Shape,
    mode: Option<DetectorMode>,
    allowances: Vec<IssuerPattern>,
}

impl Shapes {
    pub(crate) fn new(policy: ScanPolicy) -> Self {
        let rules = SHAPES.map(|shape| ShapeRule {
            shape,
            mode: None,
            allowances: Vec::new(),
        });
        Self { rules, policy }
    }

    /// Gives a shape a mode; whether there is one of this id.
    pub(crate) fn weigh(&mut self, id: &str, mode: DetectorMode) -> bool {
        let rule = self.rules.iter_mut().find(|rule| rule.shape.id() == id);
        rule.map(|rule| rule.mode = Some(mode)).is_some()
    }

    /// Lets what has a shape go to a host; whether there is one of this id.
    pub(crate) fn allow(&mut self, id: &str, hosts: &IssuerPattern) -> bool {
        let rule = self.rules.iter_mut().find(|rule| rule.shape.id() == id);
        rule.map(|rule| rule.allowances.push(hosts.clone()))
            .is_some()
    }

    /// The shapes of what stands in a name left of the part that somebody registered.
    pub(crate) fn name(
        &self,
        key: &[u8; 32],
        to: &ScanDestination<'_>,
        below: &str,
    ) -> Vec<Finding> {
        let labels: Vec<&str> = below.split('.').collect();
        let judge = |shape| match shape {
            Shape::EncodedLabel => labels::are_encoded_text(&labels),
            Shape::ChunkedName => labels::are_chunks(&labels),
            Shape::RandomSegment => false,
        };
        let found = self.rules.iter().filter(|rule| judge(rule.shape));
        let found = found.filter_map(|rule| self.weighed(rule, to));
        found
            .map(|(rule, action)| rule.finding(Place::Label, mark(key, below.as_bytes()), action))
            .collect()
    }

    /// The shapes of the segments of request targets.
    pub(crate) fn targets(
        &self,
        key: &[u8; 32],
        to: &ScanDestination<'_>,
        parts: &[MessagePart<'_>],
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let rules = self.rules.iter();
        let rules = rules.filter(|rule| rule.shape == Shape::RandomSegment);
        for (rule, action) in rules.filter_map(|rule| self.weighed(rule, to)) {
            for part in parts.iter().filter(|part| part.place == Place::Target) {
                let path = part.bytes.split(|byte| *byte == b'?').next();
                let segments = path.unwrap_or_default().split(|byte| *byte == b'/');
                for segment in segments.filter(|segment| is_random(segment)) {
                    findings.push(rule.finding(part.place.clone(), mark(key, segment), action));
                }
            }
        }
        findings
    }

    /// A rule, and what its findings lead to; nothing where it is not looked for.
    fn weighed<'a>(
        &self,
        rule: &'a ShapeRule,
        to: &ScanDestination<'_>,
    ) -> Option<(&'a ShapeRule, Action)> {
        if rule.allowances.iter().any(|hosts| hosts.covers(to.host)) {
            return None;
        }
        let action = match (self.policy, rule.mode, rule.shape.tier()) {
            (_, Some(DetectorMode::Off), _) => return None,
            (_, None, _) if rule.shape.is_asked_for() => return None,
            (ScanPolicy::Monitor | ScanPolicy::MonitorForms, _, _)
            | (_, Some(DetectorMode::Warn), _)
            | (ScanPolicy::Tiered, None, Tier::Context) => Action::Warn,
            (ScanPolicy::Strict | ScanPolicy::Tiered, Some(DetectorMode::Block), _)
            | (ScanPolicy::Strict, None, _)
            | (ScanPolicy::Tiered, None, Tier::Structured | Tier::Strong) => Action::Block,
        };
        Some((rule, action))
    }
}

impl ShapeRule {
    fn finding(&self, place: Place, mark: String, action: Action) -> Finding {
        Finding {
            detector: Text::Borrowed(self.shape.id()),
            name: Text::Borrowed(self.shape.name()),
            place,
            offset: 0,
            chain: Vec::new(),
            inside: None,
            tier: self.shape.tier(),
            checked: Checked::None,
            action,
            issuers: self.allowances.iter().map(ToString::to_string).collect(),
            mark,
        }
    }
}

fn is_random(segment: &[u8]) -> bool {
    (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&segment.len())
        && random::is(segment)
        && crate::validate::entropy::bits(segment) >= SEGMENT_BITS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: ScanDestination<'static> = ScanDestination {
        host: "a.example",
        port: 443,
    };

    fn segments(shapes: &Shapes, target: &str) -> usize {
        let part = MessagePart {
            place: Place::Target,
            bytes: target.as_bytes(),
        };
        shapes.targets(&[0; 32], &TO, &[part]).len()
    }

    #[test]
    fn segments_made_by_chance_are_found_where_somebody_asks() {
        let mut asked = Shapes::new(ScanPolicy::Tiered);
        assert_eq!(
            segments(&asked, "/api/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE/status"),
            0
        );
        assert!(asked.weigh("random-segment", DetectorMode::Block));
        for (target, count) in [
            ("/api/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE/status", 1),
            ("/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE?a=b", 1),
            ("/a?b=/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE/", 0),
            ("/resources/550e8400-e29b-41d4-a716-446655440000/details", 0),
            ("/repos/golang/go/issues", 0),
            ("/commit/3f786850e387550fdab836ed7e6dc881de23001b", 0),
            ("/blog/how-we-made-everything-faster-in-2024", 0),
            ("/getElementsByClassNameAndOtherThings", 0),
        ] {
            assert_eq!(segments(&asked, target), count, "{target}");
        }
        let here = IssuerPattern::parse("a.example").expect("a host");
        assert!(asked.allow("random-segment", &here));
        assert_eq!(segments(&asked, "/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE"), 0);
    }

    #[test]
    fn names_are_weighed_by_their_shape_and_by_who_asks() {
        let action = |policy, mode: Option<(&str, DetectorMode)>, below| {
            let mut shapes = Shapes::new(policy);
            if let Some((id, mode)) = mode {
                assert!(shapes.weigh(id, mode));
            }
            let found = shapes.name(&[0; 32], &TO, below);
            found.first().map(|finding| finding.action)
        };
        let text = "706f7374677265733a2f2f757365723a70617373406462";
        let pieces = "ghp-xxxx.yyyyzzzz.aaaabbbb.ccccdddd.exfil";
        let off = Some(("encoded-label", DetectorMode::Off));
        assert_eq!(action(ScanPolicy::Tiered, None, text), Some(Action::Block));
        assert_eq!(action(ScanPolicy::Tiered, off, text), None);
        assert_eq!(action(ScanPolicy::Monitor, None, text), Some(Action::Warn));
        assert_eq!(action(ScanPolicy::Tiered, None, pieces), Some(Action::Warn));
        assert_eq!(
            action(ScanPolicy::Strict, None, pieces),
            Some(Action::Block)
        );
        assert_eq!(action(ScanPolicy::Strict, None, "www"), None);
    }
}
