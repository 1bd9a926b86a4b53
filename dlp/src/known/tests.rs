//! Known values in every form, at every place, and what must not be found.

use super::{KnownBuilder, KnownNature, KnownValue, KnownValues, Unfit};
use crate::detector::Tier;
use crate::detector_sample::SampleDice;
use crate::known_forms::KnownForm;
use crate::secret::SecretBytes;
use crate::validate::base64;
use crate::{IssuerPattern, sample};

const KEY: [u8; 32] = [7; 32];

fn about(label: &str) -> KnownValue {
    KnownValue {
        label: label.to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("*.example.org").expect("a pattern")],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    }
}

fn known(values: &[&[u8]]) -> KnownValues {
    let mut builder = KnownBuilder::new(KEY);
    for (number, value) in values.iter().enumerate() {
        let added = builder.add(
            &SecretBytes::new(value.to_vec()),
            about(&number.to_string()),
        );
        assert_eq!(added, Ok(()), "value {number}");
    }
    builder.build()
}

fn noise(count: usize, seed: u64) -> Vec<u8> {
    SampleDice::new(seed).bytes(count)
}

#[test]
fn a_value_is_found_in_every_form_at_every_place() {
    let value = b"kV8pq2Lmz-R41x_Qw7";
    let known = known(&[value]);
    let digits = |byte: &u8| format!("{byte:02x}").into_bytes();
    let hex: Vec<u8> = value.iter().flat_map(digits).collect();
    let mut reversed = value.to_vec();
    reversed.reverse();
    for place in 0..40 {
        let before = noise(place, 1);
        let check = |text: &[u8], form: KnownForm| {
            let whole = [&before[..], text, b"\n", &noise(20, 2)].concat();
            let found = known.find(&whole, 0).expect("found");
            assert_eq!((found.value, found.form), (0, form), "at {place}");
            assert!(found.range.start >= place && found.range.end <= place + text.len());
        };
        check(value, KnownForm::Raw);
        check(&reversed, KnownForm::Reversed);
        check(&hex, KnownForm::Hex);
        check(&hex.to_ascii_uppercase(), KnownForm::Hex);
        for (lead, alphabet) in [
            (&b""[..], base64::STANDARD),
            (b"x", base64::URL),
            (b"user:", base64::STANDARD),
            (b"token=", base64::URL),
        ] {
            let text = base64::encode(&[lead, value, b"tail"].concat(), alphabet);
            check(&text, KnownForm::Base64);
        }
    }
}

#[test]
fn a_canary_that_lost_its_capitals_is_one() {
    for (nature, is_found) in [(KnownNature::Canary, true), (KnownNature::Sent, false)] {
        for value in [
            "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",
            &"kV8pq2Lmz-R41x_Qw7".repeat(5),
        ] {
            let mut builder = KnownBuilder::new(KEY);
            let about = KnownValue {
                nature,
                ..about("$A_TOKEN")
            };
            let added = builder.add(&SecretBytes::new(value.as_bytes().to_vec()), about);
            assert_eq!(added, Ok(()));
            let name = format!("x-{}: 1", value.to_lowercase());
            let found = builder.build().find(name.as_bytes(), 0);
            assert_eq!(found.is_some(), is_found, "{nature:?} {value}");
        }
    }
}

#[test]
fn a_value_is_found_in_every_spelling() {
    for seed in 0..50 {
        let bytes = noise(32, seed);
        let digit = |byte: &u8| format!("{byte:02x}").into_bytes();
        let digits: Vec<u8> = bytes.iter().flat_map(digit).collect();
        let digits = String::from_utf8(digits).expect("text");
        let standard = String::from_utf8(base64::encode(&bytes, base64::STANDARD)).expect("text");
        let url = String::from_utf8(base64::encode(&bytes, base64::URL)).expect("text");
        let bare = |text: &str| text.trim_end_matches('=').to_owned();
        let all = [
            bare(&standard),
            bare(&url),
            standard,
            url,
            digits.to_uppercase(),
            digits,
        ];
        for value in &all {
            let known = known(&[value.as_bytes()]);
            for other in &all {
                assert!(
                    known.find(other.as_bytes(), 0).is_some(),
                    "{value} as {other}"
                );
            }
        }
    }
}

