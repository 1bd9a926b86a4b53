//! Names and addresses of hosts.
//!
//! One constructor per type; after it, comparison is plain equality.

use std::fmt;
use std::net::IpAddr;

/// A name of a host: lower case, A-labels, no trailing dot, never an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is not a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError(String);

impl fmt::Display for HostError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}

impl HostName {
    /// Makes a name from text.
    ///
    /// # Errors
    /// The text is empty, too long, an address in any spelling, or not a name.
    pub fn parse(_text: &str) -> Result<Self, HostError> {
        todo!()
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A name or an address, as an authority holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// A canonical address.
    Address(IpAddr),
}

impl Host {
    /// Makes a host from the host part of an authority; IPv6 is bracketed.
    ///
    /// # Errors
    /// The text is neither a name nor an address in its canonical spelling.
    pub fn parse(_text: &str) -> Result<Self, HostError> {
        todo!()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(out),
            Self::Address(IpAddr::V4(address)) => address.fmt(out),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}
