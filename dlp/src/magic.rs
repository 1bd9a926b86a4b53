//! The kinds of compressed data, archives and encrypted data, and the marks by which the
//! search finds them.

mod beginnings;

/// A kind of beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Magic {
    Gzip,
    Zlib,
    Zstd,
    Zip,
    /// An entry in the directory of a zip archive, by which most programs read it.
    ZipCentral,
    Pack,
    /// bzip2.
    Bzip2,
    /// The .xz format 1.2.
    Xz,
    /// lzip (RFC draft, Member format).
    Lzip,
    /// LZ4 frames (lz4 Frame Format 1.6).
    Lz4,
    /// Their predecessor without a header.
    Lz4Legacy,
    /// Bare deflate, which has no mark.
    Deflate,
    /// Brotli, which has none either.
    Brotli,
    /// zlib and Brotli of which no decoder here has what they copy from.
    Unread,
    /// The mark in the header of a file in a tar archive (POSIX.1-2017, pax, "ustar").
    Tar,
    /// What is told by a close look alone, and mostly opened by nobody here.
    Sealed(OpaqueFormat),
}

impl Magic {
    /// Whether so much of a beginning is always the same, or has a checksum, that chance makes
    /// none in any text.
    pub(crate) fn is_marked(self) -> bool {
        matches!(self, Self::Bzip2 | Self::Xz | Self::Lz4)
    }
}

/// A format that is told by a close look alone. Of these LZMA is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpaqueFormat {
    /// 7z (7zFormat.txt, Signature Header).
    SevenZip,
    /// lzip in its first version.
    LzipOld,
    /// LZMA alone (lzma-file-format.txt), which has no mark.
    Lzma,
    /// The same where the size in its header is unknown, which is a mark.
    LzmaUnsized,
    /// RAR 4 and 5.
    Rar,
    /// OpenPGP messages in binary (RFC 9580 10.3), which have no mark.
    Pgp,
    /// The same as text (RFC 9580 6.2).
    PgpText,
    /// age (age-encryption.org/v1).
    Age,
}

/// Beginnings that are looked for everywhere.
pub(crate) const MAGICS: [(&[u8], Magic); 12] = [
    (beginnings::GZIP, Magic::Gzip),
    (beginnings::ZSTD, Magic::Zstd),
    (beginnings::ZIP, Magic::Zip),
    (beginnings::ZIP_CENTRAL, Magic::ZipCentral),
    (beginnings::PACK, Magic::Pack),
    (beginnings::BZIP2, Magic::Bzip2),
    (beginnings::XZ, Magic::Xz),
    (beginnings::LZIP[0], Magic::Lzip),
    (beginnings::LZIP[1], Magic::Sealed(OpaqueFormat::LzipOld)),
    (beginnings::LZ4, Magic::Lz4),
    (beginnings::LZ4_LEGACY, Magic::Lz4Legacy),
    (beginnings::TAR, Magic::Tar),
];

/// What is looked for everywhere. What has no mark is looked for behind the empty line that
/// ends the head of a part, and where anything may begin.
pub(crate) const MARKS: [(&[u8], OpaqueFormat); 27] = [
    (beginnings::SEVEN_ZIP, OpaqueFormat::SevenZip),
    (beginnings::RAR, OpaqueFormat::Rar),
    (beginnings::PGP_TEXT, OpaqueFormat::PgpText),
    (beginnings::AGE, OpaqueFormat::Age),
    (beginnings::AGE_ESCAPED, OpaqueFormat::Age),
    (beginnings::PGP_MARKER[0], OpaqueFormat::Pgp),
    (beginnings::PGP_MARKER[1], OpaqueFormat::Pgp),
    (beginnings::LZMA[0], OpaqueFormat::Lzma),
    (beginnings::LZMA[1], OpaqueFormat::Lzma),
    (beginnings::LZMA_SIZE, OpaqueFormat::LzmaUnsized),
    (beginnings::PGP[0], OpaqueFormat::Pgp),
    (beginnings::PGP[1], OpaqueFormat::Pgp),
    (beginnings::PGP[2], OpaqueFormat::Pgp),
    (beginnings::PGP[3], OpaqueFormat::Pgp),
    (beginnings::PGP[4], OpaqueFormat::Pgp),
    (beginnings::PGP[5], OpaqueFormat::Pgp),
    (beginnings::PGP[6], OpaqueFormat::Pgp),
    (beginnings::PGP[7], OpaqueFormat::Pgp),
    (beginnings::PGP[8], OpaqueFormat::Pgp),
    (beginnings::PGP[9], OpaqueFormat::Pgp),
    (beginnings::PGP[10], OpaqueFormat::Pgp),
    (beginnings::PGP[11], OpaqueFormat::Pgp),
    (beginnings::PGP[12], OpaqueFormat::Pgp),
    (beginnings::PGP[13], OpaqueFormat::Pgp),
    (beginnings::PGP[14], OpaqueFormat::Pgp),
    (beginnings::PGP[15], OpaqueFormat::Pgp),
    (beginnings::PGP[16], OpaqueFormat::Pgp),
];

/// The same of what is told by a close look alone.
pub(crate) fn sealed() -> impl Iterator<Item = (&'static [u8], Magic)> {
    let marks = MARKS.iter();
    marks.map(|(mark, format)| (*mark, Magic::Sealed(*format)))
}
