//! Placeholders in content that is coded (RFC 9110 8.4): nothing can be put
//! there, so one that stands inside ends the request. Undoes codings with the
//! engine of the scan; replaces nothing, and knows no value.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderValue};
use outgate_dlp::{
    Description, Destination, Detectors, KnownBuilder, KnownValue, Nature, Place, Policy, Ruleset,
    Secret, Settings, Stop, Stream, Tier, Unscannable,
};

use super::Token;

/// Codings in which a text cannot be seen; others cut content, or sign it.
const COMPRESSING: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"br", b"zstd"];

/// A look into coded content.
#[derive(Debug)]
pub(super) struct Coded(Stream);

impl Coded {
    /// Looks for these; `None` for content that stands as it is, whatever its
    /// coding is called.
    pub(super) fn new(tokens: &[Token], fields: &HeaderMap) -> Option<Self> {
        let codings = super::coding(fields)?;
        let mut names = codings.as_bytes().split(|byte| *byte == b',');
        let compresses = |name: &[u8]| COMPRESSING.iter().any(|own| name.eq_ignore_ascii_case(own));
        if !names.any(|name| compresses(name.trim_ascii())) {
            return None;
        }
        // What is looked for is no secret.
        let key = [0; 32];
        let mut known = KnownBuilder::new(key);
        for (index, token) in tokens.iter().enumerate() {
            let about = KnownValue {
                label: index.to_string(),
                others: Vec::new(),
                nature: Nature::Sent,
                issuers: Vec::new(),
                tier: Tier::Strong,
            };
            // One too short to be told from other text goes out unseen, and is
            // good for nothing there.
            let text = Secret::new(token.text.clone().into_bytes());
            known.add(&text, about).ok();
        }
        let settings = Settings {
            modes: Vec::new(),
            policy: Policy::Tiered,
            unscannable: Unscannable::Record,
            allowances: Vec::new(),
            registries: Vec::new(),
            key,
        };
        let none = Detectors::new(Vec::new()).ok()?;
        let rules = Ruleset::new(&none, &settings).ok()?;
        let rules = Arc::new(rules.with_known(Arc::new(known.build()), Vec::new()));
        let kind = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let description = Description {
            place: Place::Content,
            media_type: kind,
            content_codings: Some(codings.as_bytes()),
            length: None,
        };
        let nowhere = Destination { host: "", port: 0 };
        Some(Self(rules.stream(&nowhere, &description)))
    }

    /// The token that was found by now.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        found(self.0.push(bytes))
    }

    /// The same at the end.
    pub(super) fn finish(&mut self) -> Option<usize> {
        found(self.0.finish())
    }
}

fn found(released: Result<u64, Stop>) -> Option<usize> {
    match released {
        Err(Stop::Found(finding)) => finding.name.parse().ok(),
        Ok(_) | Err(Stop::Unscannable(_)) => None,
    }
}
