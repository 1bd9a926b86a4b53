//! Placeholders in content that is coded (RFC 9110 8.4): nothing can be put
//! there, so one that stands inside ends the request. Replaces nothing, and knows
//! no value.

use http::header::HeaderMap;

use super::PlaceholderToken;
use crate::seek::{CodedSeek, SoughtTexts};

/// A look into coded content.
#[derive(Debug)]
pub(super) struct CodedContent(CodedSeek);

impl CodedContent {
    /// Looks for these; `None` for content that stands as it is, whatever its
    /// coding is called.
    pub(super) fn new(tokens: &[PlaceholderToken], fields: &HeaderMap) -> Option<Self> {
        let texts = tokens.iter().map(|token| token.text.as_bytes());
        // What is looked for is no secret. One too short to be told from other text
        // goes out unseen, and is good for nothing there.
        let made = SoughtTexts::new(texts, [0; 32]);
        CodedSeek::new(|| made.as_ref(), fields).map(Self)
    }

    /// The token that was found by now.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        self.0.pass(bytes)
    }

    /// The same at the end.
    pub(super) fn finish(&mut self) -> Option<usize> {
        self.0.finish()
    }
}
