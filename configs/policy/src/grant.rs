//! What a policy grants beside the network: paths, environment, limits, ports.
//!
//! Paths are data here. They are made absolute and normalised by text alone;
//! nothing in this file opens or looks at a file.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// One path of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// Absolute, without `.`, `..`, repeated or trailing slashes.
    pub path: String,
    /// Where the policy says so.
    pub place: Arc<str>,
    /// May be absent from this machine: it comes from a preset.
    pub optional: bool,
}

/// The filesystem part of a policy. What is not granted is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filesystem {
    /// Readable and executable, with everything below.
    pub read: Vec<PathGrant>,
    /// Readable, executable and writable, with everything below.
    pub write: Vec<PathGrant>,
    /// Which of these are made where they are absent.
    pub made: Vec<MadePath>,
    /// Hidden, with everything below, whatever the other two lists say.
    pub deny: Vec<PathGrant>,
    /// Which places lie where a variable of the user's says.
    pub moved: Vec<Moved>,
    /// Which places a variable of the user's would move, set or not.
    pub movable: Vec<Movable>,
}

/// Something writable that is made where it is absent, for this account alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadePath {
    /// Absolute and normalised, as in the list of what is writable.
    pub path: String,
    /// What is made there.
    pub content: MadeContent,
}

/// What is made where something is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeContent {
    /// A directory: its path is written with a `/` at its end.
    Directory,
    /// A file that begins with this text.
    File(String),
}

/// Something that whoever starts a run should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// In words, one line.
    pub text: String,
    /// Said at the start of a run, unless an argument of the command holds one of
    /// these. Where there are none, it is not said there.
    pub unless: Vec<String>,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// Arguments that a program is started with besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Name of the program's file, without directories.
    pub program: String,
    /// Put behind the program, before what whoever starts it says.
    pub first: Vec<String>,
    /// Left out where an argument of the command is one of these, alone or with `=` behind it.
    pub unless: Vec<String>,
    /// Said when they are put there; may be empty.
    pub text: String,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// A place that a variable of the user's moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Name of the variable.
    pub variable: String,
    /// Where what the policy names is kept: absolute and normalised.
    pub path: String,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// A place that a variable of the user's moves wherever it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movable {
    /// `VARIABLE` or `VARIABLE/REST`: where it is moved to.
    pub to: String,
    /// The place as the policy writes it, `~/PLACE`.
    pub from: String,
    /// Where the policy says so.
    pub place: Arc<str>,
}

/// The environment of the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Names of the variables to inherit; `None` inherits all.
    pub pass: Option<Vec<String>>,
    /// Variables to set, after inheriting.
    pub set: BTreeMap<String, String>,
}

/// Resource limits of the whole sandbox. `None` leaves the launcher's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Greatest number of processes and threads.
    pub processes: Option<u64>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Greatest number of open files per process.
    pub open_files: Option<u64>,
    /// Greatest size of one file the command writes, in bytes.
    pub file_size_bytes: Option<u64>,
    /// Time until the command is ended.
    pub wall_time: Option<Duration>,
}

impl Limits {
    /// Processes of the user at most, where no policy says otherwise. The
    /// kernel counts all of a user's processes (getrlimit(2), `RLIMIT_NPROC`).
    pub const PROCESSES_DEFAULT: u64 = 8192;
    /// Bytes of one file at most, where no policy says otherwise.
    pub const FILE_SIZE_DEFAULT: u64 = 1 << 36;
}

/// Addresses and ports the command may bind and listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenGrant {
    /// The local address; the unspecified address stands for all of its family.
    pub address: IpAddr,
    /// The TCP ports, without 0.
    pub ports: RangeInclusive<u16>,
    /// Where the policy says so.
    pub place: Arc<str>,
}

impl ListenGrant {
    /// Whether the command may listen at this address by this grant.
    pub fn covers(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let of_its_family = self.address.is_unspecified() && self.address.is_ipv4() == ip.is_ipv4();
        self.ports.contains(&address.port()) && (self.address == ip || of_its_family)
    }
}

impl ListenGrant {
    /// The ports as a policy writes them.
    pub fn shown_ports(&self) -> String {
        match (*self.ports.start(), *self.ports.end()) {
            (1, u16::MAX) => "*".to_owned(),
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        }
    }
}

impl fmt::Display for ListenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.shown_ports();
        match self.address {
            IpAddr::V4(ip) => write!(f, "{ip}:{ports}"),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{ports}"),
        }
    }
}
