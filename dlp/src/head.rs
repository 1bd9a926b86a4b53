//! Small parts of a message, whole: each alone, and the values of several one
//! after the other, for what is split over them.

use std::cell::OnceCell;

use crate::decode::layer::{Layer, LayerExtent};
use crate::destination::ScanDestination;
use crate::detector::Tier;
use crate::finding::{
    CANARY, Checked, Finding, KNOWN_KEY, KNOWN_VALUE, PairHalf, ScanReport, Unscanned,
};
use crate::limits;
use crate::pieces::{self, Age, JoinedText, PieceSource, Side, StreamEntry};
use crate::place::{Joined, MessagePart, Place, PlaceKind};
use crate::ruleset::Ruleset;
use crate::scan::{Scan, ScanState};
use crate::settings::Depth;
use crate::shown;
use crate::trail::Trail;

/// Between two parts: in no credential and in no run.
const BORDER: &[u8] = b"\x01\n";

impl Ruleset {
    /// Scans small parts, whole: method, target, field names and values; and
    /// their values one after the other, for what is split over them.
    pub fn head(&self, destination: &ScanDestination<'_>, parts: &[MessagePart<'_>]) -> ScanReport {
        scan(self, destination, parts)
    }

    /// Whether a name in content holds what must not be shown to a host.
    pub(crate) fn holds(&self, destination: &ScanDestination<'_>, name: &[u8]) -> bool {
        whole(self, (destination, PlaceKind::Head), name).holds
    }
}

