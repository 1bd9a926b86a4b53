//! Another method than that of the request, for which its query asks: `_method` of Rails,
//! Laravel, Symfony and the middleware of Express, and keys of others with such a word.
//! Where rules tell methods apart, what is asked for needs to be allowed too, and to be
//! scanned no more strictly and counted by no other budget than the request that asks. One
//! test for what a gateway refuses and for what `outgate why` answers; of rules it knows
//! what they say of a method.

use std::collections::BTreeSet;
use std::fmt;

use crate::path::RequestTarget;
use crate::query::QueryKey;
use crate::verdict::Verdict;

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

/// All others of the registry (RFC 9110 16.1.1). Words that forms of another meaning have
/// for values are among them.
const OTHER_METHODS: [&str; 26] = [
    "ACL",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "CONNECT",
    "LABEL",
    "LINK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "ORDERPATCH",
    "PRI",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
];

/// Longest method that is judged as one, in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// What keys hold that have no other meaning.
const TUNNELS: [&str; 17] = [
    "http-method",
    "http_method",
    "httpmethod",
    "http-verb",
    "http_verb",
    "httpverb",
    "x-method",
    "x_method",
    "method-override",
    "method_override",
    "methodoverride",
    "override-method",
    "override_method",
    "verb-override",
    "verb_override",
    "tunneled-method",
    "rest-method",
];

/// Whether a value is a method, by itself.
pub fn is_method_name(value: &str) -> bool {
    let value = value.trim();
    METHODS
        .iter()
        .any(|method| value.eq_ignore_ascii_case(method))
}

/// Whether it is any method that is known, as the value of a key that means nothing else.
pub fn is_known_method(value: &str) -> bool {
    let value = value.trim();
    let mut others = OTHER_METHODS.iter();
    is_method_name(value) || others.any(|method| value.eq_ignore_ascii_case(method))
}

/// What the rules say of what a request asks for, beside what they say of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is allowed like the request itself.
    Allowed,
    /// It is allowed, but by a stricter inspection mode, or it counts against a budget
    /// that the request does not count against.
    Stricter,
    /// It is not allowed.
    Denied,
}

impl Standing {
    /// What two verdicts make of it: that on the request, and that on what it asks for.
    pub fn of(own: &Verdict, asked: &Verdict) -> Self {
        match (own, asked) {
            (_, Verdict::Deny(_)) => Self::Denied,
            (Verdict::Allow(own), Verdict::Allow(asked)) if own.inspects_for(asked) => {
                Self::Allowed
            }
            (Verdict::Allow(_) | Verdict::Deny(_), Verdict::Allow(_)) => Self::Stricter,
        }
    }

    /// Why something else than [`Self::Allowed`] may not be asked for.
    pub fn why(self) -> &'static str {
        match self {
            Self::Stricter => {
                "which the rules inspect more strictly or count against another budget"
            }
            Self::Allowed | Self::Denied => "which the rules do not allow",
        }
    }
}

/// What the rules say of methods, about one request.
#[derive(Clone, Copy)]
pub struct ByMethod<'r> {
    /// What they would say of the request by a method.
    pub says: &'r dyn Fn(&str) -> Standing,
    /// The methods that they name, each once. Asked only where that matters: there may be as
    /// many rules as a policy takes.
    pub named: &'r dyn Fn() -> BTreeSet<&'r str>,
}

impl fmt::Debug for ByMethod<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ByMethod").finish_non_exhaustive()
    }
}

impl ByMethod<'_> {
    /// Whether a value is a method that is known or that they name.
    pub fn knows(&self, value: &str) -> bool {
        is_known_method(value) || self.names(value)
    }

    /// Whether a value is a method that they name.
    pub fn names(&self, value: &str) -> bool {
        let value = value.trim();
        let is_it = |method: &&str| value.eq_ignore_ascii_case(method);
        (self.named)().iter().any(is_it)
    }

    /// Whether it matters by which method the request is made.
    pub fn tells_apart(&self) -> bool {
        let differs = |method: &str| (self.says)(method) != Standing::Allowed;
        if TOLD_APART.iter().any(|method| differs(method)) {
            return true;
        }
        let named = (self.named)();
        let mut named = named.iter().filter(|own| !TOLD_APART.contains(own));
        named.any(|method| differs(method))
    }
}

/// The keys that ask for another method.
#[derive(Debug, Clone)]
pub struct MethodKeys {
    /// [`METHOD_KEY`], which means nothing else.
    pub own: QueryKey,
    /// Every other one with such a word in it: it counts where its value is a method.
    pub others: QueryKey,
    /// Those of them that mean nothing else: it counts where its value is any method.
    pub tunnels: QueryKey,
}

impl MethodKeys {
    /// All of them.
    #[expect(clippy::new_without_default, reason = "no value is usual here")]
    pub fn new() -> Self {
        Self {
            own: QueryKey::new(METHOD_KEY),
            others: QueryKey::holding(&["method", "verb"]),
            tunnels: QueryKey::holding(&TUNNELS),
        }
    }
}

/// What a value of a key for the method asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedFor {
    /// A method that is not allowed, in capitals.
    Method(String),
    /// One that is allowed under another word or budget.
    Stricter(String),
    /// One that nobody knows: it may be a value of the user's, and is shown to nobody.
    Unknown,
    /// Something that is no method.
    NoMethod,
}

