//! Where a connection goes: one destination, fixed by the launcher, with the
//! names it may be judged as. Values and comparison only.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use outgate_policy::{Host, HostName, Peer};

/// The port of the DNS, which is answered here and never forwarded unless a
/// rule grants the raw port.
pub(crate) const DNS_PORT: u16 = 53;

/// A host and its TCP port, as a connection to it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoint<'a> {
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
}

impl fmt::Display for Endpoint<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// Whom a connection is meant to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    /// The name a synthetic address was given out for.
    Name(HostName),
    /// An address nobody named.
    Address(IpAddr),
    /// An address that the operator's hosts file names.
    Listed(IpAddr, Vec<HostName>),
    /// A synthetic address that stands for nothing.
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
    /// What it may be judged as: names first, but for this machine itself,
    /// whose names in the hosts file nobody means.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        match &self.party {
            Party::Name(name) => vec![Host::Name(name.clone())],
            Party::Address(address) => vec![Host::Address(*address)],
            Party::Listed(address, names) if address.is_loopback() => [Host::Address(*address)]
                .into_iter()
                .chain(names.iter().cloned().map(Host::Name))
                .collect(),
            Party::Listed(address, names) => names
                .iter()
                .cloned()
                .map(Host::Name)
                .chain([Host::Address(*address)])
                .collect(),
            Party::Unassigned(_) => Vec::new(),
        }
    }

    /// Whether it is the origin that the gateway itself is.
    pub(crate) fn is_own(&self) -> bool {
        let is_named =
            matches!(&self.party, Party::Name(name) if name.as_str() == outgate_policy::OWN_HOST);
        is_named && matches!(self.port, 80 | 443)
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

    /// The option that lets any protocol through, for a server on this machine: what leaves
    /// it so is not looked into, and stays here.
    pub(crate) fn by_any_protocol(&self) -> Option<String> {
        let address = match &self.party {
            Party::Address(address) | Party::Listed(address, _) => address,
            Party::Name(_) | Party::Unassigned(_) => return None,
        };
        let rule = || format!("-a 'tcp://localhost:{}'", self.port);
        address.to_canonical().is_loopback().then(rule)
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
                Some(name) if !address.is_loopback() => write!(out, "{name}:{}", self.port),
                _ => write!(out, "{}", SocketAddr::new(*address, self.port)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_answers_to_its_own_names_only() {
        let address: IpAddr = "10.0.0.7".parse().unwrap();
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        let name = |text| HostName::parse(text).unwrap();
        let listed = Party::Listed(address, vec![name("db.test"), name("db")]);
        let machine = Party::Listed(loopback, vec![name("machine")]);
        for (party, named, own) in [
            (Party::Name(name("a.test")), "a.test", Some("a.test")),
            (Party::Name(name("a.test")), "b.test", None),
            (Party::Name(name("a.test")), "10.0.0.7", None),
            (Party::Name(name("a.test")), "localhost", None),
            (Party::Address(address), "10.0.0.7", Some("10.0.0.7")),
            (Party::Address(address), "10.0.0.8", None),
            (Party::Address(address), "a.test", None),
            (Party::Address(address), "localhost", None),
            (Party::Address(loopback), "localhost", Some("127.0.0.1")),
            (listed.clone(), "db.test", Some("db.test")),
            (listed.clone(), "db", Some("db")),
            (listed.clone(), "10.0.0.7", Some("10.0.0.7")),
            (listed.clone(), "other.test", None),
            (listed.clone(), "localhost", None),
            (machine.clone(), "machine", Some("machine")),
            (machine, "localhost", Some("127.0.0.1")),
            (Party::Unassigned(address), "10.0.0.7", None),
        ] {
            let destination = Destination {
                party,
                port: 80,
                address: SocketAddr::new(address, 80),
            };
            let host = destination.matching(&Host::parse(named).unwrap());
            let host = host.map(|host| host.to_string());
            assert_eq!(host.as_deref(), own, "{destination} {named}");
        }
    }
}
