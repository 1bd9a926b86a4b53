//! The shipped detectors against their own samples and near misses, through the
//! engine as everybody else uses it.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use outgate_dlp::{
    Anchor, Boundary, Checked, Detector, DetectorMode, Detectors, Failure, Finding, MessagePart,
    Place, Ruleset, ScanDestination, ScanPolicy, ScanSettings, Scope, Tier, Validator,
    parse_detectors, sample,
};

/// How many texts are made of every template.
const SEEDS: u64 = 24;

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
    let modes = scans
        .map(|detector| (detector.id.to_string(), DetectorMode::Warn))
        .collect();
    let settings = ScanSettings {
        modes,
        ..ScanSettings::default()
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

fn found(rules: &Ruleset, destination: &ScanDestination<'_>, bytes: &[u8]) -> Vec<Finding> {
    // Where issuers with many tenants take it, too.
    let place = Place::Field("authorization".to_owned());
    rules
        .head(destination, &[MessagePart { place, bytes }])
        .findings
}

fn finds(rules: &Ruleset, detector: &Detector, text: &[u8]) -> Option<Finding> {
    let findings = found(rules, &ELSEWHERE, text).into_iter();
    findings
        .into_iter()
        .find(|finding| finding.detector == detector.id)
}

/// A text with something ordinary around it.
fn within(text: &[u8]) -> Vec<u8> {
    [&b"before \""[..], text, b"\" after"].concat()
}

#[test]
fn every_sample_is_found_alone_and_within_a_text() {
    let rules = ruleset();
    let mut missed = Vec::new();
    for detector in Detectors::shipped().iter() {
        for template in detector.samples.iter() {
            for seed in 0..SEEDS {
                let text = sample(template, seed);
                for bytes in [text.clone(), within(&text)] {
                    if finds(&rules, detector, &bytes).is_none() {
                        missed.push(format!("{}: {template} with seed {seed}", detector.id));
                    }
                }
            }
        }
    }
    missed.dedup();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_near_miss_is_silent() {
    let rules = ruleset();
    let mut heard = Vec::new();
    for detector in Detectors::shipped().iter() {
        for template in detector.near_misses.iter() {
            for seed in 0..SEEDS {
                let text = sample(template, seed);
                if finds(&rules, detector, &within(&text)).is_some() {
                    heard.push(format!("{}: {template} with seed {seed}", detector.id));
                }
            }
        }
    }
    heard.dedup();
    assert!(heard.is_empty(), "{}", heard.join("\n"));
}

#[test]
fn what_a_sample_matches_is_as_long_as_the_detector_says() {
    for detector in Detectors::shipped().iter() {
        let id = &detector.id;
        for template in detector.samples.iter() {
            let text = sample(template, 1);
            let holds = |literal: &str| {
                text.windows(literal.len())
                    .any(|part| part == literal.as_bytes())
            };
            let begins = |literal: &str| text.starts_with(literal.as_bytes());
            match detector.anchor {
                Anchor::Scan => assert!(detector.literals.is_empty(), "{id}"),
                Anchor::Inside => assert!(
                    detector.literals.iter().any(|literal| holds(literal)),
                    "{id}"
                ),
                // A label may have something in front of it that does not count.
                Anchor::Start if detector.boundary == Boundary::None => {
                    assert!(
                        detector.literals.iter().any(|literal| holds(literal)),
                        "{id}"
                    );
                }
                Anchor::Start => assert!(
                    detector.literals.iter().any(|literal| begins(literal)),
                    "{id}"
                ),
            }
            assert!(
                text.len() >= detector.min,
                "{id}: {} bytes, at least {}",
                text.len(),
                detector.min
            );
        }
    }
}

#[test]
fn a_sample_may_go_to_its_issuer_and_nowhere_else() {
    let rules = ruleset();
    for detector in Detectors::shipped().iter() {
        let text = sample(detector.samples.first().expect("a sample"), 3);
        for issuer in detector.issuers.iter() {
            let host = issuer.replace("{region}", "eu-central-1");
            let host = host
                .replace("{zone}", "cn-hangzhou")
                .replace("{label}", "*");
            let host = host.replace('*', "any");
            let destination = ScanDestination {
                host: &host,
                port: 443,
            };
            let own = |finding: &Finding| finding.detector == detector.id;
            // Alone it stands in no place of its own, but where it needs no scheme.
            let is_bare = |place: &outgate_dlp::Text| place == "authorization";
            assert_eq!(
                found(&rules, &destination, &text).iter().any(own),
                !detector.places.iter().any(is_bare),
                "{} to {host}",
                detector.id
            );
            let below = format!("{host}.evil.test");
            let destination = ScanDestination {
                host: &below,
                port: 443,
            };
            assert!(
                found(&rules, &destination, &text).iter().any(own),
                "{} to {below}",
                detector.id
            );
        }
    }
}

#[test]
fn a_registry_is_an_issuer_once_the_client_names_it() {
    use outgate_dlp::Issuer;
    let detectors = Detectors::shipped();
    let of_registries = detectors
        .iter()
        .filter(|detector| matches!(detector.scope, Scope::Registry(_)));
    let mut count = 0;
    for detector in of_registries {
        assert!(detector.issuers.is_empty(), "{}", detector.id);
        let registries = vec![Issuer {
            detector: detector.id.to_string(),
            host: "packages.example.org".to_owned(),
        }];
        let settings = ScanSettings {
            registries,
            ..ScanSettings::default()
        };
        let rules = Ruleset::new(&detectors, &settings).expect("a ruleset");
        let text = sample(&detector.samples[0], 5);
        let place = detector.places.first().map_or("", |place| place);
        let scheme = place.strip_prefix("authorization: ").unwrap_or_default();
        let text = [scheme.as_bytes(), &text].concat();
        let own = |finding: &Finding| finding.detector == detector.id;
        let named = ScanDestination {
            host: "packages.example.org",
            port: 443,
        };
        assert_eq!(
            found(&rules, &named, &text).iter().any(own),
            detector.places.is_empty(),
            "{}",
            detector.id
        );
        assert!(
            found(&rules, &ELSEWHERE, &text).iter().any(own),
            "{}",
            detector.id
        );
        count += 1;
    }
    assert_eq!(count, 4, "npm twice, one for Python, one for Rust");
}

#[test]
fn a_wrong_checksum_is_told_and_lets_nothing_pass() {
    let rules = ruleset();
    for id in ["github-token", "npm-token", "age-secret-key", "xprv"] {
        let detectors = Detectors::shipped();
        let detector = detectors.find(id).expect("a detector");
        assert_eq!(detector.failure, Failure::Lower, "{id}");
        let text = sample(&detector.samples[0], 9);
        let good = finds(&rules, detector, &text).expect("a finding");
        assert_eq!(good.checked, Checked::Passed, "{id}");
        assert_eq!(good.action, outgate_dlp::Action::Block, "{id}");
        let mut wrong = text.clone();
        let last = wrong.last_mut().expect("a byte");
        *last = if *last == b'Q' { b'Z' } else { b'Q' };
        let lowered = finds(&rules, detector, &wrong).expect("still a finding");
        assert_eq!(lowered.checked, Checked::Failed, "{id}");
        assert_eq!(lowered.action, outgate_dlp::Action::Block, "{id}");
    }
}

#[test]
fn every_detector_is_complete() {
    let detectors = Detectors::shipped();
    let with = |tier: Tier| {
        detectors
            .iter()
            .filter(|detector| detector.tier == tier)
            .count()
    };
    assert!(detectors.len() >= 135, "{}", detectors.len());
    assert!(with(Tier::Strong) >= 90, "{}", with(Tier::Strong));
    // A form that nobody confirmed is a guess: nothing is refused for it unasked.
    for detector in detectors.iter().filter(|detector| !detector.confirmed) {
        assert_eq!(detector.anchor, Anchor::Scan, "{}", detector.id);
    }
    for detector in detectors.iter() {
        assert!(detector.near_misses.len() >= 2, "{}", detector.id);
        let gated = detector.failure == Failure::Clear;
        assert!(
            !gated || detector.validator != Validator::None,
            "{}",
            detector.id
        );
        for template in detector.samples.iter() {
            let fixed = !template.contains('{');
            assert!(
                !fixed || detector.min_entropy == 0.0,
                "{}: {template}",
                detector.id
            );
        }
    }
}

#[test]
fn a_label_adds_nothing_to_a_form_of_its_own() {
    let rules = ruleset();
    let token = sample("ghp_{b62:30}{crc62}", 1);
    let text = [&b"token = \""[..], &token, b"\""].concat();
    let ids = |host: &str| -> Vec<String> {
        let findings = found(&rules, &ScanDestination { host, port: 443 }, &text);
        let ids = findings.iter().map(|finding| finding.detector.to_string());
        ids.collect()
    };
    assert_eq!(ids("elsewhere.test"), ["github-token"]);
    // Nor where the form may go, but stands in no place of its own.
    assert_eq!(ids("api.github.com"), ["github-token"]);
}

#[test]
fn filling_behind_a_strong_credential_does_not_hide_it() {
    let rules = ruleset();
    let mut missed = Vec::new();
    for detector in Detectors::shipped().iter() {
        let open = matches!(detector.boundary, Boundary::None | Boundary::Before)
            && detector.anchor == Anchor::Start;
        if detector.tier != Tier::Strong || !open {
            continue;
        }
        for template in detector.samples.iter() {
            for fill in ["a", "0", "A", "x-"] {
                let filled = [sample(template, 1), fill.repeat(400).into_bytes()].concat();
                if finds(&rules, detector, &filled).is_none() {
                    missed.push(format!("{}: {template} before many {fill}", detector.id));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn strict_rules_refuse_what_others_only_report() {
    let detectors = Detectors::shipped();
    let settings = ScanSettings {
        policy: ScanPolicy::Strict,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&detectors, &settings).expect("a ruleset");
    let detector = detectors.find("secret-assignment").expect("a detector");
    let text = sample(&detector.samples[0], 2);
    let finding = finds(&rules, detector, &text).expect("a finding");
    assert_eq!(finding.action, outgate_dlp::Action::Block);
}

/// A detector of a user, as a file.
const OWN: &str = r#"
[[detector]]
id = "acme-key"
name = "ACME key"
cost = "Opens every door."
reference = "https://acme.example/keys"
tier = "strong"
literals = ["acme_"]
pattern = '''acme_[0-9a-f]{24}'''
min_entropy = 2.5
scope = "issuers"
issuers = ["*.acme.example"]
samples = ["acme_{hex:24}"]
near_misses = ["acme_{hex:23}", "acme_ alone"]
"#;

#[test]
fn a_detector_of_the_user_works_like_a_shipped_one() {
    let own = parse_detectors(OWN).expect("a detector");
    assert_eq!((own[0].min, own[0].max), (29, 29));
    let detector = own[0].clone();
    let mut detectors = Detectors::shipped();
    detectors.add(own).expect("a new id");
    let rules = Ruleset::new(&detectors, &ScanSettings::default()).expect("a ruleset");
    for seed in 0..SEEDS {
        assert!(finds(&rules, &detector, &sample("acme_{hex:24}", seed)).is_some());
        assert!(finds(&rules, &detector, &sample("acme_{hex:23}", seed)).is_none());
    }
}

/// Changes the file in one place and expects a fault.
fn check(from: &str, to: &str, message: &str) {
    let text = OWN.replace(from, to);
    let faults = parse_detectors(&text).expect_err(message);
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text == message), "{texts:#?}");
}

#[test]
fn a_wrong_detector_file_says_every_fault_with_its_line() {
    check(
        "tier = \"strong\"",
        "tier = \"sure\"",
        "line 7: `tier` is one of strong, structured, context, not `sure`",
    );
    check(
        "{24}'",
        "+'",
        "line 9: the pattern has no longest match; bound every `*` and `+`",
    );
    check(
        "{24}'",
        "{24}('",
        "line 9: the pattern is not one, at byte 17: unclosed group",
    );
    check(
        "24}'",
        "17000}'",
        "line 9: matches have 17005 to 17005 bytes; 6 to 16384 are allowed",
    );
    check(
        "scope = ",
        "sope = ",
        "line 11: unknown key `sope` in a detector",
    );
    check(
        "[\"*.acme.example\"]",
        "[\"*.example\"]",
        "line 2: `acme-key`: an issuer is a lower-case host; `*` stands for whole labels left of two others",
    );
    check(
        "issuers = [",
        "#",
        "line 2: `acme-key`: `scope = \"issuers\"` needs `issuers` or `tenant_hosts`",
    );
    check(
        "min_entropy = 2.5",
        "min_entropy = 9",
        "line 10: `min_entropy` is a number of bits a byte, from 0 to 8",
    );
    check(
        "literals = [\"acme_\"]",
        "",
        "line 2: `acme-key`: every anchor but `scan` needs literals, and `scan` has none",
    );
    check(
        ", \"acme_ alone\"",
        "",
        "line 2: `acme-key`: `near_misses` needs two or more",
    );
    check(
        "Opens every door.",
        "doors",
        "line 2: `acme-key`: `cost` is one sentence: a capital letter first, a full stop last",
    );
}

#[test]
fn a_file_that_is_no_detector_file_is_refused() {
    check(
        "[[detector]]",
        "[detector]",
        "line 2: `detector` is unknown; a file holds `[[detector]]` tables",
    );
    check(
        "name = \"ACME key\"",
        "name = ",
        "line 4: string values must be quoted, expected literal string",
    );
    let twice = [OWN, OWN].concat();
    let faults = parse_detectors(&twice).expect_err("the same id twice");
    assert_eq!(faults[0].message, "`acme-key` is described twice");
}

#[test]
fn a_placeholder_is_no_credential_and_hides_none() {
    let detectors = Detectors::shipped();
    let detector = detectors.find("github-token").expect("a detector");
    let [placeholder, real] = [1, 2].map(|seed| sample(&detector.samples[0], seed));
    let rules = Ruleset::new(&detectors, &ScanSettings::default()).expect("the shipped detectors");
    let rules = rules.with_placeholders([placeholder.as_slice()].into_iter());
    let found = |bytes: &[u8]| found(&rules, &ELSEWHERE, bytes).len();
    assert_eq!(found(&placeholder), 0);
    assert_eq!(found(&real), 1);
    let both = [placeholder.as_slice(), b" ", &real].concat();
    assert_eq!(found(&both), 1);
    let longer = [placeholder.as_slice(), b"x"].concat();
    assert_eq!(found(&longer), 0, "the placeholder and a letter");
}
