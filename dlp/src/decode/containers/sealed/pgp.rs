//! OpenPGP messages, in binary and as text, told by their packets: as closely as the formats
//! allow, so that hardly anything else begins like them.

use crate::span;
/// Packets before the first that says what it is, in count.
const PACKETS_MAX: usize = 8;

/// The longest packet before the encrypted data, in bytes: what is looked at is not kept for
/// longer.
const PACKET_BYTES_MAX: usize = 3072;

/// A line that says so, and behind an empty one a line of base 64, or fields of its own that
/// go on for long.
pub(super) fn pgp_text(here: &[u8]) -> Option<bool> {
    /// Bytes of the fields in front of the text: programs write a few short ones.
    const HEAD_BYTES_MAX: usize = 1024;
    let text = here.get(27..)?;
    let few = text.get(..HEAD_BYTES_MAX).unwrap_or(text);
    let ends: [&[u8]; 4] = [b"\n\n", b"\r\n\r\n", b"\\n\\n", b"\\r\\n\\r\\n"];
    let ends = ends.iter().filter_map(|end| {
        let at = memchr::memmem::find(few, end)?;
        Some(at + end.len())
    });
    let Some(begin) = ends.min() else {
        return (few.len() == HEAD_BYTES_MAX).then(|| begins_with_field(few));
    };
    let line = text.get(begin..begin + 40)?;
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    Some(line.iter().all(is_one))
}

/// Whether the next line is a field of an armored message (RFC 9580 6.2.2).
fn begins_with_field(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"Version", b"Comment", b"Hash", b"Charset", b"MessageID"];
    // Before it an end of a line, perhaps escaped, and marks of a quotation.
    let is_before = |byte: &u8| byte.is_ascii_whitespace() || b"\\rn>|-\"".contains(byte);
    let before = text.iter().take_while(|byte| is_before(byte)).count();
    let line = span::from(text, before);
    NAMES.iter().any(|name| {
        let behind = line.strip_prefix(*name);
        behind.is_some_and(|behind| behind.starts_with(b":"))
    })
}

/// A key of the session for whoever reads it, and behind it another or the encrypted data
/// (RFC 9580 10.3.1), with what readers leave out before and between; data without such keys
/// begin like much else, unless a marker is before them.
pub(super) fn pgp(here: &[u8]) -> Option<bool> {
    let mut rest = here;
    let mut has_marker = false;
    for _ in 0..PACKETS_MAX {
        let (tag, length, begin) = packet(rest)?;
        match tag {
            MARKER | PADDING => {}
            _ if has_marker && tag == SEIPD => return is_data(rest),
            _ => return is_key(rest),
        }
        let Some(length) = length.filter(|length| *length <= PACKET_BYTES_MAX) else {
            return Some(false);
        };
        if tag == MARKER && !is_marker(rest)? {
            return Some(false);
        }
        has_marker |= tag == MARKER;
        rest = rest.get(begin.checked_add(length)?..)?;
    }
    Some(false)
}

const PKESK: u8 = 1;
const SKESK: u8 = 3;
const SED: u8 = 9;
const MARKER: u8 = 10;
const SEIPD: u8 = 18;
const AEAD: u8 = 20;
const PADDING: u8 = 21;

/// Whether a marker begins here, a packet of three letters (RFC 9580 5.8).
fn is_marker(here: &[u8]) -> Option<bool> {
    let (_, length, begin) = packet(here)?;
    let letters = here.get(begin..begin.checked_add(3)?)?;
    Some(length == Some(3) && letters == b"PGP")
}

/// Whether a key of a session begins here, and behind it what belongs there.
fn is_key(here: &[u8]) -> Option<bool> {
    let (tag, length, begin) = packet(here)?;
    let Some(length) = length.filter(|length| *length <= PACKET_BYTES_MAX) else {
        return Some(false);
    };
    let content = here.get(begin..)?;
    let version = *content.first()?;
    let is_plausible = match (tag, version) {
        // Behind the number of a key stands an algorithm.
        (PKESK, 3) => is_of_algorithm(*content.get(9)?, content.get(10..)?, length)?,
        // Before it stands how long the name of the key is, with its version.
        (PKESK, 6) => matches!(*content.get(1)?, 0 | 21 | 33),
        (SKESK, 4) => *content.get(1)? <= 13 && *content.get(2)? <= 4,
        (SKESK, 5 | 6) => *content.get(1)? <= 64 && *content.get(2)? <= 13,
        _ => false,
    };
    if !is_plausible {
        return Some(false);
    }
    let next = here.get(begin.checked_add(length)?..)?;
    let (tag, _, begin) = packet(next)?;
    match tag {
        // Padding is a random number of any length.
        SED | PADDING => Some(true),
        SEIPD | AEAD => is_data(next),
        MARKER => is_marker(next),
        PKESK => Some(matches!(*next.get(begin)?, 2 | 3 | 6)),
        SKESK => Some(matches!(*next.get(begin)?, 4..=6)),
        _ => Some(false),
    }
}

/// Whether an encrypted key goes with an algorithm (RFC 9580 9.1, and what programs have
/// added): where it is one number or two (RFC 9580 3.2), these fill the packet.
fn is_of_algorithm(algorithm: u8, key: &[u8], length: usize) -> Option<bool> {
    let left = length.checked_sub(10);
    let number = |from: usize| -> Option<usize> {
        let bits: [u8; 2] = key.get(from..from.checked_add(2)?)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bits)).div_ceil(8) + 2)
    };
    Some(match algorithm {
        1 | 2 => left == Some(number(0)?),
        16 | 20 => {
            let first = number(0)?;
            // The second does not begin where the packet is over.
            left.is_some_and(|left| first + 2 < left) && left == Some(first + number(first)?)
        }
        8 | 18 | 22..=36 => left.is_some_and(|left| left >= 32),
        _ => false,
    })
}

/// Whether encrypted data begin here, of a version that there is (RFC 9580 5.13).
fn is_data(here: &[u8]) -> Option<bool> {
    let (_, _, begin) = packet(here)?;
    Some(match *here.get(begin)? {
        1 => true,
        2 => *here.get(begin.checked_add(1)?)? <= 13,
        _ => false,
    })
}

/// The tag of a packet, its length if it is one, and where its content begins; the tag 0
/// where none does (RFC 9580 4.2).
pub(super) fn packet(here: &[u8]) -> Option<(u8, Option<usize>, usize)> {
    let first = *here.first()?;
    let byte = |at: usize| here.get(at).copied().map(usize::from);
    if first & 0xc0 == 0xc0 {
        let length = byte(1)?;
        return Some(match length {
            0..=191 => (first & 0x3f, Some(length), 2),
            192..=223 => (
                first & 0x3f,
                Some(((length - 192) << 8) + byte(2)? + 192),
                3,
            ),
            255 => {
                let bytes: [u8; 4] = here.get(2..6)?.try_into().ok()?;
                (
                    first & 0x3f,
                    usize::try_from(u32::from_be_bytes(bytes)).ok(),
                    6,
                )
            }
            _ => (first & 0x3f, None, 2),
        });
    }
    if first & 0x80 == 0 {
        return Some((0, None, 1));
    }
    let tag = (first >> 2) & 0x0f;
    Some(match first & 3 {
        0 => (tag, Some(byte(1)?), 2),
        1 => (tag, Some((byte(1)? << 8) + byte(2)?), 3),
        2 => {
            let bytes: [u8; 4] = here.get(1..5)?.try_into().ok()?;
            (tag, usize::try_from(u32::from_be_bytes(bytes)).ok(), 5)
        }
        _ => (tag, None, 1),
    })
}
