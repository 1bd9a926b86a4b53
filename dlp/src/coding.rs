//! Names of the codings a credential can be wrapped in, for chains such as
//! `gzip>base64>github-token`. Names only: decoding is done elsewhere.

use std::fmt;

/// One layer around a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// zlib (RFC 1950).
    Zlib,
    /// Raw deflate (RFC 1951).
    Deflate,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
    /// bzip2.
    Bzip2,
    /// The .xz format.
    Xz,
    /// lzip.
    Lzip,
    /// LZMA alone.
    Lzma,
    /// LZ4.
    Lz4,
    /// Percent-encoding (RFC 3986 2.1).
    Percent,
    /// base64 in either alphabet (RFC 4648 4, 5), at any phase.
    Base64,
    /// Pairs of hexadecimal digits, also with separators.
    Hex,
    /// base32 (RFC 4648 6).
    Base32,
    /// Numbers as programs print bytes: dumps, and lists of bytes or words.
    Numbers,
    /// Escapes of JSON and of programming languages.
    Json,
    /// Character references of HTML and XML.
    Html,
    /// Quoted-printable (RFC 2045 6.7).
    QuotedPrintable,
    /// Control sequences of terminals (ECMA-48) within text.
    Terminal,
    /// Characters two or four bytes wide.
    Utf16,
    /// Bytes that were each made the character of that number (ISO 8859-1), in UTF-8.
    Latin1,
    /// Invisible, combining, wide and look-alike characters.
    Folded,
    /// Lines with something around each.
    Lines,
    /// A field of multipart content (RFC 2046 5.1).
    Multipart,
    /// An entry of a zip archive.
    Zip,
    /// An entry of a tar archive.
    Tar,
    /// An object of a git pack.
    GitPack,
    /// Back to front.
    Reversed,
    /// Letters moved by thirteen.
    Rot13,
    /// Small letters for capitals, and capitals for small ones.
    Swapped,
    /// Values one after the other, without their names.
    Joined,
}

impl fmt::Display for Coding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lzip => "lzip",
            Self::Lzma => "lzma",
            Self::Lz4 => "lz4",
            Self::Percent => "percent",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Base32 => "base32",
            Self::Numbers => "numbers",
            Self::Json => "json",
            Self::Html => "html",
            Self::QuotedPrintable => "quoted-printable",
            Self::Terminal => "terminal",
            Self::Utf16 => "utf-16",
            Self::Latin1 => "latin-1",
            Self::Folded => "folded",
            Self::Lines => "lines",
            Self::Multipart => "multipart",
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::GitPack => "git-pack",
            Self::Reversed => "reversed",
            Self::Rot13 => "rot13",
            Self::Swapped => "swapped-case",
            Self::Joined => "joined",
        })
    }
}
