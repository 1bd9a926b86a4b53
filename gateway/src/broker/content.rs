//! A request's content on its way: placeholders are replaced where the policy
//! lets a secret into content, and end the request everywhere else. What may be
//! the beginning of one is held back. What is found is recorded here, since the
//! response may be under way by then.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use outgate_dlp::span;
use outgate_policy::SecretPosition;

use super::coded::CodedContent;
use super::forms::Escape;
use super::{Misuse, PlaceholderRole, SessionSecrets, Why, value_of};
use crate::body::Stopped;
use crate::carrier::Carrier;
use crate::filter::{ContentFilter, RequestContext, StreamEnd};

/// What happens to the placeholder of one secret.
#[derive(Debug)]
enum PlaceholderFate {
    Replaced(zeroize::Zeroizing<Vec<u8>>),
    Refused(Misuse),
}

/// Looks through the content of one request.
#[derive(Debug)]
pub(crate) struct ContentWatch {
    secrets: Arc<SessionSecrets>,
    /// By token.
    fates: Vec<PlaceholderFate>,
    /// What looks through content that is coded.
    coded: Option<CodedContent>,
    carry: BytesMut,
    /// The request whose content is looked through, for the record.
    request: RequestContext,
    whole_bytes_max: u64,
}

impl SessionSecrets {
    /// What looks through the content of a request.
    pub(crate) fn watch(
        self: &Arc<Self>,
        fields: &HeaderMap,
        request: &RequestContext,
    ) -> ContentWatch {
        let target = &request.target;
        let escape = escape(fields);
        let current = self.current();
        let fate = |token: &super::PlaceholderToken| {
            let why = match (self.bound.get(token.secret), escape) {
                _ if request.carrier == Carrier::Plain => Some(Why::Plain),
                _ if token.role == PlaceholderRole::KeySecret => Some(Why::Never),
                _ if token.role != PlaceholderRole::Text => Some(Why::Encoded),
                (None, _) | (_, None) => Some(Why::Encoded),
                (Some(secret), Some(_)) => {
                    let to = (&target.host, target.port);
                    let may = secret.may_enter(to, &target.resource, SecretPosition::Content);
                    may.err().map(Why::Misplaced)
                }
            };
            let current = current.as_ref().filter(|_| why.is_none());
            let material = current.and_then(|current| current.materials.get(token.secret));
            let value = material.and_then(|material| value_of(token.role, material));
            if let (Some(value), Some(escape)) = (value, escape) {
                return PlaceholderFate::Replaced(zeroize::Zeroizing::new(
                    escape.of(value.reveal()),
                ));
            }
            let why = why.unwrap_or(Why::Encoded);
            PlaceholderFate::Refused(self.misplaced(token, "the content", why))
        };
        ContentWatch {
            secrets: Arc::clone(self),
            fates: self.tokens.iter().map(fate).collect(),
            coded: CodedContent::new(&self.tokens, fields),
            carry: BytesMut::new(),
            request: request.clone(),
            whole_bytes_max: 0,
        }
    }
}

/// How a value is written into content of this type; `None` where it cannot.
fn escape(fields: &HeaderMap) -> Option<Escape> {
    let coding = fields.get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return None;
    }
    let kind = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let kind = kind
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    Some(match kind {
        b"application/x-www-form-urlencoded" => Escape::Percent,
        // Lengths and checksums inside would be wrong.
        kind if kind.starts_with(b"application/grpc") => return None,
        kind if kind.ends_with(b"/json") || kind.ends_with(b"+json") => Escape::Json,
        kind if kind.ends_with(b"/xml") || kind.ends_with(b"+xml") => Escape::Markup,
        _ => Escape::None,
    })
}

impl ContentFilter for ContentWatch {
    fn pass(&mut self, data: Bytes, last: StreamEnd) -> Result<Bytes, Stopped> {
        self.undo(&data, last)?;
        self.carry.extend_from_slice(&data);
        let secrets = Arc::clone(&self.secrets);
        let (mut out, mut at) = (BytesMut::new(), 0);
        let end = loop {
            let sure = match last {
                StreamEnd::Yes => self.carry.len(),
                StreamEnd::No => secrets.forms.undecided(&self.carry, at),
            };
            let hit = secrets.forms.find(&self.carry, at);
            let Some(hit) = hit.filter(|hit| hit.range.start < sure) else {
                break sure.max(at);
            };
            let owner = secrets.owners.get(hit.index).copied().unwrap_or(usize::MAX);
            let found = self.carry.get(hit.range.clone()).unwrap_or_default();
            let token = secrets.tokens.get(owner);
            let plain = token.is_some_and(|token| token.text.as_bytes() == found);
            match self.fates.get(owner) {
                Some(PlaceholderFate::Replaced(value)) if plain => {
                    out.extend_from_slice(span::within(&self.carry, at..hit.range.start));
                    out.extend_from_slice(value);
                }
                Some(PlaceholderFate::Refused(misuse)) => return Err(self.refuse(misuse)),
                Some(PlaceholderFate::Replaced(_)) | None => {
                    let misuse =
                        token.map(|token| secrets.misplaced(token, "the content", Why::Encoded));
                    let none = || Misuse {
                        because: "the content holds a placeholder".to_owned(),
                    };
                    return Err(self.refuse(&misuse.unwrap_or_else(none)));
                }
            }
            at = hit.range.end;
        };
        let rest = self.carry.split_to(end);
        if at == 0 {
            return Ok(rest.freeze());
        }
        out.extend_from_slice(span::from(&rest, at));
        Ok(out.freeze())
    }

    /// Trailers of the same request: no secret goes there.
    fn trailers(&mut self, fields: &mut HeaderMap) -> Result<(), Stopped> {
        for (name, value) in &*fields {
            if let Some(token) = self.secrets.token_in(value.as_bytes()) {
                let stands = format!("trailer `{name}`");
                let misuse = self.secrets.misplaced(token, &stands, Why::Encoded);
                return Err(self.refuse(&misuse));
            }
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.carry.len()
    }

    fn replaces(&self) -> bool {
        self.fates
            .iter()
            .any(|fate| matches!(fate, PlaceholderFate::Replaced(_)))
    }

    fn whole_bytes_max(&self) -> u64 {
        self.whole_bytes_max
    }
}

impl ContentWatch {
    /// The same of content that is read whole where it has at most so many bytes.
    pub(super) fn reading_whole(self, whole_bytes_max: u64) -> Self {
        Self {
            whole_bytes_max,
            ..self
        }
    }

    /// Looks through the next piece of coded content.
    fn undo(&mut self, data: &Bytes, last: StreamEnd) -> Result<(), Stopped> {
        let Some(coded) = &mut self.coded else {
            return Ok(());
        };
        let seen = coded.pass(data).or_else(|| match last {
            StreamEnd::Yes => coded.finish(),
            StreamEnd::No => None,
        });
        match seen.and_then(|token| self.fates.get(token)) {
            Some(PlaceholderFate::Refused(misuse)) => Err(self.refuse(misuse)),
            Some(PlaceholderFate::Replaced(_)) | None => Ok(()),
        }
    }

    fn refuse(&self, misuse: &Misuse) -> Stopped {
        let RequestContext { caller, target, .. } = &self.request;
        let refusal = caller.misused(target, &misuse.because);
        caller.tell(&refusal);
        Stopped::refused(refusal)
    }
}
