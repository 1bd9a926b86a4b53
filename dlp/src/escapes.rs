//! Escapes of several kinds, wide characters and look-alikes: which kinds there are, and
//! how each is decoded. Where in a text they are looked for is no matter of this module.

pub(crate) mod decode;
pub(crate) mod fold;
pub(crate) mod lines;
pub(crate) mod references;

use crate::coding::Coding;

pub(crate) use decode::{EscapeDecoder, EscapeToken};

/// The kinds, each decoded on its own, in the order in which they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EscapeKind {
    /// `%41`, and `%u0041` of JavaScript's `escape` and ASP.
    Percent,
    /// `\u0041`, `\x41`, `\101`, `\/`.
    Escape,
    /// `&#65;`, `&lowbar;`.
    Reference,
    /// `=41`, and lines that go on.
    Quoted,
    /// What moves the cursor of a terminal or colours what it shows (ECMA-48 5.4).
    Terminal,
    /// Characters two or four bytes wide.
    Wide,
    /// Bytes that were each made the character of that number.
    Latin,
    /// Look-alikes and what cannot be seen.
    Fold,
    /// What stands between lines of base64.
    Lines,
    /// The values of a form, without their names.
    Form,
}

impl EscapeKind {
    /// Its name in a chain.
    pub(crate) fn coding(self) -> Coding {
        match self {
            Self::Percent => Coding::Percent,
            Self::Escape => Coding::Json,
            Self::Reference => Coding::Html,
            Self::Quoted => Coding::QuotedPrintable,
            Self::Terminal => Coding::Terminal,
            Self::Wide => Coding::Utf16,
            Self::Latin => Coding::Latin1,
            Self::Fold => Coding::Folded,
            Self::Lines => Coding::Lines,
            Self::Form => Coding::Joined,
        }
    }
}
