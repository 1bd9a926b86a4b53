//! A permitted request to its origin and the response back (RFC 9110 7.6).
//! Spends the permit: nothing else sends a request. What is sent is what was
//! judged. Knows no policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version, request, response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use outgate_policy::Permit;

use crate::body::Inner;
use crate::broker::{self, Insertion, Mask, Masked, Misuse, Signing, Slot, Watch};
use crate::budget::{Purse, head_bytes};
use crate::carrier::Carrier;
use crate::carrier::Upgrade;
use crate::content::{Content, Held, RequestContent, ResponseContent};
use crate::fields;
use crate::flow::Flow;
use crate::followed::Leg;
use crate::limits;
use crate::origin::{self, Lease, OriginError, Outgoing};
use crate::overrides::Form;
use crate::refusal::Refusal;
use crate::scan::{Guard, Returns, Screened};
use crate::target::Target;

mod admitted;
mod switch;

pub(crate) use admitted::{Admitted, Upgradable, Wire};
use switch::switch;
pub(crate) use switch::{converse, origin_of, plain};

/// Sends the request and returns the response, content still to come.
pub(crate) async fn forward(
    flow: &Arc<Flow>,
    (wire, carrier): (&Wire, Carrier),
    admitted: Admitted,
) -> Result<Response<Content>, OriginError> {
    let Admitted {
        permit,
        target,
        mut head,
        content,
        insertion,
        upgrade,
        replies,
    } = admitted;
    let version = head.version;
    let secrets = flow.session().secrets();
    let guarded = secrets.is_some_and(|own| own.guards(&target.host, target.port));
    // From here on the head holds what the command must not see.
    let (resource, signing) = insertion.apply(&mut head);
    if guarded {
        broker::restrict(&mut head.headers);
    }
    if secrets.is_some() {
        broker::plain(&mut head.headers);
    }
    let resource = resource.as_deref().unwrap_or(target.resource.as_str());
    let purse = purse(flow, &permit, (&target, resource), (&head, &content))?;
    let (mut content, mut slots) = examined(flow, (&target, carrier), &head, content).await?;
    slots.budget = purse.as_ref().map(Purse::slot);
    content.purse.clone_from(&purse);
    let said = |error| slots.said(error);
    let content = (content, signing.as_ref());
    let made = request((&target, resource), carrier, head, content);
    let (mut request, request_complete) = made.await.map_err(said)?;
    if let Some(signing) = signing {
        sign(flow, (&target, resource), signing, &mut request)?;
    }
    // INVARIANT: the permit is spent here, on exactly this target.
    drop(permit);
    let outgoing = Outgoing {
        origins: flow.session().origins(),
        process: flow.process(),
        host: &target.host,
        port: target.port,
        carrier,
        request: request.map(Content::outbound),
        request_complete,
    };
    let (response, held) = match wire {
        Wire::Http1(leg) => {
            let mask = secrets.and_then(|own| own.mask());
            let (response, lease) = send(outgoing, (leg, mask), version).await.map_err(said)?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                return switch(flow, (target, purse), response, upgrade);
            }
            check_framing(&target, response.headers())?;
            (response.map(Inner::Http1), Held::Lease(lease))
        }
        Wire::Http2(streams) => {
            let counted = streams.count();
            if let Some(replies) = &replies {
                replies.mask(secrets.and_then(|own| own.mask()));
            }
            let sent = streams.send(outgoing, replies.as_ref()).await;
            (sent.map_err(said)?, Held::Stream(counted))
        }
    };
    returned(flow, &target, response, held)
}

