//! Small parts of a message, whole: each alone, and the values of several one
//! after the other, for what is split over them.

use crate::destination::Destination;
use crate::detector::Tier;
use crate::finding::{Checked, Finding, Report};
use crate::layer::{Layer, Until};
use crate::place::{Joined, Part, Place, PlaceKind};
use crate::ruleset::Ruleset;
use crate::scan::{Scan, State};
use crate::trail::Trail;

/// Between two parts: in no credential and in no run.
const BORDER: &[u8] = b"\x01\n";

/// Scans parts, and what their values make together.
pub(crate) fn scan(rules: &Ruleset, destination: &Destination<'_>, parts: &[Part<'_>]) -> Report {
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(part.bytes);
        // A name and its value stand as on the wire: some forms need the name.
        let border = if part.place == Place::FieldName {
            b": "
        } else {
            BORDER
        };
        text.extend_from_slice(border);
    }
    let to = (destination, kind(parts));
    let mut report = whole(rules, to, &text);
    let targets = || parts.iter().filter(|part| part.place == Place::Target);
    report.holds = report.holds && targets().any(|part| whole(rules, to, part.bytes).holds);
    for finding in &mut report.findings {
        if let Some((place, offset)) = attribute(rules, to, parts, finding) {
            finding.place = place;
            finding.offset = offset;
        }
    }
    report.findings.extend(rules.segments(destination, parts));
    for (joined, values) in [
        (Joined::Query, query_values(parts)),
        (Joined::Fields, field_values(parts)),
    ] {
        let found = join(rules, destination, joined, &values);
        let is_new = |finding: &Finding| {
            !report
                .findings
                .iter()
                .any(|known| known.detector == finding.detector && known.mark == finding.mark)
        };
        let found: Vec<Finding> = found.into_iter().filter(is_new).collect();
        report.findings.extend(found);
    }
    report
}

/// What several values make one after the other, and without what separates
/// words: strong forms only, since chance makes others.
pub(crate) fn join(
    rules: &Ruleset,
    destination: &Destination<'_>,
    joined: Joined,
    values: &[&[u8]],
) -> Vec<Finding> {
    if values.len() < 2 {
        return Vec::new();
    }
    let plain: Vec<u8> = values.concat();
    let is_word = |byte: &u8| !byte.is_ascii_whitespace() && !b",;\"'|".contains(byte);
    let bare: Vec<u8> = plain.iter().copied().filter(is_word).collect();
    let to = (destination, Place::Joined(joined).kind());
    let mut report = whole(rules, to, &plain);
    if bare != plain {
        report.findings.extend(whole(rules, to, &bare).findings);
    }
    let mut findings: Vec<Finding> = Vec::new();
    for mut finding in report.findings {
        let is_known = findings.iter().any(|known| known.mark == finding.mark);
        // Pieces that are put together by chance have no right checksum.
        let may_be = finding.checked != Checked::Failed;
        if finding.tier == Tier::Strong && may_be && !is_known {
            finding.place = Place::Joined(joined);
            findings.push(finding);
        }
    }
    findings
}

/// What parts are for together: what stands beside content counts as content.
fn kind(parts: &[Part<'_>]) -> PlaceKind<'static> {
    let mut kinds = parts.iter().map(|part| part.place.kind());
    if kinds.all(|kind| kind == PlaceKind::Head) {
        PlaceKind::Head
    } else {
        PlaceKind::Content
    }
}

/// Scans one buffer with all that is coded in it.
pub(crate) fn whole(
    rules: &Ruleset,
    (destination, kind): (&Destination<'_>, PlaceKind<'_>),
    bytes: &[u8],
) -> Report {
    let mut state = State::default();
    state.gathers = true;
    state.budget.take(bytes.len());
    let mut scan = Scan {
        rules,
        host: destination.host,
        kind,
        state: &mut state,
    };
    let mut layer = Layer::new(Trail::default());
    layer.push(&mut scan, bytes, None);
    layer.work(&mut scan, Until::End);
    let unscanned = state.unscanned();
    Report {
        holds: state.settled > 0 || unscanned.is_some() || !state.warnings.is_empty(),
        findings: state.warnings,
        unscanned,
    }
}

/// The part a finding belongs to, and where in it.
fn attribute(
    rules: &Ruleset,
    to: (&Destination<'_>, PlaceKind<'_>),
    parts: &[Part<'_>],
    finding: &Finding,
) -> Option<(Place, u64)> {
    for part in parts {
        let report = whole(rules, to, part.bytes);
        let same = |own: &&Finding| own.detector == finding.detector && own.mark == finding.mark;
        if let Some(own) = report.findings.iter().find(same) {
            return Some((part.place.clone(), own.offset));
        }
    }
    // The name of a field is part of the form: it stands before its value.
    let fields = || {
        parts
            .iter()
            .filter(|part| matches!(part.place, Place::Field(_)))
    };
    let mut end = 0_u64;
    for part in parts {
        end = end
            .saturating_add(crate::budget::wide(part.bytes.len()))
            .saturating_add(2);
        if finding.offset < end && matches!(part.place, Place::Field(_)) {
            return Some((part.place.clone(), 0));
        }
    }
    fields().next().map(|part| (part.place.clone(), 0))
}

fn query_values<'a>(parts: &[Part<'a>]) -> Vec<&'a [u8]> {
    let mut values = Vec::new();
    for part in parts.iter().filter(|part| part.place == Place::Target) {
        let query = part.bytes.splitn(2, |byte| *byte == b'?').nth(1);
        for pair in query
            .into_iter()
            .flat_map(|query| query.split(|byte| *byte == b'&'))
        {
            values.push(pair.splitn(2, |byte| *byte == b'=').last().unwrap_or(pair));
        }
    }
    values
}

fn field_values<'a>(parts: &[Part<'a>]) -> Vec<&'a [u8]> {
    let fields = parts
        .iter()
        .filter(|part| matches!(part.place, Place::Field(_)));
    fields.map(|part| part.bytes).collect()
}
