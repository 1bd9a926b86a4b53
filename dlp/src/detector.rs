//! What finds one kind of credential: its form, how to check it, and where it
//! may go. Data only; nothing here reads a stream.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A text that is part of the program or was read at run time.
pub type Text = Cow<'static, str>;

/// How certain the form of a credential is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Needs a label nearby or a checksum: recorded, unless rules are strict.
    Context,
    /// A fixed shape, a short or shared prefix: does not leave unless its check fails.
    Structured,
    /// A prefix, marker or checksum nothing else has: does not leave.
    Strong,
}

/// Where the literal stands in the match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// At its start.
    Start,
    /// Anywhere in it.
    Inside,
    /// There is none: the pattern itself is searched, where somebody asks for it.
    Scan,
}

/// What may stand beside a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Anything.
    None,
    /// No letter, digit or underscore.
    Word,
}

/// A package registry whose host the client's own configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Registry {
    /// Packages of Node.js.
    Npm,
    /// Packages of Python.
    Pypi,
    /// Packages of Rust.
    Cargo,
}

/// Where a credential may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// To its issuers, and where the operator allows.
    Issuers,
    /// Nowhere, and nobody can allow it.
    Never,
    /// Only where the operator allows.
    User,
    /// To the hosts it names itself.
    Claims,
    /// To the registry of the client's own configuration.
    Registry(Registry),
}

/// An offline check of what a pattern matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Validator {
    /// None.
    None,
    /// The entropy alone.
    Entropy,
}

/// What finds one kind of credential.
#[derive(Debug, Clone, PartialEq)]
pub struct Detector {
    /// Its id, in kebab-case.
    pub id: Text,
    /// What it finds, in words.
    pub name: Text,
    /// How certain the form is.
    pub tier: Tier,
    /// What a leak costs, in one sentence.
    pub cost: Text,
    /// Where the issuer describes the form.
    pub reference: Text,
    /// Whether the form was confirmed with the issuer's documentation.
    pub confirmed: bool,
    /// One of them stands in every match, in this case.
    pub literals: Cow<'static, [Text]>,
    /// Where the literal stands.
    pub anchor: Anchor,
    /// The form, in the syntax of the `regex` crate over bytes, without Unicode.
    /// Group 1, where there is one, is the credential itself.
    pub pattern: Text,
    /// Length of the longest match, in bytes.
    pub max: usize,
    /// Length of the shortest match, in bytes.
    pub min: usize,
    /// What may stand beside it.
    pub boundary: Boundary,
    /// The offline check.
    pub validator: Validator,
    /// Least Shannon entropy of the credential, in bits a byte.
    pub min_entropy: f32,
    /// Where it may go.
    pub scope: Scope,
    /// Its issuers, as host patterns.
    pub issuers: Cow<'static, [Text]>,
}

/// The detectors of a ruleset: those we ship, and the user's.
#[derive(Debug, Clone, Default)]
pub struct Detectors {
    list: Vec<Detector>,
}

impl Detectors {
    /// A set of the given detectors.
    ///
    /// # Errors
    /// When two have the same id.
    pub fn new(list: Vec<Detector>) -> Result<Self, DetectorError> {
        for (position, detector) in list.iter().enumerate() {
            if list
                .iter()
                .skip(position + 1)
                .any(|other| other.id == detector.id)
            {
                let id = detector.id.to_string();
                return Err(DetectorError::Twice { id });
            }
        }
        Ok(Self { list })
    }

    /// Every detector, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Detector> {
        self.list.iter()
    }
}

/// What is wrong with a set of detectors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DetectorError {
    /// Two detectors have one id.
    Twice {
        /// The id.
        id: String,
    },
}

impl fmt::Display for DetectorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { id } => write!(formatter, "two detectors have the id `{id}`"),
        }
    }
}

impl Error for DetectorError {}
