//! The signature at the end of a chain (Ed25519, RFC 8032), which the chain alone
//! does not give: no line after the last one names its hash. The key is made with
//! the record and lives in this process only; its public half stands in the first
//! line. A signed line is signed up to its signature, which is its last member.

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

/// What stands between a line and its signature.
const MEMBER: &[u8] = b",\"signature\":\"";
/// What stands behind it.
const END: &[u8] = b"\"}";
/// What is signed besides the line, so that the key signs nothing else.
const CONTEXT: &[u8] = b"outgate record\0";
const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// The private half of a record's key.
pub struct Signer {
    pair: Ed25519KeyPair,
    public: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Signer").field(&self.public).finish()
    }
}

impl Signer {
    /// A new one; `None` where the system has no random numbers.
    pub fn new() -> Option<Self> {
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(seed.as_mut_slice()).ok()?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).ok()?;
        let public = HEXLOWER.encode(pair.public_key().as_ref());
        Some(Self { pair, public })
    }

    /// The public half, in hexadecimal.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs a line, an object of JSON without its line break. `start` is where it
    /// begins.
    pub fn sign(&self, text: &mut Vec<u8>, start: usize) {
        if text.last() != Some(&b'}') {
            return;
        }
        text.pop();
        let line = text.get(start..).unwrap_or_default();
        let signature = self.pair.sign(&[CONTEXT, line].concat());
        text.extend_from_slice(MEMBER);
        text.extend_from_slice(HEXLOWER.encode(signature.as_ref()).as_bytes());
        text.extend_from_slice(END);
    }
}

/// Whether a line is signed by this key, given in hexadecimal.
pub(crate) fn is_signed(line: &[u8], key: &str) -> bool {
    let signed = || {
        let body = line.strip_suffix(END)?;
        let at = body.len().checked_sub(2 * SIGNATURE_BYTES)?;
        let (rest, digits) = body.split_at_checked(at)?;
        let signature = HEXLOWER.decode(digits).ok()?;
        let said = [CONTEXT, rest.strip_suffix(MEMBER)?].concat();
        let key = UnparsedPublicKey::new(&ED25519, HEXLOWER.decode(key.as_bytes()).ok()?);
        key.verify(&said, &signature).ok()
    };
    signed().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_signed_as_a_whole_by_its_key_alone() {
        let (signer, other) = (Signer::new().unwrap(), Signer::new().unwrap());
        let mut text = b"{}\n{\"a\":1,\"b\":\"x\"}".to_vec();
        signer.sign(&mut text, 3);
        let line = &text[3..];
        assert!(is_signed(line, signer.public()));
        assert!(!is_signed(line, other.public()));
        assert!(!is_signed(line, ""));
        for place in 0..line.len() {
            let mut changed = line.to_vec();
            changed[place] ^= 1;
            assert!(!is_signed(&changed, signer.public()), "{place}");
        }
        let longer = [line, b" "].concat();
        for bad in [
            &line[1..],
            &line[..line.len() - 1],
            &longer,
            b"{\"a\":1,\"b\":\"x\"}",
            b"",
        ] {
            assert!(!is_signed(bad, signer.public()));
        }
    }
}
