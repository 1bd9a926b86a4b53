//! Sources to a policy: one pass over each, in order, collecting every fault.
//!
//! The only maker of a [`Policy`]. Which syntax a source has is decided here;
//! documents are read in [`crate::document`], everything else is one value.

use crate::author::{Access, Author};
use crate::draft::{Draft, LockState, RuleExtras};
use crate::effect::Effect;
use crate::error::PolicyErrors;
use crate::location::Location;
use crate::narrowing::narrow;
use crate::policy::Policy;
use crate::source::{Context, Source, SourceKind};
use crate::{document, options, preset};

/// Makes a policy from its sources, merged in order: lists unite, denials
/// always survive, of scalars the last wins. `extends` is not followed here;
/// whoever collects the sources does so with [`extends`].
///
/// # Errors
/// Every fault of every source, with its place; the author is to blame.
pub fn compile(sources: &[Source], context: &Context) -> Result<Policy, PolicyErrors> {
    let mut draft = Draft::new(context);
    if sources.iter().any(|source| source.kind == SourceKind::Lock) {
        draft.lock = LockState::Beside;
    }
    let (projects, sources): (Vec<&Source>, Vec<&Source>) = sources
        .iter()
        .partition(|source| source.kind.is_narrowing());
    for source in sources {
        if source.kind == SourceKind::Document
            && let Some(shipped) = preset::shipped(&source.text)
            && shipped.paths.is_some()
        {
            draft.shipped(&source.place, shipped);
            continue;
        }
        let location = Location::of(source);
        let first = draft.faults();
        add(&mut draft, source, &location);
        draft.order_faults(first);
    }
    if projects.is_empty() {
        return draft.finish();
    }
    let mut narrowing = Draft::new(context);
    for source in projects {
        let location = Location::of(source);
        let first = narrowing.faults();
        add(&mut narrowing, source, &location);
        narrowing.order_faults(first);
    }
    narrow(draft.finish(), narrowing.finish())
}

/// The names of the documents that one builds on; `None` where it does not say, and an empty
/// list where it says that it builds on nothing. Of other sources `None`.
///
/// # Errors
/// [`PolicyErrors`]: the document's syntax, or a list that is none; its author's fault.
pub fn extends(source: &Source) -> Result<Option<Vec<String>>, PolicyErrors> {
    if source.kind != SourceKind::Document {
        return Ok(None);
    }
    if let Some(shipped) = preset::shipped(&source.text)
        && shipped.paths.is_some()
    {
        let names = shipped.extends.iter().map(|&name| name.into());
        return Ok(Some(names.collect()));
    }
    let context = Context::default();
    let mut draft = Draft::new(&context);
    let location = Location::of(source);
    let is_too_long = draft.is_too_long(&location);
    let names = (!is_too_long).then(|| document::extends(&mut draft, &location));
    let names = names.flatten();
    draft.finish().map(|_| names)
}

