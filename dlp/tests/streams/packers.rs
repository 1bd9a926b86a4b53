//! Compressed files as their own programs make them: bzip2, xz, lzip and LZ4.

use std::io::Write as _;

use bzip2::write::BzEncoder;
use lzma_rust2::filter::{FilterConfig, FilterType};
use lzma_rust2::{
    CheckType, LzipOptions, LzipWriter, LzmaOptions, LzmaWriter, XzOptions, XzWriter,
};

/// bzip2, its blocks so many times 100 kB.
pub(crate) fn bzip2(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// One stream of xz.
pub(crate) fn xz(bytes: &[u8], options: XzOptions) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), options).expect("options");
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

/// The same as `xz` makes it out of the box, or with another level.
pub(crate) fn xz_of(bytes: &[u8], level: u32) -> Vec<u8> {
    xz(bytes, XzOptions::with_preset(level))
}

/// The same behind a filter for machine code.
pub(crate) fn xz_filtered(bytes: &[u8], filter: FilterType) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.filters.push(FilterConfig {
        filter_type: filter,
        property: u32::from(filter == FilterType::Delta),
    });
    options.check_type = CheckType::Crc32;
    xz(bytes, options)
}

/// One member of lzip.
pub(crate) fn lzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = LzipWriter::new(Vec::new(), LzipOptions::with_preset(6));
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

/// A file of LZMA alone, its size in its head or an end behind its data.
pub(crate) fn lzma(bytes: &[u8], size: Option<u64>) -> Vec<u8> {
    lzma_with(bytes, &LzmaOptions::with_preset(6), size)
}

/// The same with these properties.
pub(crate) fn lzma_with(bytes: &[u8], options: &LzmaOptions, size: Option<u64>) -> Vec<u8> {
    let mut writer = LzmaWriter::new_use_header(Vec::new(), options, size).expect("options");
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

/// How a frame of LZ4 is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lz4Frame {
    pub(crate) flags: u8,
    /// 4 to 7, for 64 KiB to 4 MiB.
    pub(crate) block: u8,
    /// Bytes of a block.
    pub(crate) bytes: usize,
}

/// Blocks that stand for themselves, with nothing beside them.
pub(crate) const LZ4: Lz4Frame = Lz4Frame {
    flags: 0x60,
    block: 4,
    bytes: 40_000,
};

/// One frame of LZ4.
pub(crate) fn lz4(bytes: &[u8], frame: Lz4Frame) -> Vec<u8> {
    let is_linked = frame.flags & 0x20 == 0;
    let mut head = vec![frame.flags, frame.block << 4];
    if frame.flags & 8 != 0 {
        head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    }
    let mut made = vec![0x04, 0x22, 0x4d, 0x18];
    made.extend_from_slice(&head);
    made.push(xxh32(&head).to_le_bytes()[1]);
    for (turn, block) in bytes.chunks(frame.bytes).enumerate() {
        let before = turn * frame.bytes;
        let window = &bytes[before.saturating_sub(64 << 10)..before];
        let packed = if is_linked {
            lz4_flex::block::compress_with_dict(block, window)
        } else {
            lz4_flex::block::compress(block)
        };
        let is_stored = packed.len() >= block.len();
        let data = if is_stored { block } else { &packed };
        let size = u32::try_from(data.len()).expect("a short block");
        let size = if is_stored { size | 1 << 31 } else { size };
        made.extend_from_slice(&size.to_le_bytes());
        made.extend_from_slice(data);
        if frame.flags & 0x10 != 0 {
            made.extend_from_slice(&[7; 4]);
        }
    }
    made.extend_from_slice(&[0; 4]);
    if frame.flags & 4 != 0 {
        made.extend_from_slice(&[9; 4]);
    }
    made
}

/// LZ4 without a header.
pub(crate) fn lz4_legacy(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x02, 0x21, 0x4c, 0x18];
    for block in bytes.chunks(8 << 20) {
        let packed = lz4_flex::block::compress(block);
        let size = u32::try_from(packed.len()).expect("a short block");
        made.extend_from_slice(&size.to_le_bytes());
        made.extend_from_slice(&packed);
    }
    made
}

/// xxHash of 32 bits with the seed 0, of fewer than 16 bytes.
fn xxh32(bytes: &[u8]) -> u32 {
    let (two, three) = (0x85eb_ca77_u32, 0xc2b2_ae3d_u32);
    let length = u32::try_from(bytes.len()).expect("a header");
    let mut sum = 0x1656_67b1_u32.wrapping_add(length);
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    for word in words {
        let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
        sum = sum.wrapping_add(word.wrapping_mul(three));
        sum = sum.rotate_left(17).wrapping_mul(0x27d4_eb2f);
    }
    for byte in rest {
        sum = sum.wrapping_add(u32::from(*byte).wrapping_mul(0x1656_67b1));
        sum = sum.rotate_left(11).wrapping_mul(0x9e37_79b1);
    }
    sum = (sum ^ (sum >> 15)).wrapping_mul(two);
    sum = (sum ^ (sum >> 13)).wrapping_mul(three);
    sum ^ (sum >> 16)
}