#[test]
fn a_value_is_found_as_strings_of_any_language_write_it() {
    for (value, writings) in [
        (
            r#"k7Pq8Zw"9xTv2mLr4eNb6"#,
            &[
                r#"k7Pq8Zw\"9xTv2mLr4eNb6"#,
                r#"k7Pq8Zw\\\"9xTv2mLr4eNb6"#,
                r#"k7Pq8Zw\\\\\\\"9xTv2mLr4eNb6"#,
                r#"k7Pq8Zw""9xTv2mLr4eNb6"#,
                r#"k7Pq8Zw\""9xTv2mLr4eNb6"#,
            ][..],
        ),
        (
            r"k7Pq8Zw\9xTv2mLr4eNb6",
            &[r"k7Pq8Zw\\9xTv2mLr4eNb6", r"k7Pq8Zw\\\\9xTv2mLr4eNb6"],
        ),
        (
            r#"k7P\q8Zw"9x'Tv2mL"#,
            &[
                r#"k7P\\q8Zw\"9x'Tv2mL"#,
                r#"k7P\\q8Zw"9x\'Tv2mL"#,
                r#"k7P\\q8Zw\"9x\'Tv2mL"#,
            ],
        ),
        (
            "k7Pq8Zw'9xTv2mLr4eNb6",
            &[
                r"k7Pq8Zw\'9xTv2mLr4eNb6",
                r"k7Pq8Zw'\''9xTv2mLr4eNb6",
                r#"k7Pq8Zw'"'"'9xTv2mLr4eNb6"#,
                "k7Pq8Zw''9xTv2mLr4eNb6",
            ],
        ),
        (
            "k7Pq8&Zw$9x,Tv+2mLr4e;Nb6",
            &[
                r"k7Pq8\&Zw\$9x\,Tv+2mLr4e\;Nb6",
                r"k7Pq8\&Zw\$9x,Tv+2mLr4e\;Nb6",
                r"k7Pq8\&Zw\$9x\,Tv\+2mLr4e\;Nb6",
                r"k7Pq8&Zw\$9x,Tv+2mLr4e;Nb6",
            ],
        ),
        ("k7Pq8Zw\n9xTv2mLr4eNb6", &[r"k7Pq8Zw\n9xTv2mLr4eNb6"]),
    ] {
        let known = known(&[value.as_bytes()]);
        for writing in writings {
            for place in 0..20 {
                let text = [&noise(place, 1), writing.as_bytes(), b"\"}"].concat();
                let found = known.find(&text, 0).map(|found| found.form);
                assert_eq!(found, Some(KnownForm::Escaped), "{writing} at {place}");
            }
        }
        // Nothing longer has to be held for them.
        assert!(known.longest() <= 128, "{value}");
    }
}

#[test]
fn a_part_of_a_long_value_is_enough() {
    let long: Vec<u8> = sample("{b62:900}", 4);
    let known = known(&[&long]);
    for start in (0..700).step_by(37) {
        let part = &long[start.max(300)..(start.max(300) + 200).min(900)];
        let text = [b"key: ", part, b" end"].concat();
        assert!(known.find(&text, 0).is_some(), "from {start}");
    }
    assert!(
        known.find(&long[..250], 0).is_none(),
        "its beginning may be that of others"
    );
}

#[test]
fn nothing_else_is_found() {
    let values: Vec<Vec<u8>> = (0..200).map(|seed| sample("ghp_{b62:36}", seed)).collect();
    let borrowed: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let known = known(&borrowed);
    assert_eq!(known.find(&noise(1 << 20, 9), 0), None);
    let others: Vec<u8> = (1000..3000)
        .flat_map(|seed| sample("ghp_{b62:36}\n", seed))
        .collect();
    assert_eq!(known.find(&others, 0), None);
    // All but one byte of each.
    for value in &values {
        let mut changed = value.clone();
        changed[20] = if changed[20] == b'a' { b'b' } else { b'a' };
        assert_eq!(known.find(&changed, 0), None);
        assert_eq!(known.find(&value[..39], 0), None);
    }
}

#[test]
fn matches_are_told_once_they_end_behind_a_place() {
    let value = b"kV8pq2Lmz-R41x_Qw7";
    let known = known(&[value]);
    let text = [&noise(33, 5)[..], value, &noise(50, 6), value].concat();
    let first = known.find(&text, 0).expect("the first");
    assert_eq!(first.range, 33..51);
    let second = known.find(&text, first.range.end).expect("the second");
    assert_eq!(second.range, 101..119);
    assert_eq!(known.find(&text, second.range.end), None);
    assert!(known.longest() >= value.len() * 2);
}

