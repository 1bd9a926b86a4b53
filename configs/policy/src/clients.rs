//! Clients of package registries: what their users configured, read from texts
//! that somebody else found. Only the user's own configuration counts, never a
//! project's: whoever wrote that would say where the command may connect. Pure.

use crate::host::Host;
use crate::rule_host::parse_port;

mod cargo;
mod handed;
mod npm;
mod pip;

/// Registries that are taken from the configuration of one client.
const REGISTRIES_MAX: usize = 64;

/// A client of package registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// npm, yarn and pnpm.
    Npm,
    /// pip and uv.
    Pip,
    /// cargo.
    Cargo,
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
pub struct Registry {
    /// The rule that allows to fetch from it.
    pub rule: String,
    /// Where it is configured: file and line, or variable.
    pub place: String,
}

/// Why registries cannot be taken from a configuration. Never shows a value,
/// which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// Nothing names one.
    Unconfigured(Client),
    /// A value is no URL of a registry.
    Value {
        /// Where it stands.
        place: String,
        /// What it should name.
        key: String,
    },
    /// More than are taken.
    Many(Client),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unconfigured(client) => write!(
                out,
                "the user's configuration of {} names no registry",
                client.title()
            ),
            Self::Value { place, key } => {
                write!(
                    out,
                    "{place}: `{key}` is no http or https URL of a registry"
                )
            }
            Self::Many(client) => write!(
                out,
                "the user's configuration of {} names more than {REGISTRIES_MAX} registries",
                client.title()
            ),
        }
    }
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// How to repair it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unconfigured(client) => format!(
                "name your registry: {}, or allow it with `-a 'GET,HEAD https://HOST'`",
                client.example()
            ),
            Self::Value { .. } | Self::Many(_) => {
                "correct it, or leave the preset out and allow the registry with \
                 `-a 'GET,HEAD https://HOST'`"
                    .to_owned()
            }
        }
    }
}

/// A value of a variable, for who reads configurations.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Client {
    const ALL: [Self; 3] = [Self::Npm, Self::Pip, Self::Cargo];

    /// The client that a shipped policy of this name is about.
    pub fn named(preset: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == preset)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm, yarn or pnpm",
            Self::Pip => "pip or uv",
            Self::Cargo => "cargo",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Npm => "`registry=https://HOST/` in ~/.npmrc",
            Self::Pip => "`index-url = https://HOST/simple` in ~/.config/pip/pip.conf",
            Self::Cargo => "a `[source]` or `[registries]` in ~/.cargo/config.toml",
        }
    }

    /// The files of the user and of the machine that configure it, absolute.
    pub fn files(self, home: &str, variable: Variable<'_>) -> Vec<String> {
        let found = match self {
            Self::Npm => npm::files(home, variable),
            Self::Pip => pip::files(home, variable),
            Self::Cargo => cargo::files(home, variable),
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
    ) -> Result<Vec<Registry>, ClientError> {
        let mut found = Vec::new();
        for file in files {
            found.extend(match self {
                Self::Npm => npm::read(file, variables),
                Self::Pip => pip::read(file),
                Self::Cargo => cargo::read(file),
            });
        }
        for (name, value) in variables {
            let values = match self {
                Self::Npm => npm::variable(name, value),
                Self::Pip => pip::variable(name, value),
                Self::Cargo => cargo::variable(name, value),
            };
            let place = format!("${name}");
            found.extend(values.into_iter().map(|value| Named {
                place: place.clone(),
                key: name.clone(),
                value,
            }));
        }
        let mut registries: Vec<Registry> = Vec::new();
        for named in found {
            let Some(rule) = rule(&named.value).map_err(|NoUrl| ClientError::Value {
                place: named.place.clone(),
                key: named.key.clone(),
            })?
            else {
                continue;
            };
            if registries.iter().all(|known| known.rule != rule) {
                let place = named.place;
                registries.push(Registry { rule, place });
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
struct Named {
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
    let (scheme, rest) = url.split_once("://").ok_or(NoUrl)?;
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "http" | "https" => {}
        "file" => return Ok(None),
        _ => return Err(NoUrl),
    }
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
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Ok(Some(format!("GET,HEAD {scheme}://{host}{port}")))
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
struct Setting<'t> {
    line: usize,
    key: &'t str,
    value: &'t str,
}

/// The settings of a file in the customary form: comments with `#` or `;`,
/// sections in brackets, values that go on in indented lines.
fn settings(text: &str) -> Vec<Setting<'_>> {
    let mut out: Vec<Setting<'_>> = Vec::new();
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
        out.push(Setting {
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
pub(crate) mod tests {
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
        for client in Client::ALL {
            let error = client.registries(&[], &[]).expect_err("nothing");
            assert!(error.hint().contains("name your registry: "), "{error}");
            assert_eq!(Client::named(client.name()), Some(client));
        }
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
