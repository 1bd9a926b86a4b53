//! Clients of package registries, and of clusters: what their users configured, read from
//! texts that somebody else found. Only the user's own configuration counts, never a
//! project's: whoever wrote that would say where the command may connect. Pure.

use crate::host::Host;
use crate::rule_host::parse_port;

mod cargo;
mod error;
mod gem;
mod go;
mod handed;
mod kubectl;
mod maven;
mod npm;
mod pip;

/// Registries that are taken from the configuration of one client.
const REGISTRIES_MAX: usize = 64;

pub use error::ClientError;
pub use handed::HandedConfiguration;

/// A client of package registries, or of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// npm, yarn, pnpm, bun and deno.
    Npm,
    /// pip, uv and poetry.
    Pip,
    /// cargo.
    Cargo,
    /// Go.
    Go,
    /// Bundler and RubyGems.
    Gem,
    /// Maven.
    Maven,
    /// kubectl, whose registries are clusters.
    Kubectl,
}

/// A file of the user's configuration, as somebody read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The path, as people know it.
    pub place: String,
    /// Its text.
    pub text: String,
}

/// A registry that a client is configured for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRegistry {
    /// The rule that allows to fetch from it.
    pub rule: String,
    /// Where it is configured: file and line, or variable.
    pub place: String,
    /// Where its name may lead beside public addresses.
    pub addresses: &'static [&'static str],
}

/// Addresses of private networks (RFC 1918, RFC 6598, RFC 4193): where clusters mostly are.
const PRIVATE: [&str; 5] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
];

/// A value of a variable, for who reads configurations.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Client {
    /// The client whose registries alone a shipped policy of this name is about.
    pub fn named(preset: &str) -> Option<Self> {
        match preset {
            "npm" => Some(Self::Npm),
            "pip" => Some(Self::Pip),
            "cargo" => Some(Self::Cargo),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm, yarn or pnpm",
            Self::Pip => "pip or uv",
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Gem => "bundler",
            Self::Maven => "maven",
            Self::Kubectl => "kubectl",
        }
    }

    /// What it asks, in a word.
    fn thing(self) -> &'static str {
        match self {
            Self::Kubectl => "cluster",
            _ => "registry",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Npm => "`registry=https://HOST/` in ~/.npmrc",
            Self::Pip => "`index-url = https://HOST/simple` in ~/.config/pip/pip.conf",
            Self::Cargo => "a `[source]` or `[registries]` in ~/.cargo/config.toml",
            Self::Go => "`go env -w GOPROXY=https://HOST`",
            Self::Gem => "`bundle config set --global mirror.https://SOURCE https://HOST`",
            Self::Maven => "a `<mirror>` in ~/.m2/settings.xml",
            Self::Kubectl => "`server: https://HOST` in ~/.kube/config",
        }
    }

    /// The rule that allows one that is configured nowhere.
    fn allowed(self) -> &'static str {
        match self {
            Self::Kubectl => "tls://HOST:6443",
            _ => "GET,HEAD https://HOST",
        }
    }

    /// Whether commands read its configuration themselves.
    pub fn is_shown(self) -> bool {
        self == Self::Kubectl
    }

    /// Where the name in a rule may lead beside public addresses.
    fn addresses(self, rule: &str) -> &'static [&'static str] {
        let host = rule.split_once("://").map_or(rule, |(_, rest)| rest);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        match (self, Host::parse(host)) {
            (Self::Kubectl, Ok(Host::Name(_))) => &PRIVATE,
            _ => &[],
        }
    }

    /// What whoever starts a run should know where nothing is configured, in one line.
    pub fn note(self) -> String {
        let error = ClientError::Unconfigured(self);
        format!("{error}, and none is allowed; {}", error.hint())
    }

    /// The files of the user and of the machine that configure it, absolute.
    pub fn files(self, home: &str, variable: Variable<'_>) -> Vec<String> {
        let found = match self {
            Self::Npm => npm::files(home, variable),
            Self::Pip => pip::files(home, variable),
            Self::Cargo => cargo::files(home, variable),
            Self::Go => go::files(home, variable),
            Self::Gem => gem::files(home, variable),
            Self::Maven => maven::files(home, variable),
            Self::Kubectl => kubectl::files(home, variable),
        };
        found
            .into_iter()
            .filter(|path| path.starts_with('/'))
            .collect()
    }

    /// The registries that these files and the variables name.
    ///
    /// # Errors
    /// See [`ClientError`]: the user's configuration.
    pub fn registries(
        self,
        files: &[Configuration],
        variables: &[(String, String)],
    ) -> Result<Vec<ConfiguredRegistry>, ClientError> {
        let mut found = Vec::new();
        for file in files {
            found.extend(match self {
                Self::Npm => npm::read(file, variables),
                Self::Pip => pip::read(file),
                Self::Cargo => cargo::read(file),
                Self::Go => go::read(file),
                Self::Gem => gem::read(file),
                Self::Maven => maven::read(file),
                Self::Kubectl => kubectl::read(file),
            });
        }
        for (name, value) in variables {
            let values = match self {
                Self::Npm => npm::variable(name, value),
                Self::Pip => pip::variable(name, value),
                Self::Cargo => cargo::variable(name, value),
                Self::Go => go::variable(name, value),
                Self::Gem => gem::variable(name, value),
                Self::Maven | Self::Kubectl => Vec::new(),
            };
            let place = format!("${name}");
            found.extend(values.into_iter().map(|value| NamedRegistry {
                place: place.clone(),
                key: name.clone(),
                value,
            }));
        }
        let mut registries: Vec<ConfiguredRegistry> = Vec::new();
        for named in found {
            let rule = match self {
                Self::Kubectl => cluster(&named.value),
                _ => rule(&named.value),
            };
            let Some(rule) = rule.map_err(|NoUrl| ClientError::Value {
                client: self,
                place: named.place.clone(),
                key: named.key.clone(),
            })?
            else {
                continue;
            };
            if registries.iter().all(|known| known.rule != rule) {
                let place = named.place;
                let addresses = self.addresses(&rule);
                registries.push(ConfiguredRegistry {
                    rule,
                    place,
                    addresses,
                });
            }
        }
        match registries.len() {
            0 => Err(ClientError::Unconfigured(self)),
            1..=REGISTRIES_MAX => Ok(registries),
            _ => Err(ClientError::Many(self)),
        }
    }
}

