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

/// What stands around each piece: always the same, stuck to it too, and what varies as well.
type Around = fn(&str, usize) -> String;

const AROUNDS: [(&str, Around); 19] = [
    ("nothing", |piece, _| piece.to_owned()),
    ("a name and an ending", |piece, _| {
        format!("img_{piece}.png")
    }),
    ("quotes", |piece, _| format!("\"{piece}\"")),
    ("a version", |piece, _| format!("v1.{piece}.x")),
    ("the name of a hash", |piece, _| format!("sha256-{piece}")),
    ("a letter", |piece, _| format!("i:{piece}")),
    ("brackets", |piece, _| format!("<{piece}>")),
    ("letters stuck to it", |piece, _| format!("xx{piece}yy")),
    ("more letters stuck to it", |piece, _| {
        format!("chunk{piece}")
    }),
    ("a path", |piece, _| format!("/a/{piece}/b")),
    ("a URL", |piece, _| format!("https://x.org/{piece}")),
    ("a client", |piece, _| format!("Mozilla/5.0 {piece}")),
    ("a client with more", |piece, _| {
        format!("Mozilla/5.0 (X11; Linux x86_64) {piece} Gecko/20100101")
    }),
    ("a credential", |piece, _| format!("Bearer {piece}")),
    ("prose", |piece, _| {
        format!("please look at {piece}, thanks")
    }),
    ("a date stuck to it", |piece, _| {
        format!("2026-01-01T{piece}")
    }),
    ("two numbers behind", |piece, number| {
        format!(
            "{piece}-{:04x}-{:04x}",
            0x1f3a + number * 977,
            0x4c2b + number * 3011
        )
    }),
    ("a number on either side", |piece, number| {
        format!("{}.{piece}.{}", 101 + number * 17, 7 + number * 7)
    }),
    ("a time before", |piece, number| {
        format!("{:02}:{:02} {piece}", number, 59 - number * 3)
    }),
];

/// Whether the last of the pieces is refused, each in a message of its own; what ordinary
/// messages of the same client between them say does not matter.
fn is_stopped(rules: &Arc<Ruleset>, (source, slot): (PieceSource, &str), texts: &[String]) -> bool {
    let mut window = Window::new(rules, &TO);
    texts.iter().any(|text| {
        let own = Piece {
            source,
            slot: slot.as_bytes(),
            bytes: text.as_bytes(),
        };
        let path = Piece {
            source: PieceSource::Path,
            slot: b"1",
            bytes: b"collect",
        };
        is_refused(&window.push(&[path, own]))
    })
}

#[test]
fn what_stands_around_pieces_of_what_was_coded_as_a_whole_hides_nothing() {
    let rules = rules();
    let mut missed = Vec::new();
    for seed in 0..3 {
        let token = String::from_utf8(sample("ghp_{b62:30}{crc62}", seed)).expect("text");
        for secret in [token.as_str(), KEPT] {
            for (name, coding) in CODINGS {
                let coded = coding.encode(secret.as_bytes());
                for size in [8, 10, 13, 16, 20] {
                    for (around_name, around) in AROUNDS {
                        for place in [
                            (PieceSource::Query, "d"),
                            (PieceSource::Client, "user-agent"),
                            (PieceSource::Field, "x-d"),
                            (PieceSource::Cookie, "d"),
                            (PieceSource::Path, "2"),
                            (PieceSource::Content, "d"),
                        ] {
                            let pieces = coded.as_bytes().chunks(size).enumerate();
                            let texts: Vec<String> = pieces
                                .map(|(number, piece)| {
                                    around(std::str::from_utf8(piece).expect("text"), number)
                                })
                                .collect();
                            if !is_stopped(&rules, place, &texts) {
                                missed.push(format!(
                                    "{seed} {} {name} {size} {around_name} {place:?}",
                                    secret.split_at(4).0
                                ));
                            }
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

#[test]
fn a_last_piece_of_a_few_letters_is_one() {
    let rules = rules();
    let token = String::from_utf8(sample("ghp_{b62:30}{crc62}", 9)).expect("text");
    let arounds: [Around; 6] = [
        |piece, _| format!("Bearer {piece}"),
        |piece, _| format!("multipart/form-data; boundary={piece}"),
        |piece, _| format!("query {{ user(id: \"{piece}\") {{ name }} }}"),
        |piece, _| format!("SELECT * FROM t WHERE a = '{piece}' LIMIT 1"),
        |piece, _| format!("please look at {piece} and tell"),
        |piece, _| format!("Mozilla/5.0 ({piece})"),
    ];
    for secret in [token.as_str(), KEPT] {
        for last in 1..=4 {
            for around in arounds {
                for place in [
                    (PieceSource::Field, "authorization"),
                    (PieceSource::Client, "content-type"),
                    (PieceSource::Content, "text"),
                ] {
                    let (first, end) = secret.split_at(secret.len() - last);
                    let pieces = first
                        .as_bytes()
                        .chunks(10)
                        .map(|piece| String::from_utf8(piece.to_vec()).expect("text"));
                    let pieces = pieces.chain([end.to_owned()]);
                    let texts: Vec<String> = pieces.map(|piece| around(&piece, 0)).collect();
                    assert!(
                        is_stopped(&rules, place, &texts),
                        "{last} {place:?} {texts:?}"
                    );
                }
            }
        }
    }
}