/// What a request spends from, where the rule that permits it says how much may
/// leave: its head at once, and all of it only if it fits.
///
/// # Errors
/// Too little is left.
pub(crate) fn purse(
    flow: &Arc<Flow>,
    permit: &Permit,
    (target, resource): (&Target, &str),
    (head, content): (&request::Parts, &Inner),
) -> Result<Option<Purse>, OriginError> {
    let subject = format!("{} {}", target.method, target.origin());
    let budgets = flow.session().budgets();
    let Some(purse) = budgets.purse(flow.caller(), permit, (&target.host, &subject)) else {
        return Ok(None);
    };
    let bytes = head_bytes(head, resource);
    let content = content.size_hint().lower();
    let all = u64::try_from(bytes).map_or(u64::MAX, |bytes| bytes.saturating_add(content));
    purse.fits(all).map_err(OriginError::Denied)?;
    purse
        .spend(bytes)
        .map_err(|spent| OriginError::Content(spent.to_string()))?;
    Ok(Some(purse))
}

/// The response as it goes back.
pub(crate) fn returned(
    flow: &Flow,
    target: &Target,
    response: Response<Inner>,
    held: Held,
) -> Result<Response<Content>, OriginError> {
    let (mut head, content) = response.into_parts();
    fields::strip_hop_by_hop(&mut head.headers);
    fields::strip_our_reason(&mut head.extensions);
    fields::add_via(&mut head.headers, head.version);
    let to = (&target.host, target.port);
    let secrets = flow.session().secrets();
    let guard = secrets.filter(|own| own.guards(to.0, to.1));
    if let Some(guard) = guard {
        guard.answered(to, head.status);
    }
    let coded = if guard.is_some() && !content.is_end_stream() {
        Coded::Refused
    } else {
        Coded::Passed
    };
    let mut returns = Returns::of(flow.session().canaries(), flow.caller(), target.origin());
    if let Some(returns) = &mut returns {
        returns.head(&head.headers);
    }
    let masked = masked(flow, target, &mut head, coded)?;
    let content = Content::Response(ResponseContent {
        inner: content,
        traffic: Arc::clone(flow.traffic()),
        held: Some(held),
        during: None,
        masked,
        returns: returns.map(Box::new),
        trailers: None,
    });
    Ok(Response::from_parts(head, content))
}

/// Sends the request over HTTP/1.1, and interim responses back while it waits.
/// Clients before HTTP/1.1 know of none (RFC 9110 15.2).
async fn send(
    mut outgoing: Outgoing<'_>,
    (leg, mask): (&Arc<Leg>, Option<Arc<Mask>>),
    version: Version,
) -> Result<(Response<Incoming>, Lease), OriginError> {
    if version >= Version::HTTP_11 {
        let back = Arc::clone(leg);
        hyper::ext::on_informational(&mut outgoing.request, move |response| match &mask {
            None => back.interim.offer(response.status(), response.headers()),
            Some(mask) => {
                let mut fields = response.headers().clone();
                mask.fields(&mut fields);
                back.interim.offer(response.status(), &fields);
            }
        });
        leg.interim.begin();
    }
    let sent = origin::send(outgoing).await;
    leg.interim.end();
    sent
}

/// What happens to a response that cannot be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coded {
    Refused,
    Passed,
}

/// Puts what was prepared into the head of a request that becomes a WebSocket;
/// the result is the request target as it is sent.
pub(crate) fn insert(
    flow: &Flow,
    target: &Target,
    head: &mut request::Parts,
    insertion: Insertion,
) -> Result<String, OriginError> {
    let (resource, signing) = insertion.apply(head);
    if let Some(signing) = signing {
        let refusal = flow.caller().misused(target, &signing.not_here().because);
        return Err(OriginError::Misused(refusal));
    }
    let secrets = flow.session().secrets();
    if secrets.is_some_and(|own| own.guards(&target.host, target.port)) {
        broker::restrict(&mut head.headers);
    }
    if secrets.is_some() {
        broker::plain(&mut head.headers);
    }
    Ok(resource.unwrap_or_else(|| target.resource.as_str().to_owned()))
}

