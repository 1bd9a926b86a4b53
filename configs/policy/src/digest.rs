//! Denials as a digest: grouped by who asked, for what, and the shape of the path, each
//! group with the smallest rules that would have allowed it. Bounded whatever a command
//! asks for. Texts in, texts out; decides nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::denial::quoted;
use crate::flag::rule_of;
use crate::limits::{DIGEST_BYTES_MAX, DIGEST_GROUPS_MAX, DIGEST_RULES_MAX, DIGEST_TEXT_BYTES_MAX};
use crate::printable::printable;
use crate::shape::{shape, shape_merged};

/// How much a person should care; the first is the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Somebody should look now.
    Alarm,
    /// A credential was on its way out.
    Credential,
    /// Refused, and nothing more.
    Denied,
    /// Let through, since the run only monitors.
    Passed,
}

/// One denial, as it was told.
#[derive(Debug, Clone, Copy)]
pub struct Denied<'a> {
    /// How much a person should care.
    pub urgency: Urgency,
    /// Who asked: a path, of which the last part is shown; empty if nobody knows.
    pub program: &'a str,
    /// What was denied, as [`crate::Denial::subject`] names it.
    pub subject: &'a str,
    /// Why.
    pub because: &'a str,
    /// The flag that would allow it.
    pub flag: Option<&'a str>,
}

/// Denials that differ in ids only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialGroup {
    /// How much a person should care.
    pub urgency: Urgency,
    /// The name of the program that asked; may be empty. Printable.
    pub program: String,
    /// What was denied, with `*` for what differs. Printable.
    pub subject: String,
    /// Why. Printable.
    pub because: String,
    /// The flags that together would have allowed all of it; none where no flag would.
    pub flags: Vec<String>,
    /// How many denials.
    pub count: u64,
}

/// What tells groups apart: urgency, program, shape, and why.
type Key = (Urgency, String, String, String);

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    groups: BTreeMap<Key, DenialGroup>,
    bytes: usize,
    beyond: u64,
}

