//! Weaker forms where rules are strict: a credential on its way to its issuer is not
//! refused for looking like one of another kind, and nothing else passes with it.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]

use std::sync::Arc;

use outgate_dlp::{
    Detectors, Finding, IssuerPattern, KnownBuilder, KnownNature, KnownValue, MessagePart, Place,
    Ruleset, ScanDestination, ScanPolicy, ScanSettings, SecretBytes, Tier, sample,
};

/// A template filled in.
fn text(template: &str) -> String {
    String::from_utf8(sample(template, 5)).expect("letters")
}

/// The shipped detectors under a policy, and a value that is for a host.
fn rules(policy: ScanPolicy) -> Arc<Ruleset> {
    let settings = ScanSettings {
        policy,
        ..ScanSettings::default()
    };
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "$OWN".to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("git.home.test").expect("a host")],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let secret = SecretBytes::new(OWN.as_bytes().to_vec());
    builder.add(&secret, about).expect("a value");
    let rules = Ruleset::new(&Detectors::shipped(), &settings).expect("the shipped detectors");
    Arc::new(rules.with_known(Arc::new(builder.build()), Vec::new()))
}

const OWN: &str = "kV8pq2Lm-zR41x_Qw7Tz9uYb3";

/// What is found in a field of a request to a host.
fn found(rules: &Ruleset, host: &str, value: &str) -> Vec<Finding> {
    let part = |place, bytes| MessagePart { place, bytes };
    let name = Place::Field("authorization".to_owned());
    let parts = [
        part(Place::FieldName, "authorization".as_bytes()),
        part(name, value.as_bytes()),
    ];
    rules
        .head(&ScanDestination { host, port: 443 }, &parts)
        .findings
}

fn basic(pair: &str) -> String {
    format!("Basic {}", base64(pair.as_bytes()))
}

#[test]
fn strict_refuses_no_credential_on_its_way_to_its_issuer_and_everything_else() {
    let openai = text("sk-{b62:20}T3BlbkFJ{b62:20}");
    let github = text("ghp_{b62:30}{crc62}");
    let stripe = text("sk_live_{b62:24}");
    let strict = rules(ScanPolicy::Strict);
    let default = rules(ScanPolicy::Tiered);
    for (host, value) in [
        ("api.openai.com", format!("Bearer {openai}")),
        ("github.com", basic(&format!("x-access-token:{github}"))),
        ("github.com", basic(&format!("{github}:x-oauth-basic"))),
        ("git.home.test", basic(&format!("me:{OWN}"))),
        ("api.stripe.com", basic(&format!("{stripe}:"))),
        ("api.stripe.com", format!("Bearer {stripe}")),
    ] {
        for rules in [&strict, &default] {
            assert_eq!(found(rules, host, &value), [], "{host} {value}");
        }
        let elsewhere = found(&strict, "evil.test", &value);
        assert!(!elsewhere.is_empty(), "{host} {value}");
    }
    // What is no more than a part of it clears nothing.
    for (host, value) in [
        ("api.openai.com", format!("Bearer {}", text("sk-{b62:48}"))),
        (
            "github.com",
            basic(&format!("{github}:{}", text("{b62:30}"))),
        ),
        (
            "github.com",
            basic(&format!("me:{github}{}", text("{b62:30}"))),
        ),
        ("github.com", basic(&format!("me:x{github}"))),
        ("github.com", basic("me:Correct-horse7battery")),
        ("github.com", basic(&format!("me:{OWN}"))),
        ("git.home.test", basic(&format!("me:{OWN}x"))),
        (
            "git.home.test",
            basic(&format!("{OWN}:{}", text("{b62:30}"))),
        ),
    ] {
        let all = found(&strict, host, &value);
        assert!(!all.is_empty(), "{host} {value}");
    }
}

/// RFC 4648 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0_usize, |number, place| {
            (number << 8) | usize::from(three.get(place).copied().unwrap_or_default())
        });
        for place in 0..=three.len() {
            let letter = LETTERS.get((number >> (18 - 6 * place)) & 63);
            text.extend(letter.map(|letter| char::from(*letter)));
        }
    }
    let missing = (4 - text.len() % 4) % 4;
    text.push_str(&"=".repeat(missing));
    text
}
