//! Laws of the second readings: what a server may take a target for is denied
//! where the first reading is, and allows nothing more.

use outgate_policy::{Host, RequestTarget, Scheme, SourceKind};
use proptest::prelude::*;

use crate::{Event, is_allowed, policy, source};

/// Whether a policy of these rules allows a plain request.
fn allows(allow: &str, deny: &[&str], target: &str) -> Option<bool> {
    let target = RequestTarget::parse(target).ok()?;
    let mut sources = vec![source(SourceKind::Allow, allow)];
    sources.extend(deny.iter().map(|text| source(SourceKind::Deny, text)));
    let host = Host::parse("a.test").expect("a name");
    let event = Event::Request(host, 443, Scheme::Https, "GET".to_owned(), target);
    Some(is_allowed(&policy(&sources), &event, ""))
}

proptest! {
    /// Whoever serves a path serves it behind any authority, too.
    #[test]
    fn a_denied_path_is_denied_behind_any_authority(
        slashes in "(/|%2f|%5c|%252F){2,3}",
        authority in "([a-z]{1,3}@)?([a-z.]{1,4}|\\[::1\\]|[0-9.]{3})(:[0-9]{0,3})?",
        rest in "(/|//|/x/\\.\\./|/\\./|/;/)",
        end in "(|/|/k|;x|%20|%3fx|%23|\\?q=1)",
    ) {
        let spelled = slashes.strip_prefix('/').unwrap_or(&slashes);
        let target = format!("/{spelled}{authority}{rest}admin{end}");
        if let Some(allowed) = allows("a.test", &["a.test/admin/**"], &target) {
            let begins = target.starts_with("//") || !slashes.starts_with('/') || spelled.len() > 1;
            prop_assert!(!begins || !allowed, "{target}");
        }
    }

    /// The authority that some drop is no part of what a rule allows.
    #[test]
    fn an_authority_allows_nothing(
        authority in "(pub|x)(:80)?",
        path in "(/(admin|x|\\.\\.)){0,3}",
    ) {
        let target = format!("//{authority}{path}");
        let sent = RequestTarget::parse(&target).map(|target| target.path().to_owned());
        if sent.is_ok_and(|path| path.starts_with("//")) {
            prop_assert!(allows("a.test/pub/**", &[], &target) != Some(true), "{target}");
        }
    }

    /// Whatever a server drops from a path changes nothing for a rule that denies it.
    #[test]
    fn what_is_dropped_hides_no_denied_path(
        pieces in proptest::collection::vec("(%FF|%fe|%F8|%E2%80%8B|%EF%BB%BF|%C2%AD|%C2%85|%25FF){0,2}", 12),
        end in "(|/|\\.a\\.b|;x|%3Fx|\\.\\.x)",
    ) {
        let letters = "/admin/keys".chars();
        let mut spelled = String::new();
        for (letter, piece) in letters.zip(&pieces) {
            spelled.push(letter);
            spelled.push_str(piece);
        }
        spelled.push_str(&end);
        let verdict = allows("a.test", &["a.test/admin/keys/**"], &spelled);
        prop_assert!(verdict != Some(true), "{spelled}");
    }

    /// Nothing that is dropped makes dots that lead out of what a rule allows.
    #[test]
    fn what_is_dropped_leads_out_of_nothing_allowed(
        inner in "(|x/|x%2F)",
        pieces in proptest::collection::vec("(%FF|%C3|%E2%80%8B|%EF%BB%BF|%C2%AD|%C2%85|%25FF){0,2}", 3),
        up in 2..4_usize,
    ) {
        let [a, b, c] = [0, 1, 2].map(|at| pieces.get(at).map_or("", String::as_str));
        // What has dots alone is resolved before anything is dropped.
        let dots = format!("{a}.%FF{b}.{c}/").repeat(up);
        let target = format!("/pub/{inner}{dots}admin");
        prop_assert!(allows("a.test/pub/**", &[], &target) != Some(true), "{target}");
    }

    /// A name of any endings is one without them to a rule that denies.
    #[test]
    fn no_ending_hides_a_denied_name(
        ending in "[a-z.]{0,5}",
        rest in "(|/|/keys|/x\\.y/z)",
    ) {
        let target = format!("/admin.{ending}{rest}");
        if let Some(allowed) = allows("a.test", &["a.test/admin/**"], &target) {
            prop_assert!(!allowed, "{target}");
        }
    }

    /// Blanks, marks and brackets around a key change nothing for a rule that
    /// denies, and a second spelling of it is refused by a rule that allows.
    #[test]
    fn a_key_is_known_in_every_spelling(
        before in "(\\+|%20|%09|%EF%BB%BF|!|%C2%A0){0,3}",
        joint in "(_|\\.|\\+|%20|\\[|%5B|%2E)",
        after in "(|\\[\\]|\\[x\\]|%5B0%5D|%20|\\+|\\[=\\])",
        value in "(admin|%61dmin|ADMIN|adm%2569n|user,admin|admin%20)",
        separator in "(&|;|&&|\\?|&amp;)",
    ) {
        let key = format!("{before}user{joint}id{after}={value}");
        let denied = format!("/?x=1{separator}{key}");
        prop_assert_eq!(allows("a.test", &["a.test?user_id=admin*"], &denied), Some(false), "{}", &denied);
        let repeated = format!("/?user_id=user{separator}{key}");
        prop_assert_eq!(allows("a.test/?user_id=user", &[], &repeated), Some(false), "{}", &repeated);
    }

    /// However deep the signs are escaped that make a query of a text, in the path or in
    /// the query: what stands behind them is judged.
    #[test]
    fn no_escaped_sign_hides_a_key(
        place in "(/x|/u/x/y)",
        sign in "(%3F|%253F|%25253F|&|%26|%2526|;|%3B)",
        inner in "(|a=1&|a%26|%FF|b/)",
        equals in "(=|%3D|%253D)",
        behind in "(|/y|%26y|%2Fy|%23y)",
        query in "(|\\?b=2)",
    ) {
        let key = format!("user_id{equals}admin{behind}");
        // A query is decoded twice at most, as its values are.
        let sign_of_query = sign.replace("%2525", "%25");
        let rules = &["a.test?user_id=admin*"];
        let in_path = format!("{place}{sign}{inner}{key}{query}");
        prop_assert!(allows("a.test", rules, &in_path) != Some(true), "{in_path}");
        let in_query = format!("{place}?c=1{sign_of_query}{key}");
        prop_assert!(allows("a.test", rules, &in_query) != Some(true), "{in_query}");
        // The same text gives the key a second value where a rule wants one.
        let inner = inner.replace('/', "&");
        let repeated = format!("{place}{sign}{inner}{key}?user_id=user");
        prop_assert!(allows("a.test/**?user_id=user", &[], &repeated) != Some(true), "{repeated}");
        let repeated = format!("{place}?user_id=user&c=1{sign_of_query}{key}");
        prop_assert!(allows("a.test/**?user_id=user", &[], &repeated) != Some(true), "{repeated}");
    }

    /// What clients put into values, URLs and JSON and lists in brackets, takes nothing from
    /// a rule about another key, wherever that stands.
    #[test]
    fn a_value_of_any_text_takes_nothing_from_a_rule_about_another_key(
        text in "[ -~äö]{0,40}",
        value in "[a-z0-9._~-]{1,12}",
        (before, after) in ("[a-z]{1,3}", "[a-z]{1,3}"),
        path in "(/|/v1/a|/a;v=1/b|/a&b|/caf%C3%A9|/a%20b)",
    ) {
        use std::fmt::Write as _;
        let mut escaped = String::new();
        for byte in text.bytes() {
            let _ = if byte.is_ascii_alphanumeric() {
                write!(escaped, "{}", char::from(byte))
            } else {
                write!(escaped, "%{byte:02X}")
            };
        }
        // The text itself may not name the key.
        if !text.to_lowercase().contains("alt") {
            let target = format!("{path}?{before}1={escaped}&alt={value}&{after}2={escaped}");
            let rule = format!("a.test/**?alt={value}");
            prop_assert_eq!(allows(&rule, &[], &target), Some(true), "{}", &target);
            prop_assert_eq!(allows("a.test", &["a.test?alt=*x*"], &target), Some(!value.contains('x')), "{}", &target);
        }
    }
}

