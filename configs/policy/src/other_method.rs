//! Another method than that of the request, for which its query asks: `_method` of Rails,
//! Laravel, Symfony and the middleware of Express, and keys of others with such a word.
//! Where rules tell methods apart, what is asked for needs to be allowed too. One test for
//! what a gateway refuses and for what `outgate why` answers; of rules it knows whether
//! they would allow a method.

use std::fmt;

use crate::path::RequestTarget;
use crate::query::QueryKey;

/// The key that means nothing else, as it is mostly written.
pub const METHOD_KEY: &str = "_method";

/// Methods that rules may tell from each other, and one that no rule names.
const TOLD_APART: [&str; 7] = ["PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS", "OTHER"];

/// Methods that a key with another meaning would hardly have for its value: RFC 9110 9.3,
/// RFC 5789, RFC 4918 9, and what caches take.
const METHODS: [&str; 15] = [
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "UNLOCK",
];

/// Longest method that is judged as one, in bytes: the longest known has 17.
const METHOD_BYTES_MAX: usize = 17;

/// Whether a value is a method, by itself.
pub fn is_method_name(value: &str) -> bool {
    let value = value.trim();
    METHODS
        .iter()
        .any(|method| value.eq_ignore_ascii_case(method))
}

/// The keys that ask for another method.
#[derive(Debug, Clone)]
pub struct MethodKeys {
    /// [`METHOD_KEY`], which means nothing else.
    pub own: QueryKey,
    /// Every other one with such a word in it: it counts where its value is a method.
    pub others: QueryKey,
}

impl MethodKeys {
    /// All of them.
    #[expect(clippy::new_without_default, reason = "no value is usual here")]
    pub fn new() -> Self {
        Self {
            own: QueryKey::new(METHOD_KEY),
            others: QueryKey::holding(&["method", "verb"]),
        }
    }
}

/// What a value of a key for the method asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedFor {
    /// A method, in capitals.
    Method(String),
    /// Something that is no method.
    NoMethod,
}

impl fmt::Display for AskedFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Method(method) => method,
            Self::NoMethod => "something that is no method",
        })
    }
}

/// What the query of a request asks for though no rule allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherMethod {
    by: &'static str,
    /// What it is.
    pub what: AskedFor,
}

impl fmt::Display for OtherMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, what } = self;
        let why = "which the rules do not allow";
        write!(out, "{by} in the query asks for {what}, {why}")
    }
}

/// Whether it matters by which method a request is made, to rules that would allow it by
/// some methods.
pub fn tells_methods_apart(allows: &dyn Fn(&str) -> bool) -> bool {
    !TOLD_APART.iter().all(|method| allows(method))
}

/// Whether a request with the method `own`, to rules that would allow it by some methods,
/// may hold this value of a key for the method.
///
/// # Errors
/// What it asks for that the rules do not allow.
pub fn check_method(value: &str, own: &str, allows: &dyn Fn(&str) -> bool) -> Result<(), AskedFor> {
    let method = value.trim().to_ascii_uppercase();
    let is_method = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
    if method.len() <= METHOD_BYTES_MAX && method.bytes().all(is_method) {
        if method == own || allows(&method) {
            Ok(())
        } else {
            Err(AskedFor::Method(method))
        }
    } else if tells_methods_apart(allows) {
        Err(AskedFor::NoMethod)
    } else {
        Ok(())
    }
}

/// Whether the query of a request asks for no method that the rules do not allow.
///
/// # Errors
/// It does.
pub fn check_query(
    target: &RequestTarget,
    own: &str,
    allows: &dyn Fn(&str) -> bool,
) -> Result<(), OtherMethod> {
    let text = target.as_str();
    // All spellings of the keys have a sign of these.
    let is_coded = text
        .bytes()
        .any(|byte| matches!(byte, b'%' | b'#') || !byte.is_ascii());
    let lower = text.to_ascii_lowercase();
    if !is_coded && !lower.contains("method") && !lower.contains("verb") {
        return Ok(());
    }
    let keys = MethodKeys::new();
    let judge = |by, value: &String| {
        check_method(value, own, allows).map_err(|what| OtherMethod { by, what })
    };
    let own_values = keys.own.values_in(target);
    own_values
        .iter()
        .try_for_each(|value| judge("`_method`", value))?;
    let others = keys.others.values_in(target);
    let mut others = others.iter().filter(|value| is_method_name(value));
    others.try_for_each(|value| judge("a key for the method", value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_a_method_in_every_reading() {
        let only_post = |method: &str| method == "POST";
        for (target, asked) in [
            ("/x", None),
            ("/x?a=1&_method=POST", None),
            (
                "/x?_method=DELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x?_method=version-control",
                Some("`_method` in the query asks for VERSION-CONTROL"),
            ),
            (
                "/x?_METHOD%5B%5D=de%6cete",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x?_method=1",
                Some("`_method` in the query asks for something that is no method"),
            ),
            (
                "/x%3F_method=DELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x%253F_method=DELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x&_method=DELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x;_method=DELETE/y",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x?a=1%26_method=DELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x?a=1%2526_method%253DDELETE",
                Some("`_method` in the query asks for DELETE"),
            ),
            (
                "/x?x-http-verb=put",
                Some("a key for the method in the query asks for PUT"),
            ),
            (
                "/x%3Fverb=put",
                Some("a key for the method in the query asks for PUT"),
            ),
            ("/x?payment_method=card", None),
            ("/method/x?a=http%3A%2F%2Fx%3Fmethod%3Dfast", None),
        ] {
            let parsed = RequestTarget::parse(target).expect(target);
            let found = check_query(&parsed, "POST", &only_post).err();
            let words = found.map(|found| found.to_string());
            let wanted = asked.map(|asked| format!("{asked}, which the rules do not allow"));
            assert_eq!(words, wanted, "{target}");
            assert_eq!(check_query(&parsed, "POST", &|_| true), Ok(()), "{target}");
        }
    }
}
