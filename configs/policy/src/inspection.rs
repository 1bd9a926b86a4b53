//! The inspection mode of what a policy lets out: what the rules say that allow it, or
//! else what the policy says of everything.
//!
//! A rule that says nothing has no mode of its own. Of several modes the strictest
//! counts. One that lets more pass is read as narrowly as the rule allows, one
//! that lets less pass as widely as a rule that denies, so that no spelling of a
//! request chooses the weaker. Decides nothing about what may pass.

use crate::effect::{Effect, RuleRef};
use crate::host::HostName;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::settings::{Enforcement, Inspect, Intercept, Switch};
use crate::survey::Survey;

/// Whether TLS that rules would let pass as a whole has to be looked into.
pub(crate) enum InspectInside<'p> {
    /// Nobody asks for it.
    Closed,
    /// This rule does.
    ByRule(&'p Rule),
    /// The policy does.
    ByPolicy,
}

impl Policy {
    /// What a rule says of the scan, as its author wrote it.
    pub fn inspect_of(&self, rule: &RuleRef) -> Option<Inspect> {
        // Rules are numbered from one, in their order.
        let place = usize::try_from(rule.id).ok()?.checked_sub(1)?;
        let own = self.rules.get(place)?;
        own.keys.inspect.filter(|_| own.reference.id == rule.id)
    }

    /// The modes by which something that leaves may be weighed; some twice.
    pub fn modes(&self) -> impl Iterator<Item = Inspect> {
        let modes = self.rules.iter().filter_map(|rule| self.own_mode(rule));
        let all = std::iter::once(self.settings.inspect).chain(modes);
        all.chain(self.mode_of_monitored())
    }

    /// Whether something that leaves may be scanned.
    pub fn scans(&self) -> bool {
        self.modes().any(|mode| mode != Inspect::Off)
    }

    /// The mode for a name that is asked for, when no request is known: the
    /// strictest of the rules that name its host.
    pub fn mode_of_name(&self, name: &HostName) -> Inspect {
        let naming = self.network_rules().filter(|(rule, target)| {
            rule.reference.effect != Effect::Deny && target.host.grants_name(name)
        });
        let modes = naming.map(|(rule, _)| self.own_mode(rule).unwrap_or(self.settings.inspect));
        modes
            .reduce(Inspect::stricter)
            .or_else(|| self.mode_of_monitored())
            .unwrap_or(self.settings.inspect)
    }

    /// What a rule has to say: where the policy is strict, nothing weaker than it.
    pub(crate) fn own_mode(&self, rule: &Rule) -> Option<Inspect> {
        let all = self.settings.inspect;
        let is_learning = self.settings.enforcement == Enforcement::Learning;
        let is_bound = self.settings.strict == Switch::On || is_learning;
        let bound = |mode: &Inspect| !is_bound || mode.stricter(all) == *mode;
        let lets_go = self.settings.enforcement == Enforcement::MonitorAll;
        match rule.keys.inspect.filter(bound) {
            Some(Inspect::Block) if lets_go => Some(Inspect::Warn),
            mode => mode,
        }
    }

