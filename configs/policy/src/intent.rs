//! Rules that say what for: `git:push HOST/ORG/REPO`. Each stands for the requests that the
//! clients of that purpose send, and is compiled to plain rules, which `policy show` prints.
//!
//! Texts in, texts out: what a rule means is said by the grammar alone.

use crate::effect::Effect;
use crate::host::shown;
use crate::rule_error::RuleError;

/// A purpose, and what is written behind it.
struct Intent {
    name: &'static str,
    /// What stands behind the name.
    form: &'static str,
    rules: fn(&Place<'_>) -> Result<Vec<String>, RuleError>,
}

const INTENTS: [Intent; 5] = [
    Intent {
        name: "git:read",
        form: "HOST/ORG or HOST/ORG/REPO",
        rules: |place| git(place, "git-upload-pack"),
    },
    Intent {
        name: "git:push",
        form: "HOST/ORG or HOST/ORG/REPO",
        rules: |place| git(place, "git-receive-pack"),
    },
    Intent {
        name: "llm:chat",
        form: "HOST or HOST/BASE",
        rules: |place| Ok(chat(place)),
    },
    Intent {
        name: "oci:pull",
        form: "HOST/REPO",
        rules: pull,
    },
    Intent {
        name: "gh:issues",
        form: "ORG/REPO, or HOST/ORG/REPO of a server of one's own",
        rules: issues,
    },
];

/// The registries that the package managers of a machine are configured for: whoever
/// collects the texts of a policy puts them in its place.
pub const INSTALL: &str = "pkg:install";

/// The rules that a text stands for, if it begins with a purpose.
///
/// # Errors
/// No purpose is called so, or what stands behind it names nothing.
pub(crate) fn expand(text: &str, effect: Effect) -> Option<Result<Vec<String>, RuleError>> {
    let (name, argument) = text.split_once(' ').unwrap_or((text, ""));
    let (family, purpose) = name.split_once(':')?;
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    let is_family = name == INSTALL
        || INTENTS
            .iter()
            .any(|own| own.name.split_once(':').map(|(own, _)| own) == Some(family));
    // `git:3000` may be a host and its port.
    if !is_word(purpose) || !(is_family || is_word(family) && !argument.is_empty()) {
        return None;
    }
    if name == INSTALL {
        return Some(Err(RuleError::new(
            0,
            "`pkg:install` is what the package managers of this machine are configured for, \
             which no policy text knows",
            "give it as `-a pkg:install`; in a file, name the shipped policies: \
             `extends = [\"npm\", \"pip\"]`",
        )));
    }
    let Some(intent) = INTENTS.iter().find(|own| own.name == name) else {
        let known: Vec<&str> = INTENTS.iter().map(|own| own.name).collect();
        return Some(Err(RuleError::new(
            0,
            format!("unknown purpose `{}`", shown(name)),
            format!("known are {} and {INSTALL}", known.join(", ")),
        )));
    };
    let place = Place::parse(argument, effect);
    let rules = place.and_then(|place| (intent.rules)(&place));
    Some(rules.map_err(|error| match error.hint {
        Some(_) => error.shifted(name.len() + 1),
        None => RuleError {
            hint: Some(format!("write `{name} {}`", intent.form)),
            ..error
        },
    }))
}

/// `[SCHEME://]HOST[:PORT][/SEGMENT]…`.
struct Place<'a> {
    /// With `://`; none for a rule that denies, which then is about every protocol.
    scheme: &'a str,
    host: &'a str,
    segments: Vec<&'a str>,
}

/// It does not say what it is about. The form of the purpose is its hint.
fn nothing_named(message: &str) -> RuleError {
    RuleError {
        offset: 0,
        message: message.to_owned(),
        hint: None,
    }
}

