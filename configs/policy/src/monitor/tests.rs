//! What passes in spite of rules, and what does not: a row beside each neighbour, and laws.

use super::*;
use crate::compile::compile;
use crate::compile::tests::context;
use crate::facts::Process;
use crate::host::Host;
use crate::path::RequestTarget;
use crate::question::{Question, QuestionForm};
use crate::source::{PolicyOption, Source, SourceKind};
use crate::verdict::Vetted;
use proptest::prelude::*;

const OWN: &str = "allow = [\"GET http://a.test/x\", \"http://10.1.0.1\", \"tcp://t.test:5432\"]\n\
    deny = [\"http://denied.test\", \"203.0.114.0/24\", \"* */admin\"]\n\
    only = [\"GET http://only.test/a\"]\n";

fn sources(text: &str, reach: Option<&str>) -> Vec<Source> {
    let source = |kind, place: &str, text: &str| Source {
        kind,
        place: place.to_owned(),
        text: text.to_owned(),
    };
    let mark = reach.map(|reach| {
        let kind = SourceKind::Option(PolicyOption::Monitor);
        source(kind, "--monitor", reach)
    });
    let own = source(SourceKind::Document, "agent.toml", text);
    std::iter::once(own).chain(mark).collect()
}

fn policy(text: &str, reach: Option<&str>) -> Policy {
    compile(&sources(text, reach), &context()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What becomes of a request: `allow`, `deny`, or the reason in spite of which it passes.
fn request(policy: &Policy, text: &str) -> String {
    let question = Question::parse(text).expect(text);
    let QuestionForm::Request(asked) = &question.form else {
        panic!("{text} is no request");
    };
    let facts = Facts::Request {
        process: PROCESS,
        peer: peer(&asked.host),
        port: asked.port,
        scheme: asked.scheme,
        method: &asked.method,
        target: &asked.target,
    };
    word(policy.evaluate(&facts))
}

const PROCESS: Process<'_> = Process {
    executable: "/usr/bin/curl",
};

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(address) => Peer::Address(*address),
    }
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Deny(_) => "deny".to_owned(),
        Verdict::Allow(permit) => match permit.denied() {
            None => "allow".to_owned(),
            Some(denial) => denial.reason().token().to_owned(),
        },
    }
}

#[test]
fn what_rules_deny_passes_with_their_denial_and_addresses_inside_do_not() {
    let rows = [
        ("http://a.test/x", "allow", "allow"),
        ("http://a.test/y", "no-rule", "no-rule"),
        ("POST http://a.test/x", "no-rule", "no-rule"),
        ("http://denied.test/", "deny-rule", "deny-rule"),
        ("http://a.test/admin", "deny-rule", "deny-rule"),
        ("http://only.test/b", "only-rule", "only-rule"),
        ("https://b.test:8443/x", "no-rule", "no-rule"),
        ("http://9.9.9.9/x", "no-rule", "no-rule"),
        // Networks that a rule denies, and addresses that are not public.
        ("http://203.0.114.9/x", "deny", "deny-rule"),
        ("http://10.0.0.1/x", "deny", "no-rule"),
        ("http://127.0.0.1:3000/x", "deny", "no-rule"),
        ("http://[::1]:3000/x", "deny", "no-rule"),
        ("http://169.254.169.254/latest", "deny", "deny"),
        ("http://169.254.170.2/v2", "deny", "deny"),
        ("http://224.0.0.1/", "deny", "deny"),
        // What only the gateway answers.
        ("http://outgate.invalid:8081/x", "deny", "deny"),
        // One that a rule grants for something.
        ("http://10.1.0.1/x", "allow", "allow"),
        ("http://10.1.0.1/admin", "deny-rule", "deny-rule"),
    ];
    let [enforced, public, all] =
        [None, Some("public"), Some("all")].map(|reach| policy(OWN, reach));
    for (text, of_public, of_all) in rows {
        assert_eq!(request(&public, text), of_public, "{text}");
        assert_eq!(request(&all, text), of_all, "{text}");
        let expected = if of_public == "allow" {
            "allow"
        } else {
            "deny"
        };
        assert_eq!(request(&enforced, text), expected, "{text}");
    }
}

