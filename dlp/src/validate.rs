//! Offline checks of what a pattern matched: checksums, structure, entropy.
//! A check never clears a finding because a checksum is wrong.

use std::fmt;

use crate::detector::Validator;
use crate::finding::Checked;

/// What is checked.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The whole match.
    pub text: &'a [u8],
    /// The credential in it.
    pub secret: &'a [u8],
    /// The pinned host it is going to.
    pub host: &'a str,
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Subject({} bytes for {})",
            self.text.len(),
            self.host
        )
    }
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// How the checksum or the structure came out.
    Checked(Checked),
    /// It is a placeholder of documentation, no credential.
    Placeholder,
    /// The credential names where it belongs.
    Claims {
        /// How the structure came out.
        checked: Checked,
        /// The hosts, as host patterns.
        hosts: Vec<String>,
    },
}

impl Validator {
    /// Checks what was matched.
    pub fn check(self, _subject: &Subject<'_>) -> Outcome {
        match self {
            Self::None | Self::Entropy => Outcome::Checked(Checked::None),
        }
    }
}

/// The Shannon entropy of `bytes`, in bits a byte.
pub(crate) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0_u16; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
    }
    let total: u32 = counts.iter().copied().map(u32::from).sum();
    let Some(total) = u16::try_from(total)
        .ok()
        .map(f32::from)
        .filter(|total| *total > 0.0)
    else {
        // Longer than any match: whatever it is, it is not made of one letter.
        return if total == 0 { 0.0 } else { 8.0 };
    };
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f32::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}
