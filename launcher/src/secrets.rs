//! Files with keys: those that the gateway reads for a run (an authority,
//! certificates for hosts, a list of secrets to look for), and that of the user's own authority, whether or not
//! a run names it. The command must reach none of them, so they are denied
//! whatever is granted around them, and a grant that cannot be kept apart from
//! them is refused. Looks at paths; opens and reads no key.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_handoff::GatewaySetting;
use outgate_policy::{Context, PathGrant, Policy, PolicyErrors, Source, SourceKind, compile};

use crate::text::quoted;
use crate::writable::Granted;

/// The key in an authority's directory.
const KEY: &str = "authority.key";

/// Where `outgate ca` keeps the user's own authority unless told otherwise, by
/// the variables `XDG_CONFIG_HOME` and `HOME`.
pub fn own_authority(config: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    config
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".config")))
        .map(|config| config.join("outgate/ca"))
}

/// One file or directory that the command must not reach.
#[derive(Debug)]
struct GuardedPath {
    /// Without links.
    path: PathBuf,
    /// What it is, for people.
    what: String,
    /// Where the policy names it.
    place: Arc<str>,
}

/// Why a file cannot be used, or a run not be started with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The policy has faults once they are denied.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// It is not there.
    #[error("{place}: {what} `{path}`")]
    Missing {
        /// Where the policy names it.
        place: String,
        /// What it is.
        what: String,
        /// Its path.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The command could have it.
    #[error("{place}: {what} `{path}` lies where the command may {right} (`{grant}`)")]
    Reachable {
        /// Where the policy names it.
        place: String,
        /// What it is.
        what: String,
        /// Its path.
        path: String,
        /// `read` or `write`.
        right: &'static str,
        /// The grant that covers it.
        grant: String,
    },
    /// Its path cannot be handed on.
    #[error("{place}: {what} `{path}` has a name that is not UTF-8")]
    Name {
        /// Where the policy names it.
        place: String,
        /// What it is.
        what: String,
        /// Its path.
        path: String,
    },
}

/// What a directory is in which the user's acceptance of manifests is kept.
pub(crate) const ACCEPTED: &str = "what you accepted of manifests";

impl SecretError {
    /// The command could write what outgate believes its user wrote: which manifests are
    /// accepted, or whom the explicit proxy serves.
    pub(crate) fn believed((place, what): (&str, &str), path: &Path, grant: &str) -> Self {
        Self::Reachable {
            place: place.to_owned(),
            what: what.to_owned(),
            path: path.display().to_string(),
            right: "write",
            grant: grant.to_owned(),
        }
    }
}

/// What the command must not reach, and what the gateway is told of it.
#[derive(Debug, Default)]
pub struct GuardedSecrets {
    all: Vec<GuardedPath>,
    settings: Vec<GatewaySetting>,
}

impl GuardedSecrets {
    /// Those that a policy names, found on this machine.
    ///
    /// # Errors
    /// [`SecretError::Missing`], [`SecretError::Name`].
    pub fn of(policy: &Policy) -> Result<Self, SecretError> {
        let mut secrets = Self::default();
        let settings = policy.settings();
        if let Some(directory) = &settings.authority {
            let place = policy.place("tls.authority").unwrap_or_default();
            let found = find(Path::new(directory), "the authority", place)?;
            let setting = GatewaySetting::Authority(found.named()?);
            secrets.settings.push(setting);
            secrets.all.push(found);
        }
        for client in &settings.clients {
            let what = format!("the certificate for {}", client.host);
            let certificate = find(Path::new(&client.certificate), &what, &client.place)?;
            let what = format!("the key for {}", client.host);
            let key = find(Path::new(&client.key), &what, &client.place)?;
            let host = client.host.to_string();
            secrets.settings.push(GatewaySetting::ClientCertificate {
                host,
                certificate: certificate.named()?,
                key: key.named()?,
            });
            secrets.all.push(key);
        }
        if let Some(file) = &settings.known_file {
            let place = policy.place("inspect.known_file").unwrap_or_default();
            let found = find(Path::new(file), "the list of secrets", place)?;
            let setting = GatewaySetting::KnownValues(found.named()?);
            secrets.settings.push(setting);
            secrets.all.push(found);
        }
        Ok(secrets)
    }

    /// Hides the key of an authority as well, if there is one. Who has it can
    /// pass as every host towards all that trust it, in this run and in others.
    #[must_use]
    pub fn hiding(mut self, authority: Option<&Path>) -> Self {
        let key = authority.and_then(|directory| directory.join(KEY).canonicalize().ok());
        if let Some(path) = key
            && !self.all.iter().any(|known| path.starts_with(&known.path))
        {
            self.all.push(GuardedPath {
                path,
                what: "your authority's key".to_owned(),
                place: "outgate ca".into(),
            });
        }
        self
    }

