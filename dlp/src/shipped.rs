//! The detectors that are part of the program: as numbers and one text, without a pointer,
//! until somebody asks for them. A static program relocates every pointer of its tables when
//! it starts, whether it needs them or not.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::detector::{
    Anchor, Boundary, Detector, Failure, Registry, Scope, Tenants, Text, Texts, Tier, Validator,
};

/// A place in [`TEXT`], or in [`LISTED`]: the first that is in it, and the first behind it.
type TextPlace = (u32, u32);

/// A detector as the build script writes it.
struct DetectorRow {
    texts: [TextPlace; 8],
    lists: [TextPlace; 10],
    confirmed: bool,
    tier: Tier,
    anchor: Anchor,
    max: usize,
    min: usize,
    boundary: Boundary,
    validator: Validator,
    failure: Failure,
    min_entropy: f32,
    scope: Scope,
    tenants: Tenants,
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The detectors that are part of the program, in the order of their files.
pub(crate) fn shipped() -> &'static [Detector] {
    static ALL: OnceLock<Vec<Detector>> = OnceLock::new();
    ALL.get_or_init(|| ROWS.iter().map(detector).collect())
}

fn detector(row: &DetectorRow) -> Detector {
    // In the order of `Columns::add` of the build script.
    let [
        id,
        name,
        cost,
        reference,
        pattern,
        harmless,
        unplaced,
        secret,
    ] = row.texts.map(text);
    let [
        literals,
        issuers,
        tenant_hosts,
        except,
        routed,
        forms,
        documents,
        places,
        samples,
        near_misses,
    ] = row.lists.map(list);
    Detector {
        id,
        name,
        tier: row.tier,
        cost,
        reference,
        confirmed: row.confirmed,
        literals,
        anchor: row.anchor,
        pattern,
        max: row.max,
        min: row.min,
        boundary: row.boundary,
        validator: row.validator,
        failure: row.failure,
        min_entropy: row.min_entropy,
        scope: row.scope,
        issuers,
        tenant_hosts,
        except,
        routed,
        harmless,
        tenants: row.tenants,
        forms,
        documents,
        places,
        secret,
        unplaced,
        samples,
        near_misses,
    }
}

fn text(place: TextPlace) -> Text {
    Cow::Borrowed(TEXT.get(range(place)).unwrap_or_default())
}

fn list(place: TextPlace) -> Texts {
    let listed = LISTED.get(range(place)).unwrap_or_default();
    Cow::Owned(listed.iter().copied().map(text).collect())
}

fn range((at, end): TextPlace) -> std::ops::Range<usize> {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    number(at)..number(end)
}

/// Whether a credential has the beginning of a kind that has a detector of its
/// own: then a label beside it says nothing new, and where it may go is that
/// detector's to say.
pub(crate) fn has_own_form(secret: &[u8]) -> bool {
    shipped().iter().any(|detector| has_form(detector, secret))
}

/// Whether a credential begins as those of a detector do, and is long enough.
pub(crate) fn has_form(detector: &Detector, secret: &[u8]) -> bool {
    let begins = |literal: &Text| secret.starts_with(literal.as_bytes());
    detector.anchor == Anchor::Start
        && detector.tier > Tier::Context
        && secret.len() >= detector.min
        && detector.literals.iter().any(begins)
}
