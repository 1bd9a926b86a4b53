//! A project's own documents: they narrow what the user's sources grant, and can
//! grant nothing. They are a policy of their own that begins with everything,
//! less what they deny; an event is allowed only if both policies allow it.

use crate::effect::Effect;
use crate::error::PolicyErrors;
use crate::facts::Facts;
use crate::grant::Limits;
use crate::host::HostPattern;
use crate::net::Ports;
use crate::pattern::PathPattern;
use crate::policy::Policy;
use crate::rule::{self, Methods, NetworkTarget, Protocol, Protocols, Rule, RuleKeys, RuleTarget};
use crate::settings::Inspect;
use crate::verdict::{Permit, Verdict};

/// Rules of a narrowing policy that nobody wrote.
const BUILT_IN: usize = 2;

/// The user's policy below that of the projects, or the faults of both.
pub(crate) fn narrow(
    own: Result<Policy, PolicyErrors>,
    projects: Result<Policy, PolicyErrors>,
) -> Result<Policy, PolicyErrors> {
    match (own, projects) {
        (Ok(own), Ok(projects)) => Ok(own.narrowed(projects)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(errors), Ok(_)) | (Ok(_), Err(errors)) => Err(errors),
    }
}

impl Policy {
    /// This policy below that of a project.
    ///
    /// INVARIANT: of the other policy, only what takes away is used: its rules
    /// as a second question, paths that it hides, limits that are lower.
    fn narrowed(mut self, mut project: Self) -> Self {
        for grant in std::mem::take(&mut project.filesystem.deny) {
            let deny = &mut self.filesystem.deny;
            if !deny.iter().any(|known| known.path == grant.path) {
                deny.push(grant);
            }
        }
        self.lower(&project);
        self.warnings.append(&mut project.warnings);
        let first = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        for rule in &mut project.rules {
            rule.reference.id = rule.reference.id.saturating_add(first);
        }
        project.rules.splice(..0, everything());
        // For the words of its denials. How what leaves is weighed is not its to
        // say, so it asks for no look inside that the user's rules do without.
        project.settings = self.settings.clone();
        project.settings.inspect = Inspect::Off;
        self.narrowing = Some(Box::new(project));
        self
    }

    /// Takes over the limits of another policy that are lower.
    fn lower(&mut self, other: &Self) {
        let defaults = Limits {
            processes: Some(Limits::PROCESSES_DEFAULT),
            file_size_bytes: Some(Limits::FILE_SIZE_DEFAULT),
            ..Limits::default()
        };
        let (own, theirs) = (&mut self.limits, &other.limits);
        let lowered = [
            (
                "processes",
                lower(&mut own.processes, theirs.processes, defaults.processes),
            ),
            (
                "memory",
                lower(&mut own.memory_bytes, theirs.memory_bytes, None),
            ),
            (
                "open_files",
                lower(&mut own.open_files, theirs.open_files, None),
            ),
            (
                "file_size",
                lower(
                    &mut own.file_size_bytes,
                    theirs.file_size_bytes,
                    defaults.file_size_bytes,
                ),
            ),
            (
                "wall_time",
                lower(&mut own.wall_time, theirs.wall_time, None),
            ),
        ];
        for (key, lowered) in lowered {
            let key = format!("limits.{key}");
            if let (Lowered::Yes, Some(place)) = (lowered, other.places.get(&key)) {
                self.places.insert(key, place.clone());
            }
        }
    }

    /// The rules that projects wrote.
    pub(crate) fn narrowing_rules(&self) -> impl Iterator<Item = &Rule> {
        let projects = self.narrowing.iter();
        projects.flat_map(|project| project.rules.iter().skip(BUILT_IN))
    }

    /// Whether this is the policy of a project.
    pub(crate) fn grants_everything(&self) -> bool {
        let first = self.rules.first().map(|rule| &rule.target);
        matches!(first, Some(RuleTarget::Network(target)) if target.host == HostPattern::Everything)
    }

    /// What becomes of an event that the user's policy permits.
    pub(crate) fn confirm(&self, facts: &Facts<'_>, permit: Permit) -> Verdict {
        match facts {
            // Projects have no word about who may be served.
            Facts::Listen { .. } => Verdict::Allow(permit),
            _ => match self.judge(facts) {
                Verdict::Allow(other) => Verdict::Allow(permit.at_least_as_close(&other)),
                Verdict::Deny(denial) => Verdict::Deny(denial),
            },
        }
    }
}

/// Whether a limit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lowered {
    Yes,
    No,
}

