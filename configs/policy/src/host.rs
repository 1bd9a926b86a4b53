//! Names and addresses of hosts, and the patterns that rules match them with.
//!
//! One constructor per type; after it, comparison is plain equality and no
//! caller has to remember case, dots or spellings. Texts in, types out: this
//! file must not know what a rule allows.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::limits::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use crate::net::Net;
use crate::printable::printable;
use crate::special::{embedded_v4, never_a_destination, special_use};

/// A name of a host: lower case, A-labels (RFC 5890), no trailing dot, never
/// an address in any spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is not a host. Its words go on after `host name` or stand alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError(Cow<'static, str>);

impl fmt::Display for HostError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}

impl HostName {
    /// Makes a name from text: one trailing dot is dropped, letters become
    /// lower case, other scripts become A-labels (UTS 46, not transitional).
    ///
    /// # Errors
    /// The text is empty, too long, has an empty label or a character that no
    /// host name has, or would be read as an address by some resolver.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let name = if needs_idna(text) {
            Uts46::new()
                .to_ascii(
                    text.as_bytes(),
                    AsciiDenyList::EMPTY,
                    Hyphens::Allow,
                    DnsLength::Ignore,
                )
                .map_err(|_| {
                    fault(format!(
                        "`{}` is not a valid international name",
                        shown(text)
                    ))
                })?
                .into_owned()
        } else {
            text.to_ascii_lowercase()
        };
        check_labels(&name)?;
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The labels that somebody chose below a domain, and the domain that somebody
    /// registered (public-suffix list). Of a name above all domains, nothing and it.
    pub fn registered(&self) -> (&str, &str) {
        let domain = psl::domain(self.0.as_bytes()).map(|domain| domain.as_bytes().len());
        let start = self.0.len().saturating_sub(domain.unwrap_or(self.0.len()));
        let (below, domain) = self.0.split_at_checked(start).unwrap_or(("", &self.0));
        (below.trim_end_matches('.'), domain)
    }

    /// Whether it lies below a name under which a service hands out names to its customers
    /// (public-suffix list, private section).
    pub(crate) fn is_hosted(&self) -> bool {
        let suffix = psl::suffix(self.0.as_bytes());
        suffix.is_some_and(|suffix| suffix.typ() == Some(psl::Type::Private))
    }

    /// Whether this is `localhost` or below it, which never leaves the machine (RFC 6761 6.3).
    pub(crate) fn is_local(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A name or an address, as an authority holds it (RFC 3986 3.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address. Never an IPv4 address inside an IPv6 one.
    Address(IpAddr),
}

impl Host {
    /// Whether it is no public host by what it is called: an address of special use, as a
    /// private one or one of metadata, or a name of the machine's own.
    pub fn is_special(&self) -> bool {
        match self {
            Self::Address(address) => special_use(*address).is_some(),
            Self::Name(name) => name.is_local(),
        }
    }

    /// Makes a host from the host part of an authority; IPv6 is bracketed.
    ///
    /// # Errors
    /// The text is neither a name nor an address in the one spelling that
    /// every parser reads alike.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner
                .strip_suffix(']')
                .ok_or_else(|| fault(format!("`{}` has no closing bracket", shown(text))))?;
            return parse_v6(inner).map(|address| Self::Address(IpAddr::V6(address)));
        }
        if text.contains(':') {
            return Err(fault(format!(
                "`{0}` holds a colon; an IPv6 address is written in brackets: `[{0}]`",
                shown(text)
            )));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        HostName::parse(text).map(Self::Name)
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

/// Whether the names below a name are meant, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// They are.
    Too,
    /// They are not.
    Not,
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// Every host and address there is. No rule can be written so.
    Everything,
    /// `*`: every public host.
    Any,
    /// The word `localhost`: the name and the two literals.
    Localhost,
    /// One name.
    Exact(HostName),
    /// `*.NAME`: below the name, at any depth.
    Below(HostName),
    /// `**.NAME`: the name itself and below.
    AtOrBelow(HostName),
    /// An address or a range.
    Net(Net),
}

impl HostPattern {
    /// Whether a rule that grants covers this name, or with `below` some name below it.
    pub(crate) fn may_grant(&self, name: &HostName, below: Below) -> bool {
        let wider = |own: &HostName| below == Below::Too && (own == name || is_below(own, name));
        match self {
            Self::Exact(own) => own == name || wider(own),
            Self::Below(own) | Self::AtOrBelow(own) => {
                own == name || is_below(name, own) || wider(own)
            }
            Self::Everything | Self::Any => true,
            Self::Localhost | Self::Net(_) => false,
        }
    }

    /// Whether a rule that grants covers this name.
    pub(crate) fn grants_name(&self, name: &HostName) -> bool {
        match self {
            Self::Everything => true,
            Self::Any => !name.is_local(),
            Self::Localhost => name.as_str() == "localhost",
            Self::Exact(own) => own == name,
            Self::Below(parent) => is_below(name, parent),
            Self::AtOrBelow(parent) => name == parent || is_below(name, parent),
            Self::Net(_) => false,
        }
    }

    /// Whether a rule that grants covers this address. A special-use address
    /// needs a literal, or a range that lies within the special-use ones.
    pub(crate) fn grants_address(&self, ip: IpAddr) -> bool {
        match self {
            Self::Everything => true,
            Self::Any => special_use(ip).is_none(),
            Self::Localhost => ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST,
            Self::Net(net) => {
                net.contains(ip)
                    && !never_a_destination(ip)
                    && (special_use(ip).is_none() || net.is_special())
            }
            Self::Exact(_) | Self::Below(_) | Self::AtOrBelow(_) => false,
        }
    }

    /// Whether a rule that grants or denies by it is about no host that one with the other is
    /// not about: true only where that is plain.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let is_at_or_below = |name: &HostName, own: &HostName| name == own || is_below(name, own);
        match (self, other) {
            (_, Self::Everything) => true,
            (Self::Exact(name) | Self::Below(name) | Self::AtOrBelow(name), Self::Any) => {
                !name.is_local()
            }
            (Self::Exact(name) | Self::AtOrBelow(name), Self::Below(own)) => is_below(name, own),
            (Self::Below(name), Self::Below(own) | Self::AtOrBelow(own))
            | (Self::Exact(name) | Self::AtOrBelow(name), Self::AtOrBelow(own)) => {
                is_at_or_below(name, own)
            }
            (Self::Net(net), Self::Net(own)) => {
                own.contains(net.first())
                    && own.prefix() <= net.prefix()
                    && (own.is_special() || !net.is_special())
                    || net == own
            }
            (one, other) => one == other,
        }
    }

    /// Whether a rule that denies by it is about no host that one that grants by the other is
    /// about: true only where that is plain.
    pub(crate) fn is_apart(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(name), other) | (other, Self::Exact(name)) => {
                let is_name = matches!(other, Self::Exact(_) | Self::Below(_) | Self::AtOrBelow(_));
                is_name && !other.grants_name(name)
            }
            (Self::Below(one) | Self::AtOrBelow(one), Self::Below(two) | Self::AtOrBelow(two)) => {
                one != two && !is_below(one, two) && !is_below(two, one)
            }
            (Self::Net(one), Self::Net(two)) => {
                let is_plain = one.first().is_ipv4() && two.first().is_ipv4();
                is_plain && !one.contains(two.first()) && !two.contains(one.first())
            }
            _ => false,
        }
    }

    /// Whether a rule that denies covers this name.
    pub(crate) fn denies_name(&self, name: &HostName) -> bool {
        match self {
            Self::Everything | Self::Any => true,
            Self::Localhost => name.is_local(),
            Self::Exact(_) | Self::Below(_) | Self::AtOrBelow(_) | Self::Net(_) => {
                self.grants_name(name)
            }
        }
    }

    /// Whether a rule that denies covers this address, also when it is carried in another.
    pub(crate) fn denies_address(&self, ip: IpAddr) -> bool {
        let inner = match ip {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => embedded_v4(address).map(IpAddr::V4),
        };
        match self {
            Self::Everything | Self::Any => true,
            Self::Localhost => matches!(
                special_use(ip),
                Some("loopback" | "unspecified" | "this-network")
            ),
            Self::Net(net) => net.contains(ip) || inner.is_some_and(|inner| net.contains(inner)),
            Self::Exact(_) | Self::Below(_) | Self::AtOrBelow(_) => false,
        }
    }
}

