//! What content may ask for. Text only.

pub(super) use outgate_policy::{
    METHOD_KEY as KEY, MethodKeys as Keys, is_known_method as is_known, is_method_name as is_method,
};

/// How deep content of requests may stand in that of others. Clients that send batches
/// stop at one.
const DEPTH_MAX: u8 = 4;

/// Requests that stand deeper.
pub(super) const TOO_DEEP: &str = "a request in a request without end";

/// What stands in content, to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks<'a> {
    /// Another method for the request itself, by this key.
    Method { key: &'a str, value: &'a str },
    /// The same by a key that has no other meaning, where the value is a method.
    Tunnelled { key: &'a str, value: &'a str },
    /// The same by a key that may have another meaning: a method where rules name it.
    Named { key: &'a str, value: &'a str },
    /// A request of its own.
    Request { method: &'a str, target: &'a str },
    /// The same in a list of JSON.
    Item { method: &'a str, target: &'a str },
    /// An address alone in a list of requests, which some fetch.
    Fetched { target: &'a str },
    /// A field of such a request.
    Field {
        method: &'a str,
        target: &'a str,
        name: &'a str,
        value: &'a str,
    },
    /// Something that the content of such a request asks for.
    Within {
        by: InnerPlace,
        method: &'a str,
        target: &'a str,
        asks: &'a Asks<'a>,
    },
    /// Something that cannot be read, and may be either.
    Unread(&'static str),
    /// The same of what could ask for no more than a method.
    UnreadMethod(&'static str),
}

/// Where a request stands whose content asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InnerPlace {
    /// In a part of its own.
    Part,
    /// In a list of JSON. Without an address it is about that of the list.
    Item,
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

/// Around how many requests content stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct InnerDepth(u8);

impl InnerDepth {
    /// That of the content of a request in it; `None` where nobody looks.
    pub(super) fn below(self) -> Option<Self> {
        let below = self.0.checked_add(1)?;
        (below <= DEPTH_MAX).then_some(Self(below))
    }
}

/// What reads the content of a request within another one. Its own readers are made of what
/// finds such requests, which therefore know it by this trait alone.
pub(super) trait InnerContent: std::fmt::Debug + Sized {
    /// Of a request in a part of its own, with this head.
    fn of_request(head: &InnerHead, sent: Sent, depth: InnerDepth) -> Self;

    /// Of one in a list of JSON, as a text of which nobody says what it is.
    fn of_text(depth: InnerDepth) -> Self;

    /// Of no request, but a list of them in a text.
    fn of_list(depth: InnerDepth) -> Self;

    fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused>;

    fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused>;
}

/// The head of a request in a part.
#[derive(Debug, Clone, Default)]
pub(super) struct InnerHead {
    pub(super) method: String,
    pub(super) target: String,
    /// Names and values, as they are written.
    pub(super) fields: Vec<(String, String)>,
}

#[cfg(test)]
pub(super) mod told {
    use super::*;

    /// Content that tells what it holds, once it is over.
    #[derive(Debug, Default)]
    pub(in crate::overrides) struct Told(Vec<u8>);

    impl InnerContent for Told {
        fn of_request(_: &InnerHead, _: Sent, _: InnerDepth) -> Self {
            Self::default()
        }

        fn of_text(_: InnerDepth) -> Self {
            Self::default()
        }

        fn of_list(_: InnerDepth) -> Self {
            Self::default()
        }

        fn read(&mut self, bytes: &[u8], _: Judge<'_>) -> Result<(), Refused> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
            let value = &String::from_utf8_lossy(&self.0);
            judge(Asks::Named { key: "", value })
        }
    }
}