/// Scans parts, and what their values make together.
pub(crate) fn scan(
    rules: &Ruleset,
    destination: &ScanDestination<'_>,
    parts: &[MessagePart<'_>],
) -> ScanReport {
    let to = (destination, kind(parts));
    // Beside content nothing is shown.
    let left = match to.1 {
        PlaceKind::Head => shown::rest(rules, destination.host, parts),
        _ => shown::HeadRest {
            parts: parts.iter().map(|part| part.bytes.to_vec()).collect(),
            in_target: false,
            half: PairHalf::None,
        },
    };
    let rest: Vec<MessagePart<'_>> = parts
        .iter()
        .zip(&left.parts)
        .map(|(part, bytes)| MessagePart {
            place: part.place.clone(),
            bytes,
        })
        .collect();
    let mut report = each(rules, to, &rest);
    report.holds = report.holds || left.in_target;
    report.half = left.half;
    report
}

/// Scans the parts of which nothing more is known.
fn each(
    rules: &Ruleset,
    to: (&ScanDestination<'_>, PlaceKind<'_>),
    parts: &[MessagePart<'_>],
) -> ScanReport {
    let (destination, _) = to;
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
    for (joined, source, values) in [
        (Joined::Query, PieceSource::Query, query_values(parts)),
        (Joined::Fields, PieceSource::Field, field_values(parts)),
    ] {
        let (found, unscanned) = of_one(rules, destination, (joined, source), &values);
        report.unscanned = report.unscanned.or(unscanned);
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

/// What the values of one source in one message make together, and what of that was not
/// looked into.
fn of_one(
    rules: &Ruleset,
    destination: &ScanDestination<'_>,
    (joined, source): (Joined, PieceSource),
    values: &[&[u8]],
) -> (Vec<Finding>, Option<Unscanned>) {
    let mut findings = Vec::new();
    let (mut left, mut unscanned) = (limits::HEAD_BYTES_MADE, None);
    let entries: Vec<StreamEntry<'_>> = (0..)
        .zip(values)
        .map(|(slot, bytes)| StreamEntry {
            source,
            slot,
            place: slot,
            bytes,
            age: Age::New,
            look: rules.look(bytes),
            is_whole: true,
        })
        .collect();
    let alone = Alone::new(rules, &entries);
    for (side, text) in pieces::streams(&entries, &|word| rules.begins(word)) {
        let mut state = ScanState::default();
        state.budget.bind(Some(left));
        let to = (destination, &mut state);
        join(&alone, to, (joined, side, text), &mut findings);
        left = left.saturating_sub(state.budget.cost());
        unscanned = unscanned.or(state.unscanned());
    }
    (findings, unscanned)
}

/// The pieces as they stand, and what they hold each by itself.
pub(crate) struct Alone<'a> {
    rules: &'a Ruleset,
    entries: &'a [StreamEntry<'a>],
    found: OnceCell<Vec<Finding>>,
}

impl<'a> Alone<'a> {
    pub(crate) fn new(rules: &'a Ruleset, entries: &'a [StreamEntry<'a>]) -> Self {
        Self {
            rules,
            entries,
            found: OnceCell::new(),
        }
    }

    /// Whether one of the pieces holds this, or of a form one that looks like it: what was
    /// taken out of a value leaves another behind.
    fn holds(&self, finding: &Finding) -> bool {
        let mut found = self.found.get_or_init(|| self.find()).iter();
        found.any(|own| {
            let is_like = !is_known(finding) && own.detector == finding.detector;
            own.mark == finding.mark || is_like
        })
    }

    /// What stands in the pieces, each by itself. What the bound ends is not known to stand
    /// there.
    fn find(&self) -> Vec<Finding> {
        let (mut left, mut found) = (limits::WINDOW_BYTES_MADE, Vec::new());
        let long = |entry: &&StreamEntry<'_>| entry.bytes.len() >= limits::JOINED_BYTES_MIN;
        for entry in self.entries.iter().rev().filter(long) {
            let mut state = ScanState::default();
            state.budget.bind(Some(left));
            let to = (&NOBODY, PlaceKind::Content);
            found.append(&mut look(self.rules, to, entry.bytes, &mut state).findings);
            left = left.saturating_sub(state.budget.cost());
            if left == 0 {
                break;
            }
        }
        found
    }
}

/// To nobody's host nothing may go.
pub(crate) const NOBODY: ScanDestination<'static> = ScanDestination { host: "", port: 0 };

/// What pieces make in the streams that are in a text: strong forms only, since chance makes
/// others, and nothing that one of the pieces holds alone, which is judged where it stands.
/// The state is a new one.
pub(crate) fn join(
    alone: &Alone<'_>,
    (destination, state): (&ScanDestination<'_>, &mut ScanState),
    (joined, side, text): (Joined, Side, JoinedText),
    findings: &mut Vec<Finding>,
) {
    let rules = alone.rules;
    if text.bytes.is_empty() {
        return;
    }
    state.borders.clone_from(&text.borders);
    state.depth = match side {
        Side::Head | Side::Content => Depth::Codings,
        Side::HeadAsWritten
        | Side::HeadWoven
        | Side::HeadReordered
        | Side::ContentAsWritten
        | Side::ContentWoven
        | Side::ContentReordered => Depth::AsWritten,
    };
    let is_woven = matches!(side, Side::HeadWoven | Side::ContentWoven);
    let is_reordered = matches!(side, Side::HeadReordered | Side::ContentReordered);
    let to = (destination, Place::Joined(joined).kind());
    let report = look(rules, to, &text.bytes, state);
    for mut finding in report.findings {
        let was_found = findings.iter().any(|known| known.mark == finding.mark);
        // Pieces that are put together by chance have no right checksum.
        let may_be = match finding.checked {
            Checked::Passed => true,
            Checked::None => !is_reordered || is_known(&finding),
            Checked::Failed => false,
        };
        if finding.tier == Tier::Strong
            && may_be
            && !was_found
            && !(is_woven && alone.holds(&finding))
            && (is_woven || !stands_in_one(rules, &text, &finding))
        {
            finding.place = Place::Joined(joined);
            findings.push(finding);
        }
    }
}

/// Whether the piece in which a finding begins holds by itself what begins there.
fn stands_in_one(rules: &Ruleset, text: &JoinedText, finding: &Finding) -> bool {
    let of = |piece| whole(rules, (&NOBODY, PlaceKind::Content), piece).findings;
    let Some((piece, at)) = text.piece(finding.offset) else {
        return false;
    };
    let is_in_it = of(piece).iter().any(|own| {
        let is_same = own.mark == finding.mark;
        is_same || (own.detector == finding.detector && own.offset == at)
    });
    // Of a long value several parts are known, and of those that overlap one is told.
    let rest = || {
        let from = usize::try_from(at).ok();
        from.and_then(|from| piece.get(from..)).unwrap_or_default()
    };
    is_in_it || (is_known(finding) && of(rest()).iter().any(|own| own.mark == finding.mark))
}

/// Whether it is a value that somebody named, and no form.
fn is_known(finding: &Finding) -> bool {
    [KNOWN_VALUE, KNOWN_KEY, CANARY].contains(&&*finding.detector)
}

/// What parts are for together: what stands beside content counts as content.
fn kind(parts: &[MessagePart<'_>]) -> PlaceKind<'static> {
    let mut kinds = parts.iter().map(|part| part.place.kind());
    if kinds.all(|kind| kind == PlaceKind::Head) {
        PlaceKind::Head
    } else {
        PlaceKind::Content
    }
}

/// Scans one short buffer with all that is coded in it. Whoever asks waits for it, so that
/// nothing is looked into that makes far more of it than clients write there.
pub(crate) fn whole(
    rules: &Ruleset,
    (destination, kind): (&ScanDestination<'_>, PlaceKind<'_>),
    bytes: &[u8],
) -> ScanReport {
    let mut state = ScanState::default();
    state.budget.bind(Some(limits::HEAD_BYTES_MADE));
    look(rules, (destination, kind), bytes, &mut state)
}

/// The same with what is known of the buffer.
fn look(
    rules: &Ruleset,
    (destination, kind): (&ScanDestination<'_>, PlaceKind<'_>),
    bytes: &[u8],
    state: &mut ScanState,
) -> ScanReport {
    state.gathers = true;
    state.budget.take(bytes.len());
    let mut scan = Scan {
        rules,
        host: destination.host,
        kind,
        state,
    };
    let mut layer = Layer::new(Trail::default());
    layer.push(&mut scan, bytes, None);
    layer.work(&mut scan, LayerExtent::End);
    let unscanned = state.unscanned();
    ScanReport {
        holds: state.settled > 0 || unscanned.is_some() || !state.warnings.is_empty(),
        half: PairHalf::None,
        findings: std::mem::take(&mut state.warnings),
        unscanned,
    }
}

/// The part a finding belongs to, and where in it.
fn attribute(
    rules: &Ruleset,
    to: (&ScanDestination<'_>, PlaceKind<'_>),
    parts: &[MessagePart<'_>],
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

fn query_values<'a>(parts: &[MessagePart<'a>]) -> Vec<&'a [u8]> {
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

fn field_values<'a>(parts: &[MessagePart<'a>]) -> Vec<&'a [u8]> {
    let fields = parts
        .iter()
        .filter(|part| matches!(part.place, Place::Field(_)));
    fields.map(|part| part.bytes).collect()
}
