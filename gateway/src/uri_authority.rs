//! `uri-host [ ":" port ]` (RFC 9110 4.2, RFC 3986 3.2) as requests and ClientHellos
//! name it. Reads only.

use outgate_policy::{Host, HostName};

use crate::malformed::Malformed;

/// An authority as a request spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriAuthority {
    pub(crate) host: Host,
    pub(crate) port: Option<u16>,
}

/// The host of an authority in a field that is not `Host`.
pub(crate) fn named_host(text: &str) -> Option<Host> {
    parse_authority(text).ok().map(|named| named.host)
}

/// The host and the port of one.
pub(crate) fn named_authority(text: &str) -> Option<(Host, Option<u16>)> {
    let named = parse_authority(text).ok()?;
    Some((named.host, named.port))
}

/// `uri-host [ ":" port ]` (RFC 9110 4.2), port 1 to 65535 in plain digits.
pub(crate) fn parse_authority(text: &str) -> Result<UriAuthority, Malformed> {
    let host_end = match text.strip_prefix('[') {
        Some(_) => text.find(']').map(|end| end + 1),
        None => Some(text.find(':').unwrap_or(text.len())),
    };
    let Some((host, rest)) = host_end.and_then(|end| text.split_at_checked(end)) else {
        return Err(Malformed::bad("Host holds an unclosed bracket"));
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return Err(Malformed::bad("Host holds more than a host and a port")),
        Some(digits) => Some(parse_port(digits)?),
    };
    let host = match Host::parse(host) {
        Ok(host) => host,
        Err(error) => return Err(Malformed::bad(&format!("Host: {error}"))),
    };
    // Labels must be spelled in ASCII: nobody may hear another name than we do.
    if !text.is_ascii() {
        return Err(Malformed::bad("Host is not ASCII"));
    }
    Ok(UriAuthority { host, port })
}

fn parse_port(digits: &str) -> Result<u16, Malformed> {
    let plain = digits.len() <= 5
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    match digits.parse::<u16>() {
        Ok(port) if plain => Ok(port),
        _ => Err(Malformed::bad("Host holds no port between 1 and 65535")),
    }
}

/// The name a ClientHello gives, if it is a name at all.
pub(crate) fn server_name(text: &str) -> Option<Host> {
    let name = HostName::parse(text).ok()?;
    name.as_str()
        .eq_ignore_ascii_case(text)
        .then_some(Host::Name(name))
}