impl<'a> Place<'a> {
    fn parse(text: &'a str, effect: Effect) -> Result<Self, RuleError> {
        let usual = match effect {
            Effect::Deny => "",
            Effect::Allow | Effect::Only => "https://",
        };
        let (scheme, rest) = match text.find("://") {
            Some(at) => text.split_at_checked(at + 3).unwrap_or((usual, text)),
            None => (usual, text),
        };
        if !matches!(scheme, "" | "https://" | "http://") {
            return Err(RuleError::new(
                0,
                format!("`{}` carries no such requests", shown(scheme)),
                "leave the scheme away for https, or write `http://`",
            ));
        }
        if let Some(at) = rest.find(|c: char| c == ' ' || c == '?' || c.is_control()) {
            return Err(RuleError::new(
                scheme.len() + at,
                "a purpose is followed by one place, without a query",
                "write one rule for each place",
            ));
        }
        let mut parts = rest.trim_end_matches('/').split('/');
        let host = parts.next().unwrap_or_default();
        let segments: Vec<&str> = parts.collect();
        if host.is_empty() || segments.contains(&"") {
            return Err(nothing_named("the purpose says no place"));
        }
        Ok(Self {
            scheme,
            host,
            segments,
        })
    }

    /// A rule for requests by these methods to what is below its host.
    fn rule(&self, methods: &str, path: &str) -> String {
        format!("{methods} {}{}{path}", self.scheme, self.host)
    }

    /// The same scheme, somewhere else.
    fn at(&self, host: &'a str, segments: &[&'a str]) -> Self {
        Self {
            scheme: self.scheme,
            host,
            segments: segments.to_vec(),
        }
    }
}

/// The smart protocol over HTTP (gitprotocol-http(5)): what is there, and the one service.
fn git(place: &Place<'_>, service: &str) -> Result<Vec<String>, RuleError> {
    let repositories = match place.segments.as_slice() {
        [] => return Err(nothing_named("the purpose names a host and no repository")),
        [organisation] => vec![format!("/{organisation}/**")],
        // Servers take both names for one repository.
        [above @ .., repository] => {
            let above = above.join("/");
            let plain = repository.strip_suffix(".git").unwrap_or(repository);
            let both = [plain.to_owned(), format!("{plain}.git")];
            both.map(|name| format!("/{above}/{name}")).to_vec()
        }
    };
    let rules = repositories.iter().flat_map(|repository| {
        [
            place.rule("GET", &format!("{repository}/info/refs?service={service}")),
            place.rule("POST", &format!("{repository}/{service}")),
        ]
    });
    Ok(rules.collect())
}

/// What asks a model: the interfaces of OpenAI, Anthropic, Google and Ollama, which others
/// speak as well. Not in it: files, batches, training, keys.
fn chat(place: &Place<'_>) -> Vec<String> {
    let base = match place.segments.join("/") {
        none if none.is_empty() => none,
        base => format!("/{base}"),
    };
    let mut rules = Vec::new();
    let has_version =
        |own: &&str| own.starts_with('v') && own.contains(|c: char| c.is_ascii_digit());
    let versions: &[&str] = match place.segments.last() {
        Some(last) if has_version(last) => &[""],
        Some(_) => &["/v1", ""],
        None => &["/v1"],
    };
    for version in versions {
        let below = |path: &str| format!("{base}{version}{path}");
        for path in [
            "/chat/completions",
            "/responses",
            "/messages",
            "/messages/count_tokens",
        ] {
            rules.push(place.rule("POST", &below(path)));
        }
        rules.push(place.rule("GET", &below("/models")));
        rules.push(place.rule("GET", &below("/models/*")));
        let upgraded = match place.scheme {
            "http://" => "ws://",
            _ => "wss://",
        };
        rules.push(format!("{upgraded}{}{}", place.host, below("/responses")));
    }
    let gemini = match place.segments.last() {
        Some(last) if has_version(last) => base.clone(),
        _ => format!("{base}/v1beta"),
    };
    for call in ["generateContent", "streamGenerateContent", "countTokens"] {
        rules.push(place.rule("POST", &format!("{gemini}/models/*:{call}")));
    }
    if !base.ends_with("/v1beta") {
        rules.push(place.rule("GET", &format!("{base}/v1beta/models")));
        rules.push(place.rule("POST", &format!("{base}/api/chat")));
        rules.push(place.rule("POST", &format!("{base}/api/show")));
        rules.push(place.rule("GET", &format!("{base}/api/tags")));
    }
    rules
}