/// What masks values in a response: nothing without secrets, and no response
/// from a host they are bound to that cannot be looked into.
fn masked(
    flow: &Flow,
    target: &Target,
    head: &mut response::Parts,
    coded: Coded,
) -> Result<Option<Box<Masked>>, OriginError> {
    let Some(secrets) = flow.session().secrets() else {
        return Ok(None);
    };
    let refused = |because: &str| {
        let subject = target.origin();
        OriginError::Denied(Refusal::own("secret", &subject, because))
    };
    let Some(mask) = secrets.mask() else {
        return Err(refused("the secrets of this run are not to be had"));
    };
    mask.fields(&mut head.headers);
    if let Some(phrase) = head.extensions.get::<ReasonPhrase>()
        && mask.sees(phrase.as_bytes())
    {
        head.extensions.remove::<ReasonPhrase>();
    }
    match broker::coding(&head.headers) {
        Some(_) if coded == Coded::Refused => Err(refused(
            "the response is coded although it was not to be, and a secret in it could not be \
             masked",
        )),
        Some(_) => match Masked::coded(mask, &head.headers, (flow.caller(), target)) {
            Some(masked) => Ok(Some(Box::new(masked))),
            None => Err(refused("the response is coded and cannot be looked into")),
        },
        None => Ok(Some(Box::new(Masked::new(mask)))),
    }
}

/// Where it will be said why content may not go on.
#[derive(Debug, Default)]
struct Slots {
    scan: Option<Slot>,
    secrets: Option<Slot>,
    budget: Option<Slot>,
    form: Option<Slot>,
}

impl Slots {
    /// The error of a request, or what its content holds that was its cause.
    fn said(&self, error: OriginError) -> OriginError {
        let slots = [&self.scan, &self.secrets, &self.budget, &self.form];
        let slots = slots.into_iter().flatten();
        // It stays there: what was refused is no part of what comes later.
        let mut said = slots.filter_map(|slot| slot.lock().ok()?.clone());
        said.next().map_or(error, OriginError::Misused)
    }
}

/// The content as the scan and the secrets let it go on, its beginning read and
/// cleared.
async fn examined(
    flow: &Arc<Flow>,
    (target, carrier): (&Target, Carrier),
    head: &request::Parts,
    content: Inner,
) -> Result<(RequestContent, Slots), OriginError> {
    let mut slots = Slots::default();
    let scan = flow.session().scan(target.mode);
    let scan = scan.filter(|_| !content.is_end_stream());
    let guard = scan.map(|scan| scan.guard((flow.caller(), target), head));
    slots.scan = guard.as_ref().map(Guard::slot);
    let mut content = Screened::new(content, guard);
    if let Err(error) = content.read_ahead().await {
        return Err(slots.said(OriginError::Content(error.to_string())));
    }
    let mut content = RequestContent::new(content, Arc::clone(flow.traffic()));
    let secrets = flow.session().secrets();
    let watch = secrets.map(|own| own.watch(&head.headers, (flow.caller(), target), carrier));
    slots.secrets = watch.as_ref().map(Watch::misuse);
    content.watch = watch.map(Box::new);
    let form = Form::of(flow.caller(), target, head).filter(|_| !content.inner.is_end_stream());
    slots.form = form.as_ref().map(Form::slot);
    content.form = form.map(Box::new);
    Ok((content, slots))
}

