//! The user's own secrets, known by keyed fingerprints: found wherever they
//! stand, raw, reversed, in base 64 at any phase and in hexadecimal, whatever
//! they look like.
//!
//! A value is hashed when it is added and not kept. What stays are fingerprints
//! of windows of it and, to find candidates quickly, keyed hashes of four
//! successive runs of four bytes from their middle. Other codings are removed by
//! the scan before it looks here.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::destination::{HostPattern, covers};
use crate::detector::Tier;
use crate::detector_set::Detectors;
use crate::holdings::{Holdings, Usage};
use crate::known_forms::{Form, forms};
use crate::secret::Secret;
use crate::validate::{entropy, placeholder};

/// Most values.
const VALUES_MAX: usize = 512;
/// Most windows of all values in all forms.
const WINDOWS_MAX: usize = 16_384;
/// Shortest value that counts, in bytes.
const VALUE_BYTES_MIN: usize = 10;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Up to this length a value is one window, in bytes.
const WHOLE_BYTES_MAX: usize = 64;
/// Length of a window of a longer value, in bytes.
const WINDOW_BYTES: usize = 40;
/// Windows of a longer value.
const WINDOWS_OF_VALUE: usize = 12;
/// Least entropy of a value, in bits a byte: below it are words.
const VALUE_BITS_MIN: f64 = 2.75;
/// Every so many bytes a candidate is looked for.
const STRIDE: usize = 4;
/// Bits of the filter for each anchor in it.
const FILTER_SHARE: usize = 64;

/// Why a value is not looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// Too short to be told from other text.
    Short,
    /// Longer than any secret.
    Long,
    /// A word, a placeholder or a number: it would be found everywhere.
    Plain,
    /// There are too many already.
    Many,
}

impl fmt::Display for Unfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(formatter, "shorter than {VALUE_BYTES_MIN} bytes"),
            Self::Long => write!(formatter, "longer than {VALUE_BYTES_MAX} bytes"),
            Self::Plain => formatter.write_str("too plain to be told from other text"),
            Self::Many => write!(formatter, "more than {VALUES_MAX} values"),
        }
    }
}

impl std::error::Error for Unfit {}

/// What is known of a value beside its fingerprints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownValue {
    /// Where it was read, such as `GITHUB_TOKEN` or `~/.netrc`.
    pub label: String,
    /// Where it may go.
    pub issuers: Vec<HostPattern>,
    /// How certain it is that it is a secret, and so what happens to it elsewhere.
    pub tier: Tier,
}

impl KnownValue {
    /// Whether it may go to a host.
    pub fn may_go_to(&self, host: &str) -> bool {
        let mut issuers = self.issuers.iter();
        issuers.any(|pattern| covers(&pattern.to_string(), host))
    }
}

/// Collects values. None of them is kept.
pub struct KnownBuilder {
    key: [u8; 32],
    values: Vec<KnownValue>,
    windows: Vec<Window>,
    anchors: Vec<Anchor>,
}

/// Known values, ready to be looked for. Immutable.
pub struct Known {
    key: [u8; 32],
    values: Vec<KnownValue>,
    windows: Vec<Window>,
    /// Sorted by hash.
    anchors: Vec<Anchor>,
    filter: Filter,
    longest: usize,
}

/// Where a known value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMatch {
    /// Which bytes, in the text that was searched.
    pub range: Range<usize>,
    /// Which value: its number for [`Known::value`].
    pub value: usize,
    /// In which form.
    pub form: Form,
}

struct Window {
    value: usize,
    form: Form,
    length: usize,
    /// A quick hash of its first eight bytes.
    begin: u32,
    print: [u8; 16],
}

#[derive(Clone, Copy)]
struct Anchor {
    hash: u32,
    window: usize,
    /// Where in the window it stands.
    offset: usize,
}

impl fmt::Debug for KnownBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KnownBuilder({} values)", self.values.len())
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Known({} values)", self.values.len())
    }
}

