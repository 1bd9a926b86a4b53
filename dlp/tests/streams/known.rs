//! Values somebody named: found in every coding, bound to their hosts, and
//! watched for in what comes back.

use std::sync::Arc;

use outgate_dlp::{
    Description, Destination, Detectors, HostPattern, Known, KnownBuilder, KnownValue, Part, Place,
    Ruleset, Secret, Settings, Stop, Tier,
};

use crate::encode::{CODINGS, gzip};
use crate::stage::{Dice, ELSEWHERE, send};

const VALUE: &[u8] = b"correct-Horse7battery";

fn known() -> Known {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        issuers: vec![HostPattern::parse("home.test").expect("a host")],
        tier: Tier::Strong,
    };
    builder
        .add(&Secret::new(VALUE.to_vec()), about)
        .expect("a value");
    builder.build()
}

fn rules() -> Ruleset {
    Ruleset::new(&Detectors::shipped(), &Settings::default()).expect("the shipped detectors")
}

#[test]
fn known_values_leave_in_no_coding() {
    let rules = Arc::new(rules().with_known(known()));
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
fn known_values_go_home() {
    let rules = rules().with_known(known());
    let goes = |host: &str| {
        let place = Place::Field("authorization".to_owned());
        let part = Part {
            place,
            bytes: VALUE,
        };
        rules
            .head(&Destination { host, port: 443 }, &[part])
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
