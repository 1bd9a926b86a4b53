//! A permitted request to its origin and the response back (RFC 9110 7.6).
//! Spends the permit: nothing else sends a request. What is sent is what was
//! judged. Knows no policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use outgate_policy::Permit;

use crate::content::{Content, RequestContent, ResponseContent};
use crate::fields;
use crate::flow::Flow;
use crate::limits;
use crate::origin::{self, OriginError, Outgoing};
use crate::target::{Target, Upgrade, names_in};
use crate::tunnel;

/// What this program calls itself in `Via` (RFC 9110 7.6.3).
const PSEUDONYM: &str = "outgate";

/// A request with its own content and, for an upgrade, its connection.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) permit: Permit,
    pub(crate) target: Target,
    pub(crate) head: request::Parts,
    pub(crate) content: Incoming,
    pub(crate) upgrade: OnUpgrade,
}

/// Sends the request and returns the response, content still to come.
pub(crate) async fn forward(
    flow: &Arc<Flow>,
    admitted: Admitted,
) -> Result<Response<Content>, OriginError> {
    let Admitted {
        permit,
        target,
        head,
        content,
        upgrade,
    } = admitted;
    let (request, request_complete) = request(flow, &target, head, content)?;
    // INVARIANT: the permit is spent here, on exactly this target.
    drop(permit);
    let outgoing = Outgoing {
        session: flow.session(),
        process: flow.process(),
        host: &target.host,
        port: target.port,
        request,
        request_complete,
    };
    let (response, lease) = origin::send(outgoing).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return switch(flow, &target, response, upgrade);
    }
    check_framing(&target, response.headers())?;
    let (mut head, content) = response.into_parts();
    fields::strip_hop_by_hop(&mut head.headers);
    let content = Content::Response(ResponseContent {
        inner: content,
        traffic: Arc::clone(flow.traffic()),
        lease: Some(lease),
    });
    Ok(Response::from_parts(head, content))
}

/// The request as it is sent, and whether all of it was.
fn request(
    flow: &Flow,
    target: &Target,
    mut head: request::Parts,
    content: Incoming,
) -> Result<(Request<Content>, Arc<AtomicBool>), OriginError> {
    let invalid = |what: &str| OriginError::Protocol(target.origin(), what.to_owned());
    let uri = Uri::try_from(target.resource.as_str())
        .map_err(|_| invalid("the request target cannot be sent"))?;
    let host = HeaderValue::try_from(target.authority())
        .map_err(|_| invalid("the authority cannot be sent"))?;
    let trailers = fields::takes_trailers(&head.headers);
    fields::strip_hop_by_hop(&mut head.headers);
    head.headers.insert(header::HOST, host);
    head.headers.remove(header::EXPECT);
    add_via(&mut head.headers);
    let content = RequestContent::new(content, Arc::clone(flow.traffic()));
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
                fields::welcome_trailers(&mut head.headers);
            }
            if complete.load(Ordering::Relaxed) {
                Content::empty()
            } else {
                Content::Request(content)
            }
        }
    };
    if head.method == Method::OPTIONS {
        count_down(&mut head.headers);
    }
    let mut request = Request::new(content);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = head.headers;
    Ok((request, complete))
}

fn add_via(fields: &mut HeaderMap) {
    let own = HeaderValue::from_static("1.1 outgate");
    fields.append(header::VIA, own);
}

/// Whether a request went through here too often to be on its way.
pub(crate) fn goes_in_circles(fields: &HeaderMap) -> bool {
    let own = names_in(fields, &header::VIA)
        .filter(|entry| entry.split_ascii_whitespace().nth(1) == Some(PSEUDONYM))
        .count();
    own >= limits::VIA_MAX
}

/// `Max-Forwards` of a request that may be answered on its way
/// (RFC 9110 7.6.2): `None` without one, or with one that is no number.
pub(crate) fn forwards_left(fields: &HeaderMap) -> Option<u64> {
    fields
        .get(header::MAX_FORWARDS)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn count_down(fields: &mut HeaderMap) {
    if let Some(left) = forwards_left(fields) {
        let next = HeaderValue::from(left.saturating_sub(1));
        fields.insert(header::MAX_FORWARDS, next);
    }
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

/// Both sides agreed to become a WebSocket: relays what follows.
fn switch(
    flow: &Arc<Flow>,
    target: &Target,
    mut response: Response<Incoming>,
    client: OnUpgrade,
) -> Result<Response<Content>, OriginError> {
    let agreed = response
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if target.upgrade() != Upgrade::WebSocket || !agreed {
        let what = "switched to a protocol nobody asked for".to_owned();
        return Err(OriginError::Protocol(target.origin(), what));
    }
    let origin = hyper::upgrade::on(&mut response);
    let (mut head, _) = response.into_parts();
    fields::strip_hop_by_hop(&mut head.headers);
    let fields = &mut head.headers;
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let task = Arc::clone(flow);
    flow.session().spawn(async move {
        let (Ok(client), Ok(origin)) = (client.await, origin.await) else {
            return;
        };
        let (client, origin) = (TokioIo::new(client), TokioIo::new(origin));
        tunnel::relay(client, origin, task.traffic(), task.session().ended()).await;
    });
    Ok(Response::from_parts(head, Content::empty()))
}
