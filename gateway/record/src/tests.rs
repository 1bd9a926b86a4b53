//! What is written and what is read are one schema, and `schema.json` says the same.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::limits::{LIST_BYTES_MAX, TEXT_BYTES_MAX};
use crate::{Alarm, Found, Kind, Outcome, Reason, Record, RuleCited, Token, Unseen, VERSION, Word};

fn schema() -> Value {
    serde_json::from_str(include_str!("../schema.json")).expect("JSON")
}

/// A record in which every member says something.
fn full() -> Record<'static> {
    let text = || Cow::Borrowed("x");
    let list = || Cow::Owned(vec!["x".to_owned()]);
    Record {
        v: VERSION,
        seq: 1,
        prev: text(),
        time: text(),
        run: text(),
        sandbox: text(),
        session: Some(1),
        uid: Some(1),
        generation: 1,
        lost: Some(1),
        removed: Some(text()),
        key: Some(text()),
        kind: Kind::Finding.into(),
        verdict: Outcome::Deny,
        target: text(),
        alarm: Alarm::Raised,
        method: Some(text()),
        path: Some(text()),
        values: Some(text()),
        reason: Some(Reason::Credential.into()),
        detail: Some(text()),
        monitor: Some(text()),
        rule: Some(RuleCited {
            id: 1,
            text: text(),
            place: text(),
        }),
        flag: Some(text()),
        pin: Some(text()),
        pid: Some(1),
        executable: Some(text()),
        parents: list(),
        bytes_up: Some(1),
        bytes_down: Some(1),
        duration_ms: Some(1),
        scan: Some(text()),
        mode: Some(text()),
        finding: Some(found()),
        unscanned: Some(Unseen {
            bytes: 1,
            reason: text(),
        }),
    }
}

fn found() -> Found<'static> {
    let text = || Cow::Borrowed("x");
    let list = || Cow::Owned(vec!["x".to_owned()]);
    Found {
        detector: text(),
        name: text(),
        place: text(),
        offset: 1,
        chain: list(),
        inside: Some(text()),
        tier: text(),
        checked: text(),
        action: text(),
        issuers: list(),
        mark: text(),
    }
}

fn members(value: &Value) -> BTreeSet<&str> {
    let members = value.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

fn words<T: Token>() -> BTreeSet<&'static str> {
    T::ALL.iter().map(|word| word.token()).collect()
}

#[test]
fn the_schema_lists_every_word_and_no_other() {
    let schema = schema();
    for (pointer, words) in [
        ("/properties/kind/enum", words::<Kind>()),
        ("/properties/verdict/enum", words::<Outcome>()),
        ("/$defs/reason/enum", words::<Reason>()),
    ] {
        let listed = schema.pointer(pointer).and_then(Value::as_array);
        let listed = listed.expect(pointer).iter().filter_map(Value::as_str);
        assert_eq!(listed.collect::<BTreeSet<_>>(), words, "{pointer}");
    }
    assert_eq!(schema["properties"]["v"]["const"], VERSION);
}

#[test]
fn the_schema_describes_every_member_and_no_other() {
    let (schema, written) = (schema(), serde_json::to_value(full()).unwrap());
    for (pointer, part) in [
        ("/properties", ""),
        ("/properties/rule/properties", "/rule"),
        ("/properties/finding/properties", "/finding"),
        ("/properties/unscanned/properties", "/unscanned"),
    ] {
        let described = schema.pointer(pointer).expect(pointer);
        let mut written = members(written.pointer(part).expect(part));
        if part.is_empty() {
            // Put behind the line by who signs it.
            written.insert("signature");
        }
        assert_eq!(members(described), written, "{pointer}");
        for (name, member) in described.as_object().unwrap() {
            let about = member["description"].as_str().unwrap_or_default();
            assert!(about.len() > 10, "{name} is described");
        }
    }
}

#[test]
fn the_schema_requires_what_is_always_written() {
    let schema = schema();
    let required = schema["required"].as_array().unwrap();
    let required: BTreeSet<_> = required.iter().filter_map(Value::as_str).collect();
    let written = serde_json::to_value(Record::<String>::default()).unwrap();
    assert_eq!(members(&written), required);
}

#[test]
fn what_is_written_is_what_is_read() {
    let record = full();
    let line = serde_json::to_vec(&record).unwrap();
    assert_eq!(Record::parse(&line), Some(record));
}

#[test]
fn the_host_of_a_target_has_no_port() {
    for (kind, target, host) in [
        ("request", "https://a.test", "a.test"),
        ("request", "http://a.test:8080", "a.test"),
        ("connect", "a.test:443", "a.test"),
        ("connect", "[2001:db8::1]:443", "2001:db8::1"),
        ("dns", "a.test", "a.test"),
        ("connect", "192.0.2.7:80", "192.0.2.7"),
        ("flow", "2001:db8::1", "2001:db8::1"),
        ("flow", "/run/x.sock", ""),
        ("unix", "/run/x.sock", ""),
        ("start", "", ""),
    ] {
        let record: Record<'_> = Record {
            kind: Word::read(kind.into()),
            target: target.into(),
            ..Record::default()
        };
        assert_eq!(record.host(), host, "{target}");
    }
}

#[test]
fn texts_of_a_record_are_bounded_whoever_wrote_it() {
    let long = "ä".repeat(400_000);
    let items = format!("\"{long}\",").repeat(9) + "\"x\"";
    let line = format!(
        r#"{{"run":"{long}","kind":"request","target":"https://{long}","path":"{long}","executable":"/{long}","parents":[{items}],"finding":{{"name":"{long}","chain":[{items}]}}}}"#
    );
    let record = Record::parse(line.as_bytes()).unwrap();
    assert_eq!(record.run, "ä".repeat(TEXT_BYTES_MAX / 2));
    let found = record.finding.as_ref().unwrap();
    for text in [&record.target, &found.name, record.path.as_ref().unwrap()] {
        assert!(text.len() <= TEXT_BYTES_MAX, "{} bytes", text.len());
    }
    for list in [&record.parents, &found.chain] {
        assert_eq!(list.concat().len(), LIST_BYTES_MAX);
    }
    assert_eq!((record.host().len(), record.program().len()), (254, 254));
}

#[test]
fn what_is_no_record_is_none_and_wrong_members_are_absent() {
    for line in [
        "",
        "{",
        "[]",
        "{}",
        "1",
        r#"{"run":"r"}"#,
        r#"{"kind":"x"}"#,
    ] {
        assert_eq!(Record::parse(line.as_bytes()), None, "{line}");
    }
    let line = br#"{"run":"r","kind":"flow","seq":"1","bytes_up":-1,"pid":"x","rule":7,"finding":[],"alarm":1,"parents":"p"}"#;
    let record = Record::parse(line).unwrap();
    assert_eq!((record.seq, record.traffic(), record.pid), (0, None, None));
    assert_eq!(record.rule, Some(RuleCited::default()));
    assert_eq!(record.finding, Some(Found::default()));
    assert_eq!(record.alarm, Alarm::None);
}
