//! The forms in which a value is looked for without any decoding: so that a
//! budget, a short run or a strange alphabet cannot hide it.

use crate::secret::Secret;
use crate::validate::base64::{self, STANDARD, URL};

/// How a known value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// As it is.
    Raw,
    /// Last byte first.
    Reversed,
    /// In base 64, in either alphabet, at any phase.
    Base64,
    /// In hexadecimal.
    Hex,
}

/// A value in each form, without what depends on its neighbours.
pub(crate) fn forms(value: &[u8]) -> Vec<(Form, Secret)> {
    let mut forms = vec![(Form::Raw, Secret::new(value.to_vec()))];
    let mut reversed = value.to_vec();
    reversed.reverse();
    forms.push((Form::Reversed, Secret::new(reversed)));
    for phase in 0..3 {
        let standard = phased(value, phase, STANDARD);
        let url = phased(value, phase, URL);
        let differs = standard.expose() != url.expose();
        forms.push((Form::Base64, standard));
        if differs {
            forms.push((Form::Base64, url));
        }
    }
    let digits = |letters: &[u8; 16]| {
        let digit = |value: u8| {
            letters
                .get(usize::from(value & 15))
                .copied()
                .unwrap_or(b'0')
        };
        // Room from the start, here and below: what moves leaves a copy behind.
        let mut text = Vec::with_capacity(value.len().saturating_mul(2));
        for byte in value {
            text.extend([digit(byte >> 4), digit(*byte)]);
        }
        Secret::new(text)
    };
    forms.push((Form::Hex, digits(b"0123456789abcdef")));
    forms.push((Form::Hex, digits(b"0123456789ABCDEF")));
    forms
}

/// The characters that hold bits of the value alone when so many bytes stand
/// before it in its group of three.
fn phased(value: &[u8], phase: usize, alphabet: [u8; 2]) -> Secret {
    let mut padded = Vec::with_capacity(value.len().saturating_add(phase));
    padded.resize(phase, 0);
    padded.extend_from_slice(value);
    let padded = Secret::new(padded);
    let text = base64::encode(padded.expose(), alphabet);
    let first = phase.saturating_mul(8).div_ceil(6);
    let last = padded.expose().len().saturating_mul(8) / 6;
    let kept = text.get(first..last).unwrap_or_default().to_vec();
    drop(Secret::new(text));
    Secret::new(kept)
}
