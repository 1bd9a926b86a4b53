//! What the user's own configuration holds: secrets with the hosts they are for,
//! and the registries of packages it names.
//!
//! Pure functions of texts that somebody else read: tolerant, because the files
//! are other programs' and may be of any version or broken, and bounded. What
//! cannot be read is left out; the detectors still know its shape.

mod environment;
mod formats;
mod forms;
mod lines;
mod objects;
mod private_key;
mod tree;

use std::fmt;

use crate::destination::IssuerPattern;
use crate::detector::{Registry, Tier};
use crate::detector_set::Detectors;
use crate::known::{KnownBuilder, KnownNature, KnownValue, Unfit, is_weak};
pub use crate::limits::TEXT_BYTES_MAX;
use crate::secret::SecretBytes;

pub use environment::{credential, environment};

/// Most values of one text; more are left out.
const VALUES_MAX: usize = 256;
/// Most hosts of one value.
const HOSTS_MAX: usize = 32;

/// A secret of the user.
#[derive(Debug)]
pub struct Holding {
    /// The value.
    pub value: SecretBytes,
    /// Where it was read: a file, or a variable.
    pub label: String,
    /// Hosts it is for, as host patterns.
    pub hosts: Vec<String>,
    /// How it is used.
    pub usage: Usage,
}

/// How a secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// It is sent to its hosts; where there are none, nobody knows to which.
    Sent,
    /// It signs or decrypts, and is never sent.
    Kept,
}

/// What was read.
#[derive(Default)]
pub struct Inventory {
    /// Secrets.
    pub values: Vec<Holding>,
    /// Hosts of registries of packages.
    pub registries: Vec<(Registry, String)>,
    /// What of the text was not read, as a clause; nothing where all of it was.
    pub left_out: Option<String>,
}

impl fmt::Debug for Inventory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.values.iter().map(|holding| &holding.label);
        formatter
            .debug_struct("Inventory")
            .field("values", &labels.collect::<Vec<_>>())
            .field("registries", &self.registries)
            .field("left_out", &self.left_out)
            .finish()
    }
}

/// How a text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// netrc(5).
    Netrc,
    /// `.npmrc`.
    Npmrc,
    /// `git-credential-store`: a URL on each line.
    GitCredentials,
    /// `hosts.yml` of gh, `config.yml` of glab.
    Hosts,
    /// `credentials.toml` of cargo.
    CargoCredentials,
    /// `config.toml` of cargo.
    CargoConfig,
    /// `.pypirc`.
    Pypirc,
    /// `pip.conf`.
    PipConf,
    /// `config.json` of docker, `auth.json` of podman.
    Docker,
    /// The credentials file of AWS.
    Aws,
    /// A credentials file of Google.
    Google,
    /// The token cache of Azure.
    Azure,
    /// A kubeconfig.
    Kubeconfig,
    /// A private key in PEM.
    PrivateKey,
    /// `NAME=value` on each line.
    Dotenv,
    /// A value on each line, perhaps with hosts: `value -> host host`.
    List,
}

/// Well-known files below the home directory.
pub const FILES: [(&str, Format); 26] = [
    (".netrc", Format::Netrc),
    ("_netrc", Format::Netrc),
    (".npmrc", Format::Npmrc),
    (".git-credentials", Format::GitCredentials),
    (".config/git/credentials", Format::GitCredentials),
    (".config/gh/hosts.yml", Format::Hosts),
    (".config/hub", Format::Hosts),
    (".config/glab-cli/config.yml", Format::Hosts),
    (".cargo/credentials.toml", Format::CargoCredentials),
    (".cargo/credentials", Format::CargoCredentials),
    (".cargo/config.toml", Format::CargoConfig),
    (".cargo/config", Format::CargoConfig),
    (".pypirc", Format::Pypirc),
    (".config/pip/pip.conf", Format::PipConf),
    (".pip/pip.conf", Format::PipConf),
    (".docker/config.json", Format::Docker),
    (".config/containers/auth.json", Format::Docker),
    (".aws/credentials", Format::Aws),
    (".aws/config", Format::Aws),
    (
        ".config/gcloud/application_default_credentials.json",
        Format::Google,
    ),
    (".azure/msal_token_cache.json", Format::Azure),
    (".azure/accessTokens.json", Format::Azure),
    (".kube/config", Format::Kubeconfig),
    (".ssh/id_ed25519", Format::PrivateKey),
    (".ssh/id_ecdsa", Format::PrivateKey),
    (".ssh/id_rsa", Format::PrivateKey),
];

/// Well-known files of the working directory.
pub const PROJECT_FILES: [(&str, Format); 6] = [
    (".env", Format::Dotenv),
    (".env.local", Format::Dotenv),
    (".env.production", Format::Dotenv),
    (".env.development", Format::Dotenv),
    (".npmrc", Format::Npmrc),
    (".cargo/config.toml", Format::CargoConfig),
];

