//! Requests that a client signed with keys that are placeholders: the signature
//! is checked, so that what is signed again is what the client signed, and made
//! anew with the real keys over what is sent. The secret half of a pair leaves
//! nowhere.

use http::header::{self, HeaderMap, HeaderValue};
use http::request;
use outgate_policy::SecretPosition;

use super::request::PlaceholderRequest;
use super::signature::{self, ALGORITHM, Signed, SigningKey, Spelling};
use super::value::{Material, SigningKeys};
use super::{Misuse, PlaceholderRole, PlaceholderToken, SessionSecrets, Why};
use crate::target::Target;

const TOKEN: &str = "x-amz-security-token";
const HASH: &str = "x-amz-content-sha256";

/// What a client signed.
#[derive(Debug)]
pub(crate) struct Signing {
    name: String,
    placeholder: String,
    keys: SigningKeys,
    scope: String,
    date: String,
    names: Vec<String>,
    signature: String,
    method: String,
    path: String,
    query: String,
    fields: Vec<(String, String)>,
    /// What the client says of the content; it is hashed where it says nothing.
    content: Option<String>,
}

/// The parts of `Authorization` (RFC 9110 11.6.2) in this scheme.
struct AuthorizationParts<'a> {
    id: &'a str,
    scope: &'a str,
    names: &'a str,
    signature: &'a str,
}

impl<'a> AuthorizationParts<'a> {
    fn of(value: &'a str) -> Option<Self> {
        let rest = value.strip_prefix(ALGORITHM)?;
        let find = |name: &str| {
            let mut parts = rest.split(',').map(str::trim);
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let (id, scope) = find("Credential")?.split_once('/')?;
        Some(Self {
            id,
            scope,
            names: find("SignedHeaders")?,
            signature: find("Signature")?,
        })
    }
}

impl SessionSecrets {
    /// The keys whose placeholder this is.
    fn keys(
        &self,
        id: &str,
        materials: &[Material],
    ) -> Option<(&PlaceholderToken, &str, SigningKeys)> {
        let own = |role| move |token: &&PlaceholderToken| token.role == role;
        let mut tokens = self.tokens.iter();
        let token = tokens.find(|token| own(PlaceholderRole::KeyId)(token) && token.text == id)?;
        let mut halves = self.tokens.iter().filter(own(PlaceholderRole::KeySecret));
        let half = halves.find(|half| half.secret == token.secret)?;
        match materials.get(token.secret)? {
            Material::Keys(keys) => Some((token, &half.text, keys.clone())),
            Material::Text(_) => None,
        }
    }
}

impl PlaceholderRequest<'_> {
    /// What was signed, if a field says so with keys that are placeholders.
    ///
    /// # Errors
    /// The keys are not for this request, or it cannot be signed again.
    pub(super) fn signing(
        &self,
        head: &request::Parts,
        target: &Target,
    ) -> Result<Option<Signing>, Misuse> {
        let value = head.headers.get(header::AUTHORIZATION);
        let Some(parts) = value.and_then(|value| AuthorizationParts::of(value.to_str().ok()?))
        else {
            return Ok(None);
        };
        let secrets = self.secrets;
        let Some((token, placeholder, keys)) = secrets.keys(parts.id, &self.current.materials)
        else {
            return Ok(None);
        };
        let stands = "field `authorization`";
        self.check(token, SecretPosition::Field("authorization"), stands)?;
        let malformed = || secrets.misplaced(token, stands, Why::Encoded);
        let names = signature::names(parts.names).ok_or_else(malformed)?;
        let date = head
            .headers
            .get("x-amz-date")
            .and_then(|date| date.to_str().ok());
        let date = date.ok_or_else(malformed)?;
        if !signature::is_scope(parts.scope)
            || !parts.scope.starts_with(date.get(..8).unwrap_or("-"))
        {
            return Err(malformed());
        }
        let content = head
            .headers
            .get(HASH)
            .map(|hash| hash.to_str().map(str::to_owned));
        let content = content.transpose().map_err(|_| malformed())?;
        if content
            .as_ref()
            .is_some_and(|hash| hash.starts_with("STREAMING-AWS4-"))
        {
            return Err(Misuse {
                because: format!(
                    "the content is signed in chunks with the placeholder of secret {}, and cannot \
                     be signed again; let the client sign it as a whole, or not at all",
                    secrets.name_of(token)
                ),
            });
        }
        let path = head.uri.path();
        Ok(Some(Signing {
            name: secrets.name_of(token).to_owned(),
            placeholder: placeholder.to_owned(),
            keys,
            scope: parts.scope.to_owned(),
            date: date.to_owned(),
            fields: signed_fields(&names, &head.headers, target),
            names,
            signature: parts.signature.to_owned(),
            method: head.method.as_str().to_owned(),
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content,
        }))
    }
}

