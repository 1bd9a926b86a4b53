//! A run with a secret against the origins of a laboratory, and a search for its
//! value in everything the run leaves behind.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use outgate_harness::{Identity, Lab, Outcome, Sandbox};

use crate::origin::{ADDRESS, Origins};
use crate::streamed;

/// The value of the secret, of no vendor's shape and with what has to be
/// escaped.
pub(crate) const VALUE: &str = "s3cr3t/V4lue+of=the\"first&kind";

/// A token's value: its placeholder has its mark and its length.
pub(crate) const TOKEN: &str = "ghp_016C7869f1B2d3A4e5F60718293a4B5c6D7e";

/// The names that lead to the origins.
const NAMES: [&str; 2] = ["api.test", "other.test"];

/// The stage.
#[derive(Debug)]
pub(crate) struct Stage<'lab> {
    pub(crate) lab: &'lab Lab,
    pub(crate) origins: Origins,
    ca: String,
}

impl<'lab> Stage<'lab> {
    pub(crate) fn new(lab: &'lab Lab) -> Self {
        let origins = Origins::start();
        streamed::start(&origins);
        let file = lab.folder("given", Identity::Own).join("origins.pem");
        fs::write(&file, origins.pem()).expect("a file");
        Self {
            lab,
            origins,
            ca: file.to_string_lossy().into_owned(),
        }
    }

    /// A run that may go anywhere, and has these secrets.
    pub(crate) fn sandbox(&self, secrets: &[&str]) -> Sandbox<'lab> {
        let mut sandbox = self.bare(secrets);
        for name in NAMES {
            for port in ["", ":8443", ":9443"] {
                sandbox = sandbox.allow(&format!("https://{name}{port}"));
            }
            sandbox = sandbox
                .allow(&format!("http://{name}"))
                .allow(&format!("wss://{name}"))
                .allow(&format!("wss://{name}:9443"));
        }
        sandbox
    }

    /// The same without rules.
    pub(crate) fn bare(&self, secrets: &[&str]) -> Sandbox<'lab> {
        let mut sandbox = self
            .lab
            .sandbox(Identity::Own)
            .environment("REAL", VALUE)
            .environment("REAL_TOKEN", TOKEN)
            .option("--upstream-ca", &self.ca)
            .option("--audit", &self.audit().to_string_lossy());
        for name in NAMES {
            sandbox = sandbox.pin(&format!("{name}={ADDRESS}"));
        }
        for secret in secrets {
            sandbox = sandbox.option("--secret", secret);
        }
        sandbox
    }

    /// Runs a shell script in a run with these secrets.
    pub(crate) fn run(&self, secrets: &[&str], script: &str) -> Outcome {
        self.sandbox(secrets).run(&bash(script))
    }

    /// The record.
    pub(crate) fn audit(&self) -> std::path::PathBuf {
        self.lab.folder("audit", Identity::Own).join("record.jsonl")
    }

    /// The findings in the record since this was asked last: where to, and the
    /// sentence.
    pub(crate) fn findings(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.audit()).unwrap_or_default();
        fs::remove_file(self.audit()).ok();
        assert_hidden(&text, "the record");
        let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("a record");
        text.lines()
            .map(value)
            .filter(|record| record["kind"] == "finding")
            .map(|record| {
                assert_eq!(record["verdict"], "deny", "{record}");
                let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
                (text("target"), text("detail"))
            })
            .collect()
    }

    /// What the origins got since this was asked last.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.origins.seen()
    }
}

/// `bash -c SCRIPT`.
pub(crate) fn bash(script: &str) -> Vec<String> {
    ["bash", "-c", script].map(str::to_owned).to_vec()
}

/// Fails where a text holds a value, in any form that people would find.
pub(crate) fn assert_hidden(text: &str, place: &str) {
    for value in [VALUE, TOKEN] {
        for form in forms(value) {
            assert!(!text.contains(&form), "{place} holds `{form}`: {text}");
        }
    }
}

/// The same for every file below a directory.
pub(crate) fn assert_nothing_below(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_nothing_below(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            assert_hidden(&text, &path.to_string_lossy());
        }
    }
}

/// Ways to write a text, each cut so that it stands in the middle of others.
pub(crate) fn forms(value: &str) -> Vec<String> {
    let hex = value.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("text grows");
        hex
    });
    let json = value.replace('"', "\\\"");
    let percent: String = value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let mut forms = vec![value.to_owned(), hex.to_uppercase(), hex, json, percent];
    for phase in 0..3 {
        let padded = format!("{}{value}", "\0".repeat(phase));
        let encoded = base64(padded.as_bytes());
        let first = (phase * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        forms.push(encoded.get(first..last).expect("base64").to_owned());
    }
    forms
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).copied().map_or(0, u32::from);
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get(((group >> shift) & 63) as usize).copied();
            let digit = digit.filter(|_| at <= chunk.len()).unwrap_or(b'=');
            text.push(char::from(digit));
        }
    }
    text
}
