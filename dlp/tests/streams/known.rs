//! Values somebody named: found in every coding, bound to their hosts, and
//! watched for in what comes back.

use std::sync::Arc;

use outgate_dlp::{
    Description, Detectors, IssuerPattern, KnownBuilder, KnownNature, KnownValue, KnownValues,
    MessagePart, Place, Ruleset, ScanDestination, ScanSettings, SecretBytes, Stop, Tier,
};

use crate::encode::{CODINGS, base32_capitals, gzip, plain_base64};
use crate::stage::{Dice, ELSEWHERE, send};

const VALUE: &[u8] = b"correct-Horse7battery";

fn known() -> Arc<KnownValues> {
    holding(KnownNature::Sent)
}

fn holding(nature: KnownNature) -> Arc<KnownValues> {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("home.test").expect("a host")],
        tier: Tier::Strong,
        nature,
    };
    builder
        .add(&SecretBytes::new(VALUE.to_vec()), about)
        .expect("a value");
    Arc::new(builder.build())
}

/// Rules that know one value, wherever it may go.
fn knowing(value: &[u8]) -> Arc<Ruleset> {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        others: Vec::new(),
        issuers: Vec::new(),
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let added = builder.add(&SecretBytes::new(value.to_vec()), about);
    added.expect("a value");
    Arc::new(rules().with_known(Arc::new(builder.build()), Vec::new()))
}

fn swapped(text: &[u8]) -> Vec<u8> {
    let swap = |byte: &u8| match byte {
        b'a'..=b'z' => byte.to_ascii_uppercase(),
        _ => byte.to_ascii_lowercase(),
    };
    text.iter().map(swap).collect()
}

fn reversed(text: &[u8]) -> Vec<u8> {
    text.iter().rev().copied().collect()
}

