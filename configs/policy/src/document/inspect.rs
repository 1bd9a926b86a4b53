//! The `[inspect]` table of a policy document: what is done about what the scan
//! finds, the user's own detectors, and where a kind of credential may go
//! besides. What a detector is in full, and whether a pattern is one, is decided
//! by whoever scans.

use super::keys;
use super::known;
use super::reader::{DocumentReader, Item, Text};
use crate::draft::Draft;
use crate::host::{Host, shown};
use crate::limits::{
    ALLOWANCES_MAX, DESCRIPTION_BYTES_MAX, DETECTOR_LIST_MAX, DETECTORS_MAX, PATTERN_BYTES_MAX,
};
use crate::location::At;
use crate::settings::{
    DetectorForm, HostTenancy, Inspect, InspectDetector, InspectScope, Unscannable,
};

/// The words for what a finding does.
pub(crate) const MODES: [(&str, Inspect); 3] = [
    ("block", Inspect::Block),
    ("warn", Inspect::Warn),
    ("off", Inspect::Off),
];

pub(super) const TENANTS: [(&str, HostTenancy); 2] =
    [("one", HostTenancy::One), ("many", HostTenancy::Many)];

/// The words for what becomes of content that cannot be looked into.
pub(super) const UNSCANNABLE: [(&str, Unscannable); 3] = [
    ("refuse", Unscannable::Refuse),
    ("refuse-bombs", Unscannable::RefuseBombs),
    ("record", Unscannable::Record),
];

const ONE_HOST: &str = "name each host; a credential is never scoped by a wildcard";

/// Reads the table.
pub(crate) fn inspect(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table(
        "inspect",
        value,
        keys::INSPECT,
        |reader, key, value| match key {
            "mode" => {
                if let Some(mode) = reader.word(key, value, &MODES) {
                    reader.draft.policy.settings.inspect = mode;
                }
            }
            "unscannable" => {
                if let Some(unscannable) = reader.word(key, value, &UNSCANNABLE) {
                    reader.draft.policy.settings.unscannable = unscannable;
                }
            }
            "detector" => {
                for item in reader.array("inspect.detector", value) {
                    detector(reader, item);
                }
            }
            "allow" => {
                for item in reader.array("inspect.allow", value) {
                    allow(reader, item);
                }
            }
            "scope" => {
                for item in reader.array("inspect.scope", value) {
                    scope(reader, item);
                }
            }
            _ => known::key(reader, key, value),
        },
    );
}

/// What stands in one `[[inspect.detector]]`.
#[derive(Default)]
struct DetectorParts<'a, 't> {
    id: Option<Text<'a, 't>>,
    mode: Option<Inspect>,
    description: Option<Text<'a, 't>>,
    pattern: Option<Text<'a, 't>>,
    literals: Vec<Text<'a, 't>>,
    issuers: Vec<Text<'a, 't>>,
    tenants: Option<HostTenancy>,
}

fn detector(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) {
    let mut parts = DetectorParts::default();
    let before = reader.draft.faults();
    reader.table(
        "detector",
        item,
        keys::DETECTOR,
        |reader, key, value| match key {
            "id" => parts.id = reader.string(key, value),
            "mode" => parts.mode = reader.word(key, value, &MODES),
            "description" => parts.description = reader.string(key, value),
            "pattern" => parts.pattern = reader.string(key, value),
            "literals" => parts.literals = reader.strings(key, value),
            "tenants" => parts.tenants = reader.word(key, value, &TENANTS),
            _ => parts.issuers = reader.strings(key, value),
        },
    );
    let Some((at, id)) = parts.id else {
        return reader.missing(item, "id", "id = \"payment-card\"");
    };
    if !judge_id(reader.draft, (at, id)) {
        return;
    }
    let form = parts.pattern.map(|pattern| form(reader, &parts, pattern));
    if form.is_none() && reader.draft.faults() == before {
        formless(reader, item, &parts);
    }
    if reader.draft.faults() > before {
        return;
    }
    let own = InspectDetector {
        id: id.to_owned(),
        mode: parts.mode,
        form,
        place: at.place(),
    };
    add(reader.draft, at, own);
}

/// Judges what says nothing of a form: it may only weigh a detector.
fn formless(
    reader: &mut DocumentReader<'_, '_, '_>,
    item: Item<'_>,
    parts: &DetectorParts<'_, '_>,
) {
    let unused = [("literals", &parts.literals), ("issuers", &parts.issuers)];
    let unused = unused.into_iter().find(|(_, list)| !list.is_empty());
    let unused = unused.map(|(key, _)| key);
    let unused = unused.or(parts.description.map(|_| "description"));
    if let Some(key) = unused.or(parts.tenants.map(|_| "tenants")) {
        let message = format!("`{key}` without `pattern` describes no detector");
        let hint = "add the form, as in `pattern = \"mycorp_[0-9A-Za-z]{32}\"`; to let a shipped \
                    detector's credentials go to a host, write `[[inspect.allow]]`";
        reader.fault(item, &message, hint);
    } else if parts.mode.is_none() {
        reader.missing(item, "mode", "mode = \"block\"");
    }
}

