//! Special-use addresses.

use std::net::IpAddr;

/// The class of an address that is not a public unicast one.
pub fn special_use(_ip: IpAddr) -> Option<&'static str> {
    todo!()
}
