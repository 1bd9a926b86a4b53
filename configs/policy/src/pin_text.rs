//! A pin as it is written: a host, perhaps with a port, and where it leads. Text
//! to values; what a pin means is decided elsewhere.

use crate::host::{Host, HostName, shown};
use crate::policy::PinTarget;
use crate::rule_host::{parse_address, parse_port};
use crate::special::{never_a_destination, special_use};

pub(crate) fn parse_pin_host(
    text: &str,
) -> Result<(HostName, Option<u16>), (String, Option<String>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port = match port.map(|text| (text, parse_port(text))) {
        None => None,
        Some((_, Some(port))) => Some(port),
        Some((text, None)) => {
            return Err((
                format!("`{}` is not a port from 1 to 65535", shown(text)),
                Some("leave the port away to pin all of them".to_owned()),
            ));
        }
    };
    match Host::parse(host) {
        Ok(Host::Name(name)) => Ok((name, port)),
        Ok(Host::Address(_)) => Err((
            format!("`{}` is an address; only names are pinned", shown(host)),
            Some("allow the address itself with a rule".to_owned()),
        )),
        Err(error) => Err((
            error.to_string(),
            Some("a pin names one host, such as `api.example.org`".to_owned()),
        )),
    }
}

pub(crate) fn parse_pin_address(text: &str) -> Result<PinTarget, (String, String)> {
    let hint = "write `192.0.2.7`, `192.0.2.7:8443` or `[2001:db8::7]:8443`".to_owned();
    let (address, port) = match text.rsplit_once(':') {
        Some((address, port)) if parse_address(text).is_none() => (address, Some(port)),
        _ => (text, None),
    };
    let Some(ip) = parse_address(address) else {
        return Err((format!("`{}` is not an address", shown(address)), hint));
    };
    if never_a_destination(ip) {
        let class = special_use(ip).unwrap_or("special");
        return Err((
            format!("`{address}` is never a destination: the address is {class}"),
            hint,
        ));
    }
    match port.map(|text| (text, parse_port(text))) {
        None => Ok(PinTarget {
            address: ip,
            port: None,
        }),
        Some((_, Some(port))) => Ok(PinTarget {
            address: ip,
            port: Some(port),
        }),
        Some((text, None)) => Err((
            format!("`{}` is not a port from 1 to 65535", shown(text)),
            hint,
        )),
    }
}