/// Fetching an image (OCI distribution specification 1.1, §3; tokens as docker's registries
/// give them). Layers that a registry keeps elsewhere need a rule for that host, but for
/// two whose other hosts are documented.
fn pull(place: &Place<'_>) -> Result<Vec<String>, RuleError> {
    const HUB: &str = "docker.io";
    const READ: &str = "GET,HEAD";
    if place.segments.is_empty() {
        return Err(nothing_named(
            "the purpose names a registry and no repository",
        ));
    }
    let mut segments = place.segments.clone();
    let (registry, tokens, layers) = match place.host {
        HUB => {
            if segments.len() == 1 {
                segments.insert(0, "library");
            }
            let layers = ("production.cloudflare.docker.com", "/**");
            ("registry-1.docker.io", "auth.docker.io", Some(layers))
        }
        "ghcr.io" => {
            let layers = ("pkg-containers.githubusercontent.com", "/ghcr1/blobs/**");
            (place.host, place.host, Some(layers))
        }
        other => (other, other, None),
    };
    let repository = segments.join("/");
    let own = place.at(registry, &[]);
    let mut rules = vec![own.rule(READ, "/v2/")];
    for path in ["manifests/*", "blobs/*", "tags/list", "referrers/*"] {
        rules.push(own.rule(READ, &format!("/v2/{repository}/{path}")));
    }
    let tokens = place.at(tokens, &[]);
    for path in ["/token", "/v2/auth"] {
        let scope = format!("{path}?scope=repository:{repository}:pull");
        rules.push(tokens.rule("GET", &scope));
    }
    if let Some((host, path)) = layers {
        rules.push(place.at(host, &[]).rule(READ, path));
    }
    Ok(rules)
}