/// What a detector of the user's own finds, as far as a text can be judged here.
fn form(
    reader: &mut DocumentReader<'_, '_, '_>,
    parts: &DetectorParts<'_, '_>,
    pattern: Text<'_, '_>,
) -> DetectorForm {
    let description = parts.description.or(parts.id);
    let (at, description) = description.unwrap_or(pattern);
    let lengths = [
        (at, "description", description, DESCRIPTION_BYTES_MAX),
        (pattern.0, "pattern", pattern.1, PATTERN_BYTES_MAX),
    ];
    for (at, key, text, max) in lengths {
        if text.is_empty() || text.len() > max {
            let message = format!("`{key}` has {} bytes, not 1 to {max}", text.len());
            let hint = "a detector is one form; describe others in tables of their own";
            reader
                .draft
                .fault(at.error(0, message, Some(hint.to_owned())));
        }
    }
    if description.chars().any(char::is_control) {
        let message = "`description` holds a control character".to_owned();
        let hint = "it stands in denials and records: write one line".to_owned();
        reader.draft.fault(at.error(0, message, Some(hint)));
    }
    for (key, list) in [("literals", &parts.literals), ("issuers", &parts.issuers)] {
        if let Some((at, _)) = list.get(DETECTOR_LIST_MAX) {
            let message = format!("`{key}` has more than {DETECTOR_LIST_MAX} items");
            let hint = "take some out".to_owned();
            reader.draft.fault(at.error(0, message, Some(hint)));
        }
    }
    let texts = |list: &[Text<'_, '_>]| list.iter().map(|(_, text)| (*text).to_owned()).collect();
    DetectorForm {
        description: description.to_owned(),
        literals: texts(&parts.literals),
        pattern: pattern.1.to_owned(),
        issuers: texts(&parts.issuers),
        tenants: parts.tenants.unwrap_or_default(),
        place: pattern.0.place(),
    }
}

/// Adds a detector: of two modes the last holds, and a form stands once.
pub(crate) fn add(draft: &mut Draft<'_>, at: At<'_>, own: InspectDetector) {
    let known = &mut draft.policy.settings.inspect_detectors;
    if let Some(other) = known.iter_mut().find(|other| other.id == own.id) {
        if let (Some(form), Some(_)) = (&other.form, &own.form) {
            let message = format!("the detector `{}` is described twice", own.id);
            let hint = format!(
                "the other one is at {}; give this one an id of its own",
                form.place
            );
            return draft.fault(at.error(0, message, Some(hint)));
        }
        other.mode = own.mode.or(other.mode);
        other.form = other.form.take().or(own.form);
        other.place = own.place;
        return;
    }
    if known.len() < DETECTORS_MAX {
        known.push(own);
        return;
    }
    let message = format!("the policy speaks of more than {DETECTORS_MAX} detectors");
    let hint = "take some out".to_owned();
    draft.fault(at.error(0, message, Some(hint)));
}

/// Whether a text is an id; says what one is where it is not.
pub(crate) fn judge_id(draft: &mut Draft<'_>, (at, id): Text<'_, '_>) -> bool {
    let is_id = is_id(id);
    if !is_id {
        let message = format!("`{}` is no id of a detector", shown(id));
        let hint = "an id has lower-case letters, digits and single hyphens, 48 at most; \
                    `outgate scan --list` shows the shipped ones";
        draft.fault(at.error(0, message, Some(hint.to_owned())));
    }
    is_id
}

/// Whether a text is an id as detector files have them.
fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| !part.is_empty() && part.bytes().all(plain);
    text.len() <= 48 && text.split('-').all(part)
}

fn allow(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) {
    let (mut detector, mut hosts) = (None, None);
    reader.table(
        "allow",
        item,
        keys::ALLOWANCE,
        |reader, key, value| match key {
            "detector" => detector = reader.string(key, value),
            "host" => {
                let name = reader.string(key, value);
                hosts = name.map(|name| parsed(reader, vec![name]));
            }
            _ => drop(reader.string(key, value)),
        },
    );
    match (detector, hosts) {
        (Some(detector), Some(hosts)) => allowed(reader, detector, hosts),
        (None, _) => reader.missing(item, "detector", "detector = \"github-token\""),
        (_, None) => reader.missing(item, "host", "host = \"github.corp.example\""),
    }
}

fn scope(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) {
    let (mut detector, mut hosts) = (None, Vec::new());
    reader.table("scope", item, keys::SCOPE, |reader, key, value| {
        if key == "detector" {
            detector = reader.string(key, value);
        } else {
            let names = reader.strings(key, value);
            hosts = parsed(reader, names);
        }
    });
    match detector {
        Some(detector) => allowed(reader, detector, hosts),
        None => reader.missing(item, "detector", "detector = \"github-token\""),
    }
}

/// The hosts of an allowance, one by one.
fn parsed(reader: &mut DocumentReader<'_, '_, '_>, names: Vec<Text<'_, '_>>) -> Vec<Host> {
    let mut hosts = Vec::new();
    for (at, text) in names {
        match Host::parse(text) {
            Ok(host) => hosts.push(host),
            Err(error) => {
                let fault = at.error(0, error.to_string(), Some(ONE_HOST.to_owned()));
                reader.draft.fault(fault);
            }
        }
    }
    hosts
}

/// Lets what one detector finds go to these hosts.
fn allowed(
    reader: &mut DocumentReader<'_, '_, '_>,
    (at, detector): Text<'_, '_>,
    hosts: Vec<Host>,
) {
    if !is_id(detector) {
        let message = format!("`{}` is no id of a detector", shown(detector));
        let hint = "name the one that a denial or `outgate scan` names; no allowance is for all";
        let fault = at.error(0, message, Some(hint.to_owned()));
        return reader.draft.fault(fault);
    }
    let scopes = &mut reader.draft.policy.settings.inspect_scopes;
    if scopes.len() < ALLOWANCES_MAX {
        scopes.push(InspectScope {
            detector: detector.to_owned(),
            hosts,
            place: at.place(),
        });
        return;
    }
    let message = format!("the policy has more than {ALLOWANCES_MAX} allowances");
    let hint = "take some out".to_owned();
    reader.draft.fault(at.error(0, message, Some(hint)));
}
