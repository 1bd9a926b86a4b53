//! A request's head: finds placeholders, and prepares what stands in their
//! place. Judging and recording see the head as the command wrote it; what is
//! prepared here is put in at the moment of sending and nowhere else.

use std::borrow::Cow;

use http::header::{self, HeaderName, HeaderValue};
use http::request;
use outgate_policy::{Misplaced, SecretPosition};

use super::forms::{self, Escape, Unescaped};
use super::search::TextSearch;
use super::signing::{Presigned, Signing};
use super::{
    CurrentSecrets, Misuse, PlaceholderRole, PlaceholderToken, SessionSecrets, Why, value_of,
};
use crate::carrier::Carrier;
use crate::target::Target;

/// What stands for a placeholder where its surroundings are looked through: part
/// of no credential.
const GAP: &[u8] = b" ";

/// What goes into a request in the place of placeholders.
#[derive(Debug, Default)]
pub(crate) struct Insertion {
    fields: Vec<Field>,
    resource: Option<String>,
    signing: Option<Signing>,
}

/// A field that something is put into.
#[derive(Debug)]
struct Field {
    name: HeaderName,
    before: HeaderValue,
    after: HeaderValue,
    /// What is the command's own in it.
    own: HeaderValue,
}

impl Field {
    fn is(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        self.name == *name && self.before == *value
    }
}

impl Insertion {
    /// The head without the placeholders in its fields; `None` where there are
    /// none.
    pub(crate) fn without_placeholders(&self, head: &request::Parts) -> Option<request::Parts> {
        if self.fields.is_empty() {
            return None;
        }
        let mut head = head.clone();
        for (name, value) in &mut head.headers {
            if let Some(field) = self.fields.iter().find(|field| field.is(name, value)) {
                value.clone_from(&field.own);
            }
        }
        Some(head)
    }

    /// Puts it in: the fields in their place. The result is the request target,
    /// if it changes, and what has to be signed once the request is complete.
    ///
    /// INVARIANT: the fields of `head` are those that were examined.
    pub(crate) fn apply(self, head: &mut request::Parts) -> (Option<String>, Option<Signing>) {
        for field in self.fields {
            for (name, value) in &mut head.headers {
                if field.is(name, value) {
                    value.clone_from(&field.after);
                }
            }
        }
        (self.resource, self.signing)
    }
}

impl SessionSecrets {
    /// Finds every placeholder of a request's head, and what goes in its place.
    ///
    /// # Errors
    /// One stands where its secret may not go.
    pub(crate) fn examine(
        &self,
        head: &request::Parts,
        target: &Target,
        carrier: Carrier,
    ) -> Result<Insertion, Misuse> {
        let Some(current) = self.current() else {
            let because = "the secrets of this run are not to be had".to_owned();
            return Err(Misuse { because });
        };
        let place = PlaceholderRequest {
            secrets: self,
            current: &current,
            target,
            carrier,
        };
        let mut insertion = Insertion {
            signing: place.signing(head, target)?,
            ..Insertion::default()
        };
        for (name, before) in &head.headers {
            if *name == header::AUTHORIZATION && insertion.signing.is_some() {
                continue;
            }
            insertion.fields.extend(place.field(name, before)?);
        }
        let resource = &target.resource;
        let path = place.escaped(SecretPosition::Path, resource.path())?;
        let query = resource.query();
        let query = query
            .map(|query| place.escaped(SecretPosition::Query, query))
            .transpose()?;
        let changed = |part: &Cow<'_, str>| matches!(part, Cow::Owned(_));
        let presigned = Presigned {
            secrets: self,
            materials: &current.materials,
            head,
            target,
        };
        let query = match query {
            Some(query) if changed(&query) => {
                let signed = presigned.sign(&path, &query)?;
                let written = resource.query().unwrap_or_default();
                if signed.is_none()
                    && let Some(key) = self.token_in(written.as_bytes())
                    && key.role != PlaceholderRole::Text
                {
                    return Err(self.misplaced(key, "the query", Why::Encoded));
                }
                Some(signed.map_or(query, Cow::Owned))
            }
            query => query,
        };
        if changed(&path) || query.as_ref().is_some_and(changed) {
            insertion.resource = Some(match query {
                Some(query) => format!("{path}?{query}"),
                None => path.into_owned(),
            });
        }
        Ok(insertion)
    }

