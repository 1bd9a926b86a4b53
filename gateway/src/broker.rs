//! Secrets that the command never sees. It holds placeholders; what they stand
//! for is read before the gateway confines itself, and is put into a request
//! only over verified TLS, to the host, port, path and position that the policy
//! binds it to. A placeholder anywhere else is refused and recorded, and a value
//! that an origin sends back is masked.
//!
//! A session's placeholders are its own: drawn at random when it begins, known
//! to no other session, and looked for only in its own connections. So who has
//! not got them from this very sandbox can have nothing inserted, and who has
//! them and is not in it neither.

use std::sync::{Arc, RwLock};

use http::StatusCode;
use outgate_policy::{Misplaced, NamedSecret, Policy, Secret, SecretKind};
use rustls::crypto::SecureRandom;

use crate::destination::Endpoint;

mod coded;
mod content;
mod exchange;
mod filter;
mod forms;
mod keeper;
mod mask;
mod messages;
mod renewal;
mod request;
mod search;
mod shape;
mod signature;
mod signing;
mod source;
mod value;

pub(crate) use filter::filter;
pub(crate) use keeper::{Keeper, keep};
pub(crate) use renewal::Renewal;
pub use source::SecretSourceError;

use mask::Mask;
use search::TextSearch;
use value::{Material, SecretValue};

/// The secrets of a gateway: what each is, by the name in the policy.
#[derive(Debug, Default)]
pub struct Vault(Vec<(NamedSecret, Material)>);

/// Why the secrets cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("secret {name}")]
pub struct VaultError {
    /// What it is called.
    name: String,
    /// Why not.
    #[source]
    cause: SecretSourceError,
}

impl Vault {
    /// Reads all of them. To be done before the process confines itself.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn read(named: &[NamedSecret]) -> Result<Self, VaultError> {
        let read = |named: &NamedSecret| match source::read(named) {
            Ok(material) => Ok((named.clone(), material)),
            Err(cause) => Err(VaultError {
                name: named.name.clone(),
                cause,
            }),
        };
        named.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// What it was read from.
    pub(crate) fn named(&self) -> Vec<NamedSecret> {
        self.0.iter().map(|(named, _)| named.clone()).collect()
    }

    fn material(&self, secret: &Secret) -> Option<&Material> {
        let mut all = self.0.iter();
        let own = all.find(|(named, _)| named.name == secret.name() && named.kind == secret.kind());
        own.map(|(_, material)| material)
    }

    /// The variables of this process that hold one of the values: what the
    /// command would inherit beside the placeholder.
    fn held_by_environment(&self) -> Vec<String> {
        let values: Vec<&SecretValue> = self.0.iter().flat_map(|(_, own)| own.values()).collect();
        let holds = |text: &std::ffi::OsString| {
            let text = std::os::unix::ffi::OsStrExt::as_bytes(text.as_os_str());
            values.iter().any(|value| contains(text, value.reveal()))
        };
        std::env::vars_os()
            .filter(|(_, text)| holds(text))
            .filter_map(|(name, _)| name.into_string().ok())
            .collect()
    }
}

/// Whether one text holds another.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceholderRole {
    Text,
    KeyId,
    KeySecret,
    KeySession,
}

/// A placeholder.
#[derive(Debug)]
struct PlaceholderToken {
    /// Which secret it belongs to.
    secret: usize,
    role: PlaceholderRole,
    /// The variable that holds it.
    variable: String,
    text: String,
}

/// What the secrets are at present.
#[derive(Debug)]
struct CurrentSecrets {
    materials: Vec<Material>,
    /// What was before, by the number of the secret: still masked.
    earlier: Vec<(usize, Material)>,
    mask: Arc<Mask>,
}

/// The secrets of a session.
#[derive(Debug)]
pub(crate) struct SessionSecrets {
    bound: Vec<Secret>,
    tokens: Vec<PlaceholderToken>,
    /// Placeholders as they are; the index is that of the token.
    plain: TextSearch,
    /// In every form that is recognised, and the token of each.
    forms: TextSearch,
    owners: Vec<usize>,
    current: RwLock<Arc<CurrentSecrets>>,
    withheld: Vec<String>,
    renewal: std::sync::OnceLock<Renewal>,
}

