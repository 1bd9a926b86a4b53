//! Compressed data as their own programs make them.

use std::io::Write as _;

use bzip2::write::BzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    made.extend(compress_to_vec(bytes, 6));
    made.extend_from_slice(&crc32(bytes).to_le_bytes());
    let length = u32::try_from(bytes.len()).expect("a length");
    made.extend_from_slice(&length.to_le_bytes());
    made
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec_zlib(bytes, 6)
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, 6)
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << 16;
    let mut writer = XzWriter::new(Vec::new(), options).expect("options");
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// One frame of one block, without sums but that of its head.
pub(crate) fn lz4(bytes: &[u8]) -> Vec<u8> {
    // Blocks that stand for themselves, of at most 64 KiB; the sum is that of these two bytes.
    let mut made = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
    let packed = lz4_flex::block::compress(bytes);
    let size = u32::try_from(packed.len()).expect("a length");
    if packed.len() < bytes.len() {
        made.extend_from_slice(&size.to_le_bytes());
        made.extend_from_slice(&packed);
    } else {
        let size = u32::try_from(bytes.len()).expect("a length");
        made.extend_from_slice(&(size | 1 << 31).to_le_bytes());
        made.extend_from_slice(bytes);
    }
    made.extend_from_slice(&[0; 4]);
    made
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let sum = sum ^ u32::from(*byte);
        (0..8).fold(sum, |sum, _| {
            sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// An archive with one member, its data compressed or as they are (PKWARE APPNOTE 4.3).
pub(crate) fn zip(bytes: &[u8], is_packed: u16) -> Vec<u8> {
    let name = b"data.bin";
    let data = if is_packed > 0 {
        deflate(bytes)
    } else {
        bytes.to_vec()
    };
    let word = |number: usize| u32::try_from(number).expect("a length").to_le_bytes();
    let mut about = vec![20, 0, 0, 0];
    about.extend_from_slice(&(is_packed * 8).to_le_bytes());
    about.extend_from_slice(&[0, 0, 0x21, 0x50]);
    about.extend_from_slice(&crc32(bytes).to_le_bytes());
    about.extend_from_slice(&word(data.len()));
    about.extend_from_slice(&word(bytes.len()));
    about.extend_from_slice(&[8, 0, 0, 0]);
    let mut made = [b"PK\x03\x04", &about[..], name, &data].concat();
    let place = made.len();
    made.extend_from_slice(b"PK\x01\x02\x14\x03");
    made.extend_from_slice(&about);
    made.extend_from_slice(&[0; 14]);
    // A comment, a disk, attributes and the place of the member are ten bytes and four.
    made.extend_from_slice(name);
    let size = made.len() - place;
    made.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    made.extend_from_slice(&word(size));
    made.extend_from_slice(&word(place));
    made.extend_from_slice(&[0, 0]);
    made
}

/// An archive of ustar with these members.
pub(crate) fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    let mut made = Vec::new();
    for (number, bytes) in members.iter().enumerate() {
        let mut head = vec![0_u8; 512];
        let mut put = |at: usize, text: &str| {
            head[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, &format!("part{number}.txt"));
        put(100, "0000644\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", bytes.len()));
        put(136, "00000000000\0");
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = head.iter().copied().map(u32::from).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        made.extend_from_slice(&head);
        made.extend_from_slice(bytes);
        made.resize(made.len().next_multiple_of(512), 0);
    }
    made.extend_from_slice(&[0; 1024]);
    made
}