/// A value that names a registry, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedRegistry {
    place: String,
    key: String,
    value: String,
}

/// A value that is no URL.
struct NoUrl;

/// The rule that allows to fetch from a registry: its host and port, since
/// indexes lead to files beside them. `None` for one on this machine's disk.
fn rule(url: &str) -> Result<Option<String>, NoUrl> {
    let url = url.trim();
    let url = url.strip_prefix("sparse+").unwrap_or(url);
    let url = url.strip_prefix("registry+").unwrap_or(url);
    let url = url.strip_prefix("git+").unwrap_or(url);
    if url.starts_with('/')
        || url.starts_with("./")
        || url.starts_with("../")
        || url.starts_with('~')
    {
        return Ok(None);
    }
    if url
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("file://"))
    {
        return Ok(None);
    }
    let (scheme, host, port) = parts(url)?;
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Ok(Some(format!("GET,HEAD {scheme}://{host}{port}")))
}

/// The rule that allows all of a cluster: its TLS, which trusts an authority of the
/// cluster's own and shows a certificate, or everything of one without.
fn cluster(url: &str) -> Result<Option<String>, NoUrl> {
    let (scheme, host, port) = parts(url.trim())?;
    Ok(Some(match scheme {
        "https" => format!("tls://{host}:{}", port.unwrap_or(443)),
        _ => format!("* http://{host}:{}", port.unwrap_or(80)),
    }))
}

/// Scheme, host and port of an http or https URL.
fn parts(url: &str) -> Result<(&'static str, Host, Option<u16>), NoUrl> {
    let (scheme, rest) = url.split_once("://").ok_or(NoUrl)?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => "http",
        "https" => "https",
        _ => return Err(NoUrl),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Credentials are nothing for a rule.
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(parse_port(port).ok_or(NoUrl)?)),
        _ => (authority, None),
    };
    let host = Host::parse(host).map_err(|_| NoUrl)?;
    Ok((scheme, host, port))
}

/// The value of a variable in a list.
fn value<'v>(variables: &'v [(String, String)], name: &str) -> Option<&'v str> {
    let mut all = variables.iter();
    all.find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// A directory named by a variable, else below the home.
fn directory(variable: Variable<'_>, name: &str, home: &str, below: &str) -> String {
    match variable(name).filter(|value| value.starts_with('/')) {
        Some(directory) => directory,
        // No absolute path begins so: there is nothing to read.
        None if home.is_empty() => ".".to_owned(),
        None => format!("{home}/{below}"),
    }
}

