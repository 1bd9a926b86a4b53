//! Every widening is named, and what is the same is not.

use proptest::prelude::*;

use super::*;
use crate::compile::compile;
use crate::compile::tests::context;
use crate::facts::{Facts, Peer, Process};
use crate::host::Host;
use crate::question::{Question, QuestionForm};
use crate::source::{Source, SourceKind};
use crate::verdict::Verdict;

fn policy(text: &str) -> Policy {
    let source = Source {
        kind: SourceKind::Document,
        place: "p.toml".to_owned(),
        text: text.to_owned(),
    };
    compile(&[source], &context()).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// The widenings by rules: the rule, and the event that shows it; `?` where none does.
#[track_caller]
fn check(from: &str, to: &str, expected: &[(&str, &str)]) {
    let (from, to) = (policy(from), policy(to));
    let found = Widenings::between(&from, &to);
    let found: Vec<(&str, &str)> = found
        .rules
        .iter()
        .map(|own| {
            let event = own.shown.as_ref().map_or("?", |shown| shown.event.as_str());
            (&*own.rule.text, event)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_policy_is_no_wider_than_itself() {
    let text = "allow = [\"GET a.test/x/**\", \"tcp://b.test:22\", \"unix:///run/a\", \"*\", { rule = \"c.test\", process = [\"/bin/x\"], budget = \"1K\" }]\n\
                deny = [\"a.test/x/y\", \"10.0.0.0/8\"]\nonly = [\"d.test\"]\nlisten = [\"80\"]\n\
                [filesystem]\nread = [\"/a\"]\ndeny = [\"/a/b\"]\n";
    let found = Widenings::between(&policy(text), &policy(text));
    assert_eq!(found, Widenings::default());
}

#[test]
fn what_a_rule_adds_is_named_with_an_event() {
    check(
        "allow = [\"GET https://a.test/x\"]\n",
        "allow = [\"GET https://a.test/x\", \"GET https://a.test/*\"]\n",
        &[("GET https://a.test/*", "GET https://a.test/outgate")],
    );
    check(
        "allow = [\"GET https://a.test/**\"]\n",
        "allow = [\"GET,POST https://a.test/x\"]\n",
        &[("GET,POST https://a.test/x", "POST https://a.test/x")],
    );
    check(
        "allow = [\"GET https://a.test/x/**\", \"POST https://a.test/x/**\", \"*.b.test\"]\n",
        "allow = [\"GET,POST https://a.test/x/*/y\", \"https://c.b.test\", \"http://*.d.b.test/x\"]\n",
        &[],
    );
    check(
        "allow = [\"https://a.test?a=*\"]\n",
        "allow = [\"https://a.test?a=1&b=2\", \"https://a.test?b=2\"]\n",
        &[("https://a.test?b=2", "GET https://a.test/outgate?b=2")],
    );
    check(
        "allow = [{ rule = \"https://a.test\", process = [\"/bin/x\"] }]\n",
        "allow = [\"https://a.test\"]\n",
        &[("https://a.test", "connection to a.test:443")],
    );
    check(
        "allow = [\"unix:///run/a/*\"]\n",
        "allow = [\"unix:///run/a/b\", \"unix:///run/**\"]\n",
        &[("unix:///run/**", "connection to unix:///run/outgate")],
    );
}

#[test]
fn what_no_rule_denies_any_more_is_named() {
    check(
        "allow = [\"a.test\"]\ndeny = [\"a.test/admin/**\"]\n",
        "allow = [\"a.test\"]\n",
        &[("a.test", "GET https://a.test/admin/outgate")],
    );
    check(
        "allow = [\"http://a.test\"]\ndeny = [\"POST http://a.test\"]\n",
        "allow = [\"http://a.test\"]\ndeny = [\"POST http://a.test/x\"]\n",
        &[("http://a.test", "POST http://a.test/outgate")],
    );
    check(
        "allow = [\"http://a.test\"]\nonly = [\"GET a.test\"]\n",
        "allow = [\"http://a.test\"]\n",
        &[("http://a.test", "POST http://a.test/outgate")],
    );
    check(
        "allow = [\"http://a.test\"]\ndeny = [\"http://a.test/x/**\"]\n",
        "allow = [\"http://a.test\"]\ndeny = [\"http://a.test/x/** except http://a.test/x/y\"]\n",
        &[("http://a.test", "GET http://a.test/x/y")],
    );
    check(
        "allow = [\"http://a.test\"]\ndeny = [\"http://a.test/x/** except http://a.test/x/y\"]\n",
        "allow = [\"http://a.test\"]\ndeny = [\"http://a.test/x/**\"]\n",
        &[],
    );
    // Of rules that are elsewhere nothing is wider.
    check(
        "allow = [\"http://a.test\"]\ndeny = [\"b.test\"]\n",
        "allow = [\"http://a.test\"]\n",
        &[],
    );
}

#[test]
fn a_look_that_is_less_close_is_named() {
    check(
        "allow = [{ rule = \"http://a.test\", inspect = \"block\" }]\n",
        "allow = [{ rule = \"http://a.test\", inspect = \"warn\" }]\n",
        &[("http://a.test", "GET http://a.test/outgate")],
    );
    check(
        "allow = [{ rule = \"http://a.test\", budget = \"1K\" }]\n",
        "allow = [{ rule = \"http://a.test\", budget = \"2K\" }]\n",
        &[("http://a.test", "GET http://a.test/outgate")],
    );
    check(
        "allow = [{ rule = \"http://a.test\", budget = \"2K\" }]\n",
        "allow = [{ rule = \"http://a.test\", budget = \"1K\" }]\n",
        &[],
    );
    check(
        "allow = [{ rule = \"http://a.test\", budget = \"2K\", budget_each = \"1K\" }]\n",
        "allow = [{ rule = \"http://a.test\", budget = \"1K\" }]\n",
        &[("http://a.test", "GET http://a.test/outgate")],
    );
    check(
        "allow = [{ rule = \"http://a.test\", budget = \"1K\" }]\n",
        "allow = [{ rule = \"http://a.test\", budget = \"1K\", budget_each = \"1K\" }]\n",
        &[],
    );
}

#[test]
fn what_is_no_rule_is_named_by_its_key() {
    let keys = |from: &str, to: &str| -> Vec<&str> {
        let found = Widenings::between(&policy(from), &policy(to));
        let mut keys: Vec<&str> = found.others.iter().map(|own| own.key).collect();
        keys.dedup();
        keys
    };
    for (from, to, expected) in [
        ("", "listen = [\"80\"]\n", &["listen"][..]),
        ("listen = [\"1-100\"]\n", "listen = [\"80\"]\n", &[]),
        (
            "",
            "[filesystem]\nwrite = [\"/a\"]\n",
            &["filesystem.write"],
        ),
        (
            "[filesystem]\nwrite = [\"/a\"]\n",
            "[filesystem]\nread = [\"/a/b\"]\n",
            &[],
        ),
        (
            "[filesystem]\nread = [\"/a\"]\ndeny = [\"/a/b\"]\n",
            "[filesystem]\nread = [\"/a\"]\n",
            &["filesystem.deny"],
        ),
        ("", "inspect = { mode = \"warn\" }\n", &["inspect.mode"]),
        ("inspect = { mode = \"warn\" }\n", "", &[]),
        ("strict = true\n", "", &["strict"]),
        ("tls = { intercept = \"always\" }\n", "", &["tls.intercept"]),
        ("[limits]\nprocesses = 10\n", "", &["limits.processes"]),
        (
            "",
            "[[pin]]\nhost = \"a.test\"\naddress = \"127.0.0.1\"\n",
            &["pin"],
        ),
        (
            "",
            "[[inspect.allow]]\ndetector = \"github-token\"\nhost = \"a.test\"\n",
            &["inspect.allow"],
        ),
        (
            "",
            "[environment]\nset = { A = \"1\" }\n",
            &["environment.set"],
        ),
    ] {
        assert_eq!(keys(from, to), expected, "{from} -> {to}");
    }
}

fn rule_text() -> impl Strategy<Value = String> {
    let method = prop_oneof![3 => Just(""), 1 => Just("GET "), 1 => Just("GET,POST ")];
    let scheme = prop_oneof![Just("http"), Just("https"), Just(""), Just("wss")];
    let host = prop_oneof![
        Just("a.test"),
        Just("*.a.test"),
        Just("**.a.test"),
        Just("b.a.test"),
        Just("*"),
        Just("10.0.0.0/8"),
        Just("10.1.0.0/16"),
        Just("localhost")
    ];
    let port = prop_oneof![3 => Just(""), 1 => Just(":80"), 1 => Just(":80-443"), 1 => Just(":*")];
    let path = prop_oneof![
        Just(""),
        Just("/x"),
        Just("/*"),
        Just("/x/**"),
        Just("/**/y"),
        Just("/x*/y"),
        Just("/index.html")
    ];
    let query = prop_oneof![4 => Just(""), 1 => Just("?a=*"), 1 => Just("?a=1")];
    let request = (method, scheme, host.clone(), port, path, query).prop_map(
        |(method, scheme, host, port, path, query)| {
            let method = if scheme == "wss" { "" } else { method };
            let scheme = if scheme.is_empty() {
                String::new()
            } else {
                format!("{scheme}://")
            };
            let path = if query.is_empty() || !path.is_empty() {
                path
            } else {
                "/x"
            };
            format!("{method}{scheme}{host}{port}{path}{query}")
        },
    );
    let whole = (
        prop_oneof![Just("tcp"), Just("tls")],
        host,
        prop_oneof![Just(":443"), Just(":80-443")],
    )
        .prop_map(|(scheme, host, port)| format!("{scheme}://{host}{port}"));
    prop_oneof![5 => request, 1 => whole, 1 => Just("unix:///run/*".to_owned()), 1 => Just("unix:///run/a".to_owned())]
}

/// The text of a rule, and of one that denies at times with an exception.
fn excepting(effect: &'static str) -> BoxedStrategy<String> {
    let rule_text = || rule_text().boxed();
    if effect != "deny" {
        return rule_text();
    }
    let excepted = (rule_text(), rule_text()).prop_filter_map("no exception", |(rule, except)| {
        let text = format!("{rule} except {except}");
        policy_if(&format!("deny = [{text:?}]\n")).map(|_| text)
    });
    prop_oneof![3 => rule_text(), 1 => excepted].boxed()
}

fn item(effect: &'static str) -> impl Strategy<Value = String> {
    let process = prop_oneof![4 => Just(""), 1 => Just(", process = [\"/bin/x\"]"), 1 => Just(", process = [\"/bin/x\", \"/bin/y\"]")];
    (excepting(effect), process)
        .prop_filter("only is about hosts", move |(rule, _)| {
            effect != "only" || !rule.starts_with("unix")
        })
        .prop_map(|(rule, process)| format!("{{ rule = \"{rule}\"{process} }}"))
}

fn text() -> impl Strategy<Value = String> {
    let list = |effect, most| prop::collection::vec(item(effect), 0..most);
    (list("allow", 4), list("deny", 3), list("only", 2)).prop_map(|(allow, deny, only)| {
        format!(
            "allow = [{}]\ndeny = [{}]\nonly = [{}]\n",
            allow.join(", "),
            deny.join(", "),
            only.join(", ")
        )
    })
}

/// Two policies that have much in common.
fn pair() -> impl Strategy<Value = (String, String)> {
    let edit = (any::<prop::sample::Index>(), any::<bool>());
    (text(), text(), edit).prop_map(|(one, other, (at, mixes))| {
        if !mixes {
            return (one, other);
        }
        // One list of the other policy, and the rest of this one.
        let lines: Vec<&str> = one.lines().collect();
        let place = at.index(lines.len());
        let mut mixed = lines.clone();
        if let (Some(own), Some(line)) = (mixed.get_mut(place), other.lines().nth(place)) {
            *own = line;
        }
        (one.clone(), format!("{}\n", mixed.join("\n")))
    })
}

fn question() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        Just("a.test"),
        Just("b.a.test"),
        Just("c.b.a.test"),
        Just("other.test"),
        Just("10.1.2.3"),
        Just("10.2.2.3"),
        Just("8.8.8.8"),
        Just("127.0.0.1"),
        Just("localhost")
    ];
    let port = prop_oneof![2 => Just(""), 1 => Just(":80"), 1 => Just(":443"), 1 => Just(":8080")];
    let path = prop_oneof![
        Just("/"),
        Just("/x"),
        Just("/X/"),
        Just("/x/y"),
        Just("/x1/y"),
        Just("/x/z/y"),
        Just("/index.html"),
        Just("/x%2Fy"),
        Just("//x")
    ];
    let query =
        prop_oneof![2 => Just(""), 1 => Just("?a=1"), 1 => Just("?a=2"), 1 => Just("?A=1&b=2")];
    let method = prop_oneof![Just("GET"), Just("POST"), Just("HEAD"), Just("PUT")];
    let scheme = prop_oneof![Just("http"), Just("https"), Just("wss")];
    let request = (method, scheme, host.clone(), port, path, query).prop_map(
        |(method, scheme, host, port, path, query)| {
            format!("{method} {scheme}://{host}{port}{path}{query}")
        },
    );
    let whole = (
        prop_oneof![Just("tcp"), Just("tls")],
        host,
        prop_oneof![Just(":443"), Just(":80")],
    )
        .prop_map(|(scheme, host, port)| format!("{scheme}://{host}{port}"));
    prop_oneof![4 => request, 2 => whole, 1 => Just("unix:///run/a".to_owned()), 1 => Just("unix:///run/b".to_owned())]
}

/// The events that a question is about.
fn events<'a>(question: &'a Question, process: Process<'a>) -> Vec<Facts<'a>> {
    let peer = |host: &'a Host| match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(ip) => Peer::Address(*ip),
    };
    match &question.form {
        QuestionForm::Request(asked) => vec![Facts::Request {
            process,
            peer: peer(&asked.host),
            port: asked.port,
            scheme: asked.scheme,
            method: &asked.method,
            target: &asked.target,
        }],
        QuestionForm::Tls(host, port) => vec![Facts::Tunnel {
            process,
            peer: peer(host),
            port: *port,
        }],
        QuestionForm::Tcp(host, port) => vec![Facts::Connect {
            process,
            peer: peer(host),
            port: *port,
        }],
        QuestionForm::Unix(path) => vec![Facts::Unix { process, path }],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_widening_is_named(
        (from, to) in pair(),
        questions in prop::collection::vec((question(), prop_oneof![Just(""), Just("/bin/x"), Just("/bin/y"), Just("/bin/z")]), 40)
    ) {
        let (from, to) = (policy_if(&from), policy_if(&to));
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(());
        };
        let found = Widenings::searched(&from, &to, 200);
        for (text, executable) in &questions {
            let question = Question::parse(text).expect("a question");
            for facts in events(&question, Process { executable }) {
                let (Verdict::Allow(permit), Verdict::Deny(denial)) = (to.evaluate(&facts), from.evaluate(&facts)) else {
                    continue;
                };
                let named = found.rules.iter().any(|own| own.rule == *permit.rule());
                prop_assert!(
                    named,
                    "{} by {:?} is allowed by {} and denied: {}\n{:#?}",
                    text, executable, permit.rule().text, denial.because(), found
                );
            }
        }
    }

    #[test]
    fn what_grants_within_grants_no_more(
        one in "(/(\\*\\*|\\*|a|b|a\\*|\\*b|a\\*b)){1,4}",
        other in "(/(\\*\\*|\\*|a|b|a\\*|\\*b|a\\*b)){1,4}",
        path in "(/(a|b|ab|axb|)){1,4}",
    ) {
        let pattern = |text: &str| crate::pattern::PathPattern::parse(text).ok().flatten();
        let (Some(one), Some(other)) = (pattern(&one), pattern(&other)) else {
            return Ok(());
        };
        let target = crate::path::RequestTarget::parse(&path).expect("a path");
        let readings = target.readings().expect("readings");
        if one.grants_within(&other) && one.matches_all(readings) {
            prop_assert!(other.matches_all(readings));
        }
        if one.denies_within(&other) && one.matches_any(readings) {
            prop_assert!(other.matches_any(readings));
        }
    }
}

/// The policy, where its rules are some: of rules that could never match there is none.
fn policy_if(text: &str) -> Option<Policy> {
    let source = Source {
        kind: SourceKind::Document,
        place: "p.toml".to_owned(),
        text: text.to_owned(),
    };
    compile(&[source], &context()).ok()
}

#[test]
fn hosts_that_are_apart_meet_nowhere() {
    let host = |text: &str| {
        let policy = policy(&format!("allow = [\"{text}\"]\n"));
        policy
            .network_rules()
            .next()
            .map(|(_, target)| target.host.clone())
            .expect("a host")
    };
    for (one, other, apart) in [
        ("a.test", "b.test", true),
        ("a.test", "*.test.example", true),
        ("a.b.test", "*.b.test", false),
        ("b.test", "*.b.test", true),
        ("b.test", "**.b.test", false),
        ("*.a.test", "*.b.test", true),
        ("*.a.test", "*.b.a.test", false),
        ("10.0.0.0/8", "10.1.0.0/16", false),
        ("10.0.0.0/16", "10.1.0.0/16", true),
        ("*", "a.test", false),
    ] {
        assert_eq!(host(one).is_apart(&host(other)), apart, "{one} {other}");
        assert_eq!(host(other).is_apart(&host(one)), apart, "{other} {one}");
    }
}