#[test]
fn what_passes_is_weighed_whatever_rules_say_of_the_scan() {
    let text = "allow = [{ rule = \"http://a.test\", inspect = \"off\" }, \
        { rule = \"http://b.test\", inspect = \"block\" }]\n[inspect]\nmode = \"off\"\n";
    let mode = |policy: &Policy, text: &str| {
        let question = Question::parse(text).expect(text);
        match policy.answer(&question, PROCESS) {
            Verdict::Allow(permit) => permit.inspect().word(),
            Verdict::Deny(denial) => panic!("{text}: {}", denial.because()),
        }
    };
    let (public, all) = (policy(text, Some("public")), policy(text, Some("all")));
    assert!(public.modes().any(|mode| mode == Inspect::Block) && public.scans());
    assert_eq!(mode(&public, "http://a.test/"), "off");
    assert_eq!(mode(&public, "http://c.test/"), "block");
    assert_eq!(mode(&all, "http://b.test/"), "warn");
    assert_eq!(mode(&all, "http://c.test/"), "warn");
    let name = HostName::parse("c.test").expect("a name");
    assert_eq!(public.mode_of_name(&name), Inspect::Block);
    assert_eq!(public.naming(&name), crate::policy::Naming::ByPattern);
    let strict = |reach| policy("strict = true\n", Some(reach)).settings().strict;
    assert_eq!(strict("public"), Switch::On);
    assert_eq!(strict("all"), Switch::Off);
}

#[test]
fn nothing_passes_unopened_or_straight() {
    for reach in ["public", "all"] {
        let own = policy(OWN, Some(reach));
        let name = HostName::parse("c.test").expect("a name");
        let connect = Facts::Connect {
            process: PROCESS,
            peer: Peer::Name(&name),
            port: 5432,
        };
        let Verdict::Allow(permit) = own.evaluate(&connect) else {
            panic!("it is let through");
        };
        assert_eq!(permit.route(), Route::Gateway);
        let tunnel = Facts::Tunnel {
            process: PROCESS,
            peer: Peer::Name(&name),
            port: 443,
        };
        let Verdict::Deny(denial) = own.evaluate(&tunnel) else {
            panic!("it passes unopened");
        };
        assert_eq!(denial.reason(), DenialReason::NeedsInspection);
        let never = format!("{OWN}[tls]\nintercept = \"never\"\n");
        let Verdict::Deny(denial) = policy(&never, Some(reach)).evaluate(&tunnel) else {
            panic!("it passes unopened");
        };
        assert_eq!(denial.reason(), DenialReason::NoRule);
        for socket in ["/run/docker.sock", "/tmp/x"] {
            let facts = Facts::Unix {
                process: PROCESS,
                path: socket,
            };
            assert_eq!(word(own.evaluate(&facts)), "deny");
        }
        let facts = Facts::Listen {
            process: PROCESS,
            address: "0.0.0.0:80".parse().expect("an address"),
        };
        assert_eq!(word(own.evaluate(&facts)), "deny");
    }
}

#[test]
fn where_a_name_leads_is_judged_whoever_lets_it_through() {
    let dial = |own: &Policy, host: &str, address: &str| {
        let name = HostName::parse(host).expect(host);
        let facts = Facts::Dial {
            process: PROCESS,
            peer: Peer::Name(&name),
            port: 80,
            address: address.parse().expect(address),
            source: AddressSource::Resolved,
        };
        match own.evaluate(&facts) {
            Verdict::Allow(permit) => permit
                .vetted(80)
                .map(|vetted: Vetted| vetted.address().ip()),
            Verdict::Deny(_) => None,
        }
    };
    let [public, all] = ["public", "all"].map(|reach| policy(OWN, Some(reach)));
    for host in ["a.test", "c.test", "denied.test"] {
        for (address, of_public, of_all) in [
            ("9.9.9.9", true, true),
            ("203.0.114.9", false, true),
            ("10.0.0.1", false, true),
            ("127.0.0.1", false, true),
            ("::1", false, true),
            ("169.254.169.254", false, false),
            ("169.254.170.2", false, false),
            ("fd00:ec2::254", false, false),
            ("fd00:ec2::23", false, false),
            ("0.0.0.0", false, false),
        ] {
            assert_eq!(
                dial(&public, host, address).is_some(),
                of_public,
                "{host} {address}"
            );
            assert_eq!(
                dial(&all, host, address).is_some(),
                of_all,
                "{host} {address}"
            );
        }
    }
}

