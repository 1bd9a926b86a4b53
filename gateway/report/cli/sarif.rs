//! The parts of a SARIF 2.1.0 document that all of them share. Texts in, text out.

use outgate_record::line_hash;
use serde_json::{Value, json};

/// Whether the program could read all that it was to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Whole,
    Faulty,
}

/// The whole document.
pub(crate) fn document(
    rules: &[Value],
    results: &[Value],
    (reading, notifications): (Reading, &[Value]),
) -> String {
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "outgate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
            "invocations": [{
                "executionSuccessful": reading == Reading::Whole,
                "toolExecutionNotifications": notifications,
            }],
        }],
    });
    format!("{value:#}\n")
}

/// Text as a message holds it: no link and no placeholder comes of it (3.11.5, 3.11.6).
pub(crate) fn message(text: &str) -> Value {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '[' | ']' | '\\' => safe.extend(['\\', letter]),
            '{' | '}' => safe.extend([letter, letter]),
            letter => safe.push(letter),
        }
    }
    json!({ "text": safe })
}

/// What tells a result from every other, and is the same the next time.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    line_hash(parts.join("\0").as_bytes())
}

/// A path as a relative reference (RFC 3986 4.2), or a file URI.
pub(crate) fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let spelt = path.trim_start_matches("./").bytes().map(|byte| {
        if safe(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    format!("{scheme}{}", spelt.collect::<Vec<_>>().concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        for (path, expected) in [
            ("./src/a b.rs", "src/a%20b.rs"),
            ("/tmp/x#y", "file:///tmp/x%23y"),
            ("naïve", "na%C3%AFve"),
            ("-", "-"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }

    #[test]
    fn no_text_becomes_a_link_or_a_placeholder() {
        let text = message("[x](http://evil.test) {0} \\[");
        assert_eq!(text["text"], "\\[x\\](http://evil.test) {{0}} \\\\\\[");
    }
}
