//! The user's own secrets, known by keyed fingerprints: found wherever they
//! stand, raw, reversed, in base 64 at any phase, in hexadecimal and as strings and
//! words of other languages, whatever they look like.
//!
//! A value is hashed when it is added and not kept. What stays are fingerprints
//! of windows of it and, to find candidates quickly, keyed hashes of a few
//! successive runs of four bytes from their middle. Other codings are removed by
//! the scan before it looks here.

use std::fmt;
use std::ops::Range;

use memchr::memmem;

use crate::destination::IssuerPattern;
use crate::detector::Tier;
use crate::known_forms::{KnownForm, forms};
use crate::known_spellings::spellings;
use crate::secret::SecretBytes;
use crate::span;
use crate::validate::{entropy, placeholder};

mod anchors;
mod hash;

use anchors::{Anchors, AnchorsBuilder, WindowAnchor};
use hash::{print, quick_long};

/// Most values.
const VALUES_MAX: usize = 512;
/// Most windows of all values in all forms.
const WINDOWS_MAX: usize = 98_304;
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
/// Least entropy of a value that nobody made up, in bits for all of it.
const STRONG_BITS_MIN: f64 = 40.0;
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
            Self::Many => write!(
                formatter,
                "one more than the {VALUES_MAX} that are looked for"
            ),
        }
    }
}

impl std::error::Error for Unfit {}

/// What is known of a value beside its fingerprints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownValue {
    /// Where it was read, such as `$GITHUB_TOKEN` or `~/.netrc`.
    pub label: String,
    /// Where else.
    pub others: Vec<String>,
    /// Where it may go.
    pub issuers: Vec<IssuerPattern>,
    /// How certain it is that it is a secret, and so what happens to it elsewhere.
    pub tier: Tier,
    /// What it is for.
    pub nature: KnownNature,
}

/// What a known value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownNature {
    /// It is sent to its issuers.
    Sent,
    /// It signs or decrypts: nobody can allow that it is sent.
    Kept,
    /// Nobody has a use for it: who sends it has stolen it.
    Canary,
}

impl KnownValue {
    /// Whether it may go to a host.
    pub fn may_go_to(&self, host: &str) -> bool {
        self.issuers.iter().any(|pattern| pattern.covers(host))
    }

    /// Whether it was read there: a variable by its name, or a file.
    pub fn is_named(&self, name: &str) -> bool {
        let labels = std::iter::once(&self.label).chain(&self.others);
        labels.into_iter().any(|label| {
            label.strip_prefix('$').unwrap_or(label) == name.strip_prefix('$').unwrap_or(name)
        })
    }

    /// Takes what another source says of the same value.
    fn merge(&mut self, other: Self) {
        for pattern in other.issuers {
            if !self.issuers.contains(&pattern) {
                self.issuers.push(pattern);
            }
        }
        if other.label != self.label && !self.others.contains(&other.label) {
            self.others.push(other.label);
        }
        self.nature = match (self.nature, other.nature) {
            (KnownNature::Canary, _) | (_, KnownNature::Canary) => KnownNature::Canary,
            (KnownNature::Sent, KnownNature::Sent) => KnownNature::Sent,
            // A host that a file names is for sending.
            _ if self.issuers.is_empty() => KnownNature::Kept,
            _ => KnownNature::Sent,
        };
        if other.tier == Tier::Strong {
            self.tier = Tier::Strong;
        }
    }
}

/// Collects values. None of them is kept.
pub struct KnownBuilder {
    key: [u8; 32],
    values: Vec<KnownValue>,
    wholes: Vec<WholeFingerprint>,
    windows: Vec<KnownWindow>,
    anchors: AnchorsBuilder,
}

/// The fingerprint of a value as it is, all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WholeFingerprint {
    length: usize,
    print: [u8; 16],
}

/// Known values, ready to be looked for. Immutable.
pub struct KnownValues {
    key: [u8; 32],
    values: Vec<KnownValue>,
    wholes: Vec<WholeFingerprint>,
    windows: Vec<KnownWindow>,
    anchors: Anchors,
    longest: usize,
}

/// Where a known value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMatch {
    /// Which bytes, in the text that was searched.
    pub range: Range<usize>,
    /// Which value: its number for [`KnownValues::value`].
    pub value: usize,
    /// In which form.
    pub form: KnownForm,
}

struct KnownWindow {
    value: usize,
    form: KnownForm,
    length: usize,
    /// A quick hash of its first eight bytes.
    begin: u32,
    print: [u8; 16],
}

impl fmt::Debug for KnownBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KnownBuilder({} values)", self.values.len())
    }
}

