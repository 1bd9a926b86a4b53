//! The operator's hosts(5) file, read once at the start. Its entries are pins:
//! a connection to a listed address is judged as one of its names. Loopback
//! entries of the machine's own names are left out: those addresses are
//! judged as what they are.

use std::collections::HashMap;
use std::net::IpAddr;

use outgate_policy::HostName;

use crate::limits;

/// The entries, both ways. Empty where the file is absent.
#[derive(Debug, Default)]
pub(crate) struct HostsFile {
    addresses: HashMap<HostName, Vec<IpAddr>>,
    names: HashMap<IpAddr, Vec<HostName>>,
}

impl HostsFile {
    /// Reads the lines that make sense and skips the others, as resolvers do.
    pub(crate) fn parse(text: &str) -> Self {
        let mut hosts = Self::default();
        for line in text.lines().take(limits::HOSTS_LINES_MAX) {
            let entry = line.split('#').next().unwrap_or_default();
            let mut words = entry.split_ascii_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
                continue;
            };
            for name in words.filter_map(|word| HostName::parse(word).ok()) {
                hosts.add(address.to_canonical(), name);
            }
        }
        hosts
    }

    fn add(&mut self, address: IpAddr, name: HostName) {
        if is_loopback_name(&name) {
            return;
        }
        let addresses = self.addresses.entry(name.clone()).or_default();
        if addresses.len() < limits::RESOLVED_ADDRESSES_MAX && !addresses.contains(&address) {
            addresses.push(address);
        }
        let names = self.names.entry(address).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// The addresses of a name, in the file's order.
    pub(crate) fn addresses(&self, name: &HostName) -> &[IpAddr] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of an address, in the file's order.
    pub(crate) fn names(&self, address: IpAddr) -> &[HostName] {
        self.names.get(&address).map_or(&[], Vec::as_slice)
    }
}

/// Names that mean the machine itself on every machine (RFC 6761 6.3 and what
/// distributions write beside it).
fn is_loopback_name(name: &HostName) -> bool {
    const NAMES: [&str; 13] = [
        "localhost",
        "localhost.localdomain",
        "localhost4",
        "localhost4.localdomain4",
        "localhost6",
        "localhost6.localdomain6",
        "ip6-localhost",
        "ip6-loopback",
        "ip6-localnet",
        "ip6-mcastprefix",
        "ip6-allhosts",
        "ip6-allnodes",
        "ip6-allrouters",
    ];
    let text = name.as_str();
    NAMES.contains(&text) || text.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_both_ways_and_loopback_names_are_left_out() {
        let hosts = HostsFile::parse(
            "127.0.0.1 localhost\n::1 ip6-localhost ip6-loopback\n\
             10.0.0.7 Db.Example.org db # comment\nnonsense\n192.0.2.1\n\
             10.0.0.8 db.example.org\n999.1.1.1 bad.example.org\n\
             10.0.0.9 ip6-gate.example.org localhost4.example.org\n",
        );
        let name = HostName::parse("db.example.org").unwrap();
        let first: IpAddr = "10.0.0.7".parse().unwrap();
        let second: IpAddr = "10.0.0.8".parse().unwrap();
        assert_eq!(hosts.addresses(&name), [first, second]);
        assert_eq!(hosts.names(first).len(), 2);
        assert!(hosts.names("127.0.0.1".parse().unwrap()).is_empty());
        assert!(hosts.names("::1".parse().unwrap()).is_empty());
        for own in ["ip6-gate.example.org", "localhost4.example.org"] {
            let own = HostName::parse(own).unwrap();
            assert_eq!(hosts.addresses(&own).len(), 1, "{own}");
        }
        let bad = HostName::parse("bad.example.org").unwrap();
        assert!(hosts.addresses(&bad).is_empty());
    }
}
