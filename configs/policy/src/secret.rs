//! Secrets that stay outside the sandbox: what each is called inside, where its
//! value comes from, and the hosts, paths and positions it is bound to.
//!
//! Values and comparison only: this file never sees a secret's value, and must
//! not know how requests are read or written.

use std::sync::Arc;

use crate::host::{Host, HostPattern};
use crate::path::RequestTarget;
use crate::pattern::PathPattern;

/// Where the value of a secret comes from. Read by the gateway's side, never by
/// the command's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the caller's environment.
    Variable(String),
    /// A file, by its absolute path.
    File(String),
    /// What a command line prints, run by the shell before the run begins.
    Command(String),
}

impl SecretSource {
    /// The source of a text that [`SecretSource`] displays.
    pub fn of(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("env", name) => Some(Self::Variable(name.to_owned())),
            ("file", path) => Some(Self::File(path.to_owned())),
            ("cmd", line) => Some(Self::Command(line.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for SecretSource {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(out, "env:{name}"),
            Self::File(path) => write!(out, "file:{path}"),
            Self::Command(line) => write!(out, "cmd:{line}"),
        }
    }
}

/// What a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A text that is sent as it is.
    Value,
    /// A pair of keys that signs requests (AWS Signature Version 4); the
    /// secret half is never sent at all.
    Aws,
}

/// One secret by its name: all that is needed to read it, and not the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// What it is called in the policy.
    pub name: String,
    /// What it is.
    pub kind: SecretKind,
    /// Where its value comes from.
    pub source: SecretSource,
}

/// Where in a request a placeholder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPosition<'a> {
    /// In the value of a field, by its name in lower case.
    Field(&'a str),
    /// In the query.
    Query,
    /// In the path.
    Path,
    /// In the content.
    Content,
}

/// Fields that carry credentials and that no origin shows to others. A secret
/// is inserted in these unless its binding says more.
const CREDENTIAL_FIELDS: [&str; 36] = [
    "anthropic-api-key",
    "api-key",
    "api-token",
    "apikey",
    "authorization",
    "bearer-token",
    "cf-access-client-secret",
    "circle-token",
    "dd-api-key",
    "dd-application-key",
    "deploy-token",
    "fastly-key",
    "job-token",
    "ocp-apim-subscription-key",
    "openai-api-key",
    "private-token",
    "token",
    "x-access-token",
    "x-api-key",
    "x-api-token",
    "x-auth-key",
    "x-auth-token",
    "x-consul-token",
    "x-figma-token",
    "x-functions-key",
    "x-github-token",
    "x-gitlab-token",
    "x-goog-api-key",
    "x-nomad-token",
    "x-rapidapi-key",
    "x-shopify-access-token",
    "x-subscription-token",
    "x-tfe-token",
    "x-token",
    "x-vault-token",
    "xi-api-key",
];

/// The positions a binding allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BindingPlaces {
    pub(crate) fields: Fields,
    pub(crate) query: Allowed,
    pub(crate) path: Allowed,
    pub(crate) content: Allowed,
}

/// Whether a position is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Allowed {
    #[default]
    No,
    Yes,
}

/// The fields a binding allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Fields {
    /// Those that carry credentials.
    #[default]
    Credentials,
    /// All of them.
    All,
    /// Those that carry credentials if that was said too, and these.
    Named(Allowed, Vec<String>),
}

impl BindingPlaces {
    fn allow(&self, position: SecretPosition<'_>) -> bool {
        match position {
            SecretPosition::Field(name) => {
                let carries = || CREDENTIAL_FIELDS.contains(&name);
                match &self.fields {
                    Fields::All => true,
                    Fields::Credentials => carries(),
                    Fields::Named(credentials, names) => {
                        (*credentials == Allowed::Yes && carries())
                            || names.iter().any(|own| own == name)
                    }
                }
            }
            SecretPosition::Query => self.query == Allowed::Yes,
            SecretPosition::Path => self.path == Allowed::Yes,
            SecretPosition::Content => self.content == Allowed::Yes,
        }
    }
}

/// One host, port and path that a secret may go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    /// One name; of keys, which only sign, also names below one.
    pub(crate) host: HostPattern,
    pub(crate) port: u16,
    /// `None` for every path.
    pub(crate) path: Option<PathPattern>,
    pub(crate) places: BindingPlaces,
    /// As its author wrote it.
    pub(crate) text: String,
}