/// The fields that are signed, as they are at this moment. `Host` is what the
/// request names, which in HTTP/2 is no field.
fn signed_fields(names: &[String], fields: &HeaderMap, target: &Target) -> Vec<(String, String)> {
    let one = |name: &String| {
        let values: Vec<&str> = fields
            .get_all(name.as_str())
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        match (name.as_str(), values.as_slice()) {
            ("host", []) => Some((name.clone(), target.authority())),
            (_, []) => None,
            (_, values) => Some((name.clone(), signature::field_value(values.iter().copied()))),
        }
    };
    names.iter().filter_map(one).collect()
}

impl Signing {
    /// Whether the content has to be read before it can be signed.
    pub(crate) fn needs_content(&self) -> bool {
        self.content.is_none()
    }

    /// The sentence for a request that is not signed again.
    pub(crate) fn not_here(&self) -> Misuse {
        Misuse {
            because: format!(
                "a stream that becomes a WebSocket is not signed again with secret {}",
                self.name
            ),
        }
    }

    /// The sentence for content that cannot be held until it is signed.
    pub(crate) fn too_long(&self) -> Misuse {
        Misuse {
            because: format!(
                "content to be signed with secret {} has no length, or over {} bytes, and no hash \
                 of its own",
                self.name,
                crate::limits::SECRET_SIGNED_BYTES_MAX
            ),
        }
    }

    /// Signs what is sent: `fields` are complete, `resource` is the request
    /// target, `content` all of it where it is needed.
    ///
    /// # Errors
    /// The client's own signature does not fit what it sent.
    pub(crate) fn sign(
        self,
        fields: &mut HeaderMap,
        (target, resource): (&Target, &str),
        content: &[u8],
    ) -> Result<(), Misuse> {
        let hash = match self.content {
            Some(hash) => hash,
            None => signature::content_hash(content),
        };
        let written = Signed {
            method: &self.method,
            path: &self.path,
            query: &self.query,
            fields: &self.fields,
            content: &hash,
        };
        let key = SigningKey::new(self.placeholder.as_bytes(), &self.scope);
        let spelling = Spelling::ALL.into_iter().find(|spelling| {
            let made = written.signature(*spelling, &self.date, &key);
            made == self.signature
        });
        let Some(spelling) = spelling else {
            let because = format!(
                "the signature with the placeholder of secret {} does not fit the request as it was \
                 sent",
                self.name
            );
            return Err(Misuse { because });
        };
        let (path, query) = resource.split_once('?').unwrap_or((resource, ""));
        let mut names = self.names;
        if let Some(session) = &self.keys.session {
            // Keys that became temporary since the command began.
            let token = HeaderValue::from_bytes(session.reveal());
            let mut token = token.map_err(|_| unfit(&self.name))?;
            token.set_sensitive(true);
            fields.insert(TOKEN, token);
            names.push(TOKEN.to_owned());
            names.sort();
            names.dedup();
        } else {
            fields.remove(TOKEN);
        }
        let sent = signed_fields(&names, fields, target);
        let anew = Signed {
            method: &self.method,
            path,
            query,
            fields: &sent,
            content: &hash,
        };
        let key = SigningKey::new(self.keys.secret.reveal(), &self.scope);
        let made = anew.signature(spelling, &self.date, &key);
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        let id = String::from_utf8_lossy(self.keys.id.reveal());
        let text = format!(
            "{ALGORITHM} Credential={id}/{}, SignedHeaders={}, Signature={made}",
            self.scope,
            names.join(";")
        );
        let mut value = HeaderValue::try_from(text).map_err(|_| unfit(&self.name))?;
        value.set_sensitive(true);
        fields.insert(header::AUTHORIZATION, value);
        Ok(())
    }
}

