//! What a scan says: findings, what could not be scanned, and the order to
//! stop. Nothing here holds a value that was found.

use std::error::Error;
use std::fmt;

use crate::coding::Coding;
use crate::destination;
use crate::detector::{Text, Tier};
use crate::place::Place;

/// The ids of findings of known values, of those that are never sent, and of
/// canaries.
pub const KNOWN_VALUE: &str = "known-value";
/// See [`KNOWN_VALUE`].
pub const KNOWN_KEY: &str = "known-key";
/// See [`KNOWN_VALUE`].
pub const CANARY: &str = "canary";

/// What the offline check of a credential said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checked {
    /// The checksum or the structure is right.
    Passed,
    /// It is wrong: somebody changed a byte, or it never was one.
    Failed,
    /// There is nothing to check.
    None,
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It is recorded.
    Warn,
    /// It does not leave.
    Block,
}

/// A credential on its way to where it does not belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The detector, by its id.
    pub detector: Text,
    /// What it finds, in words.
    pub name: Text,
    /// Where in the message.
    pub place: Place,
    /// Offset in bytes from the start of the outermost stream; inside codings the
    /// start of the piece that was decoded.
    pub offset: u64,
    /// The codings around it, outermost first.
    pub chain: Vec<Coding>,
    /// Which value of a document, part of a form or entry of an archive, outermost
    /// first: `$.messages[0].content`, ``part `key`, file `id.txt` ``. On one line, and
    /// nothing in it is a credential.
    pub inside: Option<String>,
    /// How certain its form is.
    pub tier: Tier,
    /// What the offline check said.
    pub checked: Checked,
    /// What follows.
    pub action: Action,
    /// Where it may go instead, as host patterns.
    pub issuers: Vec<String>,
    /// A keyed fingerprint of the value, in hexadecimal, the same for the same
    /// value under the same key.
    pub mark: String,
}

impl Finding {
    /// What follows where what is certain is refused and what may be one is recorded, no
    /// detector being weighed apart. Of what stands back to front or with letters moved
    /// only a right checksum is certain: chance makes some of the forms.
    pub fn tiered(&self) -> Action {
        let is_transformed = |coding: &Coding| matches!(coding, Coding::Reversed | Coding::Rot13);
        if self.chain.iter().any(is_transformed) && self.checked != Checked::Passed {
            return Action::Warn;
        }
        weigh(self.tier, self.checked)
    }

    /// Whether it may go to this host, and only its place is wrong: the host keeps
    /// what is sent to it, and the value stands where it would be kept.
    pub fn is_misplaced(&self, host: &str) -> bool {
        let mut issuers = self.issuers.iter();
        issuers.any(|issuer| destination::covers(issuer, host))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for coding in &self.chain {
            write!(formatter, "{coding}>")?;
        }
        formatter.write_str(&self.detector)
    }
}

/// What a form and its check mean where nothing else is said.
pub(crate) const fn weigh(tier: Tier, checked: Checked) -> Action {
    match (tier, checked) {
        // One letter changed on the way and sent after it, and a checksum fails:
        // where the form alone is certain, it does not decide.
        (Tier::Strong, _) | (Tier::Structured, Checked::Passed | Checked::None) => Action::Block,
        (Tier::Structured, Checked::Failed) | (Tier::Context, _) => Action::Warn,
    }
}

/// Bytes nobody looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unscanned {
    /// Why.
    pub reason: UnscannedReason,
    /// How many bytes of the outermost stream this is about, at least.
    pub bytes: u64,
}