/// Issues over GitHub's REST interface. What is asked in GraphQL (`gh issue list`) goes all to
/// one path, and a rule for that would be one for everything.
fn issues(place: &Place<'_>) -> Result<Vec<String>, RuleError> {
    let (api, base, repository) = match place.segments.as_slice() {
        [repository] => ("api.github.com", "", format!("{}/{repository}", place.host)),
        [organisation, repository] => (
            place.host,
            "/api/v3",
            format!("{organisation}/{repository}"),
        ),
        _ => return Err(nothing_named("issues are those of one repository")),
    };
    let own = place.at(api, &[]);
    let base = format!("{base}/repos/{repository}");
    let rules = [
        ("GET", ""),
        ("GET,POST", "/issues"),
        ("GET,PATCH", "/issues/*"),
        ("GET,POST", "/issues/*/comments"),
        ("GET", "/issues/comments"),
        ("GET,PATCH,DELETE", "/issues/comments/*"),
        ("GET,POST,PUT,DELETE", "/issues/*/labels"),
        ("DELETE", "/issues/*/labels/*"),
        ("POST,DELETE", "/issues/*/assignees"),
        ("GET", "/issues/*/events"),
        ("GET", "/issues/*/timeline"),
        ("GET", "/labels"),
        ("GET", "/milestones"),
        ("GET", "/assignees"),
    ];
    let rules = rules.map(|(methods, path)| own.rule(methods, &format!("{base}{path}")));
    Ok(rules.to_vec())
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;
    use crate::facts::{Facts, Peer, Process, Scheme};
    use crate::host::HostName;
    use crate::path::RequestTarget;
    use crate::policy::Policy;
    use crate::source::{Context, Source, SourceKind};
    use crate::verdict::Verdict;

    fn compiled(kind: SourceKind, text: &str) -> Result<Policy, String> {
        let source = |kind, text: &str| Source {
            kind,
            place: "-a".to_owned(),
            text: text.to_owned(),
        };
        let mut sources = vec![source(kind, text)];
        if kind == SourceKind::Deny {
            sources.push(source(SourceKind::Allow, "*"));
        }
        compile(&sources, &Context::nowhere()).map_err(|errors| errors.to_string())
    }

    /// `METHOD HOST/PATH` over TLS.
    fn allows(policy: &Policy, text: &str) -> bool {
        let (method, url) = text.split_once(' ').expect("a method");
        let (host, path) = url.split_once('/').expect("a path");
        let name = HostName::parse(host).expect("a name");
        let target = RequestTarget::parse(&format!("/{path}")).expect("a target");
        let scheme = match method {
            "UPGRADE" => Scheme::Wss,
            _ => Scheme::Https,
        };
        let verdict = policy.evaluate(&Facts::Request {
            process: Process { executable: "" },
            peer: Peer::Name(&name),
            port: 443,
            scheme,
            method: if scheme == Scheme::Wss { "GET" } else { method },
            target: &target,
        });
        matches!(verdict, Verdict::Allow(_))
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn each_purpose_lets_its_clients_by_and_nothing_beside() {
        const PULL: &str = "oci:pull registry.test/team/app";
        const CHAT: &str = "llm:chat llm.test";
        const ISSUES: &str = "gh:issues org/repo";
        for (purpose, request, allowed) in [
            (
                "git:read h.test/o/r",
                "GET h.test/o/r/info/refs?service=git-upload-pack",
                true,
            ),
            (
                "git:read h.test/o/r",
                "GET h.test/o/r.git/info/refs?service=git-upload-pack",
                true,
            ),
            (
                "git:read h.test/o/r.git",
                "POST h.test/o/r/git-upload-pack",
                true,
            ),
            (
                "git:read h.test/o/r",
                "GET h.test/o/r/info/refs?service=git-receive-pack",
                false,
            ),
            ("git:read h.test/o/r", "GET h.test/o/r/info/refs", false),
            (
                "git:read h.test/o/r",
                "GET h.test/o/r/info/refs?service=git-upload-pack&service=git-receive-pack",
                false,
            ),
            (
                "git:read h.test/o/r",
                "POST h.test/o/r/git-receive-pack",
                false,
            ),
            (
                "git:read h.test/o/r",
                "POST h.test/o/other/git-upload-pack",
                false,
            ),
            ("git:read h.test/o/r", "GET h.test/o/r", false),
            (
                "git:read h.test/o",
                "POST h.test/o/any.git/git-upload-pack",
                true,
            ),
            (
                "git:read h.test/o",
                "POST h.test/o/group/any/git-upload-pack",
                true,
            ),
            (
                "git:read h.test/o",
                "POST h.test/other/any.git/git-upload-pack",
                false,
            ),
            (
                "git:read h.test/a/b/r",
                "POST h.test/a/b/r.git/git-upload-pack",
                true,
            ),
            (
                "git:push h.test/o/r",
                "POST h.test/o/r.git/git-receive-pack",
                true,
            ),
            (
                "git:push h.test/o/r",
                "GET h.test/o/r/info/refs?service=git-receive-pack",
                true,
            ),
            (
                "git:push h.test/o/r",
                "POST h.test/o/r.git/git-upload-pack",
                false,
            ),
            (
                "git:push h.test/o/r",
                "POST h.test/o/r2.git/git-receive-pack",
                false,
            ),
            (CHAT, "POST llm.test/v1/chat/completions", true),
            (CHAT, "POST llm.test/v1/messages", true),
            (CHAT, "POST llm.test/v1/responses", true),
            (CHAT, "UPGRADE llm.test/v1/responses", true),
            (
                CHAT,
                "POST llm.test/v1beta/models/m-1:streamGenerateContent?alt=sse",
                true,
            ),
            (CHAT, "POST llm.test/v1/files", false),
            (CHAT, "POST llm.test/v1/batches", false),
            (CHAT, "GET llm.test/v1/responses/r_1", false),
            (
                CHAT,
                "POST llm.test/v1beta/models/m-1:batchGenerateContent",
                false,
            ),
            (
                "llm:chat r.test/api",
                "POST r.test/api/v1/chat/completions",
                true,
            ),
            (
                "llm:chat r.test/api/v1",
                "POST r.test/api/v1/chat/completions",
                true,
            ),
            (
                "llm:chat r.test/api",
                "POST r.test/v1/chat/completions",
                false,
            ),
            (PULL, "GET registry.test/v2/", true),
            (
                PULL,
                "HEAD registry.test/v2/team/app/manifests/latest",
                true,
            ),
            (PULL, "GET registry.test/v2/team/app/blobs/sha256:0a", true),
            (
                PULL,
                "GET registry.test/token?service=x&scope=repository:team/app:pull",
                true,
            ),
            (
                PULL,
                "GET registry.test/token?scope=repository:team/app:pull,push",
                false,
            ),
            (
                PULL,
                "GET registry.test/token?scope=repository%3Ateam%2Fapp%3Apull",
                true,
            ),
            (PULL, "POST registry.test/v2/team/app/blobs/uploads/", false),
            (
                PULL,
                "PUT registry.test/v2/team/app/manifests/latest",
                false,
            ),
            (
                PULL,
                "GET registry.test/v2/team/other/manifests/latest",
                false,
            ),
            (
                "oci:pull docker.io/alpine",
                "GET registry-1.docker.io/v2/library/alpine/manifests/3",
                true,
            ),
            (
                "oci:pull docker.io/alpine",
                "GET auth.docker.io/token?scope=repository:library/alpine:pull",
                true,
            ),
            (
                "oci:pull docker.io/alpine",
                "GET registry-1.docker.io/v2/x/alpine/manifests/3",
                false,
            ),
            (
                ISSUES,
                "GET api.github.com/repos/org/repo/issues?state=open",
                true,
            ),
            (
                ISSUES,
                "POST api.github.com/repos/org/repo/issues/7/comments",
                true,
            ),
            (ISSUES, "PATCH api.github.com/repos/org/repo/issues/7", true),
            (
                ISSUES,
                "GET api.github.com/repos/org/repo/contents/x",
                false,
            ),
            (ISSUES, "POST api.github.com/repos/org/other/issues", false),
            (ISSUES, "POST api.github.com/graphql", false),
            (
                "gh:issues git.test/org/repo",
                "GET git.test/api/v3/repos/org/repo/issues",
                true,
            ),
            (
                "gh:issues git.test/org/repo",
                "GET git.test/repos/org/repo/issues",
                false,
            ),
        ] {
            let policy = compiled(SourceKind::Allow, purpose);
            let policy = policy.unwrap_or_else(|errors| panic!("{purpose}: {errors}"));
            assert_eq!(allows(&policy, request), allowed, "{purpose}: {request}");
        }
    }

    #[test]
    fn a_denied_purpose_is_denied_in_every_reading() {
        let policy = compiled(SourceKind::Deny, "git:push h.test/o").unwrap();
        for (request, allowed) in [
            ("POST h.test/o/r/git-receive-pack", false),
            ("POST h.test//x/o/r/git-receive-pack", false),
            ("post h.test/o/r%2Fgit-receive-pack", false),
            ("GET h.test/o/r/info/refs?service=git-receive-pack", false),
            ("GET h.test/o/r/info/refs?service=git-upload-pack", true),
            ("POST h.test/o/r/git-upload-pack", true),
            ("POST h.test/other/r/git-receive-pack", true),
        ] {
            assert_eq!(allows(&policy, request), allowed, "{request}");
        }
    }

    #[test]
    fn what_names_nothing_says_how_it_is_written() {
        for (text, message) in [
            ("git:read", "no place"),
            ("git:read h.test", "no repository"),
            ("git:read h.test//r", "no place"),
            ("git:pull h.test/o", "unknown purpose"),
            ("git:push h.test/o/r other", "one place"),
            ("git:push h.test/o?x", "one place"),
            ("git:push tcp://h.test/o/r", "no such requests"),
            ("gh:issues org", "one repository"),
            ("oci:pull registry.test", "no repository"),
            ("llm:chat *.com", "*.com"),
            ("pkg:install", "-a pkg:install"),
            ("foo:bar baz", "unknown purpose"),
        ] {
            let error = compiled(SourceKind::Allow, text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
            assert_eq!(error.matches("-a:1").count(), 1, "{text}: {error}");
        }
        // A host and its port.
        assert!(compiled(SourceKind::Allow, "git:3000").is_ok());
        let limited = "[[allow]]\nrule = \"git:push h.test/o\"\nbudget = \"1M\"\n";
        let error = compiled(SourceKind::Document, limited).unwrap_err();
        assert!(error.contains("budget"), "{error}");
    }
}
