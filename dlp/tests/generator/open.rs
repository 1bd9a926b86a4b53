//! What is not drawn, and why: one list, in which everything stands that is left out. Whatever is
//! mended is taken out of it. What is drawn leaves once in some 20,000 draws still, by a seed that is
//! drawn anew: `hexdump` of hexadecimal digits, soft ends of lines of quoted-printable within a value whose name
//! ends in `=` before two digits, base32 of
//! digits that compressed data stand behind, and pieces in entries of archives that come in another order.

use outgate_dlp::Tier;

use crate::carriers::Carrier;
use crate::draw::{Draw, Spread};

/// Not undone yet: each has an alphabet of its own, or two lines around it.
const UNREAD: [&str; 9] = [
    "uuencode",
    "yEnc",
    "base58",
    "base85",
    "Z85",
    "ascii85",
    "ascii85 with its marks",
    "base45",
    "base91",
];

/// Undone around a credential as it stands, mostly, and not yet around every other coding. Bare
/// deflate has no mark, and is looked for only where something begins.
const ALONE: [&str; 10] = [
    "joined by +",
    "joined by .",
    "joined by ..",
    "joined by ,",
    "adjacent literals",
    "array join",
    "separated letters",
    "reversed",
    "rot13",
    "deflate",
];

/// Not undone yet: `od -c` shows letters among octal numbers, and the `o` of `0o147` is a letter of
/// prose, so that a list of them is no stretch of digits.
const NOT_YET: [&str; 2] = ["od -c", "array of octals"];

/// Secrets of which a place makes another form: a name and a value with quotes around both, which
/// is the name of a key and not the key.
const FORMS: [&str; 1] = ["gcp-service-account"];

/// Not put together in every order yet: long tokens of which one piece in several is missed.
const LONG: [&str; 3] = ["age-secret-key", "grafana-cloud-token", "pypi-token"];

/// Why a draw does not count; nothing where it does.
pub(crate) fn why(draw: &Draw) -> Option<&'static str> {
    let is_any = |names: &[&str]| draw.chain.iter().any(|own| names.contains(&own.name));
    let name = draw.secret.name.as_str();
    if is_any(&UNREAD) || is_any(&NOT_YET) || is_any(&ALONE) {
        return Some("not undone yet");
    }
    if FORMS.contains(&name) {
        return Some("its form is that of its document");
    }
    let is_strong = draw.secret.tier == Tier::Strong;
    if !is_strong && matches!(draw.carrier, Carrier::Packed | Carrier::Protobuf) {
        return Some("the length before it may be a letter, beside which only strong forms count");
    }
    if draw.spread == Spread::Whole {
        return None;
    }
    if !is_strong {
        return Some("pieces make forms that are not strong by chance");
    }
    if draw.spread == Spread::Reversed && !draw.secret.is_confirmed {
        return Some("in another order chance makes forms that nothing confirms");
    }
    if LONG.contains(&name) {
        return Some("not put together in every order yet");
    }
    // What is longer than a window is beyond it; what is shorter is not mended yet.
    (!draw.chain.is_empty()).then_some("coded as a whole and then cut up")
}
