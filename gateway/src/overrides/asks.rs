//! What content may ask for, and which keys ask for it. Text only.

use outgate_policy::QueryKey;

/// The key, as Rails, Laravel, Symfony and the middleware of Express have it.
pub(super) const KEY: &str = "_method";

/// What stands in content, to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks<'a> {
    /// Another method for the request itself, by this key.
    Method { key: &'a str, value: &'a str },
    /// The same by a key that has no other meaning, where the value is a method.
    Tunnelled { key: &'a str, value: &'a str },
    /// A request of its own.
    Request { method: &'a str, target: &'a str },
    /// The same in a list of JSON.
    Item { method: &'a str, target: &'a str },
    /// A field of such a request.
    Field {
        method: &'a str,
        target: &'a str,
        name: &'a str,
        value: &'a str,
    },
    /// Something that cannot be read, and may be either.
    Unread(&'static str),
}

/// Whether it may stand there.
pub(super) type Judge<'j> = &'j mut dyn FnMut(Asks<'_>) -> Result<(), Refused>;

/// Something that may not stand there; whoever judged knows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused;

/// When content is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Piece by piece, as it comes.
    AsItComes,
    /// Once all of it was read.
    AtTheEnd,
}

/// The keys that are looked for.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// `_method`, which means nothing else.
    pub(super) own: QueryKey,
    /// Every other one with such a word in it: it counts where its value is a method.
    pub(super) others: QueryKey,
    /// Those of them that mean nothing else: it counts where its value is any method.
    pub(super) tunnels: QueryKey,
}

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

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            own: QueryKey::new(KEY),
            others: QueryKey::holding(&["method", "verb"]),
            tunnels: QueryKey::holding(&TUNNELS),
        }
    }
}

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

/// Whether a value is a method, whatever its key means.
pub(super) fn is_method(value: &str) -> bool {
    let value = value.trim();
    METHODS
        .iter()
        .any(|method| value.eq_ignore_ascii_case(method))
}

/// Whether it is any method that is known.
pub(super) fn is_known(value: &str) -> bool {
    let value = value.trim();
    let mut others = OTHER_METHODS.iter();
    is_method(value) || others.any(|method| value.eq_ignore_ascii_case(method))
}
