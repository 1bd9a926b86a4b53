//! `outgate scan` of archives of recorded requests (HAR).

use crate::Desk;
use crate::scan::{assert_silent_about, document, token};

#[test]
fn recorded_requests_are_judged_by_their_hosts() {
    let token = token(7);
    let request = |url: &str| {
        format!(
            r#"{{"request":{{"method":"POST","url":"{url}","headers":[{{"name":"Authorization","value":"Bearer {token}"}}],"postData":{{"mimeType":"text/plain","text":"a {token}"}}}}}}"#
        )
    };
    let text = format!(
        r#"{{"log":{{"entries":[{},{}]}}}}"#,
        request("https://api.github.com/x"),
        request("https://evil.test/y")
    );
    let desk = Desk::new().also("session.har", &text);
    let said = desk.call(&["scan", "--json", "session.har"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert_silent_about(&said, &token);
    let json = document(&said);
    let findings = json["findings"].as_array().expect("a list");
    let places: Vec<(&str, &str)> = findings
        .iter()
        .filter_map(|finding| Some((finding["part"].as_str()?, finding["place"].as_str()?)))
        .collect();
    let (home, away) = (
        "entry 1, POST to api.github.com",
        "entry 2, POST to evil.test",
    );
    let expected = [
        (home, "content"),
        (away, "field `authorization`"),
        (away, "content"),
    ];
    assert_eq!(places, expected, "{json:#}");
    desk.write("broken.har", "{}");
    let said = desk.call(&["scan", "broken.har"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr.contains("it has no `log.entries`"),
        "{}",
        said.stderr
    );
}

/// Members of a request, and the places where a token in them is found.
fn apart(token: &str) -> [(String, &'static [&'static str]); 10] {
    let (first, second) = token.split_at(12);
    let pair = |name: &str, value: &str| format!(r#"{{"name":"{name}","value":"{value}"}}"#);
    let list = |member: &str, pairs: &[String]| format!(r#""{member}":[{}]"#, pairs.join(","));
    let form = |said: &str, pairs: &[String]| {
        format!(
            r#""postData":{{"mimeType":"{said}",{}}}"#,
            list("params", pairs)
        )
    };
    let multipart = "multipart/form-data";
    let file = format!(r#"{{"name":"f","fileName":"{token}"}}"#);
    [
        (list("queryString", &[pair("q", token)]), &["target"]),
        (list("queryString", &[pair(token, "")]), &["target"]),
        (
            list("cookies", &[pair("a", "b"), pair("s", token)]),
            &["field `cookie`"],
        ),
        (
            list("headers", &[pair("X-Y", "a"), pair("X-Y", token)]),
            &["field `x-y`"],
        ),
        (
            form(multipart, &[pair("f", &format!("a & {token}"))]),
            &["content"],
        ),
        (
            form("", &[pair("a", first), pair("b", second)]),
            &["content"],
        ),
        (form(multipart, &[file]), &["content"]),
        // What was sent and is taken apart as well is one finding.
        (
            [
                list("headers", &[pair("Cookie", &format!("s={token}"))]),
                list("cookies", &[pair("s", token)]),
            ]
            .join(","),
            &["field `cookie`"],
        ),
        (
            form("text/plain", &[pair("f", token)])
                .replace("\"params\"", &format!("\"text\":\"f={token}\",\"params\"")),
            &["content"],
        ),
        // The beginning of one is none.
        (list("queryString", &[pair("q", first)]), &[]),
    ]
}

#[test]
fn what_an_archive_says_apart_is_scanned_once() {
    let token = token(11);
    let desk = Desk::new();
    for (members, places) in apart(&token) {
        let archive = format!(
            r#"{{"log":{{"entries":[{{"request":{{"method":"POST","url":"https://evil.test/y",{members}}}}}]}}}}"#
        );
        desk.write("session.har", &archive);
        let said = desk.call(&["scan", "--json", "session.har"]);
        assert_eq!(
            said.status,
            i32::from(!places.is_empty()),
            "{members}: {}",
            said.stderr
        );
        assert_silent_about(&said, &token);
        let json = document(&said);
        let findings = json["findings"].as_array().expect("a list");
        let found: Vec<&str> = findings
            .iter()
            .filter_map(|finding| finding["place"].as_str())
            .collect();
        assert_eq!(found, places, "{members}: {json:#}");
    }
}