impl AskedFor {
    /// Why it may not be asked for.
    pub fn why(&self) -> &'static str {
        match self {
            Self::Stricter(_) => Standing::Stricter.why(),
            Self::Method(_) | Self::Unknown | Self::NoMethod => Standing::Denied.why(),
        }
    }
}

impl fmt::Display for AskedFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Method(method) | Self::Stricter(method) => method,
            Self::Unknown => "another method",
            Self::NoMethod => "something that is no method",
        })
    }
}

/// What the query of a request asks for though no rule allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherMethod {
    /// What asks for it.
    pub by: &'static str,
    /// What it is.
    pub what: AskedFor,
}

impl fmt::Display for OtherMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, what } = self;
        let why = what.why();
        write!(out, "{by} in the query asks for {what}, {why}")
    }
}

/// Whether a request with the method `own`, to rules that would allow it by some methods,
/// may hold this value of a key for the method.
///
/// # Errors
/// What it asks for that the rules do not allow.
pub fn check_method(value: &str, own: &str, rules: ByMethod<'_>) -> Result<(), AskedFor> {
    let method = value.trim().to_ascii_uppercase();
    let is_method = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
    if method.len() > METHOD_BYTES_MAX || !method.bytes().all(is_method) {
        return if rules.tells_apart() {
            Err(AskedFor::NoMethod)
        } else {
            Ok(())
        };
    }
    if method == own {
        return Ok(());
    }
    let standing = (rules.says)(&method);
    Err(match standing {
        Standing::Allowed => return Ok(()),
        Standing::Denied | Standing::Stricter if !rules.knows(&method) => AskedFor::Unknown,
        Standing::Denied => AskedFor::Method(method),
        Standing::Stricter => AskedFor::Stricter(method),
    })
}

/// Whether the query of a request asks for no method that the rules do not allow.
///
/// # Errors
/// It does.
pub fn check_query(
    target: &RequestTarget,
    own: &str,
    rules: ByMethod<'_>,
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
        check_method(value, own, rules).map_err(|what| OtherMethod { by, what })
    };
    let values = keys.own.values_in(target);
    values
        .iter()
        .try_for_each(|value| judge("`_method`", value))?;
    let by = "a key for the method";
    let others = keys.others.values_in(target);
    // A word of another meaning is a method where the rules name it as one.
    let is_method = |value: &&String| is_method_name(value) || rules.names(value);
    let mut others = others.iter().filter(is_method);
    others.try_for_each(|value| judge(by, value))?;
    let tunnels = keys.tunnels.values_in(target);
    let mut tunnels = tunnels.iter().filter(|value| rules.knows(value));
    tunnels.try_for_each(|value| judge(by, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_a_method_in_every_reading() {
        let only_post = ByMethod {
            says: &|method| match method {
                "POST" => Standing::Allowed,
                "LOCK" => Standing::Stricter,
                _ => Standing::Denied,
            },
            named: &|| BTreeSet::from(["POST", "ARCHIVE"]),
        };
        let all = ByMethod {
            says: &|_| Standing::Allowed,
            named: &BTreeSet::new,
        };
        let own = |asked: &str| Some(format!("`_method` in the query asks for {asked}"));
        let other = |asked: &str| {
            Some(format!(
                "a key for the method in the query asks for {asked}"
            ))
        };
        for (target, asked) in [
            ("/x", None),
            ("/x?a=1&_method=POST", None),
            ("/x?_method=DELETE", own("DELETE")),
            ("/x?_method=version-control", own("VERSION-CONTROL")),
            ("/x?_METHOD%5B%5D=de%6cete", own("DELETE")),
            ("/x?_method=1", own("something that is no method")),
            ("/x%3F_method=DELETE", own("DELETE")),
            ("/x%253F_method=DELETE", own("DELETE")),
            ("/x&_method=DELETE", own("DELETE")),
            ("/x;_method=DELETE/y", own("DELETE")),
            ("/x?a=1%26_method=DELETE", own("DELETE")),
            ("/x?a=1%2526_method%253DDELETE", own("DELETE")),
            ("/x?x-http-verb=put", other("PUT")),
            ("/x%3Fverb=put", other("PUT")),
            ("/x?x-http-method=search", other("SEARCH")),
            ("/x?x-http-method=archive", other("ARCHIVE")),
            ("/x?method=archive", other("ARCHIVE")),
            ("/x?_method=whatever", own("another method")),
            ("/x?x-http-method=whatever", None),
            ("/x?method=search&payment_method=card", None),
            ("/method/x?a=http%3A%2F%2Fx%3Fmethod%3Dfast", None),
        ] {
            let parsed = RequestTarget::parse(target).expect(target);
            let found = check_query(&parsed, "POST", only_post).err();
            let words = found.map(|found| found.to_string());
            let wanted = asked.map(|asked| format!("{asked}, which the rules do not allow"));
            assert_eq!(words, wanted, "{target}");
            assert_eq!(check_query(&parsed, "POST", all), Ok(()), "{target}");
        }
        let weighed = RequestTarget::parse("/x?_method=lock").expect("a target");
        let found = check_query(&weighed, "POST", only_post).expect_err("it is refused");
        assert_eq!(found.what, AskedFor::Stricter("LOCK".to_owned()));
        assert!(found.to_string().contains("inspect more strictly"));
    }
}