#[test]
fn a_project_s_denials_are_let_go_and_its_fences_are_not() {
    let mut texts = sources("allow = [\"*\"]\n", Some("public"));
    texts.insert(
        0,
        Source {
            kind: SourceKind::Project,
            place: ".outgate.toml".to_owned(),
            text: "deny = [\"http://a.test\", \"9.9.9.0/24\"]\n".to_owned(),
        },
    );
    let own = compile(&texts, &context()).expect("a policy");
    assert_eq!(request(&own, "http://a.test/x"), "deny-rule");
    assert_eq!(request(&own, "http://9.9.9.9/x"), "deny");
    assert_eq!(request(&own, "http://b.test/x"), "allow");
}

#[test]
fn no_document_can_say_it() {
    for text in [
        "enforcement = \"monitor\"\n",
        "monitor = \"all\"\n",
        "[inspect]\nmonitor = true\n",
    ] {
        assert!(compile(&sources(text, None), &context()).is_err(), "{text}");
    }
    // This one is read, and refused with a reason by whoever starts something.
    let own = policy("monitor = true\n", None);
    assert!(!own.monitors() && own.settings().monitor == Switch::On);
    assert!(compile(&sources("", Some("everything")), &context()).is_err());
}

#[test]
fn what_a_request_carries_passes_in_spite_of_rules_only_in_one_that_does() {
    let own = policy(OWN, Some("public"));
    let verdict = |text: &str| {
        let question = Question::parse(text).expect(text);
        own.answer(&question, PROCESS)
    };
    let (allowed, marked) = ("http://a.test/x", "http://b.test/");
    for (carried, around, expected) in [
        (marked, allowed, "deny"),
        (marked, marked, "no-rule"),
        (allowed, allowed, "allow"),
        (allowed, marked, "allow"),
    ] {
        assert_eq!(word(verdict(carried).beside(&verdict(around))), expected);
    }
}

proptest! {
    /// Whatever is asked, a run that monitors allows all that rules allow and marks the rest,
    /// and no address inside is dialled that rules do not grant.
    #[test]
    fn monitoring_takes_nothing_away_and_marks_what_it_gives(
        path in "/[a-z]{0,6}",
        method in prop::sample::select(vec!["GET", "POST", "DELETE"]),
        host in prop::sample::select(vec!["a.test", "b.test", "denied.test", "only.test"]),
        address in any::<u32>(),
    ) {
        let (enforced, public) = (policy(OWN, None), policy(OWN, Some("public")));
        let name = HostName::parse(host).expect(host);
        let target = RequestTarget::parse(&path).expect("a target");
        let facts = Facts::Request {
            process: PROCESS,
            peer: Peer::Name(&name),
            port: 80,
            scheme: crate::facts::Scheme::Http,
            method,
            target: &target,
        };
        match (enforced.evaluate(&facts), public.evaluate(&facts)) {
            (Verdict::Allow(_), Verdict::Allow(permit)) => prop_assert!(permit.denied().is_none()),
            (Verdict::Deny(denial), Verdict::Allow(permit)) => {
                prop_assert_eq!(permit.denied(), Some(&denial));
            }
            (_, Verdict::Deny(denial)) => prop_assert!(false, "{}", denial.because()),
        }
        let address = IpAddr::from(std::net::Ipv4Addr::from(address));
        let dial = Facts::Dial {
            process: PROCESS,
            peer: Peer::Name(&name),
            port: 80,
            address,
            source: AddressSource::Resolved,
        };
        let is_let = matches!(public.evaluate(&dial), Verdict::Allow(_));
        prop_assert!(!is_let || special_use(address).is_none());
    }
}