    /// Hides what the user accepted of manifests as well, where a grant lies around it: it says
    /// what later runs are granted.
    #[must_use]
    pub fn closing(mut self, accepted: Option<&Path>, policy: &Policy) -> Self {
        let files = policy.filesystem();
        let path = accepted.and_then(crate::writable::real);
        let is_near = |path: &PathBuf| {
            let mut grants = files.read.iter().chain(&files.write);
            grants.any(|grant| path.starts_with(&grant.path))
        };
        if let Some(path) = path.filter(is_near) {
            self.all.push(GuardedPath {
                path,
                what: ACCEPTED.to_owned(),
                place: "outgate trust".into(),
            });
        }
        self
    }

    /// Whether the gateway has to read any.
    pub fn are_read(&self) -> bool {
        !self.settings.is_empty()
    }

    /// What the gateway is told of them.
    pub fn settings(&self) -> &[GatewaySetting] {
        &self.settings
    }

    /// The policy with all of them denied.
    ///
    /// # Errors
    /// [`SecretError::Reachable`] for a grant that would be cut to pieces;
    /// what [`compile`] says of the paths.
    pub fn hide(
        &self,
        policy: Policy,
        sources: &[Source],
        context: &Context,
    ) -> Result<Policy, SecretError> {
        if self.all.is_empty() {
            return Ok(policy);
        }
        let files = policy.filesystem();
        for secret in &self.all {
            let denied = |grant: &PathGrant| secret.path.starts_with(real(&grant.path));
            let inside = |grant: &&PathGrant| real(&grant.path).starts_with(&secret.path);
            let around = |grant: &&PathGrant| secret.path.starts_with(real(&grant.path));
            // What is granted for writing would not take new files any more.
            let mut writes = files.write.iter();
            if let Some(grant) = writes.find(|grant| inside(grant) || around(grant))
                && !files.deny.iter().any(denied)
            {
                return Err(secret.reachable("write", &grant.path));
            }
            if let Some(grant) = files.read.iter().find(inside) {
                return Err(secret.reachable("read", &grant.path));
            }
        }
        let mut all = sources.to_vec();
        all.extend(self.all.iter().map(GuardedPath::denial));
        Ok(compile(&all, context)?)
    }

    /// Makes sure that nothing which was granted leads to one of them by
    /// another name, such as a mount.
    ///
    /// # Errors
    /// [`SecretError::Reachable`].
    pub(crate) fn check(&self, readable: &Granted, writable: &Granted) -> Result<(), SecretError> {
        for secret in &self.all {
            for (right, granted) in [("write", writable), ("read", readable)] {
                if let Some(grant) = granted.around(&secret.path) {
                    return Err(secret.reachable(right, grant));
                }
            }
        }
        Ok(())
    }
}

impl GuardedPath {
    /// Its path, which messages can show.
    fn named(&self) -> Result<PathBuf, SecretError> {
        let text = self.path.to_str().ok_or_else(|| SecretError::Name {
            place: self.place.to_string(),
            what: self.what.clone(),
            path: self.path.display().to_string(),
        })?;
        Ok(text.into())
    }

    fn reachable(&self, right: &'static str, grant: &str) -> SecretError {
        SecretError::Reachable {
            place: self.place.to_string(),
            what: self.what.clone(),
            path: self.path.display().to_string(),
            right,
            grant: grant.to_owned(),
        }
    }

    /// A document that denies it.
    fn denial(&self) -> Source {
        let path = self.path.to_string_lossy();
        Source {
            kind: SourceKind::Document,
            place: self.place.to_string(),
            text: format!("[filesystem]\ndeny = [{}]\n", quoted(&path)),
        }
    }
}

fn find(path: &Path, what: &str, place: &str) -> Result<GuardedPath, SecretError> {
    match path.canonicalize() {
        Ok(path) => Ok(GuardedPath {
            path,
            what: what.to_owned(),
            place: place.into(),
        }),
        Err(source) => Err(SecretError::Missing {
            place: place.to_owned(),
            what: what.to_owned(),
            path: path.display().to_string(),
            source,
        }),
    }
}

fn real(path: &str) -> PathBuf {
    let path = Path::new(path);
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_can_stand_in_a_document() {
        for (text, written) in [
            ("/a b", r#""/a b""#),
            ("/a\"b\\c", r#""/a\"b\\c""#),
            ("/a\nb\u{7f}", r#""/a\u000Ab\u007F""#),
            ("/ä", r#""/ä""#),
        ] {
            assert_eq!(quoted(text), written);
        }
    }
}