impl Digest {
    /// Adds a denial to its group.
    pub fn add(&mut self, denied: &Denied<'_>) {
        let name = denied.program.rsplit('/').next().unwrap_or_default();
        let program = short(name);
        let subject = short(denied.subject);
        let because = match denied.urgency {
            Urgency::Credential => short(kind_of(denied.because)),
            Urgency::Alarm | Urgency::Denied | Urgency::Passed => short(denied.because),
        };
        let flag = denied
            .flag
            .filter(|flag| flag.len() <= DIGEST_TEXT_BYTES_MAX && printable(flag) == *flag);
        let key = (denied.urgency, program, shape(&subject), because);
        if let Some(group) = self.groups.get_mut(&key) {
            group.count = group.count.saturating_add(1);
            group.subject = shape_merged(&group.subject, &subject);
            if let Some(flag) = flag {
                self.bytes = self.bytes.saturating_add(join(&mut group.flags, flag));
            }
            return;
        }
        let bytes = key.1.len() + key.2.len() + key.3.len() + subject.len();
        let bytes = 2 * (bytes + flag.map_or(0, str::len));
        if self.groups.len() >= DIGEST_GROUPS_MAX
            || self.bytes.saturating_add(bytes) > DIGEST_BYTES_MAX
        {
            self.beyond = self.beyond.saturating_add(1);
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let group = DenialGroup {
            urgency: key.0,
            program: key.1.clone(),
            subject,
            because: key.3.clone(),
            flags: flag.map(str::to_owned).into_iter().collect(),
            count: 1,
        };
        self.groups.insert(key, group);
    }

    /// The groups, what matters most first, and then the largest.
    pub fn groups(&self) -> Vec<&DenialGroup> {
        let mut groups: Vec<&DenialGroup> = self.groups.values().collect();
        groups.sort_by_key(|group| (group.urgency, Reverse(group.count)));
        groups
    }

    /// Denials of groups for which there was no room.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }
}

impl DenialGroup {
    /// The group as lines that a shell takes: each flag, and behind `#` how often and who.
    pub fn lines(&self) -> Vec<String> {
        let mut remark = match self.count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        if self.urgency == Urgency::Passed && !self.flags.is_empty() {
            remark.insert_str(0, "let through ");
        }
        if !self.program.is_empty() {
            remark.push_str(", by ");
            remark.push_str(&self.program);
        }
        let what = match self.urgency {
            Urgency::Alarm => Some("ALARM: "),
            Urgency::Credential => Some("a credential: "),
            Urgency::Denied if self.flags.is_empty() => Some(""),
            Urgency::Passed if self.flags.is_empty() => Some("let through: "),
            Urgency::Denied | Urgency::Passed => None,
        };
        let mut flags = self.flags.iter();
        let first = match (what, flags.next()) {
            (None, Some(flag)) => format!("{flag}  # {remark}"),
            (what, _) => {
                let what = what.unwrap_or_default();
                format!("# {what}{}: {} ({remark})", self.subject, self.because)
            }
        };
        let rest = flags.filter(|_| what.is_none()).cloned();
        std::iter::once(first).chain(rest).collect()
    }
}

/// Adds a flag to those of a group, as part of one that differs in ids only; by how many
/// bytes they grew. Beyond the bound, one is not there: it is shown with the next run.
fn join(flags: &mut Vec<String>, flag: &str) -> usize {
    if flags.iter().any(|same| same == flag) {
        return 0;
    }
    if let Some(rule) = rule_of(flag) {
        let own = shape(&rule);
        for same in flags.iter_mut() {
            let Some(before) = rule_of(same).filter(|before| shape(before) == own) else {
                continue;
            };
            *same = quoted("-a", &shape_merged(&before, &rule));
            return 0;
        }
    }
    if flags.len() >= DIGEST_RULES_MAX {
        return 0;
    }
    flags.push(flag.to_owned());
    flag.len()
}

/// Which credential it was, without where it stood and where it may go: both differ from one
/// to the next, and the line about it said them.
fn kind_of(because: &str) -> &str {
    let because = because.split_once("; ").map_or(because, |(kind, _)| kind);
    because
        .split_once(" in the ")
        .map_or(because, |(kind, _)| kind)
}

/// Text of others, printable and bounded.
fn short(text: &str) -> String {
    let text = printable(text);
    match text.get(..DIGEST_TEXT_BYTES_MAX) {
        Some(head) if text.len() > DIGEST_TEXT_BYTES_MAX => format!("{head}..."),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Process;
    use crate::question::Question;
    use crate::source::{Context, Source, SourceKind};
    use crate::verdict::Verdict;
    use crate::{Policy, compile};
    use proptest::prelude::*;

    fn policy(rules: &[String]) -> Policy {
        let source = |rule: &String| Source {
            kind: SourceKind::Allow,
            place: "-a".to_owned(),
            text: rule.clone(),
        };
        let sources: Vec<Source> = rules.iter().map(source).collect();
        let context = Context {
            home: "/home/a".to_owned(),
            working_directory: "/home/a/p".to_owned(),
            private_directory: "/tmp/q".to_owned(),
            ..Context::default()
        };
        compile(&sources, &context).expect("a policy")
    }

    fn is_allowed(policy: &Policy, question: &str) -> bool {
        let process = Process { executable: "" };
        let question = Question::parse(question).expect(question);
        matches!(policy.answer(&question, process), Verdict::Allow(_))
    }

    fn digest(questions: &[String]) -> Digest {
        let none = policy(&[]);
        let mut digest = Digest::default();
        for text in questions {
            let question = Question::parse(text).expect(text);
            let Verdict::Deny(denial) = none.answer(&question, Process { executable: "" }) else {
                panic!("{text} is allowed");
            };
            digest.add(&Denied {
                urgency: Urgency::Denied,
                program: "/usr/bin/curl",
                subject: denial.subject(),
                because: denial.because(),
                flag: denial.hint().as_deref(),
            });
        }
        digest
    }

    fn rules(digest: &Digest) -> Vec<String> {
        let groups = digest.groups().into_iter();
        groups
            .flat_map(|group| group.flags.iter().filter_map(|flag| rule_of(flag)))
            .collect()
    }

    /// The rules of a digest, in order, for these requests.
    #[track_caller]
    fn check(questions: &[&str], expected: &[&str]) {
        let questions: Vec<String> = questions.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(rules(&digest(&questions)), expected);
    }

    #[test]
    fn a_group_has_the_smallest_rule_for_all_of_it() {
        check(
            &[
                "http://a.test/u/1",
                "http://a.test/u/2",
                "http://a.test/u/2",
            ],
            &["GET http://a.test/u/*"],
        );
        check(
            &["http://a.test/u/1", "http://a.test/u/1"],
            &["GET http://a.test/u/1"],
        );
        check(
            &["http://a.test/u/1", "PUT http://a.test/u/2"],
            &["GET http://a.test/u/1", "PUT http://a.test/u/2"],
        );
        check(
            &[
                "http://a.test/p/toy-1.0.0.tgz",
                "http://a.test/p/toy-1.2.0.tgz",
            ],
            &["GET http://a.test/p/toy-*.tgz"],
        );
        check(
            &["tcp://a.test:1", "tcp://a.test:2"],
            &["tcp://a.test:1", "tcp://a.test:2"],
        );
    }

    #[test]
    fn what_matters_most_comes_first() {
        let mut digest = Digest::default();
        let denied = |urgency, subject| Denied {
            urgency,
            program: "/bin/\u{1b}[2Jx",
            subject,
            because: "so",
            flag: None,
        };
        for _ in 0..9 {
            digest.add(&denied(Urgency::Denied, "GET http://a.test/\u{202e}"));
        }
        for place in [
            "a token in the content (byte 7); it may go to x",
            "a token in the path",
        ] {
            digest.add(&Denied {
                because: place,
                ..denied(Urgency::Credential, "PUT http://a.test/")
            });
        }
        digest.add(&denied(Urgency::Alarm, "PUT http://b.test/"));
        let lines: Vec<String> = digest
            .groups()
            .iter()
            .flat_map(|group| group.lines())
            .collect();
        assert_eq!(
            lines,
            [
                "# ALARM: PUT http://b.test/: so (once, by \\u{1b}[2Jx)",
                "# a credential: PUT http://a.test/: a token (2 times, by \\u{1b}[2Jx)",
                "# GET http://a.test/\\u{202e}: so (9 times, by \\u{1b}[2Jx)",
            ]
        );
    }

    #[test]
    fn a_flood_stays_within_the_bounds_and_is_counted() {
        for length in [3, 600, 5000] {
            let mut digest = Digest::default();
            let word = "x".repeat(length);
            for number in 0..20_000_u32 {
                let letters: String = format!("{number:x}")
                    .bytes()
                    .map(|b| char::from(b | 0x60))
                    .collect();
                let subject = format!("GET http://a.test/{letters}/{word}");
                let flag = format!("-a '{subject}'");
                digest.add(&Denied {
                    urgency: Urgency::Denied,
                    program: &word,
                    subject: &subject,
                    because: "so",
                    flag: Some(&flag),
                });
            }
            assert!(digest.groups.len() <= DIGEST_GROUPS_MAX);
            let kept: usize = digest
                .groups
                .iter()
                .map(|(key, group)| {
                    let flags: usize = group.flags.iter().map(String::len).sum();
                    key.1.len()
                        + key.2.len()
                        + key.3.len()
                        + flags
                        + group.subject.len()
                        + group.program.len()
                        + group.because.len()
                })
                .sum();
            assert!(kept <= DIGEST_BYTES_MAX, "{kept}");
            let counted: u64 = digest.groups().iter().map(|group| group.count).sum();
            assert_eq!(counted + digest.beyond(), 20_000);
        }
    }

    #[test]
    fn a_flag_reads_back_as_its_rule() {
        assert_eq!(
            rule_of("-a 'GET http://a.test/'").as_deref(),
            Some("GET http://a.test/")
        );
        assert_eq!(
            rule_of(r"-a 'http://a.test/x'\''y'").as_deref(),
            Some("http://a.test/x'y")
        );
        for other in [
            "--listen '[::]:80'",
            "ask for -a 'x'",
            "-a 'x' -a 'y'",
            "-a x",
            "",
        ] {
            assert_eq!(rule_of(other), None, "{other}");
        }
    }

    fn segment() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9]{1,6}",
            "[0-9a-f]{8,40}",
            "[a-z]{1,8}",
            "[a-z]{1,4}[-_.][0-9]{1,3}[-_.][a-z0-9]{1,4}",
            "[A-Za-z0-9._~!$&'()+,;=:@%-]{1,12}",
            Just("123e4567-e89b-12d3-a456-426614174000".to_owned()),
        ]
    }

    fn question() -> impl Strategy<Value = String> {
        let method = prop_oneof!["GET", "POST", "DELETE"];
        let host = prop_oneof![
            Just("a.test"),
            Just("b.test"),
            Just("files.example.org:8080")
        ];
        let scheme = prop_oneof!["http", "https", "wss"];
        let path = proptest::collection::vec(segment(), 0..4);
        let words = (method, scheme, host, path);
        words.prop_map(|(method, scheme, host, path)| {
            let method = if scheme == "wss" {
                String::new()
            } else {
                format!("{method} ")
            };
            format!("{method}{scheme}://{host}/{}", path.join("/"))
        })
    }

    proptest! {
        #[test]
        fn the_rules_allow_all_of_a_group_and_no_host_outside(
            questions in proptest::collection::vec(question(), 1..12)
        ) {
            let sound = |text: &String| Question::parse(text).is_ok();
            let questions: Vec<String> = questions.into_iter().filter(sound).collect();
            let rules = rules(&digest(&questions));
            let policy = policy(&rules);
            for question in &questions {
                // What nothing can allow has no flag.
                let none = digest(std::slice::from_ref(question));
                if none.groups().iter().all(|group| group.flags.is_empty()) {
                    continue;
                }
                prop_assert!(is_allowed(&policy, question), "{} by {:?}", question, rules);
                for (from, to) in [("a.test", "evil.test"), ("b.test", "x.b.test"), ("example.org", "example.org.evil.test")] {
                    if question.contains(from) {
                        let outside = question.replacen(from, to, 1);
                        prop_assert!(!is_allowed(&policy, &outside), "{} by {:?}", outside, rules);
                    }
                }
            }
        }
    }
}
