//! The addresses of requests within another one: what they name, and which target that is.
//! Pure.

use http::Method;
use outgate_policy::RequestTarget;

use super::batches::takes_batches;
use super::second;
use crate::target::Target;
use crate::uri_authority::named_authority;

/// Whether the path of a request says that it takes batches.
pub(super) fn is_for_batches(target: &Target) -> bool {
    let path = target.resource.as_str().split('?').next();
    path.is_some_and(takes_batches)
}

/// The request that an item is to the host that it names.
pub(super) fn other(target: &Target, to: &Target, of: &str) -> Option<Target> {
    let (authority, _) = whole(of)?;
    let (host, port) = named_authority(authority)?;
    let scheme = second::absolute(of).map_or(target.scheme, |(scheme, _, _)| scheme);
    Some(Target {
        host,
        port: port.unwrap_or(scheme.default_port()),
        scheme,
        ..to.clone()
    })
}

/// The authority of a whole URL (RFC 3986 3), and what stands behind it. An address with one
/// in its query is none.
pub(super) fn whole(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.bytes().all(is_sign) {
        return None;
    }
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    rest.split_at_checked(end)
}

/// An address as parsers of WHATWG URL 4.4 take it: without blanks around it, without tabs and
/// ends of lines, and without a scheme that no authority follows.
pub(super) fn cleaned(text: &str) -> String {
    let is_blank = |sign: char| sign <= ' ';
    let text = text.trim_matches(is_blank).replace(['\t', '\n', '\r'], "");
    let scheme = text.split_once(':').filter(|(scheme, rest)| {
        let is_own = |own: &&str| scheme.eq_ignore_ascii_case(own);
        ["http", "https"].iter().any(is_own) && !rest.starts_with("//")
    });
    match scheme {
        Some((_, rest)) => rest.to_owned(),
        None => text,
    }
}

/// What a request in a batch is about: a path, one relative to that of the batch (RFC 3986
/// 5.2.2), or a whole URL, of which the path counts.
pub(super) fn inner(target: &Target, method: &str, text: &str) -> Option<Target> {
    let text = &*cleaned(text);
    let path = match whole(text) {
        Some((_, "")) => "/".to_owned(),
        Some((_, path)) if path.starts_with('/') => path.to_owned(),
        Some((_, rest)) => format!("/{rest}"),
        None if text.starts_with('/') => text.to_owned(),
        None => {
            let own = target.resource.as_str();
            let own = own.split('?').next().unwrap_or_default();
            if text.is_empty() || text.starts_with('?') {
                format!("{own}{text}")
            } else {
                format!("{}/{text}", own.get(..own.rfind('/')?)?)
            }
        }
    };
    Some(Target {
        method: Method::from_bytes(method.trim().to_ascii_uppercase().as_bytes()).ok()?,
        resource: RequestTarget::parse(&path).ok()?,
        ..target.clone()
    })
}
