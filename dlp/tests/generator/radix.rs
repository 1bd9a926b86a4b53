//! Codings whose symbols are digits of some radix, as their own programs write them.

pub(crate) const BASE64: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(crate) const BASE64_URL: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
pub(crate) const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(crate) const BASE32_SMALL: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE45: &[u8; 45] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
const BASE91: &[u8; 91] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&()*+,./:;<=>?@[]^_`{|}~\"";
/// RFC 1924, as Python and git write it.
pub(crate) const BASE85: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// Z85 of ZeroMQ (32/Z85).
pub(crate) const Z85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Symbols of so many bits, without padding.
pub(crate) fn bits(bytes: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let width = alphabet.len().ilog2();
    let (mut rest, mut filled, mut made) = (0_u32, 0, Vec::new());
    let mask = (1 << width) - 1;
    for byte in bytes {
        rest = (rest << 8) | u32::from(*byte);
        filled += 8;
        while filled >= width {
            filled -= width;
            made.push(alphabet[(rest >> filled & mask) as usize]);
        }
        rest &= (1 << filled) - 1;
    }
    if filled > 0 {
        made.push(alphabet[(rest << (width - filled) & mask) as usize]);
    }
    made
}

/// The same, filled up to whole groups.
pub(crate) fn padded(bytes: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let group = if alphabet.len() == 64 { 4 } else { 8 };
    let mut made = bits(bytes, alphabet);
    while !made.len().is_multiple_of(group) {
        made.push(b'=');
    }
    made
}

/// As Bitcoin writes numbers: one number of all bytes.
pub(crate) fn base58(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut digits: Vec<u32> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            digits.push(carry % 58);
            carry /= 58;
        }
    }
    let mut made = vec![b'1'; zeros];
    made.extend(digits.iter().rev().map(|digit| BASE58[*digit as usize]));
    made
}

/// RFC 9285.
pub(crate) fn base45(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    for pair in bytes.chunks(2) {
        let number = pair
            .iter()
            .fold(0, |all, byte| all << 8 | usize::from(*byte));
        made.push(BASE45[number % 45]);
        made.push(BASE45[number / 45 % 45]);
        if pair.len() == 2 {
            made.push(BASE45[number / 45 / 45]);
        }
    }
    made
}

/// basE91 of Joachim Henke.
pub(crate) fn base91(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut filled, mut made) = (0_u32, 0, Vec::new());
    for byte in bytes {
        rest |= u32::from(*byte) << filled;
        filled += 8;
        if filled > 13 {
            let mut number = rest & 8191;
            let width = if number > 88 { 13 } else { 14 };
            number = rest & ((1 << width) - 1);
            rest >>= width;
            filled -= width;
            made.push(BASE91[(number % 91) as usize]);
            made.push(BASE91[(number / 91) as usize]);
        }
    }
    if filled > 0 {
        made.push(BASE91[(rest % 91) as usize]);
        if filled > 7 || rest > 90 {
            made.push(BASE91[(rest / 91) as usize]);
        }
    }
    made
}

/// Five digits for four bytes; the last group is cut.
pub(crate) fn base85(bytes: &[u8], alphabet: &[u8; 85]) -> Vec<u8> {
    let mut made = Vec::new();
    for group in bytes.chunks(4) {
        let (digits, _) = fives(group);
        let digits = digits.iter().take(group.len() + 1);
        made.extend(digits.map(|digit| alphabet[*digit]));
    }
    made
}

fn fives(group: &[u8]) -> ([usize; 5], u32) {
    let mut four = [0; 4];
    four[..group.len()].copy_from_slice(group);
    let number = u32::from_be_bytes(four);
    let (mut rest, mut digits) = (number, [0; 5]);
    for digit in digits.iter_mut().rev() {
        *digit = (rest % 85) as usize;
        rest /= 85;
    }
    (digits, number)
}

/// As PostScript and Python write it: `z` for zeros.
pub(crate) fn ascii85(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    for group in bytes.chunks(4) {
        let (digits, number) = fives(group);
        if number == 0 && group.len() == 4 {
            made.push(b'z');
            continue;
        }
        let digits = digits.iter().take(group.len() + 1);
        made.extend(digits.map(|digit| b'!' + u8::try_from(*digit).expect("below 85")));
    }
    made
}

/// Between `begin` and `end` (POSIX uuencode).
pub(crate) fn uuencode(bytes: &[u8]) -> Vec<u8> {
    let mut made = b"begin 644 data.bin\n".to_vec();
    for line in bytes.chunks(45) {
        made.push(b' ' + u8::try_from(line.len()).expect("a line"));
        for group in line.chunks(3) {
            let mut three = [0; 3];
            three[..group.len()].copy_from_slice(group);
            let number = three
                .iter()
                .fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
            for place in [18, 12, 6, 0] {
                let symbol = u8::try_from(number >> place & 63).expect("six bits");
                made.push(if symbol == 0 { b'`' } else { b' ' + symbol });
            }
        }
        made.push(b'\n');
    }
    made.extend_from_slice(b"`\nend\n");
    made
}

/// yEnc 1.3.
pub(crate) fn yenc(bytes: &[u8]) -> Vec<u8> {
    let size = bytes.len();
    let mut made = format!("=ybegin line=128 size={size} name=data.bin\r\n").into_bytes();
    for line in bytes.chunks(128) {
        for byte in line {
            let moved = byte.wrapping_add(42);
            if matches!(moved, 0 | b'\n' | b'\r' | b'=') {
                made.push(b'=');
                made.push(moved.wrapping_add(64));
            } else {
                made.push(moved);
            }
        }
        made.extend_from_slice(b"\r\n");
    }
    made.extend_from_slice(format!("=yend size={size}\r\n").as_bytes());
    made
}