/// A fault of a host.
fn fault(message: impl Into<Cow<'static, str>>) -> HostError {
    HostError(message.into())
}

/// A text as it may appear in a message: bounded, without control characters.
pub(crate) fn shown(text: &str) -> String {
    /// What fits a line beside what is said of it.
    const CHARACTERS_MAX: usize = 80;
    let beginning: String = text.chars().take(CHARACTERS_MAX).collect();
    let mut out = printable(&beginning);
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        out.push('…');
    }
    out
}

fn needs_idna(text: &str) -> bool {
    !text.is_ascii()
        || text.split('.').any(|label| {
            label
                .get(..4)
                .is_some_and(|head| head.eq_ignore_ascii_case("xn--"))
        })
}

fn is_below(name: &HostName, parent: &HostName) -> bool {
    name.as_str()
        .strip_suffix(parent.as_str())
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|rest| !rest.is_empty())
}

fn check_labels(name: &str) -> Result<(), HostError> {
    if name.is_empty() {
        return Err(fault("the host name is empty"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(fault(format!(
            "the host name has {} bytes, more than {NAME_BYTES_MAX}",
            name.len()
        )));
    }
    let mut last = "";
    for label in name.split('.') {
        check_label(label, name)?;
        last = label;
    }
    if looks_numeric(last) {
        return Err(fault(format!(
            "`{name}` looks like an address but is not one in its canonical spelling"
        )));
    }
    Ok(())
}

fn check_label(label: &str, name: &str) -> Result<(), HostError> {
    if label.is_empty() {
        return Err(fault(format!("`{}` has an empty label", shown(name))));
    }
    if label.len() > LABEL_BYTES_MAX {
        return Err(fault(format!(
            "a label of `{}` has {} bytes, more than {LABEL_BYTES_MAX}",
            shown(name),
            label.len()
        )));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if let Some(wrong) = label.chars().find(|c| !allowed(*c)) {
        return Err(fault(format!(
            "`{}` holds `{}`, which no host name has",
            shown(name),
            wrong.escape_debug()
        )));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(fault(format!(
            "the label `{label}` of `{name}` begins or ends with a hyphen"
        )));
    }
    Ok(())
}

/// Whether resolvers may read a name with this last label as an IPv4 address:
/// digits only, or a hexadecimal number (`127.1`, `0x7f000001`).
fn looks_numeric(label: &str) -> bool {
    let digits = label.bytes().all(|b| b.is_ascii_digit());
    let hexadecimal = label
        .strip_prefix("0x")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    digits || hexadecimal
}

/// An IPv6 address without brackets, zone or IPv4 address inside.
pub(crate) fn parse_v6(text: &str) -> Result<Ipv6Addr, HostError> {
    if text.contains('%') {
        return Err(fault(format!(
            "`[{}]` has a zone; a zone means nothing outside this machine",
            shown(text)
        )));
    }
    let address: Ipv6Addr = text
        .parse()
        .map_err(|_| fault(format!("`[{}]` is not an IPv6 address", shown(text))))?;
    match address.to_ipv4_mapped() {
        Some(inner) => Err(fault(format!(
            "`[{text}]` is the IPv4 address {inner} in disguise; write `{inner}`"
        ))),
        None => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(rows: &[(&str, Result<&str, &str>)]) {
        for (text, want) in rows {
            let found = Host::parse(text).map(|host| host.to_string());
            let found = found
                .as_ref()
                .map(String::as_str)
                .map_err(HostError::to_string);
            assert_eq!(found, want.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn what_somebody_registered_is_told_from_what_stands_below() {
        for (name, below, domain) in [
            ("a.b.example.org", "a.b", "example.org"),
            ("example.co.uk", "", "example.co.uk"),
            ("x.example.co.uk", "x", "example.co.uk"),
            ("me.github.io", "", "me.github.io"),
            ("github.io", "", "github.io"),
            ("a.evil.example", "a", "evil.example"),
            ("host", "", "host"),
        ] {
            let name = HostName::parse(name).expect("a name");
            assert_eq!(name.registered(), (below, domain), "{name}");
        }
    }

    #[test]
    fn hosts_have_one_spelling() {
        check(&[
            ("api.example.org", Ok("api.example.org")),
            ("API.Example.ORG.", Ok("api.example.org")),
            (
                "api.example.org..",
                Err("`api.example.org.` has an empty label"),
            ),
            ("_dmarc.example.org", Ok("_dmarc.example.org")),
            ("bücher.example", Ok("xn--bcher-kva.example")),
            ("XN--bcher-kva.example", Ok("xn--bcher-kva.example")),
            (
                "xn--a.example",
                Err("`xn--a.example` is not a valid international name"),
            ),
            ("a..b", Err("`a..b` has an empty label")),
            (".example.org", Err("`.example.org` has an empty label")),
            ("", Err("the host name is empty")),
            (".", Err("the host name is empty")),
            (
                "-a.example",
                Err("the label `-a` of `-a.example` begins or ends with a hyphen"),
            ),
            (
                "a b.example",
                Err("`a b.example` holds ` `, which no host name has"),
            ),
            (
                "exa%6dple.com",
                Err("`exa%6dple.com` holds `%`, which no host name has"),
            ),
            (
                "a@b.example",
                Err("`a@b.example` holds `@`, which no host name has"),
            ),
            ("192.0.2.1", Ok("192.0.2.1")),
            ("[2001:DB8:0::1]", Ok("[2001:db8::1]")),
        ]);
    }

    #[test]
    fn other_spellings_of_addresses_are_refused() {
        for text in [
            "127.1",
            "0x7f.1",
            "0177.0.0.1",
            "2130706433",
            "0x7f000001",
            "127.0.0.01",
            "1.2.3.4.5",
            "1.2.3.4.",
            "a.0x",
        ] {
            let message = Host::parse(text).expect_err(text).to_string();
            assert!(
                message.contains("looks like an address"),
                "{text}: {message}"
            );
        }
        check(&[
            (
                "[::1%25lo]",
                Err("`[::1%25lo]` has a zone; a zone means nothing outside this machine"),
            ),
            (
                "[::ffff:127.0.0.1]",
                Err(
                    "`[::ffff:127.0.0.1]` is the IPv4 address 127.0.0.1 in disguise; write `127.0.0.1`",
                ),
            ),
            ("[127.0.0.1]", Err("`[127.0.0.1]` is not an IPv6 address")),
            ("[::1", Err("`[::1` has no closing bracket")),
            (
                "::1",
                Err("`::1` holds a colon; an IPv6 address is written in brackets: `[::1]`"),
            ),
        ]);
    }

    #[test]
    fn names_are_matched_by_label() {
        let name = |text| HostName::parse(text).expect("a name");
        let below = HostPattern::Below(name("example.org"));
        let at_or_below = HostPattern::AtOrBelow(name("example.org"));
        for (text, is_below, is_at_or_below) in [
            ("a.example.org", true, true),
            ("a.b.example.org", true, true),
            ("example.org", false, true),
            ("evilexample.org", false, false),
            ("example.org.evil.test", false, false),
        ] {
            assert_eq!(below.grants_name(&name(text)), is_below, "{text}");
            assert_eq!(
                at_or_below.grants_name(&name(text)),
                is_at_or_below,
                "{text}"
            );
        }
        assert!(HostPattern::Any.grants_name(&name("example.org")));
        assert!(!HostPattern::Any.grants_name(&name("localhost")));
        assert!(!HostPattern::Any.grants_name(&name("db.localhost")));
    }

    proptest! {
        #[test]
        fn parsing_a_name_twice_changes_nothing(text in "\\PC{0,40}") {
            if let Ok(name) = HostName::parse(&text) {
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
            }
        }

        #[test]
        fn parsing_an_international_name_twice_changes_nothing(text in "[a-zA-Z0-9äßçЖ漢。.-]{1,20}") {
            if let Ok(name) = HostName::parse(&text) {
                prop_assert!(name.as_str().is_ascii());
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
            }
        }
    }
}