/// A placeholder where none may be: a sentence, without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misuse {
    pub(crate) because: String,
}

impl SessionSecrets {
    /// What stands for the values in this session.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &[u8]> {
        self.tokens.iter().map(|token| token.text.as_bytes())
    }

    /// The secrets of a policy with placeholders of their own; `None` without
    /// any.
    ///
    /// # Errors
    /// A sentence: a value was not read, or no random bytes are to be had.
    pub(crate) fn new(policy: &Policy, vault: &Vault) -> Result<Option<Self>, String> {
        let secrets = policy.secrets().to_vec();
        if secrets.is_empty() {
            return Ok(None);
        }
        let provider = rustls::crypto::ring::default_provider();
        let mut tokens = Vec::new();
        let mut materials = Vec::new();
        for (index, secret) in secrets.iter().enumerate() {
            let material = vault.material(secret).ok_or_else(|| {
                format!(
                    "the value of secret {} was not read at the start",
                    secret.name()
                )
            })?;
            let made = tokens_of((index, secret), material, provider.secure_random);
            tokens.extend(made.map_err(|error| error.to_string())?);
            materials.push(material.clone());
        }
        let plain = tokens.iter().map(|token| token.text.clone().into_bytes());
        let plain = TextSearch::new(plain.collect())?;
        let (mut needles, mut owners) = (Vec::new(), Vec::new());
        for (index, token) in tokens.iter().enumerate() {
            for form in forms::all(token.text.as_bytes()) {
                needles.push(form);
                owners.push(index);
            }
        }
        let forms = TextSearch::new(needles)?;
        let mask = Arc::new(mask_of(&tokens, &materials, &[])?);
        Ok(Some(Self {
            bound: secrets,
            tokens,
            plain,
            forms,
            owners,
            current: RwLock::new(Arc::new(CurrentSecrets {
                materials,
                earlier: Vec::new(),
                mask,
            })),
            withheld: vault.held_by_environment(),
            renewal: std::sync::OnceLock::new(),
        }))
    }

    /// What the command's environment holds: lines `NAME=PLACEHOLDER`, and the
    /// names of variables that hold a value and are taken out.
    pub(crate) fn variables(&self) -> String {
        let set = |token: &PlaceholderToken| format!("{}={}\n", token.variable, token.text);
        let is_set = |name: &String| self.tokens.iter().any(|token| token.variable == *name);
        let withheld = self.withheld.iter().filter(|name| !is_set(name));
        let withheld = withheld.map(|name| format!("{name}\n"));
        withheld.chain(self.tokens.iter().map(set)).collect()
    }

    /// What looks for values in what comes back.
    pub(crate) fn mask(&self) -> Option<Arc<Mask>> {
        Some(Arc::clone(&self.current()?.mask))
    }

    /// Follows a keeper until it is gone.
    pub(crate) async fn follow(&self, renewal: Renewal) {
        let renewal = self.renewal.get_or_init(|| renewal);
        renewal.follow(self).await;
    }

    /// An origin answered with this status.
    pub(crate) fn answered(&self, to: Endpoint<'_>, status: StatusCode) {
        if let Some(renewal) = self.renewal.get() {
            renewal.minded(self, to, status);
        }
    }

    fn current(&self) -> Option<Arc<CurrentSecrets>> {
        Some(Arc::clone(&*self.current.read().ok()?))
    }

    /// Whether a name that is asked for holds a placeholder; names have no case.
    pub(crate) fn in_name(&self, name: &str) -> Option<Misuse> {
        let name = name.to_ascii_lowercase();
        let named = self
            .tokens
            .iter()
            .find(|token| name.contains(&token.text.to_ascii_lowercase()))?;
        Some(Misuse {
            because: format!(
                "the name holds the placeholder of secret {}, which is for {}",
                self.name_of(named),
                self.home(named)
            ),
        })
    }

    fn name_of(&self, token: &PlaceholderToken) -> &str {
        let secret = self.bound.get(token.secret);
        secret.map(Secret::name).unwrap_or_default()
    }

    /// Where the secret of a token may go, in words.
    fn home(&self, token: &PlaceholderToken) -> String {
        let secret = self.bound.get(token.secret);
        let bindings: Vec<&str> = secret
            .map(|own| own.bindings().collect())
            .unwrap_or_default();
        format!("{} only", bindings.join(" and "))
    }

    /// The sentence for a placeholder that may not be where it stands.
    fn misplaced(&self, token: &PlaceholderToken, stands: &str, why: Why) -> Misuse {
        let name = self.name_of(token);
        let because = match why {
            Why::Misplaced(Misplaced::Host | Misplaced::Path) => format!(
                "the placeholder of secret {name} stands in {stands}, and the secret is for {}",
                self.home(token)
            ),
            Why::Misplaced(Misplaced::Position) => format!(
                "the placeholder of secret {name} stands in {stands}, where the secret may not go; \
                 where it may is said behind the host, as in `;in=credentials,query`"
            ),
            Why::Plain => format!(
                "the placeholder of secret {name} stands in {stands} of a request without TLS"
            ),
            Why::Encoded => format!(
                "the placeholder of secret {name} stands in {stands} in a form in which it cannot \
                 be replaced"
            ),
            Why::Never => format!(
                "the placeholder of secret {name} stands in {stands}, and the secret half of keys \
                 is never sent"
            ),
        };
        Misuse { because }
    }
}