/// One line of shell turns a value around, or its coding.
#[test]
fn a_value_turned_around_before_or_behind_its_coding_leaves_in_no_way() {
    type Change = fn(&[u8]) -> Vec<u8>;
    let hex = |text: &[u8]| -> Vec<u8> {
        let digits = text.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>().into_bytes()
    };
    let base64: Change = plain_base64;
    let codings: [(&str, Change); 3] = [
        ("as it is", <[u8]>::to_vec),
        ("base64", base64),
        ("hex", hex),
    ];
    let turns: [(&str, Change); 2] = [("reversed", reversed), ("swapped", swapped)];
    let mut dice = Dice(17);
    let mut missed = Vec::new();
    for length in [12, 13, 15, 17, 19, 21, 33, 40, 64, 90, 300] {
        let letters = b"abcdefghijkmnopqrstuvwxyz23456789ABCDEFGHIJKLMNPQRSTUVWXYZ-_+!";
        let value: Vec<u8> = (0..length)
            .map(|_| letters[dice.roll(letters.len())])
            .collect();
        let rules = knowing(&value);
        for (coding, code) in codings {
            for (turn, change) in turns {
                for (order, made) in [
                    ("before", code(&change(&value))),
                    ("behind", change(&code(&value))),
                ] {
                    for around in ["", " ", "x7"] {
                        let content = [b"a=", around.as_bytes(), &made, b" ."].concat();
                        if send(&rules, None, &content, &[]).found().is_none() {
                            missed.push(format!("{length} {coding} {turn} {order} {around:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Binary formats put a byte that is no text right before and behind a value.
#[test]
fn an_escape_close_to_both_ends_of_a_short_value_is_removed() {
    let value = b"k7!Qx.9$vT@a";
    let fields: [&[u8]; 7] = [
        b"\x02k7!Qx%2E9$vT@a\x03",
        b"\x02k7!Qx\\u002e9$vT@a\x03",
        b"\x02k7!Qx&#46;9$vT@a\x03",
        b"\x02k7!Qx=\n.9$vT@a\x03",
        b"\x02k7!Qx=2E9$vT@a\x03",
        "\x02k7!Qx.9$vT@\u{430}\x03\x03".as_bytes(),
        "\x02k7!Q\u{445}.9$vT@a\x03\x03".as_bytes(),
    ];
    let rules = knowing(value);
    for field in fields {
        for (before, behind) in [
            (&b""[..], &b""[..]),
            (b"\x12\x01", b"\x1a\x03end"),
            (b"\x01\n/", b"\x01\n"),
        ] {
            let content = [before, field, behind].concat();
            let shown = field.escape_ascii();
            let outcome = send(&rules, None, &content, &[]);
            assert!(outcome.found().is_some(), "{shown}");
            let coded = plain_base64(&content);
            let outcome = send(&rules, None, &coded, &[]);
            assert!(outcome.found().is_some(), "{shown} in base64");
        }
    }
}

/// What folds may be the last of a run.
#[test]
fn a_folded_letter_at_the_end_of_base64_is_seen() {
    let rules = knowing(b"k7!Qx.9$vT@#Zp-a");
    let mut missed = Vec::new();
    for letter in ["\u{430}", "\u{ff41}"] {
        for end in ["", "\x03", "\x03\x03", "\x03\x03end", ".", "..", "..."] {
            for before in ["", "\x02", "\x01\x02", "\x01\x02\x03"] {
                let text = format!("{before}k7!Qx.9$vT@#Zp-{letter}{end}");
                let outcome = send(&rules, None, &plain_base64(text.as_bytes()), &[]);
                if outcome.found().is_none() {
                    missed.push(text);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Nothing in it looks like the beginning of anything.
#[test]
fn known_values_without_a_form_leave_in_no_long_run() {
    let value = b"pa$$ w0rd! ~x9";
    let rules = knowing(value);
    let mut dice = Dice(5);
    for length in (2..40).chain([500, 4000, 30_000]) {
        let (before, after) = (dice.bytes(length), dice.bytes(length));
        let mut reversed = value.to_vec();
        reversed.reverse();
        for inner in [value.to_vec(), reversed] {
            let inner = [before.as_slice(), &inner, &after].concat();
            let text = plain_base64(&inner);
            let lines = text.chunks(5).collect::<Vec<_>>().join(&b'\n');
            let outcome = send(&rules, None, &lines, &Dice(1).lengths(3000));
            let finding = outcome.found().expect("a known value");
            assert_eq!(&*finding.detector, "known-value", "{length}");
            // Five symbols of each six bytes.
            let clean = u64::try_from(before.len() * 8 / 5 + 2).expect("a length");
            assert!(outcome.released <= clean, "{length}: {}", outcome.released);
        }
    }
}

fn rules() -> Ruleset {
    Ruleset::new(&Detectors::shipped(), &ScanSettings::default()).expect("the shipped detectors")
}

#[test]
fn known_values_leave_in_no_coding() {
    let rules = Arc::new(rules().with_known(known(), Vec::new()));
    let mut dice = Dice(9);
    for (name, encode) in CODINGS {
        let length = dice.roll(20_000);
        let mut content = dice.words(length);
        let start = content.len() as u64;
        content.extend(encode(VALUE));
        content.push(b' ');
        content.extend(dice.words(18_000));
        let outcome = send(&rules, None, &content, &dice.lengths(1460));
        let finding = outcome
            .found()
            .unwrap_or_else(|| panic!("{name}: {:?}", outcome.stop));
        assert_eq!(
            (&*finding.detector, &*finding.name),
            ("known-value", "~/.netrc"),
            "{name}"
        );
        assert!(
            outcome.released <= start,
            "{name}: {} > {start}",
            outcome.released
        );
    }
}

#[test]
fn a_target_that_holds_what_may_go_there_says_so() {
    let rules = rules().with_known(known(), Vec::new());
    let holds = |host: &str, place: Place, bytes: &[u8]| {
        let target = MessagePart {
            place: Place::Target,
            bytes: b"/a/b",
        };
        let part = MessagePart { place, bytes };
        let report = rules.head(&ScanDestination { host, port: 443 }, &[target, part]);
        assert!(report.block().is_none(), "{report:?}");
        report.holds
    };
    let path = |value: &[u8]| [b"/a/", value, b"/b"].concat();
    // Of detectors this is asked in `tests/places`, by place.
    let field = Place::Field("authorization".to_owned());
    assert!(holds("home.test", Place::Target, &path(VALUE)));
    assert!(!holds("home.test", field, VALUE));
    assert!(!holds("home.test", Place::Target, b"/a/c"));
}

#[test]
fn known_values_go_home() {
    let rules = rules().with_known(known(), Vec::new());
    let goes = |host: &str| {
        let place = Place::Field("authorization".to_owned());
        let part = MessagePart {
            place,
            bytes: VALUE,
        };
        rules
            .head(&ScanDestination { host, port: 443 }, &[part])
            .block()
            .is_none()
    };
    assert!(goes("home.test"));
    assert!(!goes("away.home.test"));
    assert!(!goes("home.test.evil.test"));
}

#[test]
fn what_comes_back_is_watched() {
    let description = |codings: Option<&'static [u8]>| Description {
        place: Place::Content,
        media_type: None,
        content_codings: codings,
        length: None,
    };
    assert!(rules().watch(&ELSEWHERE, &description(None)).is_none());
    let rules = rules().with_watched(known());
    for (content, codings) in [(VALUE.to_vec(), None), (gzip(VALUE), Some(&b"gzip"[..]))] {
        let mut stream = rules
            .watch(&ELSEWHERE, &description(codings))
            .expect("a stream");
        stream.push(&content).expect("no step yet");
        assert!(matches!(
            stream.end_of_message().and_then(|_| stream.finish()),
            Err(Stop::Found(_))
        ));
    }
    // Forms of detectors are no business of a response, nor is damage.
    let mut stream = rules
        .watch(&ELSEWHERE, &description(Some(b"gzip")))
        .expect("a stream");
    stream
        .push(&crate::stage::sample_of("github-token", 1))
        .expect("nothing");
    stream.finish().expect("nothing");
}

#[test]
fn values_go_where_they_are_let_and_canaries_nowhere() {
    let homes = || {
        let host = IssuerPattern::parse("other.test").expect("a host");
        vec![("~/.netrc".to_owned(), host)]
    };
    for (nature, host, detector) in [
        (KnownNature::Sent, "other.test", None),
        (KnownNature::Sent, "away.test", Some("known-value")),
        (KnownNature::Kept, "other.test", Some("known-key")),
        (KnownNature::Canary, "other.test", Some("canary")),
        (KnownNature::Canary, "home.test", Some("canary")),
    ] {
        let rules = rules().with_known(holding(nature), homes());
        let part = MessagePart {
            place: Place::Target,
            bytes: VALUE,
        };
        let report = rules.head(&ScanDestination { host, port: 443 }, &[part]);
        let found = report.block().map(|finding| finding.detector.to_string());
        assert_eq!(found.as_deref(), detector, "{nature:?} to {host}");
    }
}

#[test]
fn a_canary_is_stopped_even_where_others_are_only_recorded() {
    let settings = ScanSettings {
        policy: outgate_dlp::ScanPolicy::Monitor,
        ..ScanSettings::default()
    };
    let blocks = |nature| {
        let rules = Ruleset::new(&Detectors::shipped(), &settings).expect("the detectors");
        let part = MessagePart {
            place: Place::Target,
            bytes: VALUE,
        };
        let report = rules
            .with_known(holding(nature), Vec::new())
            .head(&ELSEWHERE, &[part]);
        assert_eq!(report.findings.len(), 1);
        report.block().is_some()
    };
    assert!(blocks(KnownNature::Canary));
    assert!(!blocks(KnownNature::Sent));
}

#[test]
fn the_users_configuration_outweighs_the_form_of_a_value() {
    // A token of GitHub's form for a server of one's own.
    let token = crate::stage::sample_of("github-token", 3);
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("git.home.test").expect("a host")],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    builder
        .add(&SecretBytes::new(token.clone()), about)
        .expect("a value");
    let rules = rules().with_known(Arc::new(builder.build()), Vec::new());
    let blocks = |host: &str, token: &[u8]| {
        let place = Place::Field("authorization".to_owned());
        let part = MessagePart {
            place,
            bytes: token,
        };
        let report = rules.head(&ScanDestination { host, port: 443 }, &[part]);
        report.block().is_some()
    };
    assert!(!blocks("git.home.test", &token));
    assert!(blocks("away.test", &token));
    let other = crate::stage::sample_of("github-token", 4);
    assert!(blocks("git.home.test", &other));
}

/// Shorter in every coding than what is decoded.
#[test]
fn the_shortest_values_leave_in_no_digits() {
    type Code = fn(&[u8]) -> Vec<u8>;
    let hex = |bytes: &[u8], between: &str, is_capital: bool| -> Vec<u8> {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        let text = digits.collect::<Vec<_>>().join("\u{1}");
        let text = if is_capital {
            text.to_uppercase()
        } else {
            text
        };
        text.replace('\u{1}', between).into_bytes()
    };
    let codes: [(&str, Code); 2] = [
        ("base32", base32_capitals),
        ("small base32", |bytes| {
            base32_capitals(bytes).to_ascii_lowercase()
        }),
    ];
    let signs = [
        ":", " ", "-", ",", ";", ", ", "\\x", "\\\\x", "\n", " 0x", ", 0x", "\r\n",
    ];
    let mut dice = Dice(23);
    let mut missed = Vec::new();
    for length in 10..=24 {
        let letters = b"abcdefghijkmnopqrstuvwxyz23456789ABCDEFGHIJKLMNPQRSTUVWXYZ";
        let value: Vec<u8> = (0..length)
            .map(|_| letters[dice.roll(letters.len())])
            .collect();
        let rules = knowing(&value);
        let mut made = Vec::new();
        for sign in signs {
            for is_capital in [false, true] {
                let name = format!("{sign:?} {is_capital}");
                made.push((name, hex(&value, sign, is_capital)));
            }
        }
        for before in ["", "x", "xy", "xyz", "wxyz"] {
            for (name, code) in codes {
                let text = code(&[before.as_bytes(), &value].concat());
                made.push((format!("{name} behind {before:?}"), text));
            }
        }
        for (name, text) in made {
            let content = [b"{\"a\": \"", text.as_slice(), b"\"}"].concat();
            if send(&rules, None, &content, &[]).found().is_none() {
                missed.push(format!("{length} bytes in {name}"));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