/// Why bytes were not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnscannedReason {
    /// A content coding nobody here reads.
    UnknownCoding,
    /// A coding that stops making sense, or ends before its end.
    Damaged,
    /// What is compressed grew beyond its share of the budget; what stands behind it was
    /// looked at.
    Expansion,
    /// Decoded content grew beyond the budget of all of it.
    Exhausted,
    /// Deciding took more work than the budget.
    Work,
    /// More layers than the depth allows.
    Depth,
    /// More began side by side than may be open at a time.
    Crowded,
    /// A decoder would need more memory than the limit.
    Memory,
    /// The decoders of all that is scanned at the same time need more memory than there is
    /// for them together.
    Shared,
    /// What is encrypted: entries of archives, messages of OpenPGP and age.
    Encrypted,
    /// An archive or compressed data of a format that is recognised and not opened.
    Unopened,
    /// Values that may be the beginning of a credential came too long before others to be
    /// read together with them; each was looked at by itself.
    Begun,
    /// The same of values that only look as if chance had made them.
    Parted,
    /// The scan lost its place: a fault of its own.
    Misplaced,
}

impl UnscannedReason {
    /// Whether a limit or a fault of the scan ended the look, so that what stands behind it was not looked
    /// at either. No content that is made for somebody to read comes so far.
    pub fn is_limit(self) -> bool {
        match self {
            Self::Exhausted
            | Self::Work
            | Self::Depth
            | Self::Crowded
            | Self::Shared
            | Self::Misplaced => true,
            Self::UnknownCoding
            | Self::Damaged
            | Self::Expansion
            | Self::Memory
            | Self::Encrypted
            | Self::Unopened
            | Self::Begun
            | Self::Parted => false,
        }
    }
}

impl fmt::Display for UnscannedReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UnknownCoding => "unknown coding",
            Self::Damaged => "damaged coding",
            Self::Expansion => "expands beyond the budget",
            Self::Work => "takes more work than the budget",
            Self::Exhausted => "expands beyond the budget of all",
            Self::Depth => "nested too deeply",
            Self::Crowded => "too many compressed at once",
            Self::Memory => "decoder needs too much memory",
            Self::Shared => "all decoders at once need too much memory",
            Self::Encrypted => "encrypted",
            Self::Unopened => "in a format that is not opened",
            Self::Begun => "begins like a credential, and lies too far from what may be its end",
            Self::Parted => "looks like a part of a credential, and lies too far from others",
            Self::Misplaced => "the scan lost its place, which is a fault of outgate",
        })
    }
}

impl fmt::Display for Unscanned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} bytes not scanned: {}",
            self.bytes, self.reason
        )
    }
}

/// The half of a pair of keys that is sent: it may go to its issuer where the half that signs
/// stands nowhere beside it, so that all parts of such a head are to be looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PairHalf {
    /// There is none.
    #[default]
    None,
    /// It is shown as its issuer reads it.
    Shown,
}

/// What a scan of small parts says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// What was found.
    pub findings: Vec<Finding>,
    /// What was not looked into.
    pub unscanned: Option<Unscanned>,
    /// Whether the target holds a value, also one that may go there: it should
    /// not be written down.
    pub holds: bool,
    /// Of a head, whether an id was shown without the half that signs.
    pub half: PairHalf,
}

impl ScanReport {
    /// The first finding that must not leave.
    pub fn block(&self) -> Option<&Finding> {
        let blocks = |finding: &&Finding| finding.action == Action::Block;
        self.findings.iter().find(blocks)
    }

    /// Adds what another says of the same bytes, each value once.
    pub fn add(&mut self, other: Self) {
        for finding in other.findings {
            let is_known = |own: &Finding| own.mark == finding.mark;
            if !self.findings.iter().any(is_known) {
                self.findings.push(finding);
            }
        }
        self.unscanned = self.unscanned.take().or(other.unscanned);
        self.holds |= other.holds;
        if other.half == PairHalf::Shown {
            self.half = PairHalf::Shown;
        }
    }
}

/// Why a stream ends here. Every later call answers the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A credential that must not leave.
    Found(Box<Finding>),
    /// Bytes that cannot be scanned, under rules that refuse such bytes.
    Unscannable(Unscanned),
}

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(finding) => write!(formatter, "{finding}"),
            Self::Unscannable(unscanned) => write!(formatter, "{unscanned}"),
        }
    }
}

impl Error for Stop {}
