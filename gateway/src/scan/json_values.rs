//! The values of a JSON document of any length, read together as they pass: a
//! credential that was cut into several of them is seen in one. Keeps a few KiB,
//! and nothing once the document is over.

use std::sync::Arc;

use outgate_dlp::{
    Finding, Joined, Piece, Ruleset, ScanDestination, Unscanned, UnscannedReason, Values, Window,
};

/// Values that are gathered before they are read together.
const VALUES_MAX: usize = 256;
/// Bytes of values that are gathered before they are read together.
const BYTES_MAX: usize = 4096;

/// What is read together of one document.
#[derive(Debug)]
pub(super) struct JsonValues {
    document: Values,
    window: Window,
    /// Values that were not read together yet.
    values: Vec<Vec<u8>>,
    bytes: usize,
    /// What was not read together, and is not told yet.
    missed: Option<Unscanned>,
}

impl JsonValues {
    /// Of content that goes to `to`; nothing where it does not say that it is a
    /// document (RFC 8259 11, RFC 6839 3.1).
    pub(super) fn of(
        rules: &Arc<Ruleset>,
        to: &ScanDestination<'_>,
        media_type: &[u8],
    ) -> Option<Self> {
        let essence = media_type.split(|byte| *byte == b';').next()?;
        let essence = essence.trim_ascii().to_ascii_lowercase();
        let names = [&b"json"[..], b"ndjson", b"jsonl"];
        let is_json = names.iter().any(|name| essence.ends_with(name));
        is_json.then(|| Self {
            document: Values::default(),
            window: Window::of(rules, to, Joined::Content),
            values: Vec::new(),
            bytes: 0,
            missed: None,
        })
    }

    /// Takes the next bytes, and says what the values in them make together.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Finding> {
        let known = self.values.len();
        self.document.push(bytes, &mut self.values);
        let new = self.values.iter().skip(known).map(Vec::len);
        self.bytes = self.bytes.saturating_add(new.sum());
        if self.values.len() < VALUES_MAX && self.bytes < BYTES_MAX {
            return Vec::new();
        }
        self.read()
    }

    /// The end: says what the last values make.
    pub(super) fn finish(&mut self) -> Vec<Finding> {
        self.document.finish(&mut self.values);
        self.read()
    }

    /// Reads together what was gathered.
    fn read(&mut self) -> Vec<Finding> {
        let values = std::mem::take(&mut self.values);
        self.bytes = 0;
        let pieces: Vec<Piece<'_>> = values
            .iter()
            .map(|value| Piece::of_content(value))
            .collect();
        let findings = self.window.push(&pieces);
        if let Some(missed) = self.window.missed() {
            let bytes = self.missed.take().map_or(0, |before| before.bytes);
            self.missed = Some(Unscanned {
                bytes: bytes.saturating_add(missed.bytes),
                ..missed
            });
        }
        findings
    }

    /// What was not read together, where that is refused, or the document is over.
    pub(super) fn missed(
        &mut self,
        is_told: impl Fn(UnscannedReason) -> bool,
    ) -> Option<Unscanned> {
        self.missed.take_if(|missed| is_told(missed.reason))
    }
}
