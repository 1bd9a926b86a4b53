//! What finds one kind of credential: its form, how to check it, what its leak
//! would cost and where it may go.
//!
//! Detectors are data: the shipped ones are read from `detectors/*.toml` when
//! the crate is built, a user's own when the program starts, both by
//! `detector_file`. Nothing here reads a stream. The build script compiles this
//! file too, so it stands on `std` alone.

use std::borrow::Cow;

/// A text that is part of the program or was read at run time.
pub type Text = Cow<'static, str>;
/// A list of such texts.
pub type Texts = Cow<'static, [Text]>;

/// How certain the form of a credential is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Needs a label nearby or a checksum: recorded, unless rules are strict.
    Context,
    /// A fixed shape, a short or shared prefix: does not leave unless its check fails.
    Structured,
    /// A prefix, marker or checksum nothing else has: does not leave.
    Strong,
}

/// Where the literal stands in the match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// At its start.
    Start,
    /// Anywhere in it.
    Inside,
    /// There is none: the pattern itself is searched, where somebody asks for it.
    Scan,
}

/// What may stand beside a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Anything.
    None,
    /// No letter, digit or underscore before it; anything behind it.
    Before,
    /// Letters, digits and underscores, but not many: in a long word of them it is chance.
    Near,
    /// No letter, digit or underscore.
    Word,
}

/// A package registry whose host the client's own configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Registry {
    /// Packages of Node.js.
    Npm,
    /// Packages of Python.
    Pypi,
    /// Packages of Rust.
    Cargo,
}

/// Where a credential may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// To its issuers, and where the operator allows.
    Issuers,
    /// Nowhere, and nobody can allow it.
    Never,
    /// Only where the operator allows.
    User,
    /// To the hosts it names itself.
    Claims,
    /// To the registry of the client's own configuration.
    Registry(Registry),
}

/// Whose content the hosts of an issuer keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tenants {
    /// Nobody's, or that of the account that sends it.
    One,
    /// What anybody sends them, where others can read it: a credential may go there
    /// only where a client shows it, never in content.
    Many,
}

/// What follows when an offline check says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// One step less severe. For forms that speak for themselves: a wrong
    /// checksum may be a credential of which one byte was changed and is sent apart.
    Lower,
    /// It is nothing. For forms that mean nothing without their check, such as
    /// sixteen digits.
    Clear,
}

/// An offline check of what a pattern matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Validator {
    /// None.
    None,
    /// The entropy alone.
    Entropy,
    /// Not one of the values that stand for a value.
    Placeholder,
    /// Last six characters are the CRC-32 of the rest in base 62.
    Crc32Base62,
    /// Last eight characters are a checksum whose input is not published.
    CrcTailHex,
    /// BIP-173.
    Bech32,
    /// Four bytes of double SHA-256 behind a payload, in base 58.
    Base58Check,
    /// Luhn (ISO/IEC 7812-1) and a range of an issuer of cards.
    LuhnBin,
    /// ISO 7064 MOD 97-10 and the length of the country (ISO 13616).
    Mod97,
    /// Words and checksum of BIP-39.
    Bip39,
    /// RFC 7519: a header with an algorithm, and claims.
    Jwt,
    /// Base 32 of an account number.
    AwsKeyId,
    /// A macaroon in its second binary format.
    MacaroonV2,
    /// Payload, length and CRC-32 in base 36.
    GitlabRoutable,
    /// Base 64 of a JSON object.
    Base64Json,
    /// Base 64 of `name:password`.
    Base64UserPass,
    /// First part is base 64 of a plausible snowflake.
    DiscordSnowflake,
    /// Characters drawn by chance.
    Random,
}

/// What finds one kind of credential.
#[derive(Debug, Clone, PartialEq)]
pub struct Detector {
    /// Its id, in kebab-case.
    pub id: Text,
    /// What it finds, in words.
    pub name: Text,
    /// How certain the form is.
    pub tier: Tier,
    /// What a leak costs, in one sentence.
    pub cost: Text,
    /// Where the issuer describes the form, or else the credential.
    pub reference: Text,
    /// Whether the form was confirmed: by the issuer's words or code, or by public detectors.
    pub confirmed: bool,
    /// One of them stands in every match, in this case.
    pub literals: Texts,
    /// Where the literal stands.
    pub anchor: Anchor,
    /// The form, in the syntax of the `regex` crate over bytes, without Unicode.
    /// Group 1, where there is one, is the credential itself.
    pub pattern: Text,
    /// Length of the longest match, in bytes. Follows from the pattern.
    pub max: usize,
    /// Length of the shortest match, in bytes. Follows from the pattern.
    pub min: usize,
    /// What may stand beside it.
    pub boundary: Boundary,
    /// The offline check.
    pub validator: Validator,
    /// What follows when the check says no.
    pub failure: Failure,
    /// Least Shannon entropy of the credential, in bits a byte.
    pub min_entropy: f32,
    /// Where it may go.
    pub scope: Scope,
    /// Its issuers, as host patterns.
    pub issuers: Texts,
    /// Names below its issuer's that belong to customers, who read what is sent to them: one
    /// of these is an issuer only where a rule of the operator's spells it out.
    pub tenant_hosts: Texts,
    /// Hosts that the issuers cover and that are none.
    pub except: Texts,
    /// Hosts of the issuers whose paths belong to services that hand some of what they read
    /// to strangers: only places that name a path are open there.
    pub routed: Texts,
    /// Why strangers who hold names below its issuers gain nothing by what is shown there.
    pub harmless: Text,
    /// Whose content these keep.
    pub tenants: Tenants,
    /// Where it may stand in the content of a form although content is closed to it: hosts,
    /// each with a path, such as where tokens are made new, and maybe with a key.
    pub forms: Texts,
    /// The same of documents in JSON.
    pub documents: Texts,
    /// Where in the head of a request its clients show it, where that is known: in no other
    /// part of a request may it go to its issuers, but in forms and documents.
    pub places: Texts,
    /// Template of the half of its pair that is never sent (`{b64:40}`): beside one of these
    /// it may stand nowhere.
    pub secret: Text,
    /// Why it has no place in a head, if nobody shows it there.
    pub unplaced: Text,
    /// Templates of matches, for `detector_sample::expand`.
    pub samples: Texts,
    /// Templates of texts that come close and are nothing.
    pub near_misses: Texts,
}

impl Detector {
    /// Whether it is known where clients show it, so that it may stand nowhere else.
    pub fn is_placed(&self) -> bool {
        !self.places.is_empty() || !self.unplaced.is_empty()
    }
}

impl Tier {
    /// As detector files write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Structured => "structured",
            Self::Context => "context",
        }
    }
}

impl Tenants {
    /// As detector files write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Many => "many",
        }
    }
}

impl Registry {
    /// As detector files write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Cargo => "cargo",
        }
    }
}
