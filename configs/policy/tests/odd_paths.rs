//! Paths with blanks, quotes, controls and other signs that some reader takes for more: what is
//! learnt of them and offered for them comes back as the same rule, or is none, in words.

#![expect(
    clippy::expect_used,
    reason = "a test ends where something is not as it must be"
)]

use outgate_policy::{
    Context, Learner, MaskedValues, PastEvent, Policy, Process, Question, Sighted, Sighting,
    Source, SourceKind, Verdict, compile, with_rule,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const SIGNS: [char; 18] = [
    ' ', '"', '\'', '\\', '\n', '\t', '*', '?', '#', '[', '{', '%', '=', '&', ';', '\u{e4}',
    '\u{202e}', 'a',
];

fn policy(text: &str) -> Policy {
    let source = Source {
        kind: SourceKind::Document,
        place: "t.toml".to_owned(),
        text: text.to_owned(),
    };
    let compiled = compile(&[source], &Context::nowhere());
    assert!(compiled.is_ok(), "{text}\n{compiled:?}");
    compiled.expect("a policy")
}

fn verdict(policy: &Policy, asked: &str) -> Option<Verdict> {
    let question = Question::parse(asked).ok()?;
    Some(policy.answer(&question, Process { executable: "" }))
}

fn is_allowed(policy: &Policy, asked: &str) -> bool {
    matches!(verdict(policy, asked), Some(Verdict::Allow(_)))
}

/// A path of odd names.
fn path() -> impl Strategy<Value = String> {
    let name = vec(select(SIGNS.to_vec()), 1..7);
    let name = name.prop_map(|signs| signs.into_iter().collect::<String>());
    vec(name, 1..4).prop_map(|names| format!("/{}", names.join("/")))
}

/// What is learnt of one denial: its document, and whether it has a line.
fn learnt(event: &PastEvent, subject: &str) -> (String, bool) {
    let mut learner = Learner::default();
    learner.add(&Sighting {
        event,
        sighted: Sighted::Denied,
        executable: "/usr/bin/a b\"'c",
        time: "2026-01-01T00:00:00.000Z",
        subject,
    });
    let learnt = learner.learnt(&|_| false);
    assert_eq!(learnt.lines.len() + learnt.left_out.len(), 1, "{learnt:?}");
    (learnt.document(), !learnt.lines.is_empty())
}

proptest! {
    #[test]
    fn an_odd_path_is_learnt_as_its_own_rule_or_left_out(path in path(), socket: bool) {
        let asked = if socket {
            format!("unix://{path}")
        } else {
            format!("GET http://a.test{path}")
        };
        let event = if socket {
            Ok(PastEvent::unix(&path))
        } else {
            PastEvent::request("GET", "http://a.test", Some(&path), MaskedValues::Any)
        };
        // What cannot be read again is left out by whoever reads records.
        let Ok(event) = event else {
            return Ok(());
        };
        let (document, has_line) = learnt(&event, &asked);
        let found = policy(&document);
        let by = Process { executable: "/usr/bin/a b\"'c" };
        if has_line {
            let question = Question::parse(&asked).expect("what is learnt can be asked");
            let allows = matches!(found.answer(&question, by), Verdict::Allow(_));
            prop_assert!(allows, "{document}");
            for other in ["unix:///a", "unix:///a/a", "GET http://a.test/b", "GET http://b.test/a"] {
                let is_same = asked == other || asked.split('?').next() == Some(other);
                let question = Question::parse(other).expect("a question");
                let allows = matches!(found.answer(&question, by), Verdict::Allow(_));
                prop_assert!(is_same || !allows, "{other}: {document}");
            }
        } else {
            prop_assert!(document.contains("# Left out:"), "{document}");
            prop_assert_eq!(found.rules().count(), 0);
        }
    }

    #[test]
    fn what_is_offered_for_an_odd_path_is_a_rule_for_it(path in path(), socket: bool) {
        let scheme = if socket { "unix://" } else { "GET http://a.test" };
        let asked = format!("{scheme}{path}");
        let Some(Verdict::Deny(denial)) = verdict(&policy(""), &asked) else {
            return Ok(());
        };
        let Some(rule) = denial.narrowest() else {
            return Ok(());
        };
        for before in ["", "allow = [\"b.test\"]\n", "[[allow]]\nrule = \"b.test\"\n"] {
            let kept = with_rule(before, &rule).expect("a document with it");
            let kept = policy(&kept);
            prop_assert!(is_allowed(&kept, &asked), "{rule}");
            prop_assert!(!is_allowed(&kept, "unix:///run/other"), "{rule}");
            prop_assert!(!is_allowed(&kept, "GET http://c.test/"), "{rule}");
        }
    }
}

#[test]
fn a_socket_with_blanks_is_a_rule_and_none_with_blanks_around_it() {
    let found = policy("allow = [\"unix:///run/a b\\\"c'd.sock\"]\n");
    assert!(is_allowed(&found, "unix:///run/a b\"c'd.sock"));
    assert!(!is_allowed(&found, "unix:///run/a"));
    assert!(!is_allowed(&found, "unix:///run/a b"));
    let (document, has_line) = learnt(&PastEvent::unix("/run/a "), "/run/a ");
    assert!(
        !has_line && document.contains("no rule can name this path"),
        "{document}"
    );
    // A deny rule with blanks denies, whatever allows.
    let found = policy("allow = [\"unix:///run/**\"]\ndeny = [\"unix:///run/a b\"]\n");
    assert!(is_allowed(&found, "unix:///run/a"));
    assert!(!is_allowed(&found, "unix:///run/a b"));
}