impl KnownBuilder {
    /// Nothing known. The key should be made for the run and kept nowhere else.
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            values: Vec::new(),
            windows: Vec::new(),
            anchors: Vec::new(),
        }
    }

    /// Adds a value, without white space around it.
    ///
    /// # Errors
    /// When it cannot be told from other text, or there are too many.
    pub fn add(&mut self, secret: &Secret, about: KnownValue) -> Result<(), Unfit> {
        let value = secret.expose().trim_ascii();
        fits(value)?;
        if self.values.len() >= VALUES_MAX || self.windows.len() >= WINDOWS_MAX {
            return Err(Unfit::Many);
        }
        let number = self.values.len();
        for part in parts(value) {
            for (form, text) in forms(part) {
                self.window(number, form, text.expose());
            }
        }
        self.values.push(about);
        Ok(())
    }

    /// Adds what was read from the user's own configuration, and says how much of
    /// it can be looked for.
    ///
    /// A value may go to the hosts its file names, and to those that issue its
    /// form. Where neither is known it is only reported.
    pub fn hold(&mut self, holdings: &Holdings, detectors: &Detectors) -> usize {
        let mut count: usize = 0;
        for holding in &holdings.values {
            let mut hosts = holding.hosts.clone();
            if holding.usage == Usage::Sent {
                hosts.extend(detectors.issuers_of(holding.value.expose()));
            }
            hosts.sort();
            hosts.dedup();
            let parsed = hosts
                .iter()
                .filter_map(|host| HostPattern::parse(host).ok());
            let issuers: Vec<HostPattern> = parsed.collect();
            let unknown = issuers.is_empty() && holding.usage == Usage::Sent;
            let about = KnownValue {
                label: holding.label.clone(),
                issuers,
                tier: if unknown { Tier::Context } else { Tier::Strong },
            };
            let added = self.add(&holding.value, about);
            count = count.saturating_add(usize::from(added.is_ok()));
        }
        count
    }

    fn window(&mut self, value: usize, form: Form, text: &[u8]) {
        let Some(begin) = text.first_chunk::<8>() else {
            return;
        };
        let number = self.windows.len();
        let first = text.len().saturating_sub(STRIDE.saturating_mul(2)) / 2;
        for offset in (first..).take(STRIDE) {
            if let Some(bytes) = text.get(offset..).and_then(|rest| rest.first_chunk::<4>()) {
                let hash = quick(&self.key, u32::from_le_bytes(*bytes));
                self.anchors.push(Anchor {
                    hash,
                    window: number,
                    offset,
                });
            }
        }
        self.windows.push(Window {
            value,
            form,
            length: text.len(),
            begin: quick_long(&self.key, *begin),
            print: print(&self.key, text),
        });
    }

    /// Everything that was added, ready to be looked for.
    pub fn build(mut self) -> Known {
        self.anchors.sort_by_key(|anchor| anchor.hash);
        let filter = Filter::of(&self.anchors);
        Known {
            longest: self
                .windows
                .iter()
                .map(|window| window.length)
                .max()
                .unwrap_or_default(),
            key: self.key,
            values: self.values,
            windows: self.windows,
            anchors: self.anchors,
            filter,
        }
    }
}

impl Known {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many values are known.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Length of the longest match in bytes: so much may have to be held.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// What is known of a value that was found.
    pub fn value(&self, number: usize) -> Option<&KnownValue> {
        self.values.get(number)
    }

    /// The first match that ends behind `from`, in the order of candidates.
    ///
    /// Finds every window that stands in `bytes` whole, wherever `bytes` begins.
    pub fn find(&self, bytes: &[u8], from: usize) -> Option<KnownMatch> {
        if self.is_empty() {
            return None;
        }
        let begin = from.saturating_sub(self.longest);
        let begin = begin.saturating_sub(begin % STRIDE);
        let rest = bytes.get(begin..).unwrap_or_default();
        // A chunk of four aligned bytes is where some anchor of every match lies.
        for (number, chunk) in rest.chunks_exact(STRIDE).enumerate() {
            let Some(four) = chunk.first_chunk::<4>() else {
                continue;
            };
            let hash = quick(&self.key, u32::from_le_bytes(*four));
            if !self.filter.holds(hash) {
                continue;
            }
            let at = number.saturating_mul(STRIDE).saturating_add(begin);
            let found = self.confirm(bytes, at, hash);
            if let Some(found) = found.filter(|found| found.range.end > from) {
                return Some(found);
            }
        }
        None
    }

    /// The window to which the anchor at a place belongs, if it is there.
    fn confirm(&self, bytes: &[u8], at: usize, hash: u32) -> Option<KnownMatch> {
        let first = self.anchors.partition_point(|anchor| anchor.hash < hash);
        let same = self.anchors.get(first..).unwrap_or_default();
        for anchor in same.iter().take_while(|anchor| anchor.hash == hash) {
            let window = self.windows.get(anchor.window)?;
            let Some(start) = at.checked_sub(anchor.offset) else {
                continue;
            };
            let range = start..start.saturating_add(window.length);
            let Some(text) = bytes.get(range.clone()) else {
                continue;
            };
            let begins = text
                .first_chunk::<8>()
                .map(|begin| quick_long(&self.key, *begin));
            if begins == Some(window.begin) && print(&self.key, text) == window.print {
                return Some(KnownMatch {
                    range,
                    value: window.value,
                    form: window.form,
                });
            }
        }
        None
    }
}

