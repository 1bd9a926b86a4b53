//! A permitted request to its origin and the response back (RFC 9110 7.6), through the
//! filters of its session. Spends the permit: nothing else sends a request. What is sent is
//! what was judged. Knows no policy and no filter.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version, request};
use http_body::Body;
use hyper::body::Incoming;

use crate::body::Inner;
use crate::carrier::Upgrade;
use crate::content::{HeldUntilRead, MessageContent, RequestContent, ResponseContent};
use crate::fields;
use crate::filter::{
    FieldFilter as _, FilterChain, InterimFilters, RequestContext, ResponseContentKind, SentHead,
    Wording,
};
use crate::flow::Flow;
use crate::followed::ConnectionState;
use crate::origin::{self, Lease, OriginError, Outgoing};
use crate::target::Target;

mod admitted;
mod switch;

pub(crate) use admitted::{Admitted, Upgradable, Wire};
use switch::switch;
pub(crate) use switch::{converse, origin_of};

/// Sends the request and returns the response, content still to come.
pub(crate) async fn forward(
    flow: &Arc<Flow>,
    wire: &Wire,
    admitted: Admitted,
) -> Result<Response<MessageContent>, OriginError> {
    let Admitted {
        permit,
        request: context,
        mut filters,
        head,
        content,
        upgrade,
        replies,
    } = admitted;
    let version = head.version;
    let mut sent = SentHead::new(head, Wording::Client, content.size_hint().lower());
    filters.head(&context, &mut sent, &permit)?;
    let (content, looks) = filters.body(&context, &sent.head, content).await?;
    let content = RequestContent::new(content, looks, Arc::clone(flow.traffic()));
    let request_complete = Arc::clone(content.complete());
    let resource = sent.resource(&context.target).to_owned();
    let mut request = request((&context, &resource), sent.head, content).await?;
    complete(&context, &mut filters, (&mut request, &resource))?;
    let outgoing = Outgoing {
        origins: flow.session().origins(),
        process: flow.process(),
        host: &context.target.host,
        port: context.target.port,
        carrier: context.carrier,
        request: request.map(MessageContent::outbound),
        request_complete,
        permit,
    };
    let (response, held) = match wire {
        Wire::Http1(state) => {
            let (response, lease) = send(outgoing, (state, filters.interim()), version).await?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                return switch(flow, (context, filters), response, upgrade);
            }
            check_framing(&context.target, response.headers())?;
            (response.map(Inner::Http1), HeldUntilRead::Lease(lease))
        }
        Wire::Http2(streams) => {
            let counted = streams.count();
            if let Some(replies) = &replies {
                replies.filter(filters.interim());
            }
            let sent = streams.send(outgoing, replies.as_ref()).await;
            (sent?, HeldUntilRead::Stream(counted))
        }
    };
    returned(flow, (&context, &mut filters), response, held)
}

/// The response as it goes back.
pub(crate) fn returned(
    flow: &Flow,
    (context, filters): (&RequestContext, &mut FilterChain),
    response: Response<Inner>,
    held: HeldUntilRead,
) -> Result<Response<MessageContent>, OriginError> {
    let (mut head, content) = response.into_parts();
    fields::strip_hop_by_hop(&mut head.headers);
    fields::strip_our_reason(&mut head.extensions);
    fields::add_via(&mut head.headers, head.version);
    let kind = if content.is_end_stream() {
        ResponseContentKind::None
    } else {
        ResponseContentKind::Some
    };
    let looks = filters.returned(context, &mut head, kind);
    let looks = looks.map_err(OriginError::Denied)?;
    let content = ResponseContent::new(content, looks, (flow.traffic(), held));
    Ok(Response::from_parts(
        head,
        MessageContent::Response(content),
    ))
}

/// Sends the request over HTTP/1.1, and interim responses back while it waits.
/// Clients before HTTP/1.1 know of none (RFC 9110 15.2).
async fn send(
    mut outgoing: Outgoing<'_>,
    (state, filters): (&Arc<ConnectionState>, InterimFilters),
    version: Version,
) -> Result<(Response<Incoming>, Lease), OriginError> {
    if version >= Version::HTTP_11 {
        let back = Arc::clone(state);
        hyper::ext::on_informational(&mut outgoing.request, move |response| {
            if filters.is_empty() {
                return back.interim.offer(response.status(), response.headers());
            }
            let mut fields = response.headers().clone();
            filters.fields(&mut fields);
            back.interim.offer(response.status(), &fields);
        });
        state.interim.begin();
    }
    let sent = origin::send(outgoing).await;
    state.interim.end();
    sent
}

/// Reads content whole that is short where a filter wants that, so that a refusal comes
/// before anything is sent.
async fn held(
    head: &mut request::Parts,
    content: RequestContent,
) -> Result<MessageContent, OriginError> {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let max = content.whole_bytes_max();
    if max > 0 && length.is_some_and(|length| length <= max) {
        let held = content.hold().await?;
        let length = held.data.as_ref().map_or(0, Bytes::len);
        head.headers.insert(header::CONTENT_LENGTH, length.into());
        return Ok(MessageContent::Held(held));
    }
    if content.replaces() {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    Ok(MessageContent::Request(content))
}

/// The request as it is sent.
async fn request(
    (context, resource): (&RequestContext, &str),
    mut head: request::Parts,
    content: RequestContent,
) -> Result<Request<MessageContent>, OriginError> {
    let trailers = fields::takes_trailers(&head.headers);
    fields::strip_hop_by_hop(&mut head.headers);
    let uri = name_target((context, resource), &mut head)?;
    head.headers.remove(header::EXPECT);
    fields::add_via(&mut head.headers, head.version);
    let content = match context.target.upgrade() {
        Upgrade::WebSocket => {
            let fields = &mut head.headers;
            fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            MessageContent::empty()
        }
        Upgrade::None => {
            if trailers {
                fields::welcome_trailers(&mut head.headers, head.version);
            }
            if content.complete().load(Ordering::Relaxed) {
                MessageContent::empty()
            } else {
                let content = held(&mut head, content).await?;
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
    Ok(request)
}

/// Shows the filters a request all of which is there.
fn complete(
    context: &RequestContext,
    filters: &mut FilterChain,
    (request, resource): (&mut Request<MessageContent>, &str),
) -> Result<(), OriginError> {
    let content = match request.body() {
        MessageContent::Own(None) => Some(Bytes::new()),
        MessageContent::Held(held) => Some(held.data.clone().unwrap_or_default()),
        MessageContent::Own(Some(_)) | MessageContent::Request(_) | MessageContent::Response(_) => {
            None
        }
    };
    let sent = (request.headers_mut(), resource);
    filters.complete(context, sent, content.as_ref())?;
    Ok(())
}

/// Where a version names the target of a request: `Host` and the path, or
/// all of it in one (RFC 9112 3.2.1, RFC 9113 8.3.1).
fn name_target(
    (context, resource): (&RequestContext, &str),
    head: &mut request::Parts,
) -> Result<Uri, OriginError> {
    let (target, carrier) = (&context.target, context.carrier);
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
