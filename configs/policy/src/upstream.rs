//! Upstream proxies as people name them: URLs and the customary variables of
//! the environment to values, and which of them a connection takes. Pure; what
//! a proxy is told is an address that was vetted before, so this grants nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::host::Host;
use crate::net::Net;
use crate::rule_host::{parse_address, parse_port};
use crate::verdict::Vetted;

/// The variable that stands above all others; `none` in it forbids any proxy.
pub const UPSTREAM_PROXY: &str = "OUTGATE_UPSTREAM_PROXY";

/// Entries of `no_proxy` that are used.
const EXEMPT_MAX: usize = 256;

/// A proxy that is asked for tunnels (RFC 9110 9.3.6).
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: Host,
    port: u16,
    authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the credentials.
        write!(out, "Proxy({}:{})", self.host, self.port)
    }
}

/// Why a text names no proxy. Never shows the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyError {
    /// Another protocol than HTTP.
    Scheme(String),
    /// The authority is no host and port.
    Authority,
    /// More than an authority.
    Path,
    /// Something that no credential holds.
    Credentials,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => write!(
                out,
                "it speaks `{scheme}`; outgate speaks to `http://` proxies only"
            ),
            Self::Authority => {
                out.write_str("it names no host and port, as `http://proxy.example:3128` does")
            }
            Self::Path => out.write_str("it has a path; a proxy is a host and a port"),
            Self::Credentials => {
                out.write_str("its user or password has a control character or a wrong `%`")
            }
        }
    }
}

impl std::error::Error for ProxyError {}

impl Proxy {
    /// An address of this proxy, which needs no rule: the operator named it. `None` where
    /// it is named by another address.
    pub fn vetted(&self, address: SocketAddr) -> Option<Vetted> {
        let is_it = match &self.host {
            Host::Address(own) => *own == address.ip(),
            Host::Name(_) => true,
        };
        is_it.then(|| Vetted::of_operator(address))
    }

    /// Reads `[http://][USER[:PASSWORD]@]HOST[:PORT][/]`; without port it is 80.
    ///
    /// # Errors
    /// See [`ProxyError`]: whoever wrote it.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let rest = match text.trim().split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => {
                let known = scheme.len() <= 16 && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
                let shown = if known { scheme } else { "something else" };
                return Err(ProxyError::Scheme(shown.to_ascii_lowercase()));
            }
            None => text.trim(),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        if authority.contains(['/', '?', '#']) {
            return Err(ProxyError::Path);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, parse_port(port).ok_or(ProxyError::Authority)?)
            }
            _ => (authority, 80),
        };
        let host = Host::parse(host).map_err(|_| ProxyError::Authority)?;
        let authorization = user.map(basic).transpose()?;
        Ok(Self {
            host,
            port,
            authorization,
        })
    }

    /// Where it is.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of `Proxy-Authorization`, if it wants one (RFC 7617). Never to
    /// be shown.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }
}

/// What a connection carries, as far as proxies are chosen by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// HTTP without TLS: `http_proxy`.
    Plain,
    /// TLS: `https_proxy`.
    Tls,
    /// Anything: `https_proxy`, which is asked for tunnels too.
    Raw,
}

/// The proxies of an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    plain: Option<Proxy>,
    tls: Option<Proxy>,
    exempt: Vec<Exempt>,
}

/// Where no proxy is used.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exempt {
    Everything,
    /// A name and all below it, and the port if only that is meant.
    Name(String, Option<u16>),
    Net(Net),
}

/// A variable that names no usable proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Its name.
    pub variable: String,
    /// Why.
    pub error: ProxyError,
}

impl Proxies {
    /// One proxy for everything that leaves the machine.
    pub fn of(proxy: Proxy) -> Self {
        Self {
            plain: Some(proxy.clone()),
            tls: Some(proxy),
            exempt: Vec::new(),
        }
    }

    /// Those that the environment names: [`UPSTREAM_PROXY`] alone if it is set,
    /// else `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` in either
    /// case, small letters first. What is unusable is left out and named.
    pub fn of_environment(get: impl Fn(&str) -> Option<String>) -> (Self, Vec<Unusable>) {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let mut unusable = Vec::new();
        let mut read = |names: &[String]| {
            let (name, value) = names.iter().find_map(|name| Some((name, get(name)?)))?;
            match Proxy::parse(&value) {
                Ok(proxy) => Some(proxy),
                Err(error) => {
                    unusable.push(Unusable {
                        variable: name.clone(),
                        error,
                    });
                    None
                }
            }
        };
        if let Some(value) = get(UPSTREAM_PROXY) {
            let proxies = if value.trim() == "none" {
                None
            } else {
                read(&[UPSTREAM_PROXY.to_owned()])
            };
            return (proxies.map(Self::of).unwrap_or_default(), unusable);
        }
        let both = |name: &str| [name.to_owned(), name.to_ascii_uppercase()];
        let all = read(&both("all_proxy"));
        let plain = read(&both("http_proxy")).or_else(|| all.clone());
        let tls = read(&both("https_proxy")).or(all);
        let exempt = both("no_proxy").iter().find_map(|name| get(name));
        let exempt = exempt.as_deref().map(exempt_list).unwrap_or_default();
        let proxies = Self { plain, tls, exempt };
        (proxies, unusable)
    }

