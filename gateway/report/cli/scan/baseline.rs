//! Findings that somebody looked at and accepts: marks, with the key they were
//! made with, in a file.
//!
//! A mark tells nothing to who has not the key; who has the file can test a
//! guess, so a baseline belongs where the findings it accepts belong.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde_json::{Value, json};

use super::{Located, setup};

/// Version of the file.
const VERSION: u64 = 1;
const KEY_BYTES: usize = 32;

/// What is accepted, and the key of marks.
pub(crate) struct Baseline {
    key: [u8; KEY_BYTES],
    /// Detector and mark. Not the place: files are moved.
    accepted: BTreeSet<(String, String)>,
}

impl Baseline {
    /// Nothing accepted, and a key of chance.
    pub(crate) fn fresh() -> Result<Self, String> {
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut key))
            .map_err(|error| format!("/dev/urandom: {error}"))?;
        Ok(Self {
            key,
            accepted: BTreeSet::new(),
        })
    }

    /// Reads a file that [`write`](Self::write) made.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let place = path.display();
        let text = setup::small(path)?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{place}: this is no baseline: {error}"))?;
        if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(format!("{place}: this is no baseline of version {VERSION}"));
        }
        let key = value.get("key").and_then(Value::as_str).and_then(key);
        let list = value.get("accepted").and_then(Value::as_array);
        let (Some(key), Some(list)) = (key, list) else {
            return Err(format!(
                "{place}: a baseline has a `key` and a list `accepted`"
            ));
        };
        let text = |entry: &Value, key: &str| Some(entry.get(key)?.as_str()?.to_owned());
        let pair = |entry: &Value| Some((text(entry, "detector")?, text(entry, "mark")?));
        let accepted: Option<BTreeSet<(String, String)>> = list.iter().map(pair).collect();
        let accepted = accepted.ok_or_else(|| {
            format!("{place}: every accepted finding has a `detector` and a `mark`")
        })?;
        Ok(Self { key, accepted })
    }

    /// The key of marks.
    pub(crate) fn key(&self) -> [u8; KEY_BYTES] {
        self.key
    }

    /// Whether a finding is accepted.
    pub(crate) fn accepts(&self, located: &Located) -> bool {
        let finding = &located.finding;
        let pair = (finding.detector.to_string(), finding.mark.clone());
        self.accepted.contains(&pair)
    }

    /// Writes findings as accepted, and says how many they are.
    pub(crate) fn write(&self, path: &Path, findings: &[Located]) -> Result<usize, String> {
        let mut seen = BTreeSet::new();
        let mut accepted = Vec::new();
        for located in findings {
            let finding = &located.finding;
            if seen.insert((&finding.detector, &finding.mark)) {
                accepted.push(json!({
                    "detector": finding.detector,
                    "mark": finding.mark,
                    "path": located.path,
                }));
            }
        }
        let count = accepted.len();
        let value = json!({
            "version": VERSION,
            "key": HEXLOWER.encode(&self.key),
            "accepted": accepted,
        });
        let text = format!("{value:#}\n");
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(count)
    }
}

fn key(digits: &str) -> Option<[u8; KEY_BYTES]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::{HEXLOWER, key};

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let made = [0xa5; 32];
        assert_eq!(key(&HEXLOWER.encode(&made)), Some(made));
        assert_eq!(key(&"A5".repeat(32)), Some(made));
        for wrong in ["a5", &"g".repeat(64), &"+5".repeat(32), &"a5".repeat(33)] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }
}
