//! The detectors that are part of the program, as constants.

use std::borrow::Cow;

use crate::detector::{
    Anchor, Boundary, Detector, Failure, Registry, Scope, Tenants, Text, Tier, Validator,
};

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Whether a credential has the beginning of a kind that has a detector of its
/// own: then a label beside it says nothing new, and where it may go is that
/// detector's to say.
pub(crate) fn has_own_form(secret: &[u8]) -> bool {
    SHIPPED.iter().any(|detector| has_form(detector, secret))
}

/// Whether a credential begins as those of a detector do, and is long enough.
pub(crate) fn has_form(detector: &Detector, secret: &[u8]) -> bool {
    let begins = |literal: &Text| secret.starts_with(literal.as_bytes());
    detector.anchor == Anchor::Start
        && detector.tier > Tier::Context
        && secret.len() >= detector.min
        && detector.literals.iter().any(begins)
}
