//! The name that a part of multipart content has by its content-disposition (RFC 6266 4,
//! RFC 7578 4.2), where every program reads the same one. Text only.

use super::words;

/// Why a name cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclear {
    /// Programs find parameters in several places.
    Odd,
    /// It is in sections or in a character set that is not read (RFC 2231 3 and 4), which
    /// RFC 7578 4.2 knows nothing of, and some put together.
    Spread,
}

/// The value of the parameter `name`, as it is written; empty where there is none. Names of
/// files are passed over, whatever they hold, but for what some take for a name in them.
///
/// # Errors
/// Not every program finds that one.
pub(super) fn name_of(value: &[u8]) -> Result<&[u8], Unclear> {
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| !is_of_token(*byte));
    let (_, mut rest) = value
        .split_at_checked(end.unwrap_or(value.len()))
        .unwrap_or_default();
    let mut own = None;
    loop {
        rest = rest.trim_ascii_start();
        let Some(parameter) = rest.strip_prefix(b";") else {
            break;
        };
        rest = parameter.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let (name, value) = pair(rest).ok_or(Unclear::Odd)?;
        let (text, after) = value_of(value).ok_or(Unclear::Odd)?;
        rest = after;
        match name.to_ascii_lowercase().as_slice() {
            b"name" if own.is_none() => own = Some(text),
            b"name" => return Err(Unclear::Odd),
            b"name*" if words::has_plain_set(text) => return Err(Unclear::Odd),
            other if other.starts_with(b"name*") => return Err(Unclear::Spread),
            _ if words::may_name(text) => return Err(Unclear::Odd),
            _ => {}
        }
    }
    if rest.is_empty() {
        Ok(own.unwrap_or_default())
    } else {
        Err(Unclear::Odd)
    }
}

/// Whether a byte may stand in a token (RFC 9110 5.6.2).
pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The name of a parameter, and what stands behind its sign of equality.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = text.split_at_checked(memchr::memchr(b'=', text)?)?;
    let is_token = !name.is_empty() && name.iter().all(|byte| is_of_token(*byte));
    is_token.then(|| (name, value.get(1..).unwrap_or_default()))
}

/// A value, and what stands behind it: where its end is the same to those who know escapes
/// and to those who don't.
fn value_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = memchr::memchr(b';', text).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        let is_bare = memchr::memchr2(b'"', b'\\', value).is_none();
        return is_bare.then(|| (value.trim_ascii_end(), rest));
    };
    let (value, rest) = quoted.split_at_checked(memchr::memchr(b'"', quoted)?)?;
    (!value.ends_with(b"\\")).then_some((value, rest.get(1..)?))
}
