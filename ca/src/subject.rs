//! Whom a leaf certificate is for.

use std::fmt;
use std::net::IpAddr;

/// Whom a leaf certificate is for: one subject alternative name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeafSubject {
    /// A host name in lower case, as A-labels, without a final dot.
    Name(String),
    /// An IP address (an iPAddress name, RFC 5280 4.2.1.6).
    Address(IpAddr),
}

impl fmt::Display for LeafSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Address(address) => address.fmt(out),
        }
    }
}