/// Reads a text. `label` says in findings where a value was read.
pub fn read(format: Format, label: &str, text: &[u8]) -> Inventory {
    let mut inventory = Inventory::default();
    let text = match text.get(..TEXT_BYTES_MAX) {
        Some(first) if first.len() < text.len() => {
            inventory.left_out = Some(format!("only its first {TEXT_BYTES_MAX} bytes are read"));
            // Not a part of a line, and perhaps of a value.
            let end = first.iter().rposition(|byte| *byte == b'\n');
            first.get(..end.unwrap_or_default()).unwrap_or_default()
        }
        _ => text,
    };
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        // What is not UTF-8 is not a file of these formats.
        Err(error) => {
            let before = text.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.split(|byte| *byte == b'\n').count();
            inventory.left_out = Some(format!("line {line} is not UTF-8, so it is not read"));
            return inventory;
        }
    };
    let mut into = HeldValues {
        label,
        inventory: &mut inventory,
    };
    match format {
        Format::Netrc => formats::netrc(text, &mut into),
        Format::Npmrc => formats::npmrc(text, &mut into),
        Format::GitCredentials => formats::git_credentials(text, &mut into),
        Format::Hosts => tree::hosts(text, &mut into),
        Format::Kubeconfig => tree::kubeconfig(text, &mut into),
        Format::CargoCredentials => objects::cargo_credentials(text, &mut into),
        Format::CargoConfig => objects::cargo_config(text, &mut into),
        Format::Pypirc => formats::pypirc(text, &mut into),
        Format::PipConf => formats::pip_conf(text, &mut into),
        Format::Docker => objects::docker(text, &mut into),
        Format::Aws => formats::aws(text, &mut into),
        Format::Google => objects::google(text, &mut into),
        Format::Azure => objects::azure(text, &mut into),
        Format::PrivateKey => private_key::read(text, &mut into),
        Format::Dotenv => environment::dotenv(text, &mut into),
        Format::List => formats::list(text, &mut into),
    }
    inventory
}

/// Where readers put what they find.
struct HeldValues<'a> {
    label: &'a str,
    inventory: &'a mut Inventory,
}

impl HeldValues<'_> {
    /// A value of the text, with the hosts it is for.
    fn add(&mut self, value: &str, hosts: &[&str]) {
        self.bytes(value.as_bytes().to_vec(), hosts);
    }

    /// A value that is never sent.
    fn kept(&mut self, value: &[u8]) {
        let label = self.label.to_owned();
        let before = self.inventory.values.len();
        self.labelled(label, value.to_vec(), &[]);
        for holding in self.inventory.values.iter_mut().skip(before) {
            holding.usage = Usage::Kept;
        }
    }

    fn bytes(&mut self, value: Vec<u8>, hosts: &[&str]) {
        let label = self.label.to_owned();
        self.labelled(label, value, hosts);
    }

    fn labelled(&mut self, label: String, value: Vec<u8>, hosts: &[&str]) {
        let value = SecretBytes::new(value);
        let is_reference = matches!(
            value.expose(),
            [b'$', b'{', .., b'}'] | [b'$', b'(', .., b')']
        );
        let same = |known: &Holding| known.value.expose() == value.expose();
        if value.expose().is_empty() || is_reference {
            return;
        }
        let hosts = hosts
            .iter()
            .filter_map(|host| host_of(host))
            .take(HOSTS_MAX);
        if let Some(known) = self.inventory.values.iter_mut().find(|known| same(known)) {
            // One value for several hosts.
            known.hosts.extend(hosts);
            return;
        }
        if self.inventory.values.len() >= VALUES_MAX {
            let more = || format!("only its first {VALUES_MAX} values are read");
            self.inventory.left_out.get_or_insert_with(more);
            return;
        }
        let hosts = hosts.collect();
        self.inventory.values.push(Holding {
            value,
            label,
            hosts,
            usage: Usage::Sent,
        });
    }

    fn registry(&mut self, registry: Registry, url: &str) {
        if let Some(host) = host_of(url)
            && self.inventory.registries.len() < VALUES_MAX
            && !self
                .inventory
                .registries
                .contains(&(registry, host.clone()))
        {
            self.inventory.registries.push((registry, host));
        }
    }
}

/// The host of a URL, of `//host/path`, of `host:port` or of a host pattern, in
/// its canonical form; nothing for what is none.
fn host_of(text: &str) -> Option<String> {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.trim_start_matches('/');
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    IssuerPattern::parse(&host).ok()?;
    Some(host)
}

/// The password in the authority of a URL, with its percent triplets decoded.
fn password_of(url: &str) -> Option<Vec<u8>> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(percent_decoded(password))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *first == b'%');
        let decoded = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = match decoded {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    bytes
}

impl KnownBuilder {
    /// Adds what was read from the user's own configuration, and says how much of
    /// it can be looked for.
    ///
    /// A value may go to the hosts its file names, and to those that issue its
    /// form. Where neither is known and it is weak, it is only reported.
    /// Returns what is not looked for: where it was read, and why.
    pub fn hold(&mut self, inventory: &Inventory, detectors: &Detectors) -> Vec<(String, Unfit)> {
        let mut unfit = Vec::new();
        for holding in &inventory.values {
            let mut hosts = holding.hosts.clone();
            if holding.usage == Usage::Sent {
                hosts.extend(detectors.issuers_of(holding.value.expose()));
            }
            hosts.sort();
            hosts.dedup();
            let parsed = hosts
                .iter()
                .filter_map(|host| IssuerPattern::parse(host).ok());
            let issuers: Vec<IssuerPattern> = parsed.collect();
            let nature = match holding.usage {
                Usage::Sent => KnownNature::Sent,
                Usage::Kept => KnownNature::Kept,
            };
            let unbound = issuers.is_empty() && nature == KnownNature::Sent;
            let weak = unbound && is_weak(holding.value.expose());
            let about = KnownValue {
                label: holding.label.clone(),
                others: Vec::new(),
                issuers,
                tier: if weak { Tier::Context } else { Tier::Strong },
                nature,
            };
            if let Err(why) = self.add(&holding.value, about) {
                unfit.push((holding.label.clone(), why));
            }
        }
        unfit
    }
}

#[cfg(test)]
mod tests;
