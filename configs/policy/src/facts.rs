//! What the callers of the decision function know about one event.
//!
//! Facts are borrowed values that the kernel or a parser established. Nothing
//! here decides; a new kind of event is a new variant, so that the decision
//! function does not compile until it has an answer for it.

use std::net::{IpAddr, SocketAddr};

use crate::host::{Host, HostName};
use crate::path::RequestTarget;

/// The other end of a connection, as the command named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// A name; only name rules match it.
    Name(&'a HostName),
    /// An address; only literal, range and `*` rules match it.
    Address(IpAddr),
}

impl From<Peer<'_>> for Host {
    fn from(peer: Peer<'_>) -> Self {
        match peer {
            Peer::Name(name) => Self::Name(name.clone()),
            Peer::Address(address) => Self::Address(address),
        }
    }
}

/// The protocol of a request. `Ws` and `Wss` are requests to upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP without TLS.
    Http,
    /// HTTP inside TLS.
    Https,
    /// A WebSocket upgrade without TLS.
    Ws,
    /// A WebSocket upgrade inside TLS.
    Wss,
}

impl Scheme {
    /// The scheme as it is written in a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// The port that a URL of this scheme means when it names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http | Self::Ws => 80,
            Self::Https | Self::Wss => 443,
        }
    }
}

/// Who says that a name has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// The DNS: anybody who controls the zone.
    Resolved,
    /// The operator: `--resolve`, `[[pin]]`, or the hosts file of the machine.
    Pinned,
}

/// The process that asks, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process<'a> {
    /// Absolute path of its executable, or empty when unknown. An unknown
    /// executable never benefits from a rule that names one.
    pub executable: &'a str,
}

/// One event to be judged.
#[derive(Debug, Clone, Copy)]
pub enum Facts<'a> {
    /// May anything be sent there over TCP, and how?
    Connect {
        /// Who asks.
        process: Process<'a>,
        /// Whom it wants to reach.
        peer: Peer<'a>,
        /// The TCP port.
        port: u16,
    },
    /// May this address of the peer be dialled?
    Dial {
        /// Who asks.
        process: Process<'a>,
        /// Whom it wants to reach.
        peer: Peer<'a>,
        /// The TCP port the command named.
        port: u16,
        /// The address that would be dialled.
        address: IpAddr,
        /// Who says that the peer has this address.
        source: AddressSource,
    },
    /// May TLS whose SNI equals the peer pass unopened?
    Tunnel {
        /// Who asks.
        process: Process<'a>,
        /// Whom it wants to reach.
        peer: Peer<'a>,
        /// The TCP port.
        port: u16,
    },
    /// May this request be sent?
    Request {
        /// Who asks.
        process: Process<'a>,
        /// Whom it wants to reach.
        peer: Peer<'a>,
        /// The TCP port.
        port: u16,
        /// The protocol; an upgrade to WebSocket is its own.
        scheme: Scheme,
        /// The request method, case-sensitive.
        method: &'a str,
        /// The request target that would be sent.
        target: &'a RequestTarget,
    },
    /// May this Unix socket be connected to?
    Unix {
        /// Who asks.
        process: Process<'a>,
        /// Absolute, resolved path of the socket.
        path: &'a str,
    },
    /// May the command listen here?
    Listen {
        /// Who asks.
        process: Process<'a>,
        /// The bound address.
        address: SocketAddr,
    },
}

impl<'a> Facts<'a> {
    /// Who asks.
    pub fn process(&self) -> Process<'a> {
        match *self {
            Self::Connect { process, .. }
            | Self::Dial { process, .. }
            | Self::Tunnel { process, .. }
            | Self::Request { process, .. }
            | Self::Unix { process, .. }
            | Self::Listen { process, .. } => process,
        }
    }
}
