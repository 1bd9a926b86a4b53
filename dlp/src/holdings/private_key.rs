//! Private keys in PEM: the part of their base 64 that is secret. Labels and
//! public halves are in other people's files too.

use super::Collector;
use crate::secret::Secret;
use crate::validate::base64;

const OPENSSH: &[u8] = b"openssh-key-v1\0";

/// Every private key of a text.
pub(super) fn read(text: &str, into: &mut Collector<'_>) {
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

fn key(body: &str, into: &mut Collector<'_>) {
    // Fields of an old encrypted key have colons; its body follows an empty line.
    let lines = body.lines().filter(|line| !line.contains(':'));
    // Room from the start: what moves leaves a copy behind.
    let mut joined = Vec::with_capacity(body.len());
    for line in lines {
        joined.extend(line.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    }
    let joined = Secret::new(joined);
    let Some(bytes) = base64::decode(joined.expose()).map(Secret::new) else {
        return;
    };
    let bytes = bytes.expose();
    let first = secret_part(bytes).unwrap_or(bytes.len() / 3);
    let character = first.saturating_mul(4).div_ceil(3);
    if let Some(text) = joined.expose().get(character..) {
        let end = text.iter().rposition(|byte| *byte != b'=');
        let end = end.map_or(0, |last| last.saturating_add(1));
        into.kept(text.get(..end).unwrap_or_default());
    }
    if let Some(secret) = bytes.get(first..) {
        into.kept(secret);
    }
}

/// Where in a key of OpenSSH the private numbers begin (PROTOCOL.key): behind
/// the ciphers, the public key and, when it is not encrypted, its copy.
fn secret_part(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader {
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
        return Some(reader.place);
    }
    // Two equal numbers, then the kind and its public numbers once more.
    reader.skip(8)?;
    let kind = reader.string()?;
    let public = match kind {
        b"ssh-rsa" => 2,
        kind if kind.starts_with(b"ecdsa") => 2,
        _ => 1,
    };
    for _ in 0..public {
        reader.string()?;
    }
    reader.skip(4)?;
    Some(reader.place)
}

struct Reader<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Reader<'a> {
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
