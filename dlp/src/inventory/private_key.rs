//! Private keys in PEM: the part of their base 64 that is secret. Labels and
//! public halves are in other people's files too.

use std::ops::Range;

use super::HeldValues;
use crate::secret::SecretBytes;
use crate::validate::base64;

const OPENSSH: &[u8] = b"openssh-key-v1\0";
/// Longest key that holds one private number, in bytes; those of RSA are longer.
const SHORT_BYTES_MAX: usize = 256;
/// The secret of Ed25519, in bytes (RFC 8032 5.1.5).
const SEED_BYTES: usize = 32;

/// Every private key of a text.
pub(super) fn read(text: &str, into: &mut HeldValues<'_>) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((label, after)) = after.split_once("-----") else {
            return;
        };
        let Some((body, after)) = after.split_once("-----END ") else {
            return;
        };
        if label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK") {
            key(body, into);
        }
        rest = after;
    }
}

fn key(body: &str, into: &mut HeldValues<'_>) {
    // Fields of an old encrypted key have colons; its body follows an empty line.
    let lines = body.lines().filter(|line| !line.contains(':'));
    // Room from the start: what moves leaves a copy behind.
    let mut joined = Vec::with_capacity(body.len());
    for line in lines {
        joined.extend(line.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    }
    let joined = SecretBytes::new(joined);
    let Some(bytes) = base64::decode(joined.expose()).map(SecretBytes::new) else {
        return;
    };
    let bytes = bytes.expose();
    let secret = secret_part(bytes)
        .or_else(|| scalar(bytes))
        .unwrap_or(bytes.len() / 3..bytes.len());
    let first = secret.start.saturating_mul(4).div_ceil(3);
    let last = secret.end.saturating_mul(4) / 3;
    let text = joined.expose().get(first..last);
    for part in [text, bytes.get(secret)].into_iter().flatten() {
        into.kept(part);
    }
}

/// The one private number of a short key in DER (RFC 5915, RFC 8410): what stands
/// behind it may be the public half.
fn scalar(bytes: &[u8]) -> Option<Range<usize>> {
    if bytes.len() > SHORT_BYTES_MAX {
        return None;
    }
    let is_one = |head: &[u8]| matches!(head, [0x04, 0x20 | 0x30 | 0x39 | 0x42]);
    let start = bytes.windows(2).position(is_one)?.checked_add(2)?;
    let length = usize::from(*bytes.get(start.checked_sub(1)?)?);
    let end = start.checked_add(length)?;
    (end <= bytes.len()).then_some(start..end)
}

/// Where in a key of OpenSSH the private numbers stand (PROTOCOL.key): behind
/// the ciphers, the public key and, when it is not encrypted, its copy.
fn secret_part(bytes: &[u8]) -> Option<Range<usize>> {
    let mut reader = DerReader {
        bytes,
        place: OPENSSH.len(),
    };
    if !bytes.starts_with(OPENSSH) {
        return None;
    }
    let cipher = reader.string()?;
    reader.string()?;
    reader.string()?;
    reader.skip(4)?;
    reader.string()?;
    reader.skip(4)?;
    if cipher != b"none" {
        return Some(reader.place..bytes.len());
    }
    // Two equal numbers, then the kind and its public numbers once more.
    reader.skip(8)?;
    let kind = reader.string()?;
    let is_edwards = kind == b"ssh-ed25519";
    let (public, private) = match kind {
        b"ssh-rsa" => (2, 4),
        kind if kind.starts_with(b"ecdsa") => (2, 1),
        _ => (1, 1),
    };
    for _ in 0..public {
        reader.string()?;
    }
    let start = reader.place.checked_add(4)?;
    for _ in 0..private {
        reader.string()?;
    }
    // The second half of this number is the public key.
    let end = if is_edwards {
        start.checked_add(SEED_BYTES)?.min(reader.place)
    } else {
        reader.place
    };
    Some(start..end)
}

struct DerReader<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> DerReader<'a> {
    fn skip(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.place.checked_add(count)?;
        let taken = self.bytes.get(self.place..end)?;
        self.place = end;
        Some(taken)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_be_bytes(*self.skip(4)?.first_chunk::<4>()?);
        self.skip(usize::try_from(length).ok()?)
    }
}
