//! The switches of a policy: interception, scanning, name resolution, modes.
//!
//! Values only; the defaults are the careful ones and are all stated here.

use std::net::SocketAddr;

use std::sync::Arc;

use crate::host::Host;

/// A setting that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// Not in force.
    #[default]
    Off,
    /// In force.
    On,
}

/// When TLS is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intercept {
    /// Where a rule or the scan needs to see inside.
    #[default]
    WhenNeeded,
    /// Wherever no `tls://` rule forbids it.
    Always,
    /// Nowhere; what needs a look inside is denied.
    Never,
}

/// What a finding of the scan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inspect {
    /// The request is refused before a byte of the finding leaves.
    #[default]
    Block,
    /// The request passes and the finding is recorded.
    Warn,
    /// Nothing is scanned.
    Off,
}

/// What happens to content that cannot be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unscannable {
    /// What spends the limits of the scan is refused, as a decompression bomb does with which
    /// something is to be hidden; the rest passes and is counted and shown.
    #[default]
    RefuseBombs,
    /// It passes and is counted and shown.
    Record,
    /// It is refused.
    Refuse,
}

/// What happens when a record cannot be written, as on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditFull {
    /// What it announces is denied, and everything after it.
    #[default]
    Deny,
    /// It is counted as lost, and the next one that is written says how many were.
    Drop,
}

/// How long a resolved address stays the address of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DnsPin {
    /// For the whole run.
    #[default]
    Run,
    /// As long as the answer says.
    Ttl,
}

/// Where names are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsServer {
    /// The servers of the machine.
    System,
    /// This server.
    Address(SocketAddr),
}

/// Hosts to which a kind of credential may be sent besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectScope {
    /// Identifier of the detector.
    pub detector: String,
    /// The hosts that count as its issuers too.
    pub hosts: Vec<Host>,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// What the policy says about one detector: how it weighs, or what it finds
/// where it is one of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectDetector {
    /// Its identifier.
    pub id: String,
    /// What its findings do; `None` leaves that to the form.
    pub mode: Option<Inspect>,
    /// What it finds; `None` for one that is shipped.
    pub form: Option<DetectorForm>,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// Whose content the hosts of an issuer keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostTenancy {
    /// Nobody's, or that of the account that sends it.
    #[default]
    One,
    /// What anybody sends them: a credential may go there, but not in content.
    Many,
}

/// What a detector of the user's own finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorForm {
    /// What it is, in words.
    pub description: String,
    /// Texts of which one is in every match; empty where the pattern begins
    /// with them.
    pub literals: Vec<String>,
    /// The form, in the syntax of the crate `regex`.
    pub pattern: String,
    /// Host patterns of those who issue it; empty for nobody.
    pub issuers: Vec<String>,
    /// Whose content these keep.
    pub tenants: HostTenancy,
    /// Where the pattern stands.
    pub place: Arc<str>,
}

impl HostTenancy {
    /// As documents write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Many => "many",
        }
    }
}

/// A precaution, in force unless somebody turns it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precaution {
    /// It is taken.
    #[default]
    On,
    /// It is not.
    Off,
}

/// Hosts to which one of the user's own secrets may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHosts {
    /// Where the user keeps it: the name of a variable, or a file.
    pub name: String,
    /// Where it may go.
    pub hosts: Vec<Host>,
}

/// A certificate that the gateway presents to one host, over TLS that was
/// verified and to nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The host.
    pub host: Host,
    /// The file with the certificate and those between it and its root, in
    /// PEM; absolute.
    pub certificate: String,
    /// The file with the key, in PEM; absolute, and perhaps the same one.
    pub key: String,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// How the rules of a run hold. Whoever starts it says so; no document can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// They are enforced.
    #[default]
    Enforced,
    /// Everything public is let through to be learnt from, marked as such, and no rule has less
    /// looked at than the policy says.
    Learning,
    /// What they deny of public hosts passes, each time marked with the denial.
    Monitor,
    /// So does what they deny inside, and credentials pass with a warning.
    MonitorAll,
}

impl Enforcement {
    /// The word of records and listings; empty where rules are enforced.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enforced => "",
            Self::Learning => "learning",
            Self::Monitor => "monitor",
            Self::MonitorAll => "monitor-all",
        }
    }
}

/// All switches of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `[tls] intercept`.
    pub intercept: Intercept,
    /// `[tls] authority`: the directory of the user's own authority, absolute.
    /// `None`: each run gets one of its own.
    pub authority: Option<String>,
    /// `[[tls.client]]`: one for a host at most.
    pub clients: Vec<ClientCertificate>,
    /// `[inspect] mode`.
    pub inspect: Inspect,
    /// `[inspect] unscannable`.
    pub unscannable: Unscannable,
    /// `[[inspect.detector]]`: each identifier once.
    pub inspect_detectors: Vec<InspectDetector>,
    /// `[[inspect.scope]]` and `[[inspect.allow]]`.
    pub inspect_scopes: Vec<InspectScope>,
    /// `[inspect] known`: whether the user's own secrets are looked for.
    pub known: Precaution,
    /// `[inspect] known_file`: a file that lists more of them, absolute.
    pub known_file: Option<String>,
    /// `[[inspect.value]]`.
    pub known_hosts: Vec<KnownHosts>,
    /// `[inspect] canaries`: whether false credentials are planted.
    pub canaries: Precaution,
    /// `strict`: what could not be looked at is refused.
    pub strict: Switch,
    /// `monitor`, which no document can have: who reads it refuses it with a reason.
    pub monitor: Switch,
    /// How the rules hold.
    pub enforcement: Enforcement,
    /// `[dns] servers`; empty stands for the servers of the machine.
    pub dns_servers: Vec<DnsServer>,
    /// `[dns] pin`.
    pub dns_pin: DnsPin,
    /// `[audit] full`.
    pub audit_full: AuditFull,
    /// `denial_note`: what the operator says with every denial; printable ASCII.
    pub denial_note: Option<Arc<str>>,
    /// `[audit] rotate`: bytes of one file of a record, where it may have many.
    pub audit_file_bytes: Option<u64>,
}

impl Inspect {
    /// As documents write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }

    /// The one of two that lets less pass.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Block, _) | (_, Self::Block) => Self::Block,
            (Self::Warn, _) | (_, Self::Warn) => Self::Warn,
            (Self::Off, Self::Off) => Self::Off,
        }
    }
}