    /// The proxy for a connection to this address of a host; never one to this
    /// machine itself.
    pub fn choose(
        &self,
        carries: Carries,
        (host, port): (&Host, u16),
        address: IpAddr,
    ) -> Option<&Proxy> {
        let address = address.to_canonical();
        if address.is_loopback() || address.is_unspecified() {
            return None;
        }
        let exempt = |exempt: &Exempt| exempt.covers(host, port, address);
        if self.exempt.iter().any(exempt) {
            return None;
        }
        match carries {
            Carries::Plain => self.plain.as_ref(),
            Carries::Tls | Carries::Raw => self.tls.as_ref(),
        }
    }
}

impl Exempt {
    fn covers(&self, host: &Host, port: u16, address: IpAddr) -> bool {
        match self {
            Self::Everything => true,
            Self::Net(net) => net.contains(address),
            Self::Name(own, only) => {
                let Host::Name(name) = host else {
                    return false;
                };
                let below = name.as_str().strip_suffix(own.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                    && only.is_none_or(|only| only == port)
            }
        }
    }
}

fn exempt_list(text: &str) -> Vec<Exempt> {
    let entries = text.split([',', ' ', '\t', ';']);
    entries
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .take(EXEMPT_MAX)
        .filter_map(exempt)
        .collect()
}

fn exempt(entry: &str) -> Option<Exempt> {
    if entry == "*" {
        return Some(Exempt::Everything);
    }
    if let Some((address, prefix)) = entry.split_once('/') {
        let net = Net::new(parse_address(address)?.to_canonical(), prefix.parse().ok()?)?;
        return Some(Exempt::Net(net));
    }
    if let Some(address) = parse_address(entry) {
        return Some(Exempt::Net(Net::host(address.to_canonical())));
    }
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) => (name, Some(parse_port(port)?)),
        None => (entry, None),
    };
    if let Some(address) = parse_address(name) {
        return Some(Exempt::Net(Net::host(address.to_canonical())));
    }
    let name = name.strip_prefix('*').unwrap_or(name);
    let name = name.strip_prefix('.').unwrap_or(name);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    (!name.is_empty()).then_some(Exempt::Name(name, port))
}

/// `Basic` of a userinfo (RFC 7617 2).
fn basic(userinfo: &str) -> Result<String, ProxyError> {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let mut bytes = decoded(user)?;
    bytes.push(b':');
    bytes.extend(decoded(password)?);
    Ok(format!("Basic {}", STANDARD.encode(&bytes)))
}