/// One line of a file of `key = value`, with its number.
#[derive(Debug, Clone, Copy)]
struct ConfigLine<'t> {
    line: usize,
    key: &'t str,
    value: &'t str,
}

/// The settings of a file in the customary form: comments with `#` or `;`,
/// sections in brackets, values that go on in indented lines.
fn settings(text: &str) -> Vec<ConfigLine<'_>> {
    let mut out: Vec<ConfigLine<'_>> = Vec::new();
    let mut key = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';', '[']) {
            if trimmed.starts_with('[') {
                key = None;
            }
            continue;
        }
        let (own, value) = match (line.starts_with([' ', '\t']), key, trimmed.split_once('=')) {
            (true, Some(key), _) => (key, trimmed),
            (_, _, Some((own, value))) => (own.trim(), value.trim()),
            (_, _, None) => continue,
        };
        key = Some(own);
        out.push(ConfigLine {
            line: index + 1,
            key: own,
            value,
        });
    }
    out
}

/// A value without the quotes around it.
fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules and places that a client takes from a file and variables, or
    /// the error.
    pub(crate) fn taken(client: Client, file: (&str, &str), variables: &[(&str, &str)]) -> String {
        let files = [Configuration {
            place: file.0.to_owned(),
            text: file.1.to_owned(),
        }];
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        match client.registries(&files, &variables) {
            Ok(registries) => registries
                .iter()
                .map(|one| format!("{} ({})", one.rule, one.place))
                .collect::<Vec<_>>()
                .join(", "),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_url_becomes_a_rule_for_its_host_without_credentials() {
        for (url, expected) in [
            ("https://r.test/simple/", Some("GET,HEAD https://r.test")),
            (
                "https://user:secret@r.test:8443/x?y",
                Some("GET,HEAD https://r.test:8443"),
            ),
            (
                "sparse+https://r.test/index/",
                Some("GET,HEAD https://r.test"),
            ),
            ("HTTP://R.test", Some("GET,HEAD http://r.test")),
            (
                "http://[2001:db8::1]:80/",
                Some("GET,HEAD http://[2001:db8::1]:80"),
            ),
            ("file:///srv/mirror", None),
            ("/srv/mirror", None),
        ] {
            assert_eq!(rule(url).ok().flatten().as_deref(), expected, "{url}");
        }
        for url in [
            "",
            "r.test",
            "ftp://r.test",
            "https://",
            "https://a b/",
            "https://*/",
            "https://r.test:0/",
            "https://r.test:x/",
        ] {
            assert!(rule(url).is_err(), "{url}");
        }
    }

    #[test]
    fn every_rule_that_is_made_is_one_that_compiles() {
        use crate::source::{Context, Source, SourceKind};
        for url in [
            "https://r.test",
            "http://127.0.0.1:3000/x",
            "https://[::1]/",
            "https://u:p@h.test/",
        ] {
            let text = rule(url).ok().flatten().expect(url);
            let source = Source {
                kind: SourceKind::Allow,
                place: "p".to_owned(),
                text,
            };
            assert!(
                crate::compile(&[source], &Context::default()).is_ok(),
                "{url}"
            );
        }
    }

    #[test]
    fn faults_show_no_value_and_name_a_way_out() {
        let taken = taken(Client::Npm, ("~/.npmrc", "registry=secret@not-a-url"), &[]);
        assert_eq!(
            taken,
            "error: ~/.npmrc:1: `registry` is no http or https URL of a registry"
        );
        let all = [
            Client::Npm,
            Client::Pip,
            Client::Cargo,
            Client::Go,
            Client::Gem,
        ];
        for client in all.into_iter().chain([Client::Maven, Client::Kubectl]) {
            let error = client.registries(&[], &[]).expect_err("nothing");
            assert!(error.hint().contains("name your "), "{error}");
            assert!(
                client.note().len() <= crate::limits::NOTE_BYTES_MAX,
                "{error}"
            );
        }
        let presets = ["npm", "pip", "cargo", "go"].map(Client::named);
        let alone = [
            Some(Client::Npm),
            Some(Client::Pip),
            Some(Client::Cargo),
            None,
        ];
        assert_eq!(presets, alone);
        let line = |n| format!("@s{n}:registry=https://r{n}.test");
        let many: Vec<String> = (0..=REGISTRIES_MAX).map(line).collect();
        let files = [Configuration {
            place: "~/.npmrc".to_owned(),
            text: many.join("\n"),
        }];
        assert_eq!(
            Client::Npm.registries(&files, &[]),
            Err(ClientError::Many(Client::Npm))
        );
    }
}
