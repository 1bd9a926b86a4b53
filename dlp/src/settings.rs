//! What an operator decides about a scan.

use crate::destination::IssuerPattern;
use crate::finding::UnscannedReason;

/// What a finding of a detector leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetectorMode {
    /// It does not leave, whatever its tier.
    Block,
    /// It is recorded.
    Warn,
    /// Nothing: the detector does not run.
    Off,
}

/// What happens to bytes that cannot be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum UnscannableAction {
    /// They do not leave.
    #[default]
    Refuse,
    /// Those do not leave for which a limit of the scan ran out; others leave, and the record
    /// says so.
    RefuseBombs,
    /// They leave, and the record says so.
    Record,
}

impl UnscannableAction {
    /// Whether bytes do not leave that were not looked into for this reason.
    pub fn refuses(self, reason: UnscannedReason) -> bool {
        match self {
            // Ordinary documents are full of values that chance made.
            Self::Refuse => reason != UnscannedReason::Parted,
            Self::RefuseBombs => reason.is_limit(),
            Self::Record => false,
        }
    }
}

/// How doubtful findings weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum ScanPolicy {
    /// By tier: strong and structured forms do not leave, others are recorded.
    #[default]
    Tiered,
    /// Everything that is found does not leave.
    Strict,
    /// Everything that is found is recorded and leaves.
    Monitor,
    /// The same, but the user's own values are refused all the same.
    MonitorForms,
}

/// Leave for a credential to go somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// The detector, by its id.
    pub detector: String,
    /// Where to.
    pub hosts: IssuerPattern,
}

/// Where a credential of a package registry may go, as the client's own
/// configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The detector, by its id.
    pub detector: String,
    /// The host of the registry.
    pub host: String,
}

/// What an operator decides.
#[derive(Debug, Clone, Default)]
pub struct ScanSettings {
    /// What differs from the tiers, by detector id. Detectors that have no
    /// literal run only when they stand here.
    pub modes: Vec<(String, DetectorMode)>,
    /// How doubtful findings weigh.
    pub policy: ScanPolicy,
    /// What happens to bytes that cannot be scanned.
    pub unscannable: UnscannableAction,
    /// Where credentials may go besides to their issuers.
    pub allowances: Vec<Allowance>,
    /// Issuers learnt from the client's configuration.
    pub registries: Vec<Issuer>,
    /// Hosts that the operator's rules spell out: of these one may be a customer's name of
    /// an issuer's.
    pub named: Vec<String>,
    /// The key of marks; random for every run, or kept to compare runs.
    pub key: [u8; 32],
}

/// How far a scan looks into what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Depth {
    /// Through all codings.
    #[default]
    Codings,
    /// At the bytes as they are.
    AsWritten,
}