fn unfit(name: &str) -> Misuse {
    Misuse {
        because: format!("the keys of secret {name} cannot stand in a field"),
    }
}

/// Signs a request target that holds its signature (`X-Amz-Signature`) anew.
pub(super) struct Presigned<'a> {
    pub(super) secrets: &'a SessionSecrets,
    pub(super) materials: &'a [Material],
    pub(super) head: &'a request::Parts,
    pub(super) target: &'a Target,
}

impl Presigned<'_> {
    /// The query with keys and signature in the place of placeholders; `inserted`
    /// is the query with the keys alone. `None` where nothing was signed.
    pub(super) fn sign(&self, path: &str, inserted: &str) -> Result<Option<String>, Misuse> {
        let written = self.head.uri.query().unwrap_or_default();
        let find = |query: &str, name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(own, _)| *own == name)?.1;
            let bytes = super::forms::unescaped(value.as_bytes());
            String::from_utf8(bytes.iter().map(|one| one.byte).collect()).ok()
        };
        let Some(credential) = find(written, "X-Amz-Credential") else {
            return Ok(None);
        };
        let Some((id, scope)) = credential.split_once('/') else {
            return Ok(None);
        };
        let Some((token, placeholder, keys)) = self.secrets.keys(id, self.materials) else {
            return Ok(None);
        };
        let malformed = || self.secrets.misplaced(token, "the query", Why::Encoded);
        let get = |name| find(written, name).ok_or_else(malformed);
        let (date, names) = (get("X-Amz-Date")?, get("X-Amz-SignedHeaders")?);
        let signature = get("X-Amz-Signature")?;
        let names = signature::names(&names).ok_or_else(malformed)?;
        if get("X-Amz-Algorithm")? != ALGORITHM || !signature::is_scope(scope) {
            return Err(malformed());
        }
        let fields = signed_fields(&names, &self.head.headers, self.target);
        let said = self
            .head
            .headers
            .get(HASH)
            .and_then(|hash| hash.to_str().ok());
        let empty = signature::content_hash(b"");
        let without = |query: &str| -> String {
            let unsigned = query
                .split('&')
                .filter(|pair| !pair.starts_with("X-Amz-Signature="));
            unsigned.collect::<Vec<_>>().join("&")
        };
        let (before, after) = (without(written), without(inserted));
        let method = self.head.method.as_str();
        for content in said.into_iter().chain([signature::UNSIGNED, &empty]) {
            let signed = |path, query| Signed {
                method,
                path,
                query,
                fields: &fields,
                content,
            };
            let key = SigningKey::new(placeholder.as_bytes(), scope);
            for spelling in Spelling::ALL {
                let own = signed(self.head.uri.path(), &before).signature(spelling, &date, &key);
                if own == signature {
                    let key = SigningKey::new(keys.secret.reveal(), scope);
                    let made = signed(path, &after).signature(spelling, &date, &key);
                    return Ok(Some(format!("{after}&X-Amz-Signature={made}")));
                }
            }
        }
        Err(Misuse {
            because: format!(
                "the signature with the placeholder of secret {} does not fit the request as it was \
                 sent",
                self.secrets.name_of(token)
            ),
        })
    }
}