#[test]
fn what_is_everywhere_is_not_looked_for() {
    let mut builder = KnownBuilder::new(KEY);
    let long = "x7".repeat(40_000);
    for (value, expected) in [
        ("", Unfit::Short),
        ("true", Unfit::Short),
        ("localhost", Unfit::Short),
        ("production", Unfit::Plain),
        ("1234567890", Unfit::Plain),
        ("aaaaaaaaaaaaaaaa", Unfit::Plain),
        ("changeme-please", Unfit::Plain),
        ("${GITHUB_TOKEN}", Unfit::Plain),
        ("xxxxxxxxxxxxxxxx", Unfit::Plain),
        (long.as_str(), Unfit::Long),
    ] {
        let secret = SecretBytes::new(value.as_bytes().to_vec());
        assert_eq!(builder.add(&secret, about("x")), Err(expected), "{value}");
    }
    let secret = |seed| SecretBytes::new(sample("{b62:24}", seed));
    for seed in 0..512 {
        assert_eq!(builder.add(&secret(seed), about("x")), Ok(()), "{seed}");
    }
    assert_eq!(builder.add(&secret(600), about("x")), Err(Unfit::Many));
    assert_eq!(builder.build().len(), 512);
}

#[test]
fn a_value_may_go_to_its_issuer() {
    let known = known(&[b"kV8pq2Lmz-R41x_Qw7"]);
    let value = known.value(0).expect("a value");
    assert!(value.may_go_to("api.example.org"));
    assert!(!value.may_go_to("example.org.evil.test"));
    assert!(!value.may_go_to(""));
}

#[test]
fn neither_values_nor_keys_are_shown() {
    let known = known(&[b"kV8pq2Lmz-R41x_Qw7"]);
    assert_eq!(format!("{known:?}"), "Known(1 values)");
}

#[test]
fn without_the_key_nothing_is_found() {
    let value = b"kV8pq2Lmz-R41x_Qw7";
    let mut builder = KnownBuilder::new([8; 32]);
    assert_eq!(
        builder.add(&SecretBytes::new(value.to_vec()), about("x")),
        Ok(())
    );
    let mut other = builder.build();
    other.key = KEY;
    assert_eq!(other.find(value, 0), None);
}

#[test]
fn what_the_user_holds_is_bound_to_its_hosts() {
    use crate::inventory::{Format, read};
    let token = String::from_utf8(sample("ghp_{b62:30}{crc62}", 1)).expect("letters");
    let text = format!(
        "{token}\nkV8pq2Lmz-R41x -> api.example.org\nLw7-zz88-Rt41-Q9\ntrue\nSunflower42\n"
    );
    let mut builder = KnownBuilder::new(KEY);
    let detectors = crate::Detectors::shipped();
    let mine = read(Format::List, "mine", text.as_bytes());
    // `true` is no secret.
    let unfit = [("mine:4".to_owned(), Unfit::Short)];
    assert_eq!(builder.hold(&mine, &detectors), unfit);
    let keys = "[default]\naws_secret_access_key = kV8pq2LmzzR41xQw7kV8pq2LmzzR41xQw7zzzz88\n";
    let unfit = builder.hold(&read(Format::Aws, "aws", keys.as_bytes()), &detectors);
    assert_eq!(unfit, []);
    let known = builder.build();
    let about = |number: usize| known.value(number).expect("a value");
    assert!(about(0).may_go_to("api.github.com") && !about(0).may_go_to("evil.test"));
    assert!(about(1).may_go_to("api.example.org") && about(1).tier == Tier::Strong);
    assert!(about(2).issuers.is_empty() && about(2).tier == Tier::Strong);
    assert!(about(3).tier == Tier::Context, "somebody made it up");
    assert!(
        about(4).issuers.is_empty() && about(4).nature == KnownNature::Kept,
        "never sent"
    );
}

#[test]
fn a_value_of_two_sources_may_go_where_either_says() {
    use crate::inventory::{Format, environment, read};
    let detectors = crate::Detectors::shipped();
    let mut builder = KnownBuilder::new(KEY);
    let variables = [("MYCORP_TOKEN", "kV8pq2Lmz-R41x_Qw7")];
    let unfit = builder.hold(&environment(variables.into_iter()), &detectors);
    assert_eq!(unfit, []);
    let text = b"machine a.example.org login x password kV8pq2Lmz-R41x_Qw7\n";
    let unfit = builder.hold(&read(Format::Netrc, "~/.netrc", text), &detectors);
    assert_eq!(unfit, []);
    let known = builder.build();
    assert_eq!(known.len(), 1);
    let value = known.identify(b"kV8pq2Lmz-R41x_Qw7").expect("a value");
    assert!(value.may_go_to("a.example.org") && !value.may_go_to("b.example.org"));
    for (name, expected) in [
        ("MYCORP_TOKEN", true),
        ("$MYCORP_TOKEN", true),
        ("~/.netrc", true),
        ("MYCORP", false),
        ("", false),
    ] {
        assert_eq!(value.is_named(name), expected, "{name}");
    }
    for other in [
        &b"kV8pq2Lmz-R41x_Qw"[..],
        b"kV8pq2Lmz-R41x_Qw77",
        b"kV8pq2Lmz-R41x_Qw8",
        b"",
    ] {
        assert_eq!(known.identify(other), None);
    }
}