/// Lowers a limit, which without a value is `default`.
fn lower<T: Ord + Copy>(own: &mut Option<T>, other: Option<T>, default: Option<T>) -> Lowered {
    let Some(other) = other else {
        return Lowered::No;
    };
    match own.or(default) {
        Some(limit) if limit <= other => Lowered::No,
        _ => {
            *own = Some(other);
            Lowered::Yes
        }
    }
}

/// What a project's policy begins with.
fn everything() -> [Rule; BUILT_IN] {
    let rule = |target| Rule {
        reference: rule::reference(0, Effect::Allow, "everything", "built in".into()),
        target,
        keys: RuleKeys::default(),
    };
    [
        rule(RuleTarget::Network(NetworkTarget {
            protocols: Protocols::of(&Protocol::ALL),
            methods: Methods::Any,
            host: HostPattern::Everything,
            ports: Ports::Any,
            path: None,
            query: Vec::new(),
            addresses: Vec::new(),
            except: Vec::new(),
        })),
        rule(RuleTarget::Unix {
            path: "/**".to_owned(),
            pattern: PathPattern::file("/**"),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::facts::Process;
    use crate::question::Question;
    use crate::source::{Source, SourceKind};
    use std::time::Duration;

    fn sources(own: &str, project: &str) -> [Source; 2] {
        let source = |kind, place: &str, text: &str| Source {
            kind,
            place: place.to_owned(),
            text: text.to_owned(),
        };
        [
            source(SourceKind::Document, "agent.toml", own),
            source(SourceKind::Project, ".outgate.toml", project),
        ]
    }

    fn policy(own: &str, project: &str) -> Policy {
        compile(&sources(own, project), &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn a_project_takes_away_and_gives_nothing() {
        const OWN: &str = "allow = [\"a.test\", \"GET b.test\", \"tcp://c.test:22\", \"10.0.0.1\", \"unix:///run/x.sock\"]";
        for (project, question, denied_by) in [
            ("", "http://a.test/", None),
            ("", "tcp://c.test:22", None),
            ("", "http://10.0.0.1/", None),
            ("", "unix:///run/x.sock", None),
            ("", "http://d.test/", Some("no rule allows it")),
            (
                "only = [\"d.test\"]",
                "http://d.test/",
                Some("no rule allows it"),
            ),
            (
                "only = [\"POST b.test\"]",
                "POST http://b.test/",
                Some("no rule allows it"),
            ),
            (
                "only = [\"POST b.test\"]",
                "http://b.test/",
                Some(".outgate.toml:1:10"),
            ),
            ("only = [\"GET a.test\"]", "http://a.test/", None),
            (
                "only = [\"GET a.test\"]",
                "POST http://a.test/",
                Some(".outgate.toml:1:10"),
            ),
            ("only = [\"GET a.test\"]", "http://b.test/", None),
            (
                "deny = [\"* */x\"]",
                "http://a.test/x",
                Some(".outgate.toml:1:10"),
            ),
            ("deny = [\"* */x\"]", "http://a.test/y", None),
            (
                "deny = [\"c.test\"]",
                "tcp://c.test:22",
                Some(".outgate.toml:1:10"),
            ),
            (
                "deny = [\"10.0.0.0/8\"]",
                "http://10.0.0.1/",
                Some(".outgate.toml:1:10"),
            ),
            (
                "deny = [\"unix:///run/*.sock\"]",
                "unix:///run/x.sock",
                Some(".outgate.toml:1:10"),
            ),
            (
                "only = [\"127.0.0.1\", \"169.254.169.254\"]",
                "http://127.0.0.1/",
                Some("no rule allows it"),
            ),
        ] {
            let policy = policy(OWN, project);
            let question = Question::parse(question).expect("a question");
            let verdict = policy.answer(&question, Process { executable: "" });
            match (verdict, denied_by) {
                (Verdict::Allow(permit), None) => assert_eq!(
                    permit.rule().place.split(':').next().expect("a place"),
                    "agent.toml"
                ),
                (Verdict::Deny(denial), Some(by)) => {
                    assert!(
                        denial.because().contains(by),
                        "{project} {question}: {}",
                        denial.because()
                    );
                }
                (verdict, _) => panic!("{project} {question}: {verdict:?}"),
            }
        }
    }

    #[test]
    fn what_a_project_looks_inside_is_not_passed_unseen() {
        use crate::facts::Peer;
        use crate::host::HostName;
        use crate::verdict::Route;
        let name = HostName::parse("c.test").expect("a name");
        let facts = Facts::Connect {
            process: Process { executable: "" },
            peer: Peer::Name(&name),
            port: 8080,
        };
        let route = |project| match policy(
            "allow = [\"tcp://c.test:8080\", \"http://c.test:8080\"]",
            project,
        )
        .evaluate(&facts)
        {
            Verdict::Allow(permit) => Some(permit.route()),
            Verdict::Deny(_) => None,
        };
        assert_eq!(route(""), Some(Route::Direct));
        assert_eq!(route("deny = [\"* c.test/x\"]"), Some(Route::Gateway));
        assert_eq!(route("deny = [\"c.test\"]"), None);
    }

    #[test]
    fn how_what_leaves_is_weighed_is_not_a_projects_to_say() {
        use crate::facts::Peer;
        use crate::host::HostName;
        const OFF: &str = "allow = [{ rule = \"https://a.test\", inspect = \"off\" }]";
        const ON: &str = "allow = [\"https://a.test\"]";
        let name = HostName::parse("a.test").expect("a name");
        let facts = Facts::Tunnel {
            process: Process { executable: "" },
            peer: Peer::Name(&name),
            port: 443,
        };
        let passes =
            |own, project| matches!(policy(own, project).evaluate(&facts), Verdict::Allow(_));
        for (own, project, unopened) in [
            (OFF, "deny = [\"b.test\"]", true),
            (OFF, "only = [\"https://a.test\"]", true),
            (OFF, "deny = [\"* a.test/x\"]", false),
            (OFF, "only = [\"GET a.test\"]", false),
            (ON, "deny = [\"b.test\"]", false),
        ] {
            assert_eq!(passes(own, project), unopened, "{own} {project}");
        }
    }

    #[test]
    fn paths_are_hidden_and_limits_lowered_never_raised() {
        let policy = policy(
            "[limits]\nmemory = \"1G\"\nopen_files = 100\n[filesystem]\nread = [\"/a\"]\ndeny = [\"/a/b\"]",
            "[limits]\nmemory = \"2G\"\nopen_files = 50\nprocesses = 100000\nfile_size = \"1M\"\nwall_time = \"1m\"\n[filesystem]\ndeny = [\"/a/b\", \"/a/c\"]",
        );
        let limits = policy.limits();
        assert_eq!(limits.memory_bytes, Some(1 << 30));
        assert_eq!(limits.open_files, Some(50));
        assert_eq!(limits.processes, None);
        assert_eq!(limits.file_size_bytes, Some(1 << 20));
        assert_eq!(limits.wall_time, Some(Duration::from_mins(1)));
        assert_eq!(policy.place("limits.memory"), Some("agent.toml:2:10"));
        assert_eq!(
            policy.place("limits.open_files"),
            Some(".outgate.toml:3:14")
        );
        let deny: Vec<_> = policy
            .filesystem()
            .deny
            .iter()
            .map(|grant| grant.path.as_str())
            .collect();
        assert_eq!(deny, ["/a/b", "/a/c"]);
        assert_eq!(policy.filesystem().read.len(), 1);
    }

    #[test]
    fn whatever_grants_is_refused_with_the_way_to_do_it() {
        for grant in [
            "allow = [\"evil.test\"]",
            "extends = [\"github\"]",
            "pin = [{ host = \"a.test\", address = \"192.0.2.1\" }]",
            "listen = [\"3000\"]",
            "dns = { servers = [\"192.0.2.1\"] }",
            "tls = { intercept = \"never\" }",
            "inspect = { mode = \"off\" }",
            "[[only]]\nrule = \"a.test\"\ninspect = \"off\"",
            "[[inspect.detector]]\nid = \"github-token\"\nmode = \"off\"",
            "[[inspect.allow]]\ndetector = \"github-token\"\nhost = \"a.test\"",
            "environment = { set = { LD_PRELOAD = \"/x\" } }",
            "audit = { file = \"/x\" }",
            "monitor = true",
            "strict = false",
            "[filesystem]\nread = [\"~/.ssh\"]",
            "[filesystem]\nwrite = [\"/\"]",
        ] {
            let errors = compile(&sources("", grant), &context()).expect_err(grant);
            let text = errors.to_string();
            assert!(
                text.starts_with(".outgate.toml:") && text.contains("-p FILE"),
                "{text}"
            );
        }
        // Faults of both are told together.
        let errors = compile(&sources("x = 1", "allow = [\"a.test\"]"), &context());
        assert_eq!(errors.expect_err("faults").iter().count(), 2);
    }

    #[test]
    fn rules_of_a_project_are_numbered_and_shown_with_the_others() {
        let policy = policy("allow = [\"a.test\"]", "deny = [\"a.test/x\"]");
        let rules: Vec<_> = policy
            .rules()
            .map(|rule| format!("{} {} {}", rule.id, rule.text, rule.place))
            .collect();
        assert_eq!(
            rules,
            ["1 a.test agent.toml:1:11", "2 a.test/x .outgate.toml:1:10"]
        );
    }
}
