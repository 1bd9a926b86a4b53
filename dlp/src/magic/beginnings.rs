//! What compressed data, archives and encrypted data begin with, as bytes.
//!
//! Pure, and built into the build script as well, which places these for the search.

/// gzip with deflate inside (RFC 1952 2.3.1).
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
/// Zstandard (RFC 8878 3.1.1).
pub(crate) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A file in a ZIP archive (APPNOTE.TXT 4.3.7).
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";
/// An entry in the directory of a ZIP archive (APPNOTE.TXT 4.3.12).
pub(crate) const ZIP_CENTRAL: &[u8] = b"PK\x01\x02";
/// A pack of git's (gitformat-pack(5)).
pub(crate) const PACK: &[u8] = b"PACK\0\0\0";
/// In the header of a file in a tar archive (POSIX.1-2017, pax, "ustar").
pub(crate) const TAR: &[u8] = b"ustar";
/// bzip2.
pub(crate) const BZIP2: &[u8] = b"BZh";
/// The .xz format 1.2, 2.1.1.1.
pub(crate) const XZ: &[u8] = b"\xfd7zXZ\0";
/// 7z (7zFormat.txt, Signature Header).
pub(crate) const SEVEN_ZIP: &[u8] = b"7z\xbc\xaf\x27\x1c";
/// LZ4 frames (lz4 Frame Format 1.6).
pub(crate) const LZ4: &[u8] = b"\x04\x22\x4d\x18";
/// Their predecessor without a header.
pub(crate) const LZ4_LEGACY: &[u8] = b"\x02\x21\x4c\x18";
/// lzip (RFC draft, Member format), and its first version, which xz reads as well.
pub(crate) const LZIP: [&[u8]; 2] = [b"LZIP\x01", b"LZIP\0"];
/// RAR 4 and 5.
pub(crate) const RAR: &[u8] = b"Rar!\x1a\x07";
/// OpenPGP messages as text (RFC 9580 6.2).
pub(crate) const PGP_TEXT: &[u8] = b"-----BEGIN PGP MESSAGE-----";
/// age (age-encryption.org/v1).
pub(crate) const AGE: &[u8] = b"age-encryption.org/v1\n-> ";
/// The same in a text of JSON.
pub(crate) const AGE_ESCAPED: &[u8] = b"age-encryption.org/v1\\n-> ";
/// A marker of OpenPGP (RFC 9580 5.8), in the new format of packets and in the old one.
pub(crate) const PGP_MARKER: [&[u8]; 2] = [b"\xca\x03PGP", b"\xa8\x03PGP"];
/// LZMA alone (lzma-file-format.txt) behind an empty line.
pub(crate) const LZMA: [&[u8]; 2] = [b"\r\n\r\n\x5d\0\0", b"\n\n\x5d\0\0"];
/// The size in the header of LZMA alone where it is unknown, and the first byte of the data.
pub(crate) const LZMA_SIZE: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\0";
/// OpenPGP messages in binary (RFC 9580 10.3) behind an empty line, by their first byte.
pub(crate) const PGP: [&[u8]; 17] = [
    b"\r\n\r\n\x84",
    b"\r\n\r\n\x85",
    b"\r\n\r\n\x86",
    b"\r\n\r\n\x8c",
    b"\r\n\r\n\x8d",
    b"\r\n\r\n\xc1",
    b"\r\n\r\n\xc3",
    b"\n\n\x84",
    b"\n\n\x85",
    b"\n\n\x86",
    b"\n\n\x8c",
    b"\n\n\x8d",
    b"\n\n\xc1",
    b"\n\n\xc3",
    b"\n\n\xa8",
    b"\n\n\xca",
    b"\n\n\xd5",
];
