//! The host and ports of a rule.
//!
//! Knows wildcards, ranges, port lists and the public-suffix list; must not
//! know schemes, methods or paths. Faults carry offsets into the host text.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::effect::Effect;
use crate::host::{Host, HostName, HostPattern, parse_v6, shown};
use crate::net::{Net, Ports};
use crate::rule_error::RuleError;
use crate::special::{never_a_destination, special_use};

/// A host pattern that hands names to strangers, and what to say about it.
pub(crate) struct SuffixWarning {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// The host part of a rule.
pub(crate) struct RuleHost {
    pub(crate) pattern: HostPattern,
    pub(crate) ports: Ports,
    pub(crate) warning: Option<SuffixWarning>,
}

/// Length of the host, prefix length and ports at the start of `text`, in bytes.
pub(crate) fn host_end(text: &str) -> usize {
    let bracketed = text.starts_with('[');
    let after_bracket = if bracketed {
        text.find(']').unwrap_or(0)
    } else {
        0
    };
    let rest = text.get(after_bracket..).unwrap_or("");
    let Some(slash) = rest.find('/').map(|at| after_bracket + at) else {
        return text.len();
    };
    let host = text.get(..slash).unwrap_or("");
    let is_address = (bracketed && host.ends_with(']')) || host.parse::<Ipv4Addr>().is_ok();
    let tail = text.get(slash + 1..).unwrap_or("");
    let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
    let after_digits = tail.as_bytes().get(digits);
    if !is_address || digits == 0 || !matches!(after_digits, None | Some(b':' | b'/')) {
        return slash;
    }
    let prefix_end = slash + 1 + digits;
    let rest = text.get(prefix_end..).unwrap_or("");
    rest.find('/').map_or(text.len(), |at| prefix_end + at)
}

/// Makes a host pattern and ports from `HOST[:PORTS]`.
///
/// # Errors
/// No host, a wildcard that is none, a registry suffix, an address in another
/// than its canonical spelling or that is never a destination, bad ports.
pub(crate) fn parse(text: &str, effect: Effect) -> Result<RuleHost, RuleError> {
    let (host, ports) = split_ports(text)?;
    let ports = match ports {
        Some(list) => parse_ports(list).map_err(|error| error.shifted(host.len() + 1))?,
        None => Ports::Default,
    };
    let pattern = parse_pattern(host, effect)?;
    let warning = check_suffix(&pattern, host, effect)?;
    Ok(RuleHost {
        pattern,
        ports,
        warning,
    })
}

fn split_ports(text: &str) -> Result<(&str, Option<&str>), RuleError> {
    if let Some(inner) = text.strip_prefix('[') {
        let Some((_, after)) = inner.split_once(']') else {
            return Err(RuleError::new(
                0,
                format!("`{}` has no closing bracket", shown(text)),
                "write an IPv6 address as `[2001:db8::1]`",
            ));
        };
        return Ok(match after.rsplit_once(':') {
            Some((prefix, ports)) => {
                let end = text.len() - after.len() + prefix.len();
                (text.get(..end).unwrap_or(text), Some(ports))
            }
            None => (text, None),
        });
    }
    if text.matches(':').count() > 1 {
        return Err(RuleError::new(
            0,
            format!("`{}` has more than one colon", shown(text)),
            "write an IPv6 address in brackets: `[2001:db8::1]`, `[2001:db8::]/32`",
        ));
    }
    Ok(match text.split_once(':') {
        Some((host, ports)) => (host, Some(ports)),
        None => (text, None),
    })
}

/// Makes a set of ports from the text after the colon.
pub(crate) fn parse_ports(text: &str) -> Result<Ports, RuleError> {
    if text == "*" {
        return Ok(Ports::Any);
    }
    let mut ranges = Vec::new();
    let mut offset = 0;
    for item in text.split(',') {
        let range = match item.split_once('-') {
            Some((first, last)) => parse_port(first).zip(parse_port(last)),
            None => parse_port(item).map(|port| (port, port)),
        };
        match range {
            Some((first, last)) if first <= last => ranges.push((first, last)),
            Some((first, last)) => {
                return Err(RuleError::new(
                    offset,
                    format!("the port range `{}` ends before it begins", shown(item)),
                    format!("write `{last}-{first}`"),
                ));
            }
            None => {
                return Err(RuleError::new(
                    offset,
                    format!("`{}` is not a port from 1 to 65535", shown(item)),
                    "ports are written as `443`, `8000-8100`, `80,443` or `*`",
                ));
            }
        }
        offset += item.len() + 1;
    }
    Ok(Ports::List(ranges))
}

/// Ports to listen on: one, a range, or any. A program that asks for port 0 is given
/// any, so `0` says the same as `*`.
pub(crate) fn parse_listen_ports(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" || text == "0" {
        return Some(1..=u16::MAX);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (parse_port(first)?, parse_port(last)?);
    (first <= last).then_some(first..=last)
}

/// A port from 1 to 65535, in digits and without leading zero.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| canonical)
}