/// What real clients send is allowed by rules about its keys, as they send it.
#[test]
fn queries_of_real_clients_are_allowed_by_rules_about_their_keys() {
    for (rule, target) in [
        (
            "/o/oauth2/auth?client_id=app.example&response_type=code",
            "/o/oauth2/auth?response_type=code&client_id=app.example&redirect_uri=https%3A%2F%2Fapp.example%2Fcb%3Fnext%3D%252Fhome%26lang%3Den&scope=openid+email&state=a%3D1%26b%3D2",
        ),
        (
            "/o/oauth2/auth?redirect_uri=https://app.example/cb%3Fnext=/home%26lang=en",
            "/o/oauth2/auth?client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcb%3Fnext%3D%2Fhome%26lang%3Den",
        ),
        (
            "/bucket/**?X-Amz-Expires=900",
            "/bucket/a%20b/c.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260101%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host%3Bx-amz-meta&response-content-disposition=attachment%3B%20filename%3D%22a.txt%22&X-Amz-Signature=00ff",
        ),
        (
            "/drive/v3/files?alt=json",
            "/drive/v3/files?q=name%20%3D%20%27a%26b%27%20and%20trashed%20%3D%20false&fields=files(id,name,owners(emailAddress))&alt=json",
        ),
        (
            "/graphql?operationName=viewer",
            "/graphql?operationName=viewer&variables=%7B%22a%22%3A%22b%3D1%26c%3D2%22%7D&extensions=%7B%22persistedQuery%22%3A%7B%22version%22%3A1%7D%7D",
        ),
        (
            "/search?type=code",
            "/search?q=%22a%3Db%26c%22+repo%3Ao%2Fr+path%3A%2F%5Esrc%5C%2F%2F&type=code",
        ),
        (
            "/login?next=*",
            "/login?next=https%3A%2F%2Fx.example%2Fa%3Fnext%3D%252Fb%2523c",
        ),
        (
            "/proxy?url=https://*",
            "/proxy?url=https%3A%2F%2Fx.example%2Fa%3Fb%3D1%26c%3D2%23d",
        ),
        (
            "/api?timezone=GMT%2B1",
            "/api?timezone=GMT%2B1&to=a%26b%3D1",
        ),
        ("/**?role=user", "/app;jsessionid=0A1B/page?role=user"),
        ("/**?role=user", "/wiki/Q&A/x?role=user"),
    ] {
        let rule = format!("a.test{rule}");
        assert_eq!(allows(&rule, &[], target), Some(true), "{rule} {target}");
    }
}
