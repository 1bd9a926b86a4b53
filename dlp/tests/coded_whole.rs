//! A credential that was coded as a whole and then cut, over messages and over the values of
//! one: a piece of what a coding makes looks like a word or a number now and then.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use data_encoding::{BASE32_NOPAD, BASE64, BASE64URL_NOPAD, Encoding, HEXLOWER, HEXUPPER};
use outgate_dlp::{
    Action, Detectors, Finding, KnownBuilder, KnownNature, KnownValue, Piece, PieceSource, Ruleset,
    ScanDestination, ScanSettings, SecretBytes, Tier, Window, sample,
};

const TO: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

const CODINGS: [(&str, &Encoding); 5] = [
    ("base64", &BASE64),
    ("base64url", &BASE64URL_NOPAD),
    ("base32", &BASE32_NOPAD),
    ("hexadecimal", &HEXLOWER),
    ("HEXADECIMAL", &HEXUPPER),
];

/// Pieces of so many symbols: of shorter ones a credential is hundreds.
const SIZES: std::ops::RangeInclusive<usize> = 4..=24;

fn is_refused(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.action == Action::Block)
}

/// A value that somebody keeps: nothing of it is a form.
const KEPT: &str = "correct-Horse7-battery.staple_93";

fn rules() -> Arc<Ruleset> {
    let rules = Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let rules = rules.expect("the shipped detectors");
    let mut known = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "$KEPT".to_owned(),
        others: Vec::new(),
        issuers: Vec::new(),
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let secret = SecretBytes::new(KEPT.as_bytes().to_vec());
    known.add(&secret, about).expect("a value");
    Arc::new(rules.with_known(known.build().into(), Vec::new()))
}

/// Pieces under these names, one in each message, or all of them in one.
fn is_seen(rules: &Arc<Ruleset>, pieces: &[Piece<'_>]) -> (bool, bool) {
    let mut window = Window::new(rules, &TO);
    let apart = pieces
        .iter()
        .any(|piece| is_refused(&window.push(&[*piece])));
    let together = is_refused(&Window::new(rules, &TO).push(pieces));
    (apart, together)
}

#[test]
fn what_was_coded_as_a_whole_is_seen_in_pieces() {
    let rules = rules();
    let mut missed = Vec::new();
    for seed in 0..12 {
        let token = String::from_utf8(sample("ghp_{b62:30}{crc62}", seed)).expect("text");
        for secret in [token.as_str(), KEPT] {
            for (name, coding) in CODINGS {
                let coded = coding.encode(secret.as_bytes());
                for size in SIZES {
                    let texts: Vec<&[u8]> = coded.as_bytes().chunks(size).collect();
                    let names: Vec<String> = (0..texts.len()).map(|n| format!("k{n}")).collect();
                    let content = texts.iter().map(|text| Piece::of_content(text)).collect();
                    let query = texts.iter().zip(&names).map(|(text, name)| Piece {
                        source: PieceSource::Query,
                        slot: name.as_bytes(),
                        bytes: text,
                    });
                    let ways: [Vec<Piece<'_>>; 2] = [content, query.collect()];
                    for (way, pieces) in ["content", "query"].iter().zip(&ways) {
                        let (apart, together) = is_seen(&rules, pieces);
                        if !(apart && together) {
                            missed.push(format!(
                                "{seed} {} {name} {size} {way}: {apart} {together}",
                                secret.split_at(4).0
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}