/// Why a placeholder may not be where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Misplaced(Misplaced),
    Plain,
    Encoded,
    Never,
}

fn tokens_of(
    (secret, named): (usize, &Secret),
    material: &Material,
    random: &dyn SecureRandom,
) -> Result<Vec<PlaceholderToken>, shape::NoRandom> {
    let token = |role, variable: &str, text| PlaceholderToken {
        secret,
        role,
        variable: variable.to_owned(),
        text,
    };
    Ok(match (named.kind(), material) {
        (SecretKind::Value, Material::Text(value)) => {
            let text = shape::placeholder(value.reveal(), random)?;
            vec![token(PlaceholderRole::Text, named.name(), text)]
        }
        (SecretKind::Value, Material::Keys(_)) | (SecretKind::Aws, Material::Text(_)) => Vec::new(),
        (SecretKind::Aws, Material::Keys(keys)) => {
            let id = shape::key_id(random)?;
            let half = shape::plain(40, random)?;
            let mut tokens = vec![
                token(PlaceholderRole::KeyId, "AWS_ACCESS_KEY_ID", id),
                token(PlaceholderRole::KeySecret, "AWS_SECRET_ACCESS_KEY", half),
            ];
            if keys.session.is_some() {
                let session = shape::plain(100, random)?;
                tokens.push(token(
                    PlaceholderRole::KeySession,
                    "AWS_SESSION_TOKEN",
                    session,
                ));
            }
            tokens
        }
    })
}

/// The value that a token stands for.
fn value_of(role: PlaceholderRole, material: &Material) -> Option<&SecretValue> {
    match (role, material) {
        (PlaceholderRole::Text, Material::Text(value)) => Some(value),
        (PlaceholderRole::KeyId, Material::Keys(keys)) => Some(&keys.id),
        (PlaceholderRole::KeySecret, Material::Keys(keys)) => Some(&keys.secret),
        (PlaceholderRole::KeySession, Material::Keys(keys)) => keys.session.as_ref(),
        _ => None,
    }
}

fn mask_of(
    tokens: &[PlaceholderToken],
    materials: &[Material],
    earlier: &[(usize, Material)],
) -> Result<Mask, String> {
    let pairs = tokens.iter().flat_map(|token| {
        let now = materials.get(token.secret);
        let before = earlier.iter().filter(|(own, _)| *own == token.secret);
        let all = now.into_iter().chain(before.map(|(_, material)| material));
        let values = all.filter_map(|material| value_of(token.role, material));
        values.flat_map(|value| forms::pairs(value.reveal(), token.text.as_bytes()))
    });
    Mask::new(pairs.collect())
}
