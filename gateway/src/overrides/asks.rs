//! What content may ask for. Text only.

pub(super) use outgate_policy::{
    METHOD_KEY as KEY, MethodKeys as Keys, is_known_method as is_known, is_method_name as is_method,
};

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