fn add<'a>(draft: &mut Draft<'_>, source: &'a Source, location: &'a Location<'a>) {
    if draft.is_too_long(location) {
        return;
    }
    let (at, text) = (location.start(), source.text.as_str());
    match source.kind {
        SourceKind::Document => document::read(draft, location, preset::author(text)),
        SourceKind::Project => document::read(draft, location, Author::Project),
        SourceKind::Manifest | SourceKind::UntrustedManifest => {
            let author = match source.kind {
                SourceKind::Manifest => Author::User,
                _ => Author::Project,
            };
            let name = text.split_once('\n').map_or(text, |(name, _)| name);
            document::of_command(draft, location, (author, name));
        }
        SourceKind::Learning => document::learning(draft, location),
        SourceKind::Lock => document::lock(draft, location),
        SourceKind::Allow => draft.rule(at, Effect::Allow, text, RuleExtras::default()),
        SourceKind::Deny => draft.rule(at, Effect::Deny, text, RuleExtras::default()),
        SourceKind::Pin => draft.pin_argument(at, text),
        SourceKind::Read => draft.path(at, Access::Read, text, Author::User),
        SourceKind::Write => draft.path(at, Access::Write, text, Author::User),
        SourceKind::Listen => draft.listen(at, text),
        SourceKind::Secret => draft.secret(at, text),
        SourceKind::Option(option) => options::read(draft, option, (at, text)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::preset::{PresetKind, preset, preset_kind, preset_names};
    use crate::settings::{AuditFull, DnsPin, DnsServer, Inspect, Intercept, Switch, Unscannable};
    use crate::{grant::PathGrant, host::HostName};
    use std::time::Duration;

    pub(crate) fn context() -> Context {
        Context {
            home: "/home/me".to_owned(),
            working_directory: "/here".to_owned(),
            private_directory: "/tmp/private".to_owned(),
            ..Context::default()
        }
    }

    fn source(kind: SourceKind, place: &str, text: &str) -> Source {
        Source {
            kind,
            place: place.to_owned(),
            text: text.to_owned(),
        }
    }

    fn document(text: &str) -> Source {
        source(SourceKind::Document, "agent.toml", text)
    }

    fn policy(sources: &[Source]) -> Policy {
        compile(sources, &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn paths(grants: &[PathGrant]) -> Vec<&str> {
        grants.iter().map(|grant| grant.path.as_str()).collect()
    }

    #[test]
    fn nothing_is_granted_without_sources() {
        let policy = policy(&[]);
        assert_eq!(policy.filesystem(), &crate::grant::Filesystem::default());
        assert!(!policy.has_network_rules());
        assert_eq!(policy.rules().count(), 0);
        assert_eq!(policy.environment().pass, None);
        assert_eq!(policy.settings().inspect, Inspect::Block);
        assert_eq!(policy.settings().strict, Switch::Off);
    }

    #[test]
    fn a_document_fills_every_part() {
        let policy = policy(&[document(
            r#"
            extends = ["base"]
            listen = ["3000", "0.0.0.0:8080", "[::]:8000-8100", "localhost:*", "[::]:0"]
            strict = true
            monitor = true
            filesystem = { read = ["~/src"], write = ["."], deny = ["~/.ssh/"] }
            pin = [{ host = "api.example.org", address = "[2001:db8::7]:8443" }]
            dns = { servers = ["system", "192.0.2.53", "[2001:db8::53]:5353"], pin = "ttl" }
            tls = { intercept = "always" }
            inspect = { mode = "warn", unscannable = "refuse", scope = [{ detector = "github-token", hosts = ["git.corp.example"] }] }
            environment = { pass = ["PATH", "HOME"], set = { CI = "1" } }
            limits = { processes = 0x200, memory = "4G", open_files = 4_096, file_size = "1M", wall_time = "30m" }
            audit = { file = "~/audit.jsonl", full = "drop", rotate = "1M" }
            "#,
        )]);
        assert_eq!(paths(&policy.filesystem().read), ["/home/me/src"]);
        assert_eq!(paths(&policy.filesystem().write), ["/here"]);
        assert_eq!(paths(&policy.filesystem().deny), ["/home/me/.ssh"]);
        let listen: Vec<String> = policy.listen().iter().map(ToString::to_string).collect();
        let expected = [
            "127.0.0.1:3000",
            "[::1]:3000",
            "0.0.0.0:8080",
            "[::]:8000-8100",
        ];
        assert_eq!(listen[..4], expected);
        assert_eq!(listen[4..], ["127.0.0.1:*", "[::1]:*", "[::]:*"]);
        let settings = policy.settings();
        assert_eq!(settings.strict, Switch::On);
        assert_eq!(settings.monitor, Switch::On);
        assert_eq!(settings.intercept, Intercept::Always);
        assert_eq!(
            (settings.inspect, settings.unscannable),
            (Inspect::Warn, Unscannable::Refuse)
        );
        assert_eq!(settings.inspect_scopes.len(), 1);
        assert_eq!(settings.dns_pin, DnsPin::Ttl);
        let servers = [
            DnsServer::System,
            DnsServer::Address("192.0.2.53:53".parse().expect("an address")),
            DnsServer::Address("[2001:db8::53]:5353".parse().expect("an address")),
        ];
        assert_eq!(settings.dns_servers, servers);
        let limits = policy.limits();
        assert_eq!(
            (limits.processes, limits.open_files),
            (Some(512), Some(4096))
        );
        assert_eq!(
            (limits.memory_bytes, limits.file_size_bytes),
            (Some(4 << 30), Some(1 << 20))
        );
        assert_eq!(limits.wall_time, Some(Duration::from_mins(30)));
        let environment = policy.environment();
        assert_eq!(
            environment.pass,
            Some(vec!["PATH".to_owned(), "HOME".to_owned()])
        );
        assert_eq!(environment.set.get("CI").map(String::as_str), Some("1"));
        assert_eq!(policy.audit_file(), Some("/home/me/audit.jsonl"));
        assert_eq!(
            (settings.audit_full, settings.audit_file_bytes),
            (AuditFull::Drop, Some(1 << 20))
        );
        let name = HostName::parse("api.example.org").expect("a name");
        let pin = policy.pin(&name, 443).map(|pin| pin.to_string());
        assert_eq!(pin.as_deref(), Some("[2001:db8::7]:8443"));
    }

    #[test]
    fn the_documented_document_is_accepted() {
        let manual = include_str!("../../README.md");
        let block = manual
            .split("```toml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("a document in the manual");
        let policy = policy(&[document(block)]);
        assert_eq!(policy.warnings(), []);
        assert_eq!(policy.rules().count(), 5);
    }

    #[test]
    fn lists_unite_and_the_last_scalar_wins() {
        let policy = policy(&[
            document(
                "[filesystem]\nread = [\"/a\", \"/b\"]\n[limits]\nmemory = \"1G\"\nprocesses = 5\n[environment]\npass = [\"A\"]\nset = { X = \"1\", Y = \"1\" }\n[tls]\nintercept = \"never\"",
            ),
            source(SourceKind::Read, "-r", "/b/"),
            source(SourceKind::Write, "-w", "out"),
            document(
                "[filesystem]\nread = [\"/c\"]\n[limits]\nmemory = \"2G\"\n[environment]\npass = [\"A\", \"B\"]\nset = { X = \"2\" }\n[tls]\nintercept = \"always\"",
            ),
        ]);
        assert_eq!(paths(&policy.filesystem().read), ["/a", "/b", "/c"]);
        assert_eq!(paths(&policy.filesystem().write), ["/here/out"]);
        assert_eq!(policy.limits().memory_bytes, Some(2 << 30));
        assert_eq!(policy.limits().processes, Some(5));
        assert_eq!(
            policy.environment().pass,
            Some(vec!["A".to_owned(), "B".to_owned()])
        );
        let set: Vec<(&str, &str)> = policy
            .environment()
            .set
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(set, [("X", "2"), ("Y", "1")]);
        assert_eq!(policy.settings().intercept, Intercept::Always);
    }

    #[test]
    fn rules_keep_their_text_place_and_order() {
        let policy = policy(&[
            document(
                "deny = [\"* */admin/**\"]\n[[only]]\nrule = \"GET a.test\"\n[[allow]]\nrule = '''\nb.test'''",
            ),
            source(SourceKind::Allow, "-a", "unix:///run/*.sock"),
            source(SourceKind::Deny, "-d", "c.test"),
        ]);
        let rules: Vec<String> = policy
            .rules()
            .map(|rule| {
                format!(
                    "{} {} {} {}",
                    rule.id,
                    rule.effect.as_str(),
                    rule.text,
                    rule.place
                )
            })
            .collect();
        assert_eq!(
            rules,
            [
                "1 deny * */admin/** agent.toml:1:10",
                "2 only GET a.test agent.toml:3:9",
                "3 allow b.test agent.toml:5:8",
                "4 allow unix:///run/*.sock -a",
                "5 deny c.test -d",
            ]
        );
        assert!(policy.has_network_rules());
    }

    #[test]
    fn pins_are_found_by_port_first() {
        let policy = policy(&[
            source(SourceKind::Pin, "--resolve", "A.test=192.0.2.1"),
            source(SourceKind::Pin, "--resolve", "a.test:8443=192.0.2.2:9000"),
            source(SourceKind::Pin, "--resolve", "b.test=2001:db8::1"),
            source(SourceKind::Pin, "--resolve", "c.test=192.0.2.3"),
            source(SourceKind::Pin, "--resolve", "c.test=192.0.2.4"),
        ]);
        for (name, port, want) in [
            ("a.test", 443, Some("192.0.2.1:443")),
            ("a.test", 8443, Some("192.0.2.2:9000")),
            ("b.test", 80, Some("[2001:db8::1]:80")),
            ("c.test", 80, Some("192.0.2.4:80")),
            ("x.a.test", 443, None),
        ] {
            let name = HostName::parse(name).expect(name);
            let found = policy.pin(&name, port).map(|pin| pin.to_string());
            assert_eq!(found.as_deref(), want, "{name}:{port}");
        }
        assert!(!policy.has_network_rules());
    }

    #[test]
    fn faults_of_all_sources_are_reported_together() {
        let errors = compile(
            &[
                source(SourceKind::Allow, "-a", "*.com"),
                document("x = 1\nallow = [\"a..b\", \"ok.test\", \"*.org\"]"),
                source(SourceKind::Read, "-r", "~bob"),
            ],
            &context(),
        )
        .expect_err("faults");
        let places: Vec<String> = errors
            .iter()
            .map(|error| format!("{}:{}:{}", error.place(), error.line(), error.column()))
            .collect();
        assert_eq!(
            places,
            [
                "-a:1:1",
                "agent.toml:1:1",
                "agent.toml:2:11",
                "agent.toml:2:30",
                "-r:1:1"
            ]
        );
    }

    #[test]
    fn a_rule_with_a_faulty_limit_is_no_rule_without_it() {
        let text = "[[allow]]\nrule = \"a.test\"\nprocess = [\"git\"]";
        let errors = compile(&[document(text)], &context()).expect_err("a fault");
        assert_eq!(errors.iter().count(), 1);
    }

    #[test]
    fn extends_is_read_alone() {
        let found = extends(&document(
            "extends = [\"base\", \"./team.toml\"]\nallow = [\"*.com\"]",
        ));
        let names = vec!["base".to_owned(), "./team.toml".to_owned()];
        assert_eq!(found, Ok(Some(names)));
        assert_eq!(extends(&document("strict = true")), Ok(None));
        assert_eq!(extends(&document("extends = []")), Ok(Some(Vec::new())));
        assert_eq!(extends(&source(SourceKind::Allow, "-a", "*")), Ok(None));
        assert!(extends(&document("extends = \"base\"")).is_err());
        assert!(extends(&document("extends = [")).is_err());
    }

    #[test]
    fn sources_and_rules_are_bounded() {
        let long = "#".repeat(crate::limits::SOURCE_BYTES_MAX + 1);
        assert!(compile(&[document(&long)], &context()).is_err());
        let rules = |count: usize| -> String {
            let list: Vec<String> = (0..count)
                .map(|index| format!("\"h{index}.test\""))
                .collect();
            format!("allow = [{}]", list.join(","))
        };
        assert!(compile(&[document(&rules(crate::limits::RULES_MAX))], &context()).is_ok());
        assert!(
            compile(
                &[document(&rules(crate::limits::RULES_MAX + 1))],
                &context()
            )
            .is_err()
        );
        let rule = format!("a.test/{}", "a".repeat(crate::limits::RULE_BYTES_MAX));
        assert!(compile(&[source(SourceKind::Allow, "-a", &rule)], &context()).is_err());
    }

    #[test]
    fn shipped_policies_are_about_files_or_hosts_and_those_of_agents_about_both() {
        for name in preset_names() {
            let text = preset(name).expect("a text");
            let place = format!("preset `{name}`");
            let sources = [source(SourceKind::Document, &place, text)];
            let policy = policy(&sources);
            let warned = usize::from(*name == "docker-cli");
            assert_eq!(policy.warnings().len(), warned, "{name}");
            let kind = preset_kind(name).expect("a kind");
            let is_about_hosts = matches!(kind, PresetKind::Hosts | PresetKind::Agent);
            let is_open = kind == PresetKind::Tool || policy.has_network_rules() == is_about_hosts;
            assert!(is_open, "{name}");
            if kind == PresetKind::Hosts {
                assert_eq!(policy.filesystem(), &crate::grant::Filesystem::default());
                assert_eq!(policy.environment(), &crate::grant::Environment::default());
            }
            let filesystem = policy.filesystem();
            let all = filesystem.read.iter().chain(&filesystem.write);
            for grant in all {
                assert!(grant.optional, "{name}: {}", grant.path);
                for secret in [
                    "/home/me",
                    "/home/me/.ssh",
                    "/root",
                    "/tmp",
                    "/run",
                    "/var",
                    "/",
                ] {
                    assert_ne!(grant.path, secret, "{name}");
                }
            }
            let extended = extends(sources.first().expect("a source")).expect("a list");
            for extended in extended.unwrap_or_default() {
                assert!(preset(&extended).is_some(), "{name} extends {extended}");
            }
        }
        assert_eq!(preset("nothing"), None);
    }

    #[test]
    fn shipped_policies_skip_directories_that_are_unknown() {
        let context = Context {
            working_directory: "/here".to_owned(),
            ..Context::default()
        };
        let text = preset("base").expect("a text");
        let policy = compile(&[document(text)], &context).expect("a policy");
        assert!(paths(&policy.filesystem().write).contains(&"/here"));
        let user = document("[filesystem]\nread = [\"~/src\"]");
        assert!(compile(&[user], &context).is_err());
    }

    #[test]
    fn the_home_directory_as_working_directory_is_warned_of() {
        for (directory, warnings) in [
            ("/home/me", 1),
            ("/home", 1),
            ("/", 1),
            ("/home/me/x", 0),
            ("/home/m", 0),
        ] {
            let context = Context {
                working_directory: directory.to_owned(),
                ..context()
            };
            let base = document(preset("base").expect("a text"));
            let policy = compile(&[base], &context).expect("a policy");
            assert_eq!(policy.warnings().len(), warnings, "{directory}");
        }
    }

    #[test]
    fn a_users_own_grant_must_exist_also_when_a_preset_names_it() {
        let base = document(preset("base").expect("a text"));
        let policy = policy(&[base, source(SourceKind::Read, "-r", "/opt")]);
        let opt = policy
            .filesystem()
            .read
            .iter()
            .find(|grant| grant.path == "/opt");
        assert!(opt.is_some_and(|grant| !grant.optional));
    }

    #[test]
    fn http_ports_are_the_usual_ones_and_those_of_rules() {
        let policy = policy(&[
            source(SourceKind::Allow, "-a", "http://a.test:3000-3001"),
            source(SourceKind::Allow, "-a", "tcp://a.test:5432"),
            source(SourceKind::Allow, "-a", "https://b.test:*"),
        ]);
        for port in [80, 443, 8080, 8443, 3000] {
            assert!(policy.speaks_http(port), "{port}");
        }
        for port in [3002, 5432, 22] {
            assert!(!policy.speaks_http(port), "{port}");
        }
    }
}