    /// The sentence for a placeholder in a head that has no target at all.
    pub(crate) fn seen(&self, head: &request::Parts) -> Option<Misuse> {
        let uri = head.uri.to_string();
        let fields = head.headers.values().map(HeaderValue::as_bytes);
        let mut texts = std::iter::once(uri.as_bytes()).chain(fields);
        let token = texts.find_map(|text| self.token_in(text))?;
        Some(self.misplaced(
            token,
            "a malformed request",
            Why::Misplaced(Misplaced::Host),
        ))
    }

    /// The first placeholder in a text, in any form.
    pub(super) fn token_in(&self, text: &[u8]) -> Option<&PlaceholderToken> {
        let direct = self.forms.find(text, 0).map(|hit| hit.index);
        let found = direct.or_else(|| {
            if !text.contains(&b'%') {
                return None;
            }
            let bytes: Vec<u8> = forms::unescaped(text).iter().map(|one| one.byte).collect();
            self.forms.find(&bytes, 0).map(|hit| hit.index)
        });
        let owner = self.owners.get(found?)?;
        self.tokens.get(*owner)
    }
}

/// A request that placeholders stand in.
pub(super) struct PlaceholderRequest<'a> {
    pub(super) secrets: &'a SessionSecrets,
    pub(super) current: &'a CurrentSecrets,
    target: &'a Target,
    carrier: Carrier,
}