/// Whether a value can be told from other text.
fn fits(value: &[u8]) -> Result<(), Unfit> {
    match value.len() {
        length if length < VALUE_BYTES_MIN => return Err(Unfit::Short),
        length if length > VALUE_BYTES_MAX => return Err(Unfit::Long),
        _ => {}
    }
    let word = value.len() < 16 && value.iter().all(u8::is_ascii_lowercase);
    let number = value.len() < 16 && value.iter().all(u8::is_ascii_digit);
    let head = value.get(..value.len().min(128)).unwrap_or_default();
    if word || number || placeholder::is(value) || entropy::bits(head) < VALUE_BITS_MIN {
        return Err(Unfit::Plain);
    }
    Ok(())
}

/// The parts of a value that are looked for: all of it, or windows of its later
/// part where a long one begins as others do.
fn parts(value: &[u8]) -> Vec<&[u8]> {
    if value.len() <= WHOLE_BYTES_MAX {
        return vec![value];
    }
    let skipped = if value.len() > 256 {
        value.len() / 3
    } else {
        0
    };
    let last = value.len().saturating_sub(WINDOW_BYTES);
    let room = last.saturating_sub(skipped);
    let step = room
        .checked_div(WINDOWS_OF_VALUE.saturating_sub(1))
        .unwrap_or_default()
        .max(1);
    let starts = (skipped..=last).step_by(step).chain([last]);
    let mut parts: Vec<&[u8]> = starts
        .filter_map(|start| value.get(start..start.saturating_add(WINDOW_BYTES)))
        .filter(|part| entropy::bits(part) >= VALUE_BITS_MIN)
        .collect();
    parts.dedup();
    parts
}

/// The fingerprint of a window.
fn print(key: &[u8; 32], text: &[u8]) -> [u8; 16] {
    let digest = Sha256::new()
        .chain_update(key)
        .chain_update(text)
        .finalize();
    digest.first_chunk::<16>().copied().unwrap_or_default()
}

fn word(key: &[u8; 32], place: usize) -> u64 {
    let bytes = key.get(place..).and_then(|rest| rest.first_chunk::<8>());
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// A quick hash of four bytes under the key.
fn quick(key: &[u8; 32], bytes: u32) -> u32 {
    let mixed = (u64::from(bytes) ^ word(key, 0)).wrapping_mul(word(key, 8) | 1);
    let [.., a, b, c, d] = (mixed ^ (mixed >> 29))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(32)
        .to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A quick hash of eight bytes under the key.
fn quick_long(key: &[u8; 32], bytes: [u8; 8]) -> u32 {
    let mixed = (u64::from_le_bytes(bytes) ^ word(key, 16)).wrapping_mul(word(key, 24) | 1);
    let [a, b, c, d, ..] = (mixed ^ (mixed >> 31))
        .wrapping_mul(0x94d0_49bb_1331_11eb)
        .to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Which hashes any anchor has: a bit for each.
struct Filter {
    bits: Vec<u64>,
    mask: u32,
}

impl Filter {
    fn of(anchors: &[Anchor]) -> Self {
        let wanted = anchors.len().saturating_mul(FILTER_SHARE);
        let size = wanted.next_power_of_two().clamp(1 << 12, 1 << 21);
        let mut filter = Self {
            bits: vec![0; size / 64],
            mask: u32::try_from(size.saturating_sub(1)).unwrap_or(u32::MAX),
        };
        for anchor in anchors {
            let (place, bit) = filter.place(anchor.hash);
            if let Some(word) = filter.bits.get_mut(place) {
                *word |= bit;
            }
        }
        filter
    }

    fn place(&self, hash: u32) -> (usize, u64) {
        let position = hash & self.mask;
        let place = usize::try_from(position >> 6).unwrap_or_default();
        (place, 1u64 << (position & 63))
    }

    fn holds(&self, hash: u32) -> bool {
        let (place, bit) = self.place(hash);
        self.bits.get(place).is_some_and(|word| word & bit != 0)
    }
}

#[cfg(test)]
mod tests;
