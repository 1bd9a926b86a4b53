//! Archives as a sender makes them: zip, and packs of git.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

fn entry(method: u16, name: &str, data: &[u8]) -> Vec<u8> {
    let mut made = b"PK\x03\x04".to_vec();
    // Version 2.0, a data descriptor, the method.
    made.extend_from_slice(&[20, 0, 8, 0]);
    made.extend_from_slice(&method.to_le_bytes());
    made.extend_from_slice(&[0; 16]);
    made.extend_from_slice(
        &u16::try_from(name.len())
            .expect("a short name")
            .to_le_bytes(),
    );
    made.extend_from_slice(&[0, 0]);
    made.extend_from_slice(name.as_bytes());
    made.extend_from_slice(data);
    made.extend_from_slice(b"PK\x07\x08\0\0\0\0\0\0\0\0\0\0\0\0");
    made
}

/// Two entries of a zip archive, the second with the content.
pub(crate) fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut made = entry(8, "first.txt", &compress_to_vec(b"nothing in here", 6));
    made.extend(entry(8, "folder/second.txt", &compress_to_vec(bytes, 6)));
    made
}

/// An entry of a zip archive that is compressed in this way (APPNOTE 4.4.5).
pub(crate) fn zip_of_method(method: u16, data: &[u8]) -> Vec<u8> {
    entry(method, "packed.txt", data)
}

/// Bytes of the record behind an entry.
pub(crate) const ENTRY_END_BYTES: usize = 16;

/// An entry of a zip archive as it is.
pub(crate) fn zip_stored(bytes: &[u8]) -> Vec<u8> {
    entry(0, "stored.txt", bytes)
}

fn object(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let mut made = vec![(kind << 4) | u8::try_from(length & 15).expect("four bits")];
    let mut rest = length >> 4;
    while rest > 0 {
        let last = made.len() - 1;
        made[last] |= 0x80;
        made.push(u8::try_from(rest & 127).expect("seven bits"));
        rest >>= 7;
    }
    if kind == 7 {
        made.extend_from_slice(&[0xab; 20]);
    }
    made.extend(compress_to_vec_zlib(bytes, 6));
    made
}

fn packed(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut made = b"PACK\0\0\0\x02".to_vec();
    made.extend_from_slice(&u32::try_from(objects.len()).expect("a few").to_be_bytes());
    made.extend(objects.concat());
    made.extend_from_slice(&[0; 20]);
    made
}

pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    packed(&[object(1, b"tree 0123\n\nmessage"), object(3, bytes)])
}

/// A delta that copies, adds the content in pieces, and copies again.
pub(crate) fn delta(bytes: &[u8]) -> Vec<u8> {
    let mut ops = vec![100, 100, 0x91, 0, 10];
    for piece in bytes.chunks(13) {
        ops.push(u8::try_from(piece.len()).expect("a short piece"));
        ops.extend_from_slice(piece);
    }
    ops.extend_from_slice(&[0x91, 0, 10]);
    packed(&[object(3, b"a base"), object(7, &ops)])
}
