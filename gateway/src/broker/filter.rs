//! Secrets as a filter: what stands for them is found in a head before any rule is asked, and
//! replaced as it is sent; what comes back is masked.

use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{request, response};
use hyper::ext::ReasonPhrase;
use outgate_policy::Permit;
use outgate_record::Reason;

use super::exchange::{coding, plain, restrict};
use super::mask::Masked;
use super::messages::{Veiled, WatchedMessages};
use super::request::Insertion;
use super::signing::Signing;
use super::{Misuse, SessionSecrets};
use crate::body::Stopped;
use crate::destination::Endpoint;
use crate::filter::{
    ContentFilter, FieldFilter, Filter, FilterFault, RelayEnds, RequestContext,
    ResponseContentKind, SentHead, Wording, no_extensions,
};
use crate::limits;
use crate::refusal::Refusal;

/// Why nothing goes on without values that have to be known.
const NOT_TO_BE_HAD: &str = "the secrets of this run are not to be had";

/// What puts the secrets of a session into a request.
pub(crate) fn filter(secrets: Option<&Arc<SessionSecrets>>) -> Option<Box<dyn Filter>> {
    Some(Box::new(SecretsFilter {
        secrets: Arc::clone(secrets?),
        insertion: Insertion::default(),
        signing: None,
    }))
}

#[derive(Debug)]
struct SecretsFilter {
    secrets: Arc<SessionSecrets>,
    /// What takes the place of placeholders in the head.
    insertion: Insertion,
    /// What is signed once the request is complete.
    signing: Option<Signing>,
}

impl SecretsFilter {
    fn guards(&self, request: &RequestContext) -> bool {
        let target = &request.target;
        self.secrets.guards(&target.host, target.port)
    }

    /// How much content is read whole before anything is sent.
    fn whole_bytes_max(&self) -> u64 {
        if self.signing.as_ref().is_some_and(Signing::needs_content) {
            limits::SECRET_SIGNED_BYTES_MAX
        } else {
            limits::SECRET_HELD_BYTES_MAX
        }
    }
}

impl Filter for SecretsFilter {
    fn malformed(&self, head: &request::Parts) -> Option<String> {
        self.secrets.seen(head).map(|misuse| misuse.because)
    }

    fn examine(
        &mut self,
        request: &RequestContext,
        head: &request::Parts,
    ) -> Result<Option<request::Parts>, Refusal> {
        let target = &request.target;
        let examined = self.secrets.examine(head, target, request.carrier);
        self.insertion = examined.map_err(|misuse| {
            let subject = format!("{} {}", target.method, target.origin());
            Refusal::own(Reason::Secret, &subject, &misuse.because)
        })?;
        // A placeholder looks like what it stands for, and is nothing. What stands
        // beside it is looked through like everything else.
        Ok(self.insertion.without_placeholders(head))
    }

    /// From here on the head holds what the command must not see.
    fn head(
        &mut self,
        request: &RequestContext,
        sent: &mut SentHead,
        _: &Permit,
    ) -> Result<(), FilterFault> {
        let insertion = std::mem::take(&mut self.insertion);
        let (resource, signing) = insertion.apply(&mut sent.head);
        match (signing, sent.wording) {
            (Some(signing), Wording::Gateway) => {
                let because = signing.not_here().because;
                let refusal = request.caller.misused(&request.target, &because);
                return Err(Stopped::refused(refusal).into());
            }
            (signing, _) => self.signing = signing,
        }
        if resource.is_some() {
            sent.resource = resource;
        }
        let fields = &mut sent.head.headers;
        if self.guards(request) {
            restrict(fields);
        }
        plain(fields);
        Ok(())
    }

    fn body(
        &mut self,
        request: &RequestContext,
        head: &request::Parts,
    ) -> Option<Box<dyn ContentFilter>> {
        let watch = self.secrets.watch(&head.headers, request);
        Some(Box::new(watch.reading_whole(self.whole_bytes_max())))
    }

    fn complete(
        &mut self,
        request: &RequestContext,
        (fields, resource): (&mut HeaderMap, &str),
        content: Option<&Bytes>,
    ) -> Result<(), FilterFault> {
        let Some(signing) = self.signing.take() else {
            return Ok(());
        };
        let signed = match content {
            None if signing.needs_content() => Err(signing.too_long()),
            content => {
                let content = content.map(Bytes::as_ref).unwrap_or_default();
                signing.sign(fields, (&request.target, resource), content)
            }
        };
        signed.map_err(|Misuse { because }| {
            let refusal = request.caller.misused(&request.target, &because);
            request.caller.tell(&refusal);
            Stopped::refused(refusal).into()
        })
    }

    fn interim(&self) -> Option<Arc<dyn FieldFilter>> {
        Some(match self.secrets.mask() {
            Some(mask) => mask,
            None => Arc::new(NoFields),
        })
    }

    /// No response from a host that secrets are bound to comes back that cannot be looked
    /// into.
    fn returned(
        &mut self,
        request: &RequestContext,
        head: &mut response::Parts,
        content: ResponseContentKind,
    ) -> Result<Option<Box<dyn ContentFilter>>, Refusal> {
        let target = &request.target;
        let is_guarded = self.guards(request);
        if is_guarded {
            let to = Endpoint {
                host: &target.host,
                port: target.port,
            };
            self.secrets.answered(to, head.status);
        }
        let refused = |because: &str| Refusal::own(Reason::Secret, &target.origin(), because);
        let mask = self.secrets.mask().ok_or_else(|| refused(NOT_TO_BE_HAD))?;
        mask.head(head);
        let masked = match coding(&head.headers) {
            Some(_) if is_guarded && content == ResponseContentKind::Some => {
                return Err(refused(
                    "the response is coded although it was not to be, and a secret in it could \
                     not be masked",
                ));
            }
            Some(_) => Masked::coded(mask, &head.headers, (&request.caller, target))
                .ok_or_else(|| refused("the response is coded and cannot be looked into"))?,
            None => Masked::new(mask),
        };
        Ok(Some(Box::new(masked)))
    }

    fn switched(&mut self, head: &mut response::Parts) -> Result<(), &'static str> {
        no_extensions(head)?;
        let mask = self.secrets.mask().ok_or(NOT_TO_BE_HAD)?;
        mask.fields(&mut head.headers);
        head.extensions.remove::<ReasonPhrase>();
        Ok(())
    }

    fn relayed(&mut self, request: &RequestContext, ends: RelayEnds) -> Result<RelayEnds, Stopped> {
        let mask = self.secrets.mask().ok_or(Stopped::Lost)?;
        let RelayEnds { client, origin } = ends;
        Ok(RelayEnds {
            client: Box::new(WatchedMessages::new(client, &self.secrets, request)),
            origin: Box::new(Veiled::new(origin, mask)),
        })
    }
}

/// Lets no field pass: nobody knows what may not stand in one.
#[derive(Debug)]
struct NoFields;

impl FieldFilter for NoFields {
    fn fields(&self, fields: &mut HeaderMap) {
        fields.clear();
    }
}