fn parse_pattern(text: &str, effect: Effect) -> Result<HostPattern, RuleError> {
    match text {
        "" => {
            return Err(RuleError::new(
                0,
                "the rule names no host",
                "write a host, or `*` for every public host",
            ));
        }
        "*" => return Ok(HostPattern::Any),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("**.") {
        return parent(rest, text, 3).map(HostPattern::AtOrBelow);
    }
    if let Some(rest) = text.strip_prefix("*.") {
        return parent(rest, text, 2).map(HostPattern::Below);
    }
    if let Some(at) = text.find('*') {
        return Err(RuleError::new(
            at,
            format!(
                "the `*` in host `{}` does not stand for whole labels",
                shown(text)
            ),
            "`*.example.org` is everything below example.org, `**.example.org` includes it",
        ));
    }
    if let Some(net) = parse_net(text, effect)? {
        return Ok(HostPattern::Net(net));
    }
    match Host::parse(text).map_err(|error| host_fault(text, &error.to_string()))? {
        Host::Name(name) if name.as_str() == "localhost" => Ok(HostPattern::Localhost),
        Host::Name(name) => Ok(HostPattern::Exact(name)),
        Host::Address(address) => {
            checked_net(Net::host(address), text, effect).map(HostPattern::Net)
        }
    }
}

fn host_fault(text: &str, message: &str) -> RuleError {
    let hint = if text.contains(',') {
        "one rule names one host; one space follows the methods: `GET,HEAD api.example.org`"
            .to_owned()
    } else if text.starts_with('[') {
        "write an IPv6 address as `[2001:db8::1]`".to_owned()
    } else if text.contains('@') {
        "a rule holds no user or password; remove everything up to `@`".to_owned()
    } else if let Some(address) = other_spelling(text) {
        format!("write `{address}`")
    } else {
        "a host is a name such as `api.example.org`, `*.example.org`, an address or a range"
            .to_owned()
    };
    RuleError::new(0, message, hint)
}

/// The address that resolvers make of a numeric host (`127.1`, `0x7f000001`).
fn other_spelling(text: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| -> Option<u32> {
        let lower = part.to_ascii_lowercase();
        match lower.strip_prefix("0x") {
            Some("") => Some(0),
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None if lower.len() > 1 && lower.starts_with('0') => {
                u32::from_str_radix(&lower, 8).ok()
            }
            None => lower.parse().ok(),
        }
    };
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 || heads.iter().any(|head| *head > 255) {
        return None;
    }
    let mut bits = 0_u32;
    for (shift, head) in [24, 16, 8].into_iter().zip(heads) {
        bits |= head << shift;
    }
    let free = 32 - 8 * u32::try_from(heads.len()).ok()?;
    let fits = free == 32 || *last < 1 << free;
    fits.then(|| Ipv4Addr::from(bits | last))
}

fn parent(rest: &str, text: &str, offset: usize) -> Result<HostName, RuleError> {
    if rest.is_empty() {
        return Err(RuleError::new(
            0,
            format!("host pattern `{text}` has no label after the wildcard"),
            "`*.example.org` matches everything below example.org",
        ));
    }
    if rest.contains('*') {
        return Err(RuleError::new(
            offset,
            format!("host pattern `{}` has more than one wildcard", shown(text)),
            "one wildcard at the front covers every depth",
        ));
    }
    match Host::parse(rest) {
        Ok(Host::Name(name)) => Ok(name),
        Ok(Host::Address(_)) => Err(RuleError::new(
            0,
            format!("there is nothing below the address in `{}`", shown(text)),
            "write a range such as `10.2.0.0/16`",
        )),
        Err(error) => Err(host_fault(rest, &error.to_string()).shifted(offset)),
    }
}

/// A range; `None` when the text has no prefix length.
fn parse_net(text: &str, effect: Effect) -> Result<Option<Net>, RuleError> {
    // Both `[fd00::]/8` and `[fd00::/8]` are in use.
    let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let (address, prefix) = match (inside.and_then(|t| t.split_once('/')), text.split_once('/')) {
        (Some((address, prefix)), _) => (format!("[{address}]"), prefix),
        (None, Some((address, prefix))) => (address.to_owned(), prefix),
        (None, None) => return Ok(None),
    };
    let ip = match Host::parse(&address) {
        Ok(Host::Address(ip)) => ip,
        Ok(Host::Name(_)) => {
            return Err(RuleError::new(
                0,
                format!("`{}` has a prefix length but is no address", shown(text)),
                "a range looks like `10.2.0.0/16`",
            ));
        }
        Err(error) => return Err(host_fault(&address, &error.to_string())),
    };
    let net = parse_port(prefix)
        .or((prefix == "0").then_some(0))
        .and_then(|bits| u8::try_from(bits).ok())
        .and_then(|bits| Net::new(ip, bits));
    let Some(net) = net else {
        return Err(RuleError::new(
            address.len() + 1,
            format!(
                "`/{}` is not a prefix length of this kind of address",
                shown(prefix)
            ),
            "IPv4 has prefix lengths up to 32, IPv6 up to 128",
        ));
    };
    if net.first() != ip {
        return Err(RuleError::new(
            0,
            format!("`{}` has bits set behind its prefix", shown(text)),
            format!("the range that holds it is `{net}`"),
        ));
    }
    checked_net(net, text, effect).map(Some)
}

/// Refuses what can never be a destination, and ranges of everything.
fn checked_net(net: Net, text: &str, effect: Effect) -> Result<Net, RuleError> {
    if effect == Effect::Deny {
        return Ok(net);
    }
    if net.prefix() == 0 {
        return Err(RuleError::new(
            0,
            format!("the range `{}` is every address", shown(text)),
            "`*` is every public host; name special ranges one by one",
        ));
    }
    if never_a_destination(net.first()) && (net.is_host() || net.is_special()) {
        let class = special_use(net.first()).unwrap_or("special");
        return Err(RuleError::new(
            0,
            format!(
                "a rule for `{}` can never match: the address is {class}",
                shown(text)
            ),
            "write the address the server listens on",
        ));
    }
    Ok(net)
}

/// Refuses wildcards over registry suffixes, warns of those over hosting suffixes.
fn check_suffix(
    pattern: &HostPattern,
    text: &str,
    effect: Effect,
) -> Result<Option<SuffixWarning>, RuleError> {
    let (HostPattern::Below(parent) | HostPattern::AtOrBelow(parent)) = pattern else {
        return Ok(None);
    };
    if effect == Effect::Deny {
        return Ok(None);
    }
    let name = parent.as_str();
    let Some(suffix) = psl::suffix(name.as_bytes()) else {
        return Ok(None);
    };
    if suffix.as_bytes().len() != name.len() {
        return Ok(None);
    }
    match suffix.typ() {
        Some(psl::Type::Icann) => Err(RuleError::new(
            0,
            format!("`{text}` covers everybody who registers a name under `{name}`"),
            format!("name the organisation: `*.example.{name}`; `*` alone is every public host"),
        )),
        Some(psl::Type::Private) => Ok(Some(SuffixWarning {
            message: format!("`{text}` covers every customer of `{name}`, not one organisation"),
            hint: format!("name the host: `mine.{name}`"),
        })),
        None => Ok(None),
    }
}

/// An address as it stands in lists: `10.0.0.0/8`, `192.0.2.1`, `[fd00::]/8` or `fd00::/8`.
pub(crate) fn parse_range(text: &str) -> Result<Net, RuleError> {
    let bare = text.split('/').next().unwrap_or(text);
    let bracketed = if parse_v6(bare).is_ok() {
        text.replacen(bare, &format!("[{bare}]"), 1)
    } else {
        text.to_owned()
    };
    if let Some(net) = parse_net(&bracketed, Effect::Allow)? {
        return Ok(net);
    }
    match Host::parse(&bracketed) {
        Ok(Host::Address(ip)) => checked_net(Net::host(ip), text, Effect::Allow),
        Ok(Host::Name(_)) => Err(RuleError::new(
            0,
            format!("`{}` is not an address or a range", shown(text)),
            "a range looks like `10.2.0.0/16`",
        )),
        Err(error) => Err(host_fault(&bracketed, &error.to_string())),
    }
}

/// An address without port, `None` when it is not canonical.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    match inner {
        Some(inner) => parse_v6(inner).ok().map(IpAddr::V6),
        None => text
            .parse::<Ipv4Addr>()
            .map(IpAddr::V4)
            .ok()
            .or_else(|| parse_v6(text).ok().map(IpAddr::V6)),
    }
}
