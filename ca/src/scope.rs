//! Whom an authority may vouch for, as its certificate says (name constraints,
//! RFC 5280 4.2.1.10). Clients hold it to that; so it issues nothing beyond.

use std::fmt;
use std::net::IpAddr;

use x509_parser::extensions::{GeneralName, GeneralSubtree, NameConstraints};

use crate::subject::LeafSubject;

/// A set of names or of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameTree {
    /// A domain with all below it; with a leading dot only what is below.
    Domain(String),
    /// Addresses that agree with the first where the second has ones. Both
    /// have the length of an address.
    Block(Vec<u8>, Vec<u8>),
}

impl NameTree {
    fn of(subtree: &GeneralSubtree<'_>) -> Option<Self> {
        match &subtree.base {
            GeneralName::DNSName(domain) => Some(Self::Domain(domain.to_ascii_lowercase())),
            GeneralName::IPAddress(bytes) if [8, 32].contains(&bytes.len()) => {
                let (address, mask) = bytes.split_at_checked(bytes.len() / 2)?;
                Some(Self::Block(address.to_vec(), mask.to_vec()))
            }
            _ => None,
        }
    }

    /// Whether a subject is of the kind that this is about.
    fn concerns(&self, subject: &LeafSubject) -> bool {
        match (self, subject) {
            (Self::Domain(_), LeafSubject::Name(_)) => true,
            (Self::Block(address, _), LeafSubject::Address(own)) => {
                address.len() == octets(*own).len()
            }
            (Self::Domain(_), LeafSubject::Address(_))
            | (Self::Block(..), LeafSubject::Name(_)) => false,
        }
    }

    fn holds(&self, subject: &LeafSubject) -> bool {
        match (self, subject) {
            (Self::Domain(domain), LeafSubject::Name(name)) => {
                let below = domain.strip_prefix('.').unwrap_or(domain);
                let rest = name.strip_suffix(below);
                domain.is_empty()
                    || rest.is_some_and(|rest| {
                        rest.ends_with('.') || (rest.is_empty() && below == domain)
                    })
            }
            (Self::Block(address, mask), LeafSubject::Address(own)) => {
                let own = octets(*own);
                let all = own.iter().zip(address).zip(mask);
                own.len() == address.len()
                    && all.fold(true, |same, ((own, block), mask)| {
                        same && own & mask == block & mask
                    })
            }
            (Self::Domain(_), LeafSubject::Address(_))
            | (Self::Block(..), LeafSubject::Name(_)) => false,
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl fmt::Display for NameTree {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(domain) => out.write_str(domain),
            Self::Block(address, mask) => {
                let prefix: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
                let four = <[u8; 4]>::try_from(address.as_slice()).map(IpAddr::from);
                let six = <[u8; 16]>::try_from(address.as_slice()).map(IpAddr::from);
                match four.or(six) {
                    Ok(address) => write!(out, "{address}/{prefix}"),
                    Err(_) => out.write_str("addresses"),
                }
            }
        }
    }
}

/// See the head of this file. The default one is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateScope {
    permitted: Vec<NameTree>,
    excluded: Vec<NameTree>,
}

impl CertificateScope {
    /// What a certificate says.
    pub(crate) fn of(constraints: &NameConstraints<'_>) -> Self {
        let trees = |list: &Option<Vec<GeneralSubtree<'_>>>| {
            let list = list.iter().flatten();
            list.filter_map(NameTree::of).collect()
        };
        Self {
            permitted: trees(&constraints.permitted_subtrees),
            excluded: trees(&constraints.excluded_subtrees),
        }
    }

    /// Whether clients believe a certificate for this subject. A kind of name
    /// that nothing is permitted of is free (RFC 5280 4.2.1.10).
    pub fn permits(&self, subject: &LeafSubject) -> bool {
        let mut concerned = self.permitted.iter().filter(|tree| tree.concerns(subject));
        let free = concerned.clone().next().is_none();
        let permitted = free || concerned.any(|tree| tree.holds(subject));
        permitted && !self.excluded.iter().any(|tree| tree.holds(subject))
    }

    /// The domains and blocks that are permitted, in words; none means that
    /// every name is.
    pub fn permitted(&self) -> Vec<String> {
        self.permitted.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_beyond_are_not_permitted() {
        let block = |address: &str, mask: &str| {
            let parse = |text: &str| octets(text.parse().unwrap());
            NameTree::Block(parse(address), parse(mask))
        };
        let scope = CertificateScope {
            permitted: vec![
                NameTree::Domain("example.org".to_owned()),
                NameTree::Domain(".below.test".to_owned()),
                block("10.2.0.0", "255.255.0.0"),
            ],
            excluded: vec![
                NameTree::Domain("secret.example.org".to_owned()),
                block("::", "::"),
            ],
        };
        for (name, permitted) in [
            ("example.org", true),
            ("a.b.example.org", true),
            ("notexample.org", false),
            ("example.org.test", false),
            ("org", false),
            ("secret.example.org", false),
            ("a.secret.example.org", false),
            ("below.test", false),
            ("a.below.test", true),
        ] {
            let subject = LeafSubject::Name(name.to_owned());
            assert_eq!(scope.permits(&subject), permitted, "{name}");
        }
        for (address, permitted) in [
            ("10.2.3.4", true),
            ("10.3.0.1", false),
            ("::1", false),
            ("2001:db8::1", false),
        ] {
            let subject = LeafSubject::Address(address.parse().unwrap());
            assert_eq!(scope.permits(&subject), permitted, "{address}");
            assert!(CertificateScope::default().permits(&subject));
        }
        let shown = ["example.org", ".below.test", "10.2.0.0/16"];
        assert_eq!(scope.permitted(), shown);
    }
}