/// Percent-encoded text as bytes, without controls.
fn decoded(text: &str) -> Result<Vec<u8>, ProxyError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let digit = |byte: Option<u8>| {
                let digit = char::from(byte?).to_digit(16)?;
                u8::try_from(digit).ok()
            };
            let (high, low) = (digit(rest.next()), digit(rest.next()));
            let (high, low) = high.zip(low).ok_or(ProxyError::Credentials)?;
            high << 4 | low
        } else {
            byte
        };
        if byte.is_ascii_control() {
            return Err(ProxyError::Credentials);
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).expect(text)
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port_with_credentials_or_none() {
        for (text, shown, authorization) in [
            (
                "http://proxy.example:3128",
                "Proxy(proxy.example:3128)",
                None,
            ),
            ("proxy.example:3128/", "Proxy(proxy.example:3128)", None),
            ("HTTP://Proxy.example", "Proxy(proxy.example:80)", None),
            (
                "http://[2001:db8::1]:8080",
                "Proxy([2001:db8::1]:8080)",
                None,
            ),
            ("http://[2001:db8::1]", "Proxy([2001:db8::1]:80)", None),
            ("http://10.0.0.1:1", "Proxy(10.0.0.1:1)", None),
            (
                "http://me:pw@p.example:1",
                "Proxy(p.example:1)",
                Some("Basic bWU6cHc="),
            ),
            (
                "http://me@p.example:1",
                "Proxy(p.example:1)",
                Some("Basic bWU6"),
            ),
            (
                "http://a:p%40ss%3a@p.example:1",
                "Proxy(p.example:1)",
                Some("Basic YTpwQHNzOg=="),
            ),
            (
                "http://user:p@ss@p.example:1",
                "Proxy(p.example:1)",
                Some("Basic dXNlcjpwQHNz"),
            ),
        ] {
            let proxy = Proxy::parse(text).expect(text);
            assert_eq!(format!("{proxy:?}"), shown, "{text}");
            assert_eq!(proxy.authorization(), authorization, "{text}");
        }
        for text in [
            "",
            "http://",
            "http://:3128",
            "http://p.example:0",
            "http://p.example:99999",
            "http://p.example:3128/x",
            "http://p.example?x",
            "socks5://p.example:1080",
            "https://p.example",
            "http://a:%0ab@p.example:1",
            "http://a:%zz@p.example:1",
            "http://a:%0@p.example:1",
            "http://a b.example:1",
        ] {
            let error = Proxy::parse(text).expect_err(text);
            assert!(
                !error.to_string().contains("p.example:1"),
                "{text}: {error}"
            );
        }
    }

    fn chosen(
        variables: &[(&str, &str)],
        carries: Carries,
        to: (&str, u16),
        address: &str,
    ) -> String {
        let (proxies, unusable) = Proxies::of_environment(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        let to_host = host(to.0);
        let address = address.parse().expect(address);
        let chosen = proxies.choose(carries, (&to_host, to.1), address);
        let unusable: Vec<_> = unusable.iter().map(|one| one.variable.as_str()).collect();
        let chosen = chosen.map_or("direct".to_owned(), |proxy| proxy.host().to_string());
        [vec![chosen.as_str()], unusable].concat().join(" ")
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn the_customary_variables_say_which_proxy_is_used_for_what() {
        use Carries::{Plain, Raw, Tls};
        let a = ("a.test", 443);
        for (variables, carries, to, address, expected) in [
            (&[][..], Tls, a, "192.0.2.1", "direct"),
            (
                &[("http_proxy", "h.test:1")][..],
                Plain,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (&[("http_proxy", "h.test:1")], Tls, a, "192.0.2.1", "direct"),
            (
                &[("HTTPS_PROXY", "h.test:1")],
                Tls,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("HTTPS_PROXY", "h.test:1")],
                Raw,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("HTTPS_PROXY", "h.test:1"), ("https_proxy", "i.test:1")],
                Tls,
                a,
                "192.0.2.1",
                "i.test",
            ),
            (
                &[("all_proxy", "h.test:1")],
                Plain,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("all_proxy", "socks5://h.test:1")],
                Raw,
                a,
                "192.0.2.1",
                "direct all_proxy",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "*")],
                Tls,
                a,
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "x.test, A.test")],
                Tls,
                a,
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", ".a.test")],
                Tls,
                ("b.a.test", 443),
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "*.a.test")],
                Tls,
                ("b.a.test", 443),
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "a.test")],
                Tls,
                ("ba.test", 443),
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "a.test:443")],
                Tls,
                a,
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "a.test:444")],
                Tls,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "192.0.2.0/24")],
                Tls,
                a,
                "192.0.2.1",
                "direct",
            ),
            (
                &[("all_proxy", "h.test:1"), ("no_proxy", "192.0.2.2")],
                Tls,
                a,
                "192.0.2.1",
                "h.test",
            ),
            (
                &[("all_proxy", "h.test:1")],
                Tls,
                ("localhost", 443),
                "127.0.0.1",
                "direct",
            ),
            (&[("all_proxy", "h.test:1")], Tls, a, "::1", "direct"),
            (
                &[("all_proxy", "h.test:1")],
                Tls,
                a,
                "::ffff:127.0.0.1",
                "direct",
            ),
            (
                &[
                    ("OUTGATE_UPSTREAM_PROXY", "none"),
                    ("all_proxy", "h.test:1"),
                ],
                Tls,
                a,
                "192.0.2.1",
                "direct",
            ),
            (
                &[("OUTGATE_UPSTREAM_PROXY", "o.test:1"), ("no_proxy", "*")],
                Plain,
                a,
                "192.0.2.1",
                "o.test",
            ),
            (
                &[
                    ("OUTGATE_UPSTREAM_PROXY", "ftp://o.test:1"),
                    ("all_proxy", "h.test:1"),
                ],
                Plain,
                a,
                "192.0.2.1",
                "direct OUTGATE_UPSTREAM_PROXY",
            ),
        ] {
            assert_eq!(
                chosen(variables, carries, to, address),
                expected,
                "{variables:?} {to:?}"
            );
        }
    }
}