/// Why a secret may not go where a placeholder of it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misplaced {
    /// It is bound to other hosts.
    Host,
    /// It is bound to other paths of this host.
    Path,
    /// It is bound to other positions of such requests.
    Position,
}

/// A secret of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub(crate) name: String,
    pub(crate) kind: SecretKind,
    pub(crate) source: SecretSource,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) place: Arc<str>,
    /// The same as source, line and column.
    pub(crate) position: (String, u32, u32),
}

impl Secret {
    /// The variable that holds its placeholder inside; of a pair of keys, what
    /// it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a gateway needs to read it.
    pub fn named(&self) -> NamedSecret {
        NamedSecret {
            name: self.name.clone(),
            kind: self.kind,
            source: self.source.clone(),
        }
    }

    /// What it is.
    pub fn kind(&self) -> SecretKind {
        self.kind
    }

    /// Where its value comes from.
    pub fn source(&self) -> &SecretSource {
        &self.source
    }

    /// Where the policy says so.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Where it may go, as its author wrote it.
    pub fn bindings(&self) -> impl Iterator<Item = &str> {
        self.bindings.iter().map(|binding| binding.text.as_str())
    }

    /// Where in a request it may stand besides fields that carry credentials, as a policy
    /// writes it; of all its bindings.
    pub fn positions(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for places in self.bindings.iter().map(|binding| &binding.places) {
            match &places.fields {
                Fields::Credentials => {}
                Fields::All => words.push("any field".to_owned()),
                Fields::Named(_, names) => {
                    words.extend(names.iter().map(|name| format!("field {name}")));
                }
            }
            let others = [
                ("query", places.query),
                ("path", places.path),
                ("content", places.content),
            ];
            let allowed = others.iter().filter(|(_, own)| *own == Allowed::Yes);
            words.extend(allowed.map(|(word, _)| (*word).to_owned()));
        }
        words.sort();
        words.dedup();
        words
    }

    /// Whether it may go to this host and port at all.
    pub fn is_for(&self, host: &Host, port: u16) -> bool {
        self.at(host, port).next().is_some()
    }

    /// Whether it may go into this position of a request over verified TLS.
    ///
    /// # Errors
    /// In what the request differs from every binding.
    pub fn may_enter(
        &self,
        (host, port): (&Host, u16),
        target: &RequestTarget,
        position: SecretPosition<'_>,
    ) -> Result<(), Misplaced> {
        let mut nearest = Misplaced::Host;
        for binding in self.at(host, port) {
            let on_path = binding.path.as_ref().is_none_or(|pattern| {
                let readings = target.readings();
                readings.is_some_and(|readings| pattern.matches_all(readings))
            });
            if !on_path {
                if nearest == Misplaced::Host {
                    nearest = Misplaced::Path;
                }
                continue;
            }
            if binding.places.allow(position) {
                return Ok(());
            }
            nearest = Misplaced::Position;
        }
        Err(nearest)
    }