impl fmt::Debug for KnownValues {
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
            wholes: Vec::new(),
            windows: Vec::new(),
            anchors: AnchorsBuilder::new(key),
        }
    }

    /// Whether a value can be looked for.
    ///
    /// # Errors
    /// When it cannot be told from other text.
    pub fn check(secret: &SecretBytes) -> Result<(), Unfit> {
        fits(secret.expose().trim_ascii())
    }

    /// Adds a value, without white space around it. One that two sources hold is
    /// one value, and may go where either says.
    ///
    /// # Errors
    /// When it cannot be told from other text, or there are too many.
    pub fn add(&mut self, secret: &SecretBytes, about: KnownValue) -> Result<(), Unfit> {
        let value = secret.expose().trim_ascii();
        fits(value)?;
        let whole = WholeFingerprint {
            length: value.len(),
            print: print(&self.key, value),
        };
        let same = self.wholes.iter().position(|known| *known == whole);
        if let Some(known) = same.and_then(|place| self.values.get_mut(place)) {
            known.merge(about);
            return Ok(());
        }
        if self.values.len() >= VALUES_MAX || self.windows.len() >= WINDOWS_MAX {
            return Err(Unfit::Many);
        }
        let number = self.values.len();
        let (texts, bytes) = spellings(value);
        let of_bytes = bytes.iter().flat_map(|bytes| parts(bytes.expose()));
        for part in of_bytes {
            for (form, text) in forms(part) {
                // The bytes themselves are what the scan makes of the value where it may go,
                // and their own coding is the value as it is.
                let is_itself =
                    |own: &SecretBytes| memmem::find(own.expose(), text.expose()).is_some();
                if text.expose().len() > part.len() && !texts.iter().any(is_itself) {
                    self.window(number, form, text.expose());
                }
            }
        }
        for part in texts.iter().flat_map(|text| parts(text.expose())) {
            for (form, text) in forms(part) {
                self.window(number, form, text.expose());
            }
        }
        // The names of fields have no capitals (RFC 9113 8.2): nobody can use a value that lost
        // them, but a canary says that somebody read it.
        let small = SecretBytes::new(value.to_ascii_lowercase());
        if about.nature == KnownNature::Canary && small.expose() != value {
            for part in parts(small.expose()) {
                self.window(number, KnownForm::Swapped, part);
            }
        }
        self.values.push(about);
        self.wholes.push(whole);
        Ok(())
    }

    fn window(&mut self, value: usize, form: KnownForm, text: &[u8]) {
        let Some(begin) = text.first_chunk::<8>() else {
            return;
        };
        let number = self.windows.len();
        self.anchors.add(number, text);
        self.windows.push(KnownWindow {
            value,
            form,
            length: text.len(),
            begin: quick_long(&self.key, *begin),
            print: print(&self.key, text),
        });
    }

    /// Everything that was added, ready to be looked for.
    pub fn build(self) -> KnownValues {
        KnownValues {
            longest: self
                .windows
                .iter()
                .map(|window| window.length)
                .max()
                .unwrap_or_default(),
            key: self.key,
            values: self.values,
            wholes: self.wholes,
            windows: self.windows,
            anchors: self.anchors.build(),
        }
    }
}

impl KnownValues {
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

    /// What is known of a text, if all of it is a value.
    pub fn identify(&self, text: &[u8]) -> Option<&KnownValue> {
        let is_long = |whole: &WholeFingerprint| whole.length == text.len();
        if !self.wholes.iter().any(is_long) {
            return None;
        }
        let whole = WholeFingerprint {
            length: text.len(),
            print: print(&self.key, text),
        };
        let place = self.wholes.iter().position(|known| *known == whole)?;
        self.values.get(place)
    }

    /// What is known of a value that was found.
    pub fn value(&self, number: usize) -> Option<&KnownValue> {
        self.values.get(number)
    }

    /// The first match that ends behind `from`, in the order of candidates.
    ///
    /// Finds every window that stands in `text` whole, wherever `text` begins.
    pub fn find(&self, text: &[u8], from: usize) -> Option<KnownMatch> {
        if self.is_empty() {
            return None;
        }
        let begin = from.saturating_sub(self.longest);
        self.anchors.find(text, begin, |at, same| {
            let found = self.confirm(text, at, same);
            found.filter(|found| found.range.end > from)
        })
    }

    /// The window to which one of the anchors at a place belongs, if it is there.
    fn confirm(&self, bytes: &[u8], at: usize, anchors: &[WindowAnchor]) -> Option<KnownMatch> {
        for anchor in anchors {
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
    let head = span::upto(value, value.len().min(128));
    if word || number || placeholder::is_no_value(value) || entropy::bits(head) < VALUE_BITS_MIN {
        return Err(Unfit::Plain);
    }
    Ok(())
}

/// Whether a value that is for these hosts is looked for so that finding it counts:
/// it can be told from other text, and is for some host or was made up by nobody.
pub(crate) fn is_looked_for(value: &[u8], hosts: &[String]) -> bool {
    fits(value).is_ok() && (!hosts.is_empty() || !is_weak(value))
}

/// Whether a value may be one that people make up, and stand elsewhere too.
pub(crate) fn is_weak(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    entropy::bits(value) * f64::from(length) < STRONG_BITS_MIN
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

#[cfg(test)]
mod tests;
