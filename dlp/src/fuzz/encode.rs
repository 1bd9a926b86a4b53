//! Codings as a sender applies them, each as short as it can be said.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

/// A coding.
pub(super) type Encode = fn(&[u8]) -> Vec<u8>;

/// Those that an input of the scan may ask for, by their places.
pub(super) const ENCODE: [Encode; 12] = [
    |bytes| base64(bytes, *b"+/"),
    |bytes| base64(bytes, *b"-_"),
    |bytes| each(bytes, |byte| format!("{byte:02x}")),
    |bytes| base32(bytes, b'A'),
    |bytes| each(bytes, |byte| format!("%{byte:02x}")),
    |bytes| each(bytes, |byte| format!("\\u{byte:04x}")),
    |bytes| each(bytes, |byte| format!("&#{byte};")),
    |bytes| each(bytes, |byte| format!("={byte:02X}")),
    |bytes| bytes.iter().flat_map(|byte| [*byte, 0]).collect(),
    gzip,
    |bytes| base64(&compress_to_vec_zlib(bytes, 6), *b"+/"),
    |bytes| latin(&gzip(bytes)),
];

/// Every byte as a text.
pub(crate) fn each(bytes: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| form(*byte).into_bytes())
        .collect()
}

/// base64 without padding, with these two signs.
pub(super) fn base64(bytes: &[u8], signs: [u8; 2]) -> Vec<u8> {
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9');
    let alphabet: Vec<u8> = letters.chain(signs).collect();
    radix(bytes, 6, &alphabet)
}

/// base32 without padding, with letters from this one on.
pub(super) fn base32(bytes: &[u8], first: u8) -> Vec<u8> {
    let alphabet: Vec<u8> = (first..).take(26).chain(b'2'..=b'7').collect();
    radix(bytes, 5, &alphabet)
}

fn radix(bytes: &[u8], width: u32, alphabet: &[u8]) -> Vec<u8> {
    let (mut rest, mut filled, mut made) = (0_u32, 0, Vec::new());
    let mut put = |value: u32| made.extend(alphabet.get(value as usize));
    for byte in bytes {
        rest = (rest << 8) | u32::from(*byte);
        filled += 8;
        while filled >= width {
            filled -= width;
            put(rest >> filled);
            rest &= (1 << filled) - 1;
        }
    }
    if filled > 0 {
        put(rest << (width - filled));
    }
    made
}

/// Every byte as the character of that number.
fn latin(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().copied().map(char::from).collect();
    text.into_bytes()
}

/// One member of gzip.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    [&head, compress_to_vec(bytes, 6).as_slice(), &[0; 8]].concat()
}
