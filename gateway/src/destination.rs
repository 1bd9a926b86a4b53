//! Where a connection goes: one destination, fixed by the launcher, with the
//! names it may be judged as. Values and comparison only.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use outgate_policy::{Host, HostName, Peer};

/// Whom a connection is meant to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    /// The name a stand-in address was given out for.
    Name(HostName),
    /// An address nobody named.
    Address(IpAddr),
    /// An address that the operator's hosts file names.
    Listed(IpAddr, Vec<HostName>),
    /// A stand-in address that stands for nothing.
    Unassigned(IpAddr),
}

/// A party and a TCP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) party: Party,
    pub(crate) port: u16,
    /// The address the command connected to.
    pub(crate) address: SocketAddr,
}

impl Destination {
    /// What it may be judged as, names first.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        match &self.party {
            Party::Name(name) => vec![Host::Name(name.clone())],
            Party::Address(address) => vec![Host::Address(*address)],
            Party::Listed(address, names) => names
                .iter()
                .cloned()
                .map(Host::Name)
                .chain([Host::Address(*address)])
                .collect(),
            Party::Unassigned(_) => Vec::new(),
        }
    }

    /// The host an authority names, if it is one of this destination's.
    pub(crate) fn matching(&self, named: &Host) -> Option<Host> {
        match (&self.party, named) {
            (Party::Name(own), Host::Name(name)) if own == name => Some(named.clone()),
            (Party::Listed(_, names), Host::Name(name)) if names.contains(name) => {
                Some(named.clone())
            }
            (Party::Address(own) | Party::Listed(own, _), Host::Address(address))
                if *own == address.to_canonical() =>
            {
                Some(Host::Address(*own))
            }
            // `localhost` is a spelling of the loopback addresses (RFC 6761 6.3).
            (Party::Address(own) | Party::Listed(own, _), Host::Name(name))
                if own.is_loopback() && name.as_str() == "localhost" =>
            {
                Some(Host::Address(*own))
            }
            _ => None,
        }
    }

    /// The host where nothing names one: a name if there is exactly one.
    pub(crate) fn unnamed(&self) -> Option<Host> {
        match &self.party {
            Party::Name(name) => Some(Host::Name(name.clone())),
            Party::Address(address) | Party::Listed(address, _) => Some(Host::Address(*address)),
            Party::Unassigned(_) => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.party {
            Party::Name(name) => write!(out, "{name}:{}", self.port),
            Party::Listed(address, names) => match names.first() {
                Some(name) => write!(out, "{name}:{}", self.port),
                None => write!(out, "{}", SocketAddr::new(*address, self.port)),
            },
            Party::Address(address) | Party::Unassigned(address) => {
                write!(out, "{}", SocketAddr::new(*address, self.port))
            }
        }
    }
}

/// The policy's view of a host.
pub(crate) fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(address) => Peer::Address(*address),
    }
}