/// Reads content whole that is short and may hold a placeholder or ask for another
/// method, so that a refusal comes before anything is sent.
async fn held(
    head: &mut request::Parts,
    mut content: RequestContent,
    max: u64,
) -> Result<Content, OriginError> {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let is_form = content.form.as_ref().is_some_and(|form| form.is_held());
    if content.watch.is_none() && !is_form {
        return Ok(Content::Request(content));
    }
    if length.is_some_and(|length| length <= max) {
        if let Some(form) = &mut content.form {
            form.hold();
        }
        let held = content.hold().await;
        let held = held.map_err(|error| OriginError::Content(error.to_string()))?;
        let length = held.data.as_ref().map_or(0, Bytes::len);
        head.headers.insert(header::CONTENT_LENGTH, length.into());
        return Ok(Content::Held(held));
    }
    if content.watch.as_ref().is_some_and(|watch| watch.replaces()) {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    Ok(Content::Request(content))
}

/// The request as it is sent, and whether all of it was.
async fn request(
    (target, resource): (&Target, &str),
    carrier: Carrier,
    mut head: request::Parts,
    (content, signing): (RequestContent, Option<&Signing>),
) -> Result<(Request<Content>, Arc<AtomicBool>), OriginError> {
    let trailers = fields::takes_trailers(&head.headers);
    fields::strip_hop_by_hop(&mut head.headers);
    let uri = name_target((target, resource), carrier, &mut head)?;
    head.headers.remove(header::EXPECT);
    fields::add_via(&mut head.headers, head.version);
    let complete = Arc::clone(&content.complete);
    let content = match target.upgrade() {
        Upgrade::WebSocket => {
            let fields = &mut head.headers;
            fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            Content::empty()
        }
        Upgrade::None => {
            if trailers {
                fields::welcome_trailers(&mut head.headers, head.version);
            }
            if complete.load(Ordering::Relaxed) {
                Content::empty()
            } else {
                let whole = signing.is_some_and(Signing::needs_content);
                let max = if whole {
                    limits::SECRET_SIGNED_BYTES_MAX
                } else {
                    limits::SECRET_HELD_BYTES_MAX
                };
                let content = held(&mut head, content, max).await?;
                fields::announce_content(&mut head.headers, head.version);
                content
            }
        }
    };
    if head.method == Method::OPTIONS {
        fields::count_down(&mut head.headers);
    }
    let mut request = Request::new(content);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = head.headers;
    Ok((request, complete))
}

/// Signs a request that is complete.
fn sign(
    flow: &Flow,
    to: (&Target, &str),
    signing: Signing,
    request: &mut Request<Content>,
) -> Result<(), OriginError> {
    let misused = |misuse: &Misuse| {
        let refusal = flow.caller().misused(to.0, &misuse.because);
        flow.caller().tell(&refusal);
        OriginError::Misused(refusal)
    };
    let content = match request.body() {
        Content::Own(None) => Bytes::new(),
        Content::Held(held) => held.data.clone().unwrap_or_default(),
        _ if signing.needs_content() => {
            return Err(misused(&signing.too_long()));
        }
        _ => Bytes::new(),
    };
    let signed = signing.sign(request.headers_mut(), to, &content);
    signed.map_err(|misuse| misused(&misuse))
}

/// Where a version names the target of a request: `Host` and the path, or
/// all of it in one (RFC 9112 3.2.1, RFC 9113 8.3.1).
fn name_target(
    (target, resource): (&Target, &str),
    carrier: Carrier,
    head: &mut request::Parts,
) -> Result<Uri, OriginError> {
    let invalid = |what: &str| OriginError::Protocol(target.origin(), what.to_owned());
    let authority = carrier.authority(&target.host, target.port);
    if head.version < Version::HTTP_2 {
        let host = HeaderValue::try_from(authority)
            .map_err(|_| invalid("the authority cannot be sent"))?;
        head.headers.insert(header::HOST, host);
        return Uri::try_from(resource).map_err(|_| invalid("the request target cannot be sent"));
    }
    head.headers.remove(header::HOST);
    Uri::builder()
        .scheme(target.scheme.as_str())
        .authority(authority)
        .path_and_query(resource)
        .build()
        .map_err(|_| invalid("the request target cannot be sent"))
}

/// A response whose end has two readings is an origin's fault.
fn check_framing(target: &Target, fields: &HeaderMap) -> Result<(), OriginError> {
    let codings: Vec<_> = fields.get_all(header::TRANSFER_ENCODING).iter().collect();
    let lengths = fields.get_all(header::CONTENT_LENGTH).iter().count();
    let chunked = match codings.as_slice() {
        [] => false,
        [one] if one.as_bytes().eq_ignore_ascii_case(b"chunked") => true,
        _ => {
            let what = "response with a Transfer-Encoding other than `chunked`".to_owned();
            return Err(OriginError::Protocol(target.origin(), what));
        }
    };
    if lengths > 1 || chunked && lengths > 0 {
        let what = "response with more than one length".to_owned();
        return Err(OriginError::Protocol(target.origin(), what));
    }
    Ok(())
}
