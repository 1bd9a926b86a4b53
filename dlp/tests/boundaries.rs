//! Letters beside a credential: an attacker glues them to hide it.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use outgate_dlp::{
    Anchor, DetectorMode, Detectors, Finding, MessagePart, Place, Ruleset, ScanDestination,
    ScanSettings, sample,
};

/// A host that issued nothing.
const ELSEWHERE: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

fn ruleset() -> Arc<Ruleset> {
    let detectors = Detectors::shipped();
    // Those without a literal run only where somebody asks for them.
    let scans = detectors
        .iter()
        .filter(|detector| detector.anchor == Anchor::Scan);
    let settings = ScanSettings {
        modes: scans
            .map(|detector| (detector.id.to_string(), DetectorMode::Warn))
            .collect(),
        ..ScanSettings::default()
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

fn found(rules: &Ruleset, bytes: &[u8]) -> Vec<Finding> {
    let place = Place::Field("authorization".to_owned());
    rules
        .head(&ELSEWHERE, &[MessagePart { place, bytes }])
        .findings
}

/// A text with something ordinary around it.
fn within(text: &[u8]) -> Vec<u8> {
    [&b"before \""[..], text, b"\" after"].concat()
}

/// Detectors whose form means nothing beside other letters, and why.
const WORDS: [(&str, &str); 26] = [
    (
        "aws-secret-key",
        "forty signs mean nothing without their label",
    ),
    ("aws-secret-bare", "the same"),
    ("twilio-key", "a digest with a label"),
    ("eth-private-key", "the same"),
    ("datadog-key", "the same"),
    ("fireworks-key", "identifiers end with `fw_`: glfw_"),
    ("github-token-part", "one letter more may make it whole"),
    ("github-refresh-token-part", "the same"),
    ("azure-sas", "two letters and `=` begin parts of any query"),
    ("basic-auth", "the word `basic` ends others"),
    ("sk-key", "words end with `sk-`: task-, risk-, disk-"),
    (
        "openai-key-prefix",
        "the same; the whole key is found beside letters",
    ),
    ("netlify-token", "words end with `nfo_`: Info_"),
    ("resend-key", "words end with `re_`: core_, score_"),
    ("mailgun-key", "`cachekey-` and a digest"),
    ("elevenlabs-key", "`task_` and a digest"),
    ("firecrawl-key", "two letters and a digest"),
    ("crates-io-token", "three letters of a long word"),
    ("posthog-token", "words end with `pha_`: alpha_"),
    ("square-token", "`EAAA` is zeros in base 64"),
    ("launchdarkly-key", "`api-` and a UUID"),
    ("btc-wif", "has no mark at all"),
    ("payment-card", "the same"),
    ("iban", "the same"),
    ("btc-address", "the same"),
    ("bip39-mnemonic", "words alone"),
];

#[test]
fn letters_beside_it_hide_no_credential() {
    let rules = ruleset();
    let mut missed = Vec::new();
    let mut needless: Vec<&str> = WORDS.iter().map(|(id, _)| *id).collect();
    for detector in Detectors::shipped().iter() {
        let mut is_missed = false;
        for template in detector.samples.iter() {
            for seed in 0..4 {
                let text = sample(template, seed);
                for (before, behind) in [
                    ("x", ""),
                    ("", "x"),
                    ("7", "Z"),
                    ("_", "_"),
                    ("abc", "def"),
                    ("note_", "0123456789"),
                    ("Abcdefghijklmno", "Abcdefghijklmno"),
                ] {
                    let glued = [before.as_bytes(), &text, behind.as_bytes()].concat();
                    for bytes in [within(&glued), glued] {
                        let found = found(&rules, &bytes);
                        if found.is_empty() {
                            is_missed = true;
                            missed.push(format!(
                                "{}: {template} in {}",
                                detector.id,
                                String::from_utf8_lossy(&bytes)
                            ));
                        }
                    }
                }
            }
        }
        let id = detector.id.to_string();
        if WORDS.iter().any(|(own, _)| *own == id) {
            missed.retain(|text| !text.starts_with(&format!("{id}: ")));
            if is_missed {
                needless.retain(|own| *own != id);
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} such as\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(needless.is_empty(), "found beside letters: {needless:?}");
}
