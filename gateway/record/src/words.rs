//! The closed sets of words in a record: what it is about, what was decided, and why.
//! Each is listed in `schema.json`, which a test compares with the variants here.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

/// A set of words, each the token of one variant.
pub trait Token: Copy + PartialEq + Sized + 'static {
    /// Every variant, once.
    const ALL: &'static [Self];

    /// The word for records, fields and metrics.
    fn token(self) -> &'static str;

    /// The variant of a word; `None` where this version knows no such word.
    fn of(token: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.token() == token)
    }
}

/// Defines an enum with a word for each variant.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$one:meta])* $variant:ident = $token:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$one])* $variant,)+
        }

        impl Token for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn token(self) -> &'static str {
                self.token()
            }
        }

        impl $name {
            /// The word for records, fields and metrics.
            pub const fn token(self) -> &'static str {
                match self {
                    $(Self::$variant => $token,)+
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.token())
            }
        }
    };
}

words! {
    /// What a record is about.
    Kind {
        /// A run, or a shared gateway, begins.
        Start = "start",
        /// It ends.
        Finish = "finish",
        /// A connection that the command asked for.
        Connect = "connect",
        /// A name that it asked the address of.
        Dns = "dns",
        /// An HTTP request, or the opening of an HTTP connection.
        Request = "request",
        /// A TLS connection that stays closed, or that cannot be opened.
        Tunnel = "tunnel",
        /// A connection to a Unix socket.
        Unix = "unix",
        /// A port that the command listens on.
        Listen = "listen",
        /// What went through a connection, at its end.
        Flow = "flow",
        /// Other rules are in force.
        Policy = "policy",
        /// A credential where it may not go, a placeholder of a secret where none may
        /// be, or content that nobody could look into.
        Finding = "finding",
        /// A planted credential on its way out: an alarm.
        Canary = "canary",
        /// Something that the command wrote and that runs later.
        Leftover = "leftover",
        /// What may leave under a rule is nearly spent, or spent.
        Budget = "budget",
        /// A rule that the command proposes, and what became of it.
        Proposal = "proposal",
    }
}

words! {
    /// What was decided.
    Outcome {
        /// It may happen.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
        /// Neither: a statement of what was.
        Note = "note",
    }
}

words! {
    /// Why something was denied, or is worth a line: the contract of records, of the field
    /// `Outgate-Denied` and of the bodies of refusals. The first eight are the policy's.
    Reason {
        /// No rule allows it.
        NoRule = "no-rule",
        /// A rule denies it.
        DenyRule = "deny-rule",
        /// An `only` rule covers the host, and none of them allows it.
        OnlyRule = "only-rule",
        /// The address is not a public one.
        SpecialUse = "special-use",
        /// A rule would allow it, for other executables.
        Process = "process",
        /// It would have to be looked into, which is not possible.
        NeedsInspection = "needs-inspection",
        /// A field or the body asks for another method, path or host than the request line.
        Override = "override",
        /// It cannot be read in one way only, or makes no sense.
        Malformed = "malformed",
        /// A Unix socket with an abstract name: it belongs to nobody.
        Abstract = "abstract",
        /// The audit record cannot be written.
        Audit = "audit",
        /// The request is for another host than the connection.
        Authority = "authority",
        /// What may leave under a rule is spent, or nearly.
        Budget = "budget",
        /// A planted credential.
        Canary = "canary",
        /// A credential on its way to who did not issue it.
        Credential = "credential",
        /// The name has no address.
        Dns = "dns",
        /// An encrypted ClientHello (ECH), which hides the name.
        Ech = "ech",
        /// The session of a shared gateway is over.
        Ended = "ended",
        /// Who asks of the explicit proxy did not show whose sandbox it is.
        Identity = "identity",
        /// More at once than the gateway serves.
        Limit = "limit",
        /// The request went through outgate too often.
        Loop = "loop",
        /// A method that is never forwarded.
        Method = "method",
        /// A credential in the names that are looked up.
        Names = "names",
        /// A rule would have to know the name of an address.
        NoHost = "no-host",
        /// The origin cannot be reached, or does not speak as it should.
        Origin = "origin",
        /// The policy that is in force now, or the gateway's own, denies it.
        Policy = "policy",
        /// A protocol that is not carried.
        Protocol = "protocol",
        /// A placeholder of a secret where it may not stand.
        Secret = "secret",
        /// The ClientHello names another host than the connection is for.
        ServerName = "server-name",
        /// A shared gateway does not do it for other users.
        Shared = "shared",
        /// TLS with the command or the origin failed.
        Tls = "tls",
        /// A synthetic address that stands for no name.
        Unassigned = "unassigned",
        /// Content that nobody could look into.
        Unscannable = "unscannable",
    }
}

impl From<outgate_policy::DenialReason> for Reason {
    fn from(reason: outgate_policy::DenialReason) -> Self {
        use outgate_policy::DenialReason as Policy;
        match reason {
            Policy::NoRule => Self::NoRule,
            Policy::DenyRule => Self::DenyRule,
            Policy::OnlyRule => Self::OnlyRule,
            Policy::SpecialUse => Self::SpecialUse,
            Policy::Process => Self::Process,
            Policy::NeedsInspection => Self::NeedsInspection,
            Policy::OtherMethod => Self::Override,
            Policy::Malformed => Self::Malformed,
        }
    }
}

impl Reason {
    /// Whether it is refused because of a credential in it.
    pub fn is_of_credential(self) -> bool {
        matches!(self, Self::Credential | Self::Secret | Self::Names)
    }
}

/// What says nothing decides nothing.
impl Default for Outcome {
    fn default() -> Self {
        Self::Note
    }
}

/// A word of a set, or one that a later version may have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<'a, T> {
    /// One of the set.
    Known(T),
    /// Another one.
    Other(Cow<'a, str>),
}

impl<T> Default for Word<'_, T> {
    fn default() -> Self {
        Self::Other(Cow::Borrowed(""))
    }
}

impl<T> From<T> for Word<'_, T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<'a, T: Token> Word<'a, T> {
    /// Reads a word.
    pub fn read(text: Cow<'a, str>) -> Self {
        T::of(&text).map_or(Self::Other(text), Self::Known)
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => word.token(),
            Self::Other(text) => text,
        }
    }

    /// The variant; `None` where it is not one of the set.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Other(_) => None,
        }
    }
}

impl<T: Token> PartialEq<T> for Word<'_, T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(*other)
    }
}

impl<T: Token> Serialize for Word<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Whether somebody should look now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alarm {
    /// Yes.
    Raised,
    /// No.
    #[default]
    None,
}

impl Serialize for Alarm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Self::Raised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_the_policy_has_the_word_that_the_policy_gives_it() {
        let mut found = 0;
        for reason in Reason::ALL {
            if let Some(policy) = outgate_policy::DenialReason::of(reason.token()) {
                assert_eq!(Reason::from(policy), *reason);
                found += 1;
            }
        }
        assert_eq!(found, 8);
    }

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for reason in Reason::ALL {
            assert_eq!(Reason::of(reason.token()), Some(*reason));
            assert_eq!(
                Word::<Reason>::read(reason.token().into()).known(),
                Some(*reason)
            );
        }
        let later = Word::<Kind>::read("of-a-later-version".into());
        assert_eq!(
            (later.known(), later.as_str()),
            (None, "of-a-later-version")
        );
    }
}