impl PlaceholderRequest<'_> {
    /// A field with what is inserted; `None` where nothing is.
    fn field(&self, name: &HeaderName, before: &HeaderValue) -> Result<Option<Field>, Misuse> {
        let value = before.as_bytes();
        let Some(token) = self.secrets.token_in(value) else {
            return Ok(None);
        };
        let position = SecretPosition::Field(name.as_str());
        let stands = format!("field `{name}`");
        self.check(token, position, &stands)?;
        let (inserted, own) = match basic(value) {
            Some((scheme, inside)) => {
                let coded = |text: &[u8]| [scheme, &forms::base64(text)].concat();
                let (inserted, own) = self.replace(&inside, position, &stands)?;
                (coded(&inserted), coded(&own))
            }
            None => self.replace(value, position, &stands)?,
        };
        if let Some(left) = self.secrets.token_in(&inserted) {
            return Err(self.secrets.misplaced(left, &stands, Why::Encoded));
        }
        let made = |bytes: &[u8]| {
            HeaderValue::from_bytes(bytes).map_err(|_| Misuse {
                because: format!("a secret cannot stand in {stands}"),
            })
        };
        let mut after = made(&inserted)?;
        after.set_sensitive(true);
        Ok(Some(Field {
            name: name.clone(),
            before: before.clone(),
            after,
            own: made(&own)?,
        }))
    }

    /// A path or a query with what is inserted.
    fn escaped<'t>(
        &self,
        position: SecretPosition<'_>,
        text: &'t str,
    ) -> Result<Cow<'t, str>, Misuse> {
        let Some(token) = self.secrets.token_in(text.as_bytes()) else {
            return Ok(Cow::Borrowed(text));
        };
        let stands = match position {
            SecretPosition::Path => "the path",
            SecretPosition::Query | SecretPosition::Field(_) | SecretPosition::Content => {
                "the query"
            }
        };
        self.check(token, position, stands)?;
        let written = forms::unescaped(text.as_bytes());
        let bytes: Vec<u8> = written.iter().map(|one| one.byte).collect();
        let (mut out, mut from) = (Vec::new(), 0);
        for (token, range) in hits(&self.secrets.plain, self.secrets, &bytes) {
            self.check(token, position, stands)?;
            let start = written.get(range.start).map_or(text.len(), |one| one.start);
            let end = written.get(range.end.saturating_sub(1));
            let end = end.map_or(text.len(), |one: &Unescaped| one.end);
            out.extend_from_slice(text.as_bytes().get(from..start).unwrap_or_default());
            out.extend_from_slice(&Escape::Percent.of(&self.value(token)?));
            from = end;
        }
        out.extend_from_slice(text.as_bytes().get(from..).unwrap_or_default());
        match (self.secrets.token_in(&out), String::from_utf8(out)) {
            (None, Ok(text)) => Ok(Cow::Owned(text)),
            _ => Err(self.secrets.misplaced(token, stands, Why::Encoded)),
        }
    }

    /// A text that is not escaped, with values in the place of its placeholders,
    /// and with gaps.
    fn replace(
        &self,
        text: &[u8],
        position: SecretPosition<'_>,
        stands: &str,
    ) -> Result<(Vec<u8>, Vec<u8>), Misuse> {
        let (mut inserted, mut own, mut from) = (Vec::new(), Vec::new(), 0);
        for (token, range) in hits(&self.secrets.plain, self.secrets, text) {
            self.check(token, position, stands)?;
            let between = text.get(from..range.start).unwrap_or_default();
            inserted.extend_from_slice(between);
            inserted.extend_from_slice(&self.value(token)?);
            own.extend_from_slice(between);
            own.extend_from_slice(GAP);
            from = range.end;
        }
        let rest = text.get(from..).unwrap_or_default();
        inserted.extend_from_slice(rest);
        own.extend_from_slice(rest);
        Ok((inserted, own))
    }

    pub(super) fn check(
        &self,
        token: &PlaceholderToken,
        position: SecretPosition<'_>,
        stands: &str,
    ) -> Result<(), Misuse> {
        let wrong = |why| Err(self.secrets.misplaced(token, stands, why));
        if token.role == PlaceholderRole::KeySecret {
            return wrong(Why::Never);
        }
        let Some(secret) = self.secrets.bound.get(token.secret) else {
            return wrong(Why::Never);
        };
        let (host, port) = (&self.target.host, self.target.port);
        if self.carrier == Carrier::Plain {
            return wrong(Why::Plain);
        }
        // Keys go where their algorithm has them, and nowhere else.
        let position = match (token.role, position) {
            (PlaceholderRole::Text | PlaceholderRole::KeySecret, position) => position,
            (
                PlaceholderRole::KeyId,
                SecretPosition::Field("authorization") | SecretPosition::Query,
            )
            | (
                PlaceholderRole::KeySession,
                SecretPosition::Field("x-amz-security-token") | SecretPosition::Query,
            ) => SecretPosition::Field("authorization"),
            (PlaceholderRole::KeyId | PlaceholderRole::KeySession, _) => {
                return wrong(Why::Encoded);
            }
        };
        match secret.may_enter((host, port), &self.target.resource, position) {
            Ok(()) => Ok(()),
            Err(misplaced) => wrong(Why::Misplaced(misplaced)),
        }
    }

    fn value(&self, token: &PlaceholderToken) -> Result<Vec<u8>, Misuse> {
        let material = self.current.materials.get(token.secret);
        let value = material.and_then(|material| value_of(token.role, material));
        match value {
            Some(value) => Ok(value.reveal().to_vec()),
            None => Err(Misuse {
                because: "the value of a secret is not to be had".to_owned(),
            }),
        }
    }
}

/// Each placeholder in a text, and where it stands.
fn hits<'s>(
    search: &TextSearch,
    secrets: &'s SessionSecrets,
    text: &[u8],
) -> Vec<(&'s PlaceholderToken, std::ops::Range<usize>)> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(hit) = search.find(text, at) {
        at = hit.range.end;
        found.extend(
            secrets
                .tokens
                .get(hit.index)
                .map(|token| (token, hit.range)),
        );
    }
    found
}

/// The scheme of Basic credentials with the space behind it, and what they say
/// (RFC 7617).
fn basic(value: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = value.split_at_checked(space + 1)?;
    if !scheme.trim_ascii_end().eq_ignore_ascii_case(b"basic") {
        return None;
    }
    Some((scheme, forms::from_base64(rest.trim_ascii())?))
}
