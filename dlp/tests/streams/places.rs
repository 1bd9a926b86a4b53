//! Where in content a finding stands: the path in a document, the part of a form, the
//! same however the content is cut, and none where it would be uncertain.

use outgate_dlp::{Description, Finding, Place, ScanPolicy, Stop, UnscannableAction};

use crate::archives::zip;
use crate::encode::{gzip, plain_base64};
use crate::stage::{Dice, ELSEWHERE, rules, sample_of};

/// All findings of content of a media type, sent in pieces of this length.
fn found(
    (media_type, codings): (&str, Option<&str>),
    content: &[u8],
    length: usize,
) -> Vec<Finding> {
    let rules = rules(ScanPolicy::Monitor, UnscannableAction::Record);
    let mut stream = rules.stream(
        &ELSEWHERE,
        &Description {
            place: Place::Content,
            media_type: Some(media_type.as_bytes()),
            content_codings: codings.map(str::as_bytes),
            length: None,
        },
    );
    let mut findings = Vec::new();
    for piece in content.chunks(length) {
        stream.push(piece).expect("only recorded");
        findings.extend(stream.warnings());
    }
    let ended: Result<u64, Stop> = stream.finish();
    ended.expect("only recorded");
    findings.extend(stream.warnings());
    findings
}

/// Where the token stands, by the codings around it.
fn places(kind: (&str, Option<&str>), content: &[u8]) -> Vec<(String, Option<String>)> {
    let lengths = [content.len(), 1, 7, 100, 4096];
    let mut all = lengths.into_iter().map(|length| {
        let findings = found(kind, content, length.min(content.len()));
        let place = |one: Finding| (one.to_string(), one.inside);
        findings.into_iter().map(place).collect::<Vec<_>>()
    });
    let whole = all.next().expect("whole");
    for cut in all {
        assert_eq!(cut, whole, "cut and whole");
    }
    whole
}

fn check(kind: (&str, Option<&str>), content: &[u8], chain: &str, inside: Option<&str>) {
    let found = places(kind, content);
    let text = String::from_utf8_lossy(&content[..content.len().min(200)]).into_owned();
    let expected = (format!("{chain}github-token"), inside.map(str::to_owned));
    assert_eq!(found, [expected], "{text}");
}

const JSON: (&str, Option<&str>) = ("application/json", None);

fn token() -> String {
    String::from_utf8(sample_of("github-token", 1)).expect("letters")
}

fn base64(bytes: &[u8]) -> String {
    String::from_utf8(plain_base64(bytes)).expect("letters")
}

