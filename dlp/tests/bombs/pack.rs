//! What attacks are packed with: formats as they are written, also where no program
//! would write them so.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    made.extend(compress_to_vec(bytes, 6));
    made.extend_from_slice(&[0; 8]);
    made
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Bits, the lowest of a number first (RFC 1951 3.1.1, RFC 7932 1.5.1).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    filled: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for place in 0..count {
            if self.filled.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value >> place & 1 == 1) << (self.filled % 8);
            }
            self.filled += 1;
        }
    }
}

/// Windows as a stream of brotli begins (RFC 7932 9.1), with the bits of that.
pub(crate) const WINDOW_64_KIB: (u32, u32) = (0, 1);
pub(crate) const WINDOW_8_MIB: (u32, u32) = (0x0d, 4);
pub(crate) const WINDOW_16_MIB: (u32, u32) = (0x0f, 4);

/// So many meta-blocks of brotli (RFC 7932 9.2), each 16 MiB of one letter in 14
/// bytes: every prefix code has one symbol, which takes no bits.
pub(crate) fn brotli((window, width): (u32, u32), blocks: usize) -> Vec<u8> {
    const BLOCK_BYTES: u32 = 1 << 24;
    // The longest insertion: code 23 with its 24 bits, beside the shortest copy.
    const INSERT: u32 = 448 + 7 * 8;
    const INSERT_BYTES: u32 = 22594;
    let mut bits = Bits::default();
    bits.put(window, width);
    for _ in 0..blocks {
        // Not the last, six nibbles of length, compressed.
        bits.put(0, 1);
        bits.put(2, 2);
        bits.put(BLOCK_BYTES - 1, 24);
        bits.put(0, 1);
        // One kind of blocks each, no direct distances, one tree each.
        bits.put(0, 3 + 6 + 2 + 2);
        for (symbol, width) in [(0, 8), (INSERT, 10), (0, 6)] {
            bits.put(1, 2);
            bits.put(0, 2);
            bits.put(symbol, width);
        }
        bits.put(BLOCK_BYTES - INSERT_BYTES, 24);
    }
    bits.put(3, 2);
    bits.bytes
}

/// An entry of a zip archive (APPNOTE 4.3.7) that says it is so long.
pub(crate) fn entry(method: u16, length: u32, data: &[u8]) -> Vec<u8> {
    let mut made = b"PK\x03\x04\x14\0\0\0".to_vec();
    made.extend_from_slice(&method.to_le_bytes());
    made.extend_from_slice(&[0; 8]);
    made.extend_from_slice(&length.to_le_bytes());
    made.extend_from_slice(&length.to_le_bytes());
    made.extend_from_slice(&[1, 0, 0, 0, b'a']);
    made.extend_from_slice(data);
    made
}

pub(crate) fn stored(data: &[u8]) -> Vec<u8> {
    entry(0, u32::try_from(data.len()).expect("below 4 GiB"), data)
}

pub(crate) fn deflated(data: &[u8]) -> Vec<u8> {
    let data = compress_to_vec(data, 6);
    entry(8, u32::try_from(data.len()).expect("below 4 GiB"), &data)
}

/// A pack of git of so many objects.
pub(crate) fn pack(objects: &[&[u8]]) -> Vec<u8> {
    let mut made = b"PACK\0\0\0\x02".to_vec();
    made.extend_from_slice(&u32::try_from(objects.len()).expect("a few").to_be_bytes());
    for object in objects {
        made.push(0x30);
        made.extend(compress_to_vec_zlib(object, 6));
    }
    made
}

/// Files that are all in one stream of deflate: each quotes the head of the next one
/// and goes on in it, and the last is a bomb.
pub(crate) fn quoted(files: usize, kernel: &[u8]) -> Vec<u8> {
    let head = entry(8, 1 << 30, b"");
    let length = u16::try_from(head.len()).expect("a short head");
    let [low, high] = length.to_le_bytes();
    let quote = [head.as_slice(), &[0, low, high, !low, !high]].concat();
    [quote.repeat(files), head, compress_to_vec(kernel, 6)].concat()
}

/// The header of a frame of zstd with a window of so many bytes, a power of two.
pub(crate) fn frame(window: u64) -> Vec<u8> {
    let exponent = u8::try_from(window.ilog2() - 10).expect("of a byte");
    [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3].to_vec()
}

/// A block of zstd (RFC 8878 3.1.1.2): raw, or one byte so many times.
pub(crate) fn raw(bytes: &[u8]) -> Vec<u8> {
    [&block(0, bytes.len()), bytes].concat()
}

pub(crate) fn repeated(byte: u8, count: usize) -> Vec<u8> {
    [&block(1, count)[..], &[byte]].concat()
}

fn block(kind: u32, size: usize) -> [u8; 3] {
    let size = u32::try_from(size).expect("below 2 MiB");
    let [low, middle, high, _] = (size << 3 | kind << 1).to_le_bytes();
    [low, middle, high]
}

/// The last block, which is empty.
pub(crate) const LAST: [u8; 3] = [1, 0, 0];

/// An entry and a directory (APPNOTE 4.3.12) that names it as often as it can.
pub(crate) fn directory(kernel: &[u8]) -> Vec<u8> {
    let mut made = deflated(kernel);
    let begin = u32::try_from(made.len()).expect("a short kernel");
    let (size, length) = (begin - 31, u32::try_from(kernel.len()).expect("short"));
    for _ in 0..u16::MAX {
        made.extend_from_slice(b"PK\x01\x02\x14\0\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0");
        made.extend_from_slice(&size.to_le_bytes());
        made.extend_from_slice(&length.to_le_bytes());
        // A name of one byte; no more of it, no remark, where the entry stands: at 0.
        made.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'a']);
    }
    let end = u32::try_from(made.len()).expect("below 4 GiB");
    made.extend_from_slice(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff");
    made.extend_from_slice(&(end - begin).to_le_bytes());
    made.extend_from_slice(&begin.to_le_bytes());
    made.extend_from_slice(&[0, 0]);
    made
}