    fn at(&self, host: &Host, port: u16) -> impl Iterator<Item = &Binding> {
        let bindings = self.bindings.iter();
        bindings.filter(move |binding| {
            let same = matches!(host, Host::Name(name) if binding.host.grants_name(name));
            same && binding.port == port
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::tests::context;
    use crate::{
        Host, Misplaced, RequestTarget, SecretKind, SecretPosition, SecretSource, Source,
        SourceKind, compile,
    };

    fn source(kind: SourceKind, text: &str) -> Source {
        Source {
            kind,
            place: "--secret".to_owned(),
            text: text.to_owned(),
        }
    }

    fn secret(text: &str) -> crate::Secret {
        let sources = [
            source(SourceKind::Allow, "https://api.test"),
            source(SourceKind::Allow, "https://api.test:8443"),
            source(SourceKind::Secret, text),
        ];
        let policy = compile(&sources, &context()).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(policy.warnings(), [], "{text}");
        policy.secrets().first().expect("a secret").clone()
    }

    fn may(text: &str, url: &str, position: SecretPosition<'_>) -> Result<(), Misplaced> {
        let (authority, path) = url.split_once('/').expect("a path");
        let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
        let host = Host::parse(host).expect(url);
        let target = RequestTarget::parse(&format!("/{path}")).expect(url);
        let port = port.parse().expect(url);
        secret(text).may_enter((&host, port), &target, position)
    }

    const AUTH: SecretPosition<'static> = SecretPosition::Field("authorization");

    #[test]
    fn a_secret_is_for_its_host_port_and_path_only() {
        const PLAIN: &str = "KEY=env:REAL@api.test";
        const PATH: &str = "KEY=env:REAL@API.test./v1/**";
        const PORT: &str = "KEY=env:REAL@api.test:8443";
        use Misplaced::{Host, Path};
        for (text, url, verdict) in [
            (PLAIN, "api.test/", Ok(())),
            (PLAIN, "api.test/any/thing?x=1", Ok(())),
            (PLAIN, "api.test:8443/", Err(Host)),
            (PLAIN, "api.test:80/", Err(Host)),
            (PLAIN, "sub.api.test/", Err(Host)),
            (PLAIN, "api.test.evil.test/", Err(Host)),
            (PLAIN, "192.0.2.1/", Err(Host)),
            (PATH, "api.test/v1/x", Ok(())),
            (PATH, "api.test/v2/x", Err(Path)),
            (PATH, "api.test/v1/%2e%2e/v2", Err(Path)),
            (PATH, "api.test/v1/..%2fv2", Err(Path)),
            (PATH, "api.test/v1/%2e%2e%2fv2", Err(Path)),
            (PORT, "api.test:8443/", Ok(())),
            (PORT, "api.test/", Err(Host)),
        ] {
            assert_eq!(may(text, url, AUTH), verdict, "{text} {url}");
        }
    }

    #[test]
    fn a_secret_goes_where_others_cannot_read_it_unless_more_is_said() {
        let custom = SecretPosition::Field("x-amz-meta-note");
        let no = Err(Misplaced::Position);
        for (places, [auth, field, query, path, content]) in [
            ("", [Ok(()), no, no, no, no]),
            (";in=credentials", [Ok(()), no, no, no, no]),
            (";in=fields", [Ok(()), Ok(()), no, no, no]),
            (";in=query", [no, no, Ok(()), no, no]),
            (";in=path,content", [no, no, no, Ok(()), Ok(())]),
            (";in=credentials,query", [Ok(()), no, Ok(()), no, no]),
            (";in=X-Amz-Meta-Note", [no, Ok(()), no, no, no]),
            (
                ";in=credentials,x-amz-meta-note",
                [Ok(()), Ok(()), no, no, no],
            ),
        ] {
            let text = format!("KEY=env:REAL@api.test{places}");
            for (position, verdict) in [
                (AUTH, auth),
                (custom, field),
                (SecretPosition::Query, query),
                (SecretPosition::Path, path),
                (SecretPosition::Content, content),
            ] {
                assert_eq!(
                    may(&text, "api.test/x", position),
                    verdict,
                    "{text} {position:?}"
                );
            }
        }
    }

    #[test]
    fn every_kind_of_source_is_read() {
        for (text, kind, read) in [
            (
                "A=env:REAL@api.test",
                SecretKind::Value,
                SecretSource::Variable("REAL".to_owned()),
            ),
            (
                "A=file:~/.token@api.test",
                SecretKind::Value,
                SecretSource::File("/home/me/.token".to_owned()),
            ),
            (
                "A=file:a@b@api.test",
                SecretKind::Value,
                SecretSource::File("/here/a@b".to_owned()),
            ),
            (
                "A=cmd:show me@work; x@api.test",
                SecretKind::Value,
                SecretSource::Command("show me@work; x".to_owned()),
            ),
            (
                "A=aws:env@api.test",
                SecretKind::Aws,
                SecretSource::Variable(String::new()),
            ),
            (
                "A=aws:file:~/.aws/credentials@api.test",
                SecretKind::Aws,
                SecretSource::File("/home/me/.aws/credentials".to_owned()),
            ),
            (
                "A=aws:cmd:issue@api.test",
                SecretKind::Aws,
                SecretSource::Command("issue".to_owned()),
            ),
        ] {
            let secret = secret(text);
            assert_eq!((secret.kind(), secret.source()), (kind, &read), "{text}");
            let again = SecretSource::of(&read.to_string());
            assert_eq!(again.as_ref(), Some(&read), "{text}");
        }
    }

    #[test]
    fn what_binds_a_secret_to_nothing_certain_is_refused() {
        for text in [
            "",
            "KEY",
            "KEY=env:REAL",
            "=env:REAL@api.test",
            "1KEY=env:REAL@api.test",
            "K-Y=env:REAL@api.test",
            "LD_PRELOAD=env:REAL@api.test",
            "PATH=env:REAL@api.test",
            "KEY=REAL@api.test",
            "KEY=env:@api.test",
            "KEY=env:A B@api.test",
            "KEY=file:@api.test",
            "KEY=cmd:@api.test",
            "KEY=cmd:a\u{0}b@api.test",
            "KEY=vault:x@api.test",
            "KEY=env:REAL@",
            "KEY=env:REAL@*",
            "KEY=env:REAL@*.api.test",
            "KEY=env:REAL@**.api.test",
            "KEY=env:REAL@localhost",
            "KEY=env:REAL@192.0.2.1",
            "KEY=env:REAL@10.0.0.0/8",
            "KEY=env:REAL@[::1]",
            "KEY=env:REAL@api.test:*",
            "KEY=env:REAL@api.test:80,443",
            "KEY=env:REAL@api.test:0",
            "KEY=env:REAL@http://api.test",
            "KEY=env:REAL@https://api.test",
            "KEY=env:REAL@api.test/x?y=z",
            "KEY=env:REAL@GET api.test",
            "KEY=env:REAL@api.test;in=",
            "KEY=env:REAL@api.test;in=everywhere!",
            "KEY=env:REAL@api.test;in=host",
            "KEY=env:REAL@api.test;to=query",
            "KEY=aws:env:OTHER@api.test",
            "KEY=aws:env:@api.test;in=query",
        ] {
            let compiled = compile(&[source(SourceKind::Secret, text)], &context());
            let errors = compiled.map(drop).expect_err(text).to_string();
            assert!(errors.contains("hint:"), "{text}: {errors}");
        }
    }

    #[test]
    fn one_name_has_one_value_and_many_places() {
        let compiled = |texts: &[&str]| {
            let sources: Vec<Source> = texts
                .iter()
                .map(|text| source(SourceKind::Secret, text))
                .collect();
            compile(&sources, &context())
        };
        let two = compiled(&["A=env:X@a.test", "A=env:X@b.test/p", "B=env:Y@a.test"]);
        let two = two.expect("two secrets");
        let bindings: Vec<Vec<&str>> = two
            .secrets()
            .iter()
            .map(|secret| secret.bindings().collect())
            .collect();
        assert_eq!(bindings, [vec!["a.test", "b.test/p"], vec!["a.test"]]);
        assert!(compiled(&["A=env:X@a.test", "A=env:Y@b.test"]).is_err());
        let many: Vec<String> = (0..40).map(|n| format!("A{n}=env:X@a.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(compiled(&many).is_err());
    }

    #[test]
    fn a_secret_that_can_never_be_inserted_is_named() {
        let with = |rules: &[(SourceKind, &str)]| {
            let mut sources = vec![source(SourceKind::Secret, "KEY=env:REAL@api.test")];
            sources.extend(rules.iter().map(|(kind, text)| source(*kind, text)));
            compile(&sources, &context())
        };
        for (rules, warns) in [
            (&[][..], true),
            (&[(SourceKind::Allow, "https://other.test")], true),
            (&[(SourceKind::Allow, "http://api.test")], true),
            (&[(SourceKind::Allow, "tls://api.test")], true),
            (&[(SourceKind::Allow, "https://api.test:8443")], true),
            (&[(SourceKind::Allow, "https://api.test")], false),
            (&[(SourceKind::Allow, "wss://api.test")], false),
            (&[(SourceKind::Allow, "api.test")], false),
            (&[(SourceKind::Allow, "GET https://*.test/x")], false),
            (&[(SourceKind::Allow, "*")], false),
            (
                &[
                    (SourceKind::Allow, "*"),
                    (SourceKind::Allow, "tls://api.test"),
                ],
                true,
            ),
        ] {
            let policy = with(rules).expect("a policy");
            assert_eq!(!policy.warnings().is_empty(), warns, "{rules:?}");
            assert!(policy.opens_tls(), "{rules:?}");
        }
        let never = source(SourceKind::Document, "[tls]\nintercept = \"never\"");
        let sources = [source(SourceKind::Secret, "KEY=env:REAL@api.test"), never];
        assert!(compile(&sources, &context()).is_err());
    }

    #[test]
    fn the_file_of_a_secret_is_hidden() {
        let sources = [source(SourceKind::Secret, "KEY=file:~/.token@api.test")];
        let policy = compile(&sources, &context()).expect("a policy");
        let hidden: Vec<&str> = policy
            .filesystem()
            .deny
            .iter()
            .map(|grant| grant.path.as_str())
            .collect();
        assert_eq!(hidden, ["/home/me/.token"]);
    }
}
