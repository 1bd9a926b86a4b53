//! A request's content on its way: placeholders are replaced where the policy
//! lets a secret into content, and end the request everywhere else. What may be
//! the beginning of one is held back. What is found is recorded here, since the
//! response may be under way by then.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use outgate_policy::Position;

use super::coded::Coded;
use super::forms::Escape;
use super::mask::Last;
use super::{Misuse, Role, Secrets, Why, value_of};
use crate::body::ContentError;
use crate::caller::Caller;
use crate::carrier::Carrier;
use crate::refusal::Refusal;
use crate::target::Target;

/// What happens to the placeholder of one secret.
#[derive(Debug)]
enum Fate {
    Replaced(zeroize::Zeroizing<Vec<u8>>),
    Refused(Misuse),
}

/// Looks through the content of one request.
#[derive(Debug)]
pub(crate) struct Watch {
    secrets: Arc<Secrets>,
    /// By token.
    fates: Vec<Fate>,
    /// What looks through content that is coded.
    coded: Option<Coded>,
    carry: BytesMut,
    finding: Finding,
    misuse: Slot,
}

/// Where it is said why content ended.
pub(crate) type Slot = Arc<Mutex<Option<Refusal>>>;

/// The request whose content is looked through, for the record.
#[derive(Debug)]
struct Finding {
    caller: Arc<Caller>,
    target: Target,
}

impl Secrets {
    /// What looks through the content of a request.
    pub(crate) fn watch(
        self: &Arc<Self>,
        fields: &HeaderMap,
        (caller, target): (&Arc<Caller>, &Target),
        carrier: Carrier,
    ) -> Watch {
        let escape = escape(fields);
        let current = self.current();
        let fate = |token: &super::Token| {
            let why = match (self.bound.get(token.secret), escape) {
                _ if carrier == Carrier::Plain => Some(Why::Plain),
                _ if token.role == Role::KeySecret => Some(Why::Never),
                _ if token.role != Role::Text => Some(Why::Encoded),
                (None, _) | (_, None) => Some(Why::Encoded),
                (Some(secret), Some(_)) => {
                    let to = (&target.host, target.port);
                    let may = secret.may_enter(to, &target.resource, Position::Content);
                    may.err().map(Why::Misplaced)
                }
            };
            let current = current.as_ref().filter(|_| why.is_none());
            let material = current.and_then(|current| current.materials.get(token.secret));
            let value = material.and_then(|material| value_of(token.role, material));
            if let (Some(value), Some(escape)) = (value, escape) {
                return Fate::Replaced(zeroize::Zeroizing::new(escape.of(value.reveal())));
            }
            let why = why.unwrap_or(Why::Encoded);
            Fate::Refused(self.misplaced(token, "the content", why))
        };
        Watch {
            secrets: Arc::clone(self),
            fates: self.tokens.iter().map(fate).collect(),
            coded: Coded::new(&self.tokens, fields),
            carry: BytesMut::new(),
            finding: Finding {
                caller: Arc::clone(caller),
                target: target.clone(),
            },
            misuse: Arc::default(),
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

impl Watch {
    /// Whether the content may become longer or shorter.
    pub(crate) fn replaces(&self) -> bool {
        self.fates
            .iter()
            .any(|fate| matches!(fate, Fate::Replaced(_)))
    }

    /// Where the misuse is said that ends the content.
    pub(crate) fn misuse(&self) -> Slot {
        Arc::clone(&self.misuse)
    }

    /// The next piece, as far as it is certain.
    pub(crate) fn pass(&mut self, data: &Bytes, last: Last) -> Result<Bytes, ContentError> {
        self.undo(data, last)?;
        self.carry.extend_from_slice(data);
        let secrets = Arc::clone(&self.secrets);
        let (mut out, mut at) = (BytesMut::new(), 0);
        let end = loop {
            let sure = match last {
                Last::Yes => self.carry.len(),
                Last::No => secrets.forms.undecided(&self.carry, at),
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
                Some(Fate::Replaced(value)) if plain => {
                    out.extend_from_slice(self.carry.get(at..hit.range.start).unwrap_or_default());
                    out.extend_from_slice(value);
                }
                Some(Fate::Refused(misuse)) => return Err(self.refuse(misuse)),
                Some(Fate::Replaced(_)) | None => {
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
        out.extend_from_slice(rest.get(at..).unwrap_or_default());
        Ok(out.freeze())
    }

    /// Looks through the next piece of coded content.
    fn undo(&mut self, data: &Bytes, last: Last) -> Result<(), ContentError> {
        let Some(coded) = &mut self.coded else {
            return Ok(());
        };
        let seen = coded.pass(data).or_else(|| match last {
            Last::Yes => coded.finish(),
            Last::No => None,
        });
        match seen.and_then(|token| self.fates.get(token)) {
            Some(Fate::Refused(misuse)) => Err(self.refuse(misuse)),
            Some(Fate::Replaced(_)) | None => Ok(()),
        }
    }

    /// Trailers of the same request: no secret goes there.
    pub(crate) fn trailers(&self, fields: &HeaderMap) -> Result<(), ContentError> {
        for (name, value) in fields {
            if let Some(token) = self.secrets.token_in(value.as_bytes()) {
                let stands = format!("trailer `{name}`");
                let misuse = self.secrets.misplaced(token, &stands, Why::Encoded);
                return Err(self.refuse(&misuse));
            }
        }
        Ok(())
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.carry.len()
    }

    fn refuse(&self, misuse: &Misuse) -> ContentError {
        let Finding { caller, target } = &self.finding;
        let refusal = caller.misused(target, &misuse.because);
        caller.tell(&refusal);
        if let Ok(mut slot) = self.misuse.lock() {
            slot.get_or_insert(refusal);
        }
        ContentError::Misused
    }
}