    /// Whether TLS to a destination where some rule allows every request has to
    /// be looked into all the same.
    pub(crate) fn inside<'p>(&self, survey: &Survey<'p>) -> InspectInside<'p> {
        let inside = &survey.inside;
        if let Some(rule) = inside.scanned {
            return InspectInside::ByRule(rule);
        }
        let lets_pass = inside.lets_pass(survey.covering);
        match self.settings.intercept {
            Intercept::Never => InspectInside::Closed,
            Intercept::WhenNeeded if lets_pass || self.settings.inspect == Inspect::Off => {
                InspectInside::Closed
            }
            Intercept::WhenNeeded | Intercept::Always => InspectInside::ByPolicy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::facts::{Facts, Peer, Process};
    use crate::host::Host;
    use crate::question::{Question, QuestionForm};
    use crate::source::{Source, SourceKind};
    use crate::verdict::{BudgetSpan, Permit, Verdict};

    fn policy(text: &str) -> Policy {
        let source = Source {
            kind: SourceKind::Document,
            place: "agent.toml".to_owned(),
            text: text.to_owned(),
        };
        compile(&[source], &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn a_run_that_learns_has_all_of_it_looked_at_and_no_document_makes_one() {
        let own =
            "[[allow]]\nrule = \"http://a.test\"\ninspect = \"off\"\n[inspect]\nmode = \"off\"\n";
        let source = |kind, text: &str| Source {
            kind,
            place: "p".to_owned(),
            text: text.to_owned(),
        };
        let learning = source(SourceKind::Learning, crate::source::LEARNING);
        let sources = [source(SourceKind::Document, own), learning];
        let policy = compile(&sources, &context()).expect("a policy");
        assert_eq!(policy.settings().enforcement, Enforcement::Learning);
        for request in [
            "GET http://a.test/",
            "POST https://b.test:8443/x",
            "GET wss://c.test/",
        ] {
            assert_eq!(mode(&policy, request), "block", "{request}");
        }
        let question = |text: &str| {
            let question = Question::parse(text).expect("a question");
            policy.answer(&question, Process { executable: "" })
        };
        for refused in [
            "http://127.0.0.1/",
            "http://169.254.169.254/",
            "http://10.0.0.1/",
            "http://localhost:3000/",
            "tcp://a.test:22",
            "tls://a.test",
            "unix:///run/x",
        ] {
            assert!(matches!(question(refused), Verdict::Deny(_)), "{refused}");
        }
        for text in ["learning = true\n", "[inspect]\nlearning = true\n"] {
            let found = compile(&[source(SourceKind::Document, text)], &context());
            assert!(found.is_err(), "{text}");
        }
    }

    /// The mode of a request by /usr/bin/curl, which has to be allowed.
    fn mode(policy: &Policy, request: &str) -> &'static str {
        permit(policy, request).inspect().word()
    }

    fn permit(policy: &Policy, request: &str) -> Permit {
        let question = Question::parse(request).expect("a question");
        let QuestionForm::Request(asked) = &question.form else {
            panic!("{request} is no request");
        };
        let facts = Facts::Request {
            process: Process {
                executable: "/usr/bin/curl",
            },
            peer: match &asked.host {
                Host::Name(name) => Peer::Name(name),
                Host::Address(address) => Peer::Address(*address),
            },
            port: asked.port,
            scheme: asked.scheme,
            method: &asked.method,
            target: &asked.target,
        };
        match policy.evaluate(&facts) {
            Verdict::Allow(permit) => permit,
            Verdict::Deny(denial) => panic!("{request}: {}", denial.because()),
        }
    }

    #[test]
    fn a_permit_serves_for_the_host_and_port_that_it_was_given_for() {
        let policy = policy("allow = [\"http://*.a.test\", \"unix:///run/x\"]\n");
        let host = |text: &str| Host::parse(text).expect("a host");
        let given = permit(&policy, "GET http://one.a.test/");
        assert!(given.is_for(&host("one.a.test"), 80));
        assert!(!given.is_for(&host("two.a.test"), 80), "another host");
        assert!(!given.is_for(&host("one.a.test"), 443), "another port");
        assert!(!given.is_for_socket("/run/x"), "a socket");
        let socket = Facts::Unix {
            process: Process { executable: "" },
            path: "/run/x",
        };
        let Verdict::Allow(given) = policy.evaluate(&socket) else {
            panic!("the rule allows it");
        };
        assert!(given.is_for_socket("/run/x"));
        assert!(!given.is_for_socket("/run/y"), "another socket");
        assert!(!given.is_for(&host("one.a.test"), 80), "a host");
    }

    const LAX: &str = "allow = [\"a.test\", { rule = \"a.test/free/**\", inspect = \"off\" }, \
        { rule = \"POST a.test/free/w\", inspect = \"warn\" }, \
        { rule = \"a.test/free/git\", inspect = \"block\", process = [\"/usr/bin/git\"] }]\n";
    const CLOSE: &str = "allow = [\"a.test\", { rule = \"POST a.test/up\", inspect = \"block\" }]\n\
        [inspect]\nmode = \"warn\"\n";
    const ONLY: &str = "only = [{ rule = \"a.test/x\", inspect = \"warn\" }, \"a.test/y\"]\n\
        allow = [{ rule = \"a.test\", inspect = \"off\" }, \"b.test\"]\n";

    #[test]
    fn of_the_rules_that_allow_a_request_the_strictest_word_counts() {
        for (text, request, expected) in [
            // What says nothing has no word.
            (LAX, "http://a.test/", "block"),
            (LAX, "http://a.test/free/x", "off"),
            (LAX, "https://a.test/free/x", "off"),
            (LAX, "http://a.test/free/w", "off"),
            (LAX, "POST http://a.test/free/w", "warn"),
            // A grant for others is none, a restriction of others neither.
            (LAX, "http://a.test/free/git", "off"),
            (ONLY, "http://a.test/x", "warn"),
            (ONLY, "http://a.test/y", "block"),
            (ONLY, "http://b.test/", "block"),
            (CLOSE, "http://a.test/up", "warn"),
            (CLOSE, "POST http://a.test/up", "block"),
        ] {
            assert_eq!(mode(&policy(text), request), expected, "{request}: {text}");
        }
    }

    #[test]
    fn no_spelling_of_a_request_chooses_a_weaker_mode() {
        let (lax, close) = (policy(LAX), policy(CLOSE));
        for path in [
            "/FREE/x",
            "/free%2fx",
            "/x/..%2ffree/x",
            "/free;a/x",
            "/freex",
            "/free/../x",
            "//free/x",
            "//x/free/x",
        ] {
            let request = format!("http://a.test{path}");
            assert_eq!(mode(&lax, &request), "block", "{request}");
        }
        for path in [
            "/up",
            "/UP",
            "/up/",
            "//up",
            "/up;x",
            "/%75p",
            "/x/../up",
            "/up?a=b",
            "//x/up",
            "//x:80//up",
            "/%2fx/up",
            "/.//x/UP/",
            "/;/x/up",
            "/up%3fa",
        ] {
            let request = format!("POST http://a.test{path}");
            assert_eq!(mode(&close, &request), "block", "{request}");
        }
        // An executable that nobody knows may be the one that a closer look is for.
        let question = Question::parse("http://a.test/free/git").expect("a question");
        let verdict = lax.answer(&question, Process { executable: "" });
        let Verdict::Allow(permit) = verdict else {
            panic!("it is allowed");
        };
        assert_eq!(permit.inspect(), Inspect::Block);
    }

    #[test]
    fn what_may_be_for_a_rule_counts_against_its_budget() {
        let counted = policy(
            "allow = [\"a.test\", { rule = \"POST a.test/up/**\", budget = \"1K\" }, \
             { rule = \"a.test?bulk=*\", budget = \"2K\" }]\n",
        );
        let bytes = |request: &str| {
            let budgets = permit(&counted, request).budgets().to_vec();
            budgets.iter().map(|own| own.bytes).collect::<Vec<u64>>()
        };
        for (target, expected) in [
            ("/up/a", &[1024][..]),
            ("/UP/a", &[1024]),
            ("//up/a", &[1024]),
            ("//x/up/a", &[1024]),
            ("/up;x/a", &[1024]),
            ("/up%2fa", &[1024]),
            ("/%2575p/a", &[1024]),
            ("/x/..%2fup/a", &[1024]),
            ("/x?bulk=1", &[2048]),
            ("/x?BULK=1", &[2048]),
            ("/x?bulk[]=1", &[2048]),
            ("/x?a=1;bulk=1", &[2048]),
            ("/up/a?bulk=1", &[1024, 2048]),
            ("/UP/a?Bulk=1", &[1024, 2048]),
            ("/x", &[]),
            ("/upper", &[]),
            ("/x?bulky=1", &[]),
        ] {
            assert_eq!(
                bytes(&format!("POST http://a.test{target}")),
                expected,
                "{target}"
            );
        }
        assert_eq!(bytes("http://a.test/up/a"), &[] as &[u64], "another method");
    }

    #[test]
    fn what_one_request_may_have_is_bounded_by_every_rule_it_may_be_for() {
        let counted = policy(
            "allow = [\"a.test\", { rule = \"POST a.test/up/**\", budget_each = \"1K\", budget = \"9K\" }, \
             { rule = \"a.test?bulk=*\", budget_each = \"2K\" }]\n",
        );
        let bounds = |request: &str| {
            let budgets = permit(&counted, request).budgets().to_vec();
            let bounds = budgets.iter().map(|own| (own.bytes, own.span));
            bounds.collect::<Vec<(u64, BudgetSpan)>>()
        };
        let (run, one) = ((9216, BudgetSpan::Run), (1024, BudgetSpan::Request));
        let bulk = (2048, BudgetSpan::Request);
        for (target, expected) in [
            ("/up/a", &[run, one][..]),
            ("/UP/a", &[run, one]),
            ("/up%2fa", &[run, one]),
            ("/x?BULK=1", &[bulk]),
            ("/up/a?bulk=1", &[run, one, bulk]),
            ("/x", &[]),
        ] {
            let found = bounds(&format!("POST http://a.test{target}"));
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn tls_is_opened_where_requests_in_it_are_bounded() {
        for (bounded, passes) in [("a.test", false), ("wss://a.test", false), ("b.test", true)] {
            let text = format!(
                "allow = [\"https://a.test\", {{ rule = \"{bounded}\", budget_each = \"1K\" }}]\n\
                 [inspect]\nmode = \"off\"\n"
            );
            let question = Question::parse("tls://a.test").expect("a question");
            let process = Process {
                executable: "/usr/bin/curl",
            };
            let verdict = policy(&text).answer(&question, process);
            assert_eq!(matches!(verdict, Verdict::Allow(_)), passes, "{bounded}");
        }
    }

    #[test]
    fn tls_is_opened_where_a_budget_counts_a_part_of_it() {
        for (budgeted, passes) in [
            ("POST a.test/up/**", false),
            ("a.test?bulk=*", false),
            ("wss://a.test", false),
            ("a.test", true),
            ("b.test/up/**", true),
        ] {
            let text = format!(
                "allow = [\"https://a.test\", {{ rule = \"{budgeted}\", budget = \"1K\" }}]\n\
                 [inspect]\nmode = \"off\"\n"
            );
            let question = Question::parse("tls://a.test").expect("a question");
            let process = Process {
                executable: "/usr/bin/curl",
            };
            let verdict = policy(&text).answer(&question, process);
            assert_eq!(matches!(verdict, Verdict::Allow(_)), passes, "{text}");
        }
    }

    #[test]
    fn where_the_policy_is_strict_a_rule_says_nothing_weaker() {
        for (word, all, expected) in [
            ("off", "block", "block"),
            ("warn", "block", "block"),
            ("off", "warn", "warn"),
            ("block", "warn", "block"),
            ("warn", "off", "warn"),
            ("off", "off", "off"),
        ] {
            let text = format!(
                "strict = true\nallow = [{{ rule = \"a.test\", inspect = \"{word}\" }}]\n\
                 [inspect]\nmode = \"{all}\"\n"
            );
            let policy = policy(&text);
            assert_eq!(mode(&policy, "http://a.test/"), expected, "{text}");
            assert_eq!(policy.scans(), expected != "off" || all != "off", "{text}");
            let name = HostName::parse("a.test").expect("a name");
            assert_eq!(policy.mode_of_name(&name).word(), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_weighed_by_the_strictest_rule_that_names_it() {
        let text = "allow = [{ rule = \"*.a.test\", inspect = \"off\" }, \
             { rule = \"x.a.test\", inspect = \"warn\" }, \"y.a.test\", \
             { rule = \"b.test:8080\", inspect = \"warn\" }]\n";
        let policy = policy(text);
        for (name, expected) in [
            ("z.a.test", "off"),
            ("x.a.test", "warn"),
            ("y.a.test", "block"),
            ("b.test", "warn"),
            ("c.test", "block"),
        ] {
            let name = HostName::parse(name).expect("a name");
            assert_eq!(policy.mode_of_name(&name).word(), expected, "{name}");
        }
    }
}
