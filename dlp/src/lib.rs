//! Finds credentials in a stream of bytes, through the codings they travel in.
//!
//! A [`Ruleset`] is built once from [`Detectors`], [`ScanSettings`], known values
//! and canaries, and is shared. It looks at small buffers whole
//! ([`Ruleset::head`]) and at content as it passes ([`Ruleset::stream`]): what
//! a [`Stream`] has not released must not be sent. Pure: synchronous, no I/O,
//! no clock, no randomness; keys are passed in. It must not know how bytes
//! arrive or leave, and holds nothing of what it found after the scan.

#![forbid(unsafe_code)]

mod budget;
mod canary;
mod chance;
pub mod charset;
mod cleared;
mod coding;
mod confirm;
mod decode;
mod destination;
mod detector;
mod detector_file;
mod detector_own;
mod detector_place;
mod detector_sample;
mod detector_set;
mod detector_shape;
mod escapes;
mod finding;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod groups;
mod head;
mod index;
pub mod inventory;
pub mod json;
mod known;
mod known_forms;
mod known_spellings;
mod limits;
mod made;
mod magic;
mod mark;
mod memory;
mod origins;
mod pieces;
mod place;
mod position;
mod prefilter;
mod repeats;
mod ruleset;
mod scan;
mod secret;
mod settings;
mod shapes;
mod shipped;
mod shown;
mod signed;
pub mod span;
mod stream;
mod trail;
mod transforms;
mod validate;
mod values;
mod window;

pub use canary::{Canary, Plant, canaries, planted};
pub use coding::Coding;
pub use decode::{Uncoded, UncodedFault};
pub use destination::{IssuerPattern, IssuerPatternError, ScanDestination};
pub use detector::{
    Anchor, Boundary, Detector, Failure, Registry, Scope, Tenants, Text, Texts, Tier, Validator,
};
pub use detector_file::{FileFault, parse as parse_detectors};
pub use detector_own::OwnDetector;
pub use detector_sample::expand as sample;
pub use detector_set::{DetectorError, Detectors};
pub use finding::{
    Action, CANARY, Checked, Finding, KNOWN_KEY, KNOWN_VALUE, PairHalf, ScanReport, Stop,
    Unscanned, UnscannedReason,
};
pub use known::{KnownBuilder, KnownMatch, KnownNature, KnownValue, KnownValues, Unfit};
pub use known_forms::KnownForm;
pub use pieces::{Piece, PieceSource};
pub use place::{Description, Joined, MessagePart, Place};
pub use ruleset::{Ruleset, RulesetError};
pub use secret::SecretBytes;
pub use settings::{Allowance, DetectorMode, Issuer, ScanPolicy, ScanSettings, UnscannableAction};
pub use stream::Stream;

pub use values::Values;
pub use window::Window;
