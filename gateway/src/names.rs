//! Synthetic addresses: which address of 198.18.0.0/15 (RFC 2544) stands for
//! which name in one sandbox. Deterministic, so that a run repeated gives the
//! same addresses; bounded; never resolved.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use outgate_policy::HostName;
use sha2::{Digest, Sha256};

use crate::limits;

/// First address of the range, as a number.
const BASE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Addresses of the range, in bits.
const RANGE_BITS: u32 = 17;
const OFFSET_MASK: u32 = (1 << RANGE_BITS) - 1;

/// The names of one sandbox and their addresses.
#[derive(Debug)]
pub(crate) struct NameTable {
    salt: String,
    offsets: HashMap<HostName, u32>,
    names: HashMap<u32, HostName>,
    asked: HashSet<u32>,
    names_max: usize,
}

impl NameTable {
    /// A table for at most `names_max` names, never more than
    /// [`limits::NAMES_MAX`].
    pub(crate) fn new(sandbox: &str, names_max: usize) -> Self {
        Self {
            names_max: names_max.min(limits::NAMES_MAX),
            salt: sandbox.to_owned(),
            offsets: HashMap::new(),
            names: HashMap::new(),
            asked: HashSet::new(),
        }
    }

    /// The address that stands for a name; `None` when the table is full.
    pub(crate) fn assign(&mut self, name: &HostName) -> Option<Ipv4Addr> {
        if let Some(offset) = self.offsets.get(name) {
            return Some(address(*offset));
        }
        if self.names.len() >= self.names_max {
            return None;
        }
        let mut offset = first_offset(&self.salt, name);
        // At most a quarter of the range is taken, so a free one follows soon.
        while offset == 0 || offset == OFFSET_MASK || self.names.contains_key(&offset) {
            offset = offset.wrapping_add(1) & OFFSET_MASK;
        }
        self.names.insert(offset, name.clone());
        self.offsets.insert(name.clone(), offset);
        Some(address(offset))
    }

    /// Whether the command asks for the name for the first time. Names that
    /// rules mention have an address before anybody asks.
    pub(crate) fn is_news(&mut self, address: Ipv4Addr) -> bool {
        self.asked.insert(u32::from(address) ^ BASE)
    }

    /// The name an address stands for.
    pub(crate) fn name(&self, address: Ipv4Addr) -> Option<&HostName> {
        self.names.get(&(u32::from(address) ^ BASE))
    }
}

/// Whether an address is one that may stand for a name.
pub(crate) fn is_synthetic(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => u32::from(address) & !OFFSET_MASK == BASE,
        IpAddr::V6(_) => false,
    }
}

fn address(offset: u32) -> Ipv4Addr {
    Ipv4Addr::from(BASE | offset)
}

fn first_offset(salt: &str, name: &HostName) -> u32 {
    let mut hash = Sha256::new();
    hash.update(salt.as_bytes());
    hash.update([0]);
    hash.update(name.as_str().as_bytes());
    let digest = hash.finalize();
    digest
        .first_chunk::<4>()
        .map_or(1, |bytes| u32::from_be_bytes(*bytes))
        & OFFSET_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn a_name_keeps_its_address_and_the_address_its_name() {
        let mut table = NameTable::new("s", limits::NAMES_MAX);
        let first = table.assign(&name("a.example.org")).unwrap();
        assert_eq!(table.assign(&name("a.example.org")), Some(first));
        assert_eq!(table.name(first), Some(&name("a.example.org")));
        assert!(is_synthetic(IpAddr::V4(first)));
        assert_eq!(
            NameTable::new("s", limits::NAMES_MAX).assign(&name("a.example.org")),
            Some(first)
        );
        assert_ne!(
            NameTable::new("t", limits::NAMES_MAX).assign(&name("a.example.org")),
            Some(first)
        );
    }

    #[test]
    fn addresses_outside_the_range_stand_for_nothing() {
        let table = NameTable::new("s", limits::NAMES_MAX);
        for text in [
            "198.17.255.255",
            "198.20.0.0",
            "127.0.0.1",
            "::1",
            "198.18.0.1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(is_synthetic(address), text == "198.18.0.1", "{text}");
            if let IpAddr::V4(address) = address {
                assert_eq!(table.name(address), None, "{text}");
            }
        }
    }

    #[test]
    fn a_full_table_assigns_no_more_and_keeps_all_distinct() {
        let mut table = NameTable::new("s", limits::NAMES_MAX);
        let mut seen = HashSet::new();
        for number in 0..limits::NAMES_MAX {
            assert!(
                seen.insert(
                    table
                        .assign(&name(&format!("h{number}.example.org")))
                        .unwrap()
                )
            );
        }
        assert_eq!(table.assign(&name("one-more.example.org")), None);
        assert!(table.assign(&name("h7.example.org")).is_some());
    }
}
