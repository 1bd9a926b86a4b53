//! Looks for given texts in coded content (RFC 9110 8.4), through its codings,
//! beside whoever passes it on. Undoes codings with the engine of the scan;
//! changes and holds back nothing.

use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use http::header::{self, HeaderMap, HeaderValue};
use outgate_dlp::{
    Description, Detectors, KnownBuilder, KnownNature, KnownValue, Place, Ruleset, ScanDestination,
    ScanPolicy, ScanSettings, SecretBytes, Stop, Stream, Tier, UnscannableAction,
};

/// Codings in which a text cannot be seen; others cut content, or sign it.
const COMPRESSING: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"br", b"zstd"];

/// Texts that are looked for, as fingerprints.
#[derive(Debug, Clone)]
pub(crate) struct SoughtTexts(Arc<Ruleset>);

impl SoughtTexts {
    /// These, under this key. One too short to be told from other text is left out.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a [u8]>, key: [u8; 32]) -> Option<Self> {
        let mut known = KnownBuilder::new(key);
        for (index, text) in texts.enumerate() {
            let about = KnownValue {
                label: index.to_string(),
                others: Vec::new(),
                nature: KnownNature::Sent,
                issuers: Vec::new(),
                tier: Tier::Strong,
            };
            known.add(&SecretBytes::new(text.to_vec()), about).ok();
        }
        let settings = ScanSettings {
            modes: Vec::new(),
            policy: ScanPolicy::Tiered,
            unscannable: UnscannableAction::Record,
            allowances: Vec::new(),
            registries: Vec::new(),
            named: Vec::new(),
            key,
        };
        let none = Detectors::new(Vec::new()).ok()?;
        let rules = Ruleset::new(&none, &settings).ok()?;
        let rules = rules.with_known(Arc::new(known.build()), Vec::new());
        Some(Self(Arc::new(rules)))
    }
}

/// A look into coded content.
#[derive(Debug)]
pub(crate) struct CodedSeek(Stream);

impl CodedSeek {
    /// Looks for these; `None` for content that stands as it is, whatever its
    /// coding is called.
    pub(crate) fn new<'t>(
        texts: impl FnOnce() -> Option<&'t SoughtTexts>,
        fields: &HeaderMap,
    ) -> Option<Self> {
        let codings: Vec<&[u8]> = fields
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let codings = codings.join(&b","[..]);
        let mut names = codings.split(|byte| *byte == b',');
        let compresses = |name: &[u8]| COMPRESSING.iter().any(|own| name.eq_ignore_ascii_case(own));
        if !names.any(|name| compresses(name.trim_ascii())) {
            return None;
        }
        let kind = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let description = Description {
            place: Place::Content,
            media_type: kind,
            content_codings: Some(&codings),
            length: None,
        };
        let nowhere = ScanDestination { host: "", port: 0 };
        let texts = texts()?;
        Some(Self(texts.0.stream(&nowhere, &description)))
    }

    /// How far the content holds none of them, from its beginning on.
    ///
    /// # Errors
    /// The text that was found.
    pub(crate) fn clear(&mut self, bytes: &[u8]) -> Result<u64, Stop> {
        self.0.push(bytes)
    }

    /// The same at the end.
    ///
    /// # Errors
    /// As [`CodedSeek::clear`].
    pub(crate) fn clear_rest(&mut self) -> Result<u64, Stop> {
        self.0.finish()
    }

    /// The text that was found by now, by its place among all.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        found(self.0.push(bytes))
    }

    /// The same at the end.
    pub(crate) fn finish(&mut self) -> Option<usize> {
        found(self.0.finish())
    }
}

fn found(released: Result<u64, Stop>) -> Option<usize> {
    match released {
        Err(Stop::Found(finding)) => finding.name.parse().ok(),
        Ok(_) | Err(Stop::Unscannable(_)) => None,
    }
}

/// Canaries as they are, ready to be looked for.
#[derive(Debug, Default)]
pub(crate) struct SoughtCanaries {
    values: Vec<Vec<u8>>,
    /// Made at the first response.
    automaton: OnceLock<Option<AhoCorasick>>,
    /// Made at the first one that is coded.
    texts: OnceLock<Option<SoughtTexts>>,
}

impl SoughtCanaries {
    pub(crate) fn new(values: Vec<Vec<u8>>) -> Self {
        Self {
            values,
            automaton: OnceLock::new(),
            texts: OnceLock::new(),
        }
    }

    /// What looks for them in content that is coded; nothing where it is not.
    pub(crate) fn seek(&self, fields: &HeaderMap) -> Option<CodedSeek> {
        // What is looked for is no secret.
        let make = || SoughtTexts::new(self.values.iter().map(Vec::as_slice), [0; 32]);
        let texts = || self.texts.get_or_init(make).as_ref();
        CodedSeek::new(texts, fields)
    }

    /// Whether a text holds one.
    pub(crate) fn stands_in(&self, text: &[u8]) -> bool {
        let make = || {
            let builder = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(&self.values);
            builder.ok()
        };
        let automaton = self.automaton.get_or_init(make);
        automaton.as_ref().is_some_and(|own| own.is_match(text))
    }

    /// Bytes of the longest.
    pub(crate) fn longest(&self) -> usize {
        self.values.iter().map(Vec::len).max().unwrap_or(0)
    }
}