#[test]
fn a_finding_in_a_document_has_its_path() {
    let token = token();
    let words = String::from_utf8(Dice(3).words(3000)).expect("words");
    for (document, chain, inside) in [
        (format!(r#"{{"a":"{token}"}}"#), "", "$.a"),
        (
            format!(r#"{{"a":{{"b":[0,"x {token} y"]}}}}"#),
            "",
            "$.a.b[1]",
        ),
        (format!(r#"{{"a":{{"{token}":1}}}}"#), "", "a name in $.a"),
        (
            format!(r#"{{"role":"user","content":"here:\n{token}\nand"}}"#),
            "",
            "$.content",
        ),
        // With an escape in it, in long text and in short.
        (
            format!(
                r#"{{"a":"{words}","b":"{words}\n\u0067{}","c":"\n{words}"}}"#,
                &token[1..]
            ),
            "json>",
            "$.b",
        ),
        (
            format!(
                r#"{{"a":"x","b":"it is \u0067{}\n","c":"\n"}}"#,
                &token[1..]
            ),
            "json>",
            "$.b",
        ),
        (
            format!(r#"{{"a":"x","b":"\u0067{}"}}"#, &token[1..]),
            "json>",
            "$.b",
        ),
        (
            format!("{{\"a\":1}}\n{{\"b\":\"{token}\"}}\n"),
            "",
            "$.b of value 2",
        ),
    ] {
        check(JSON, document.as_bytes(), chain, Some(inside));
    }
}

#[test]
fn a_finding_in_a_run_of_a_document_has_its_path() {
    let token = token();
    let words = String::from_utf8(Dice(3).words(3000)).expect("words");
    for (document, chain, inside) in [
        (
            format!(r#"{{"a":"b","c":"{}"}}"#, base64(token.as_bytes())),
            "base64>",
            "$.c",
        ),
        (
            format!(
                r#"{{"text":"{words}","data":"{}"}}"#,
                base64(format!("{token} {words}").as_bytes())
            ),
            "base64>",
            "$.data",
        ),
        (
            format!(
                r#"{{"text":"{words}","data":"{}"}}"#,
                base64(format!("{words} {token} {words}").as_bytes())
            ),
            "base64>",
            "$.data",
        ),
        (
            format!(
                r#"{{"text":"x","data":"{}"}}"#,
                base64(&zip(format!("{words} {token}").as_bytes()))
            ),
            "base64>zip>",
            "$.data: folder/second.txt",
        ),
    ] {
        check(JSON, document.as_bytes(), chain, Some(inside));
    }
}

#[test]
fn the_path_is_that_of_the_value_not_of_its_name() {
    // The name belongs to the form.
    let secret = "q7Rk2mXw9TzLb4VnHc8JyPd5GsFe3AuKo6Ei1MvB";
    let document = format!(r#"{{"x":{{"aws_secret_access_key":"{secret}"}}}}"#);
    let found = found(JSON, document.as_bytes(), document.len());
    let places: Vec<_> = found
        .iter()
        .filter_map(|one| one.inside.as_deref())
        .collect();
    assert!(!places.is_empty(), "{found:?}");
    for place in places {
        assert_eq!(place, "$.x.aws_secret_access_key");
    }
}

#[test]
fn names_that_hold_a_credential_are_not_shown() {
    let token = token();
    let other = String::from_utf8(sample_of("github-token", 2)).expect("letters");
    let part = &token[4..20];
    let document = format!(
        r#"{{"{token}":{{"{other}":{{"{}":{{"{part}":{{"b":"{token} {other}"}}}}}}}}}}"#,
        base64(other.as_bytes())
    );
    let beside = format!(r#"{{"k:{part} and more":"{token}"}}"#);
    let findings = [document, beside].map(|one| found(JSON, one.as_bytes(), 64));
    for finding in findings.into_iter().flatten() {
        let inside = finding.inside.expect("a path");
        for secret in [
            &token[4..12],
            &other[4..12],
            &base64(other.as_bytes())[8..20],
        ] {
            assert!(!inside.contains(secret), "{inside}");
        }
    }
    // A later value below such a name.
    let third = String::from_utf8(sample_of("github-token", 3)).expect("letters");
    let document = format!(r#"{{"{token}":{{"{other}":{{"b":"{third}"}}}}}}"#);
    let found = found(JSON, document.as_bytes(), 64);
    let last = found.last().expect("a finding");
    assert_eq!(last.inside.as_deref(), Some("$[…][…].b"));
}

/// How a half of a credential is written as a name.
const WRITTEN: [fn(&str) -> String; 3] = [
    str::to_owned,
    |half| {
        let bytes: Vec<String> = half.bytes().map(|byte| format!("%{byte:02x}")).collect();
        bytes.concat()
    },
    |half| half.replace('_', "%5F"),
];

#[test]
fn names_that_hold_a_credential_together_are_not_shown() {
    let token = token();
    for seed in 2..12 {
        let other = String::from_utf8(sample_of("github-token", seed)).expect("letters");
        for cut in [3, 10, 20, 30] {
            for write in WRITTEN {
                let (first, last) = other.split_at(cut);
                let (first, last) = (write(first), write(last));
                let form = format!(
                    "--b\r\nContent-Disposition: form-data; name=\"{first}\"; filename=\"{last}\"\r\n\r\n{token}\r\n--b--\r\n"
                );
                let of_form = ("multipart/form-data; boundary=b", None);
                let all = [
                    (JSON, format!(r#"{{"{first}":{{"{last}":"{token}"}}}}"#)),
                    (JSON, format!(r#"{{"{first}":[{{"{last}":["{token}"]}}]}}"#)),
                    (of_form, form),
                ];
                for (kind, content) in all {
                    let found = found(kind, content.as_bytes(), 64);
                    let own = found.last().expect("a finding");
                    let inside = own.inside.clone().unwrap_or_default();
                    let is_shown = inside.contains(&first) && inside.contains(&last);
                    assert!(!is_shown, "{inside}");
                }
            }
        }
    }
}

#[test]
fn many_findings_under_many_names_take_no_time() {
    let open = "{\"abcdefgh\":".repeat(60);
    let tokens: Vec<String> = (1..900)
        .map(|seed| String::from_utf8(sample_of("github-token", seed)).expect("letters"))
        .collect();
    let document = format!("{open}[\"{}\"", tokens.join("\",\""));
    let found = found(JSON, document.as_bytes(), 512);
    assert!(found.len() > 100, "{}", found.len());
    let told = found.iter().filter(|one| one.inside.is_some()).count();
    assert!((10..20).contains(&told), "{told}");
}

#[test]
fn what_is_uncertain_has_no_path() {
    let token = token();
    let document = format!(r#"{{"a":"{token}"}}"#);
    let coded = ("application/json", Some("gzip"));
    check(coded, &gzip(document.as_bytes()), "", None);
    check(JSON, format!("words {document}").as_bytes(), "", None);
    check(JSON, format!("{{a:'{token}'}}").as_bytes(), "", None);
    check(("", None), token.as_bytes(), "", None);
    // Each escape may have stood in either of the values.
    let escapes = r"\u0061".repeat(20);
    let document = format!(r#"{{"a":"{escapes}","b":"\u0067{}"}}"#, &token[1..]);
    check(JSON, document.as_bytes(), "json>", None);
}

#[test]
fn a_document_needs_no_media_type() {
    let document = format!(r#"{{"a":"{}"}}"#, token());
    for media_type in ["", "text/plain", "application/x-www-form-urlencoded"] {
        check((media_type, None), document.as_bytes(), "", Some("$.a"));
    }
}

#[test]
fn a_finding_in_a_form_has_its_part() {
    let token = token();
    let kind = ("multipart/form-data; boundary=\"x y\"", None);
    let form = |name: &str, content: &[u8]| {
        let head = format!("--x y\r\nContent-Disposition: form-data; {name}\r\n\r\n");
        let before = "--x y\r\nContent-Disposition: form-data; name=\"first\"\r\n\r\n1\r\n";
        let behind =
            "\r\n--x y\r\nContent-Disposition: form-data; name=\"last\"\r\n\r\n2\r\n--x y--\r\n";
        [
            before.as_bytes(),
            head.as_bytes(),
            content,
            behind.as_bytes(),
        ]
        .concat()
    };
    let packed = gzip(&[Dice(4).words(2000), token.clone().into_bytes()].concat());
    let archive = zip(&[Dice(8).words(600), token.clone().into_bytes()].concat());
    for (name, content, chain, inside) in [
        ("name=\"a\"", token.as_bytes().to_vec(), "", "part `a`"),
        (
            "name=\"a\"; filename=\"b.txt\"",
            format!("x\n{token}").into_bytes(),
            "",
            "part `a`, file `b.txt`",
        ),
        (
            "name=\"a\"",
            // Without an end that looks like one of a line.
            plain_base64(format!("xx{token}").as_bytes()),
            "base64>",
            "part `a`",
        ),
        ("name=\"a\"", packed, "gzip>", "part `a`"),
        (
            "name=\"a\"; filename=\"b.zip\"",
            archive,
            "zip>",
            "part `a`, file `b.zip`: folder/second.txt",
        ),
        (
            "name=\"a\"",
            format!(r#"{{"b":["\u0067{}"]}}"#, &token[1..]).into_bytes(),
            "json>",
            "part `a`, $.b[0]",
        ),
        (
            &format!("name=\"a\"; filename=\"{token}\""),
            b"x".to_vec(),
            "",
            "the header of part 2",
        ),
    ] {
        check(kind, &form(name, &content), chain, Some(inside));
    }
    // Without its boundary it is plain content.
    let content = form("name=\"a\"", token.as_bytes());
    check(("multipart/form-data", None), &content, "", None);
}
