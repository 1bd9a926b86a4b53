//! What content may ask for, and which keys ask for it. Text only.

use outgate_policy::QueryKey;

/// The key, as Rails, Laravel, Symfony and the middleware of Express have it.
pub(super) const KEY: &str = "_method";

/// What stands in content, to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks<'a> {
    /// Another method for the request itself, by this key.
    Method { key: &'a str, value: &'a str },
    /// A request of its own.
    Request { method: &'a str, target: &'a str },
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
}

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            own: QueryKey::new(KEY),
            others: QueryKey::holding(&["method", "verb"]),
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

/// Whether a value is a method.
pub(super) fn is_method(value: &str) -> bool {
    let value = value.trim();
    METHODS
        .iter()
        .any(|method| value.eq_ignore_ascii_case(method))
}
