//! A WebSocket that a client asked for on a stream of HTTP/2 (RFC 8441): joined
//! to a stream of the origin where the origin takes that, else to a connection
//! of HTTP/1.1, which is asked in the older words (RFC 6455 4). What was judged
//! is the same request in both.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::body::{Inner, Outbound, ReceivedContent};
use crate::carrier::Carrier;
use crate::carrier::Upgrade;
use crate::content::{HeldUntilRead, MessageContent};
use crate::duplex::Duplex;
use crate::fields;
use crate::filter::{FilterChain, RequestContext, SentHead, Wording};
use crate::flow::Flow;
use crate::forward::{self, Admitted, converse, origin_of};
use crate::origin::{self, Counted, OriginError, Outgoing, Streams};
use crate::resolve::ResolvedPin;
use crate::target::Target;

const KEY: HeaderName = header::SEC_WEBSOCKET_KEY;
const ACCEPT: HeaderName = header::SEC_WEBSOCKET_ACCEPT;

/// What a key is hashed with (RFC 6455 1.3).
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The client's side, once it has its answer.
type Client = oneshot::Receiver<Duplex>;

/// Joins a permitted request to its origin.
pub(crate) async fn join(
    flow: &Arc<Flow>,
    streams: &Arc<Streams>,
    admitted: Admitted,
    client: Client,
) -> Result<Response<MessageContent>, OriginError> {
    let Admitted {
        permit,
        request: context,
        mut filters,
        head,
        ..
    } = admitted;
    let mut sent = SentHead::new(head, Wording::Gateway, 0);
    filters.head(&context, &mut sent, &permit)?;
    let (target, carrier) = (&context.target, context.carrier);
    let resource = sent.resource(target).to_owned();
    let head = sent.head;
    let mut asked = head.headers;
    fields::strip_hop_by_hop(&mut asked);
    for name in [header::HOST, header::EXPECT, header::CONTENT_LENGTH, KEY] {
        asked.remove(name);
    }
    fields::add_via(&mut asked, head.version);
    let outgoing = Outgoing {
        origins: flow.session().origins(),
        process: flow.process(),
        host: &target.host,
        port: target.port,
        carrier,
        request: Request::new(Outbound::None),
        request_complete: Arc::new(AtomicBool::new(true)),
        permit,
    };
    let joint = Joint {
        flow,
        context: &context,
        filters,
        resource: &resource,
        client,
    };
    // Its connection is in use as long as it lasts.
    let counted = streams.count();
    match streams.conversing(&outgoing).await {
        Ok(Some((sender, pin))) => {
            let request = extended((target, &resource), carrier, asked)?;
            joint.by_stream((sender, request), pin, counted).await
        }
        // It may still speak the other version.
        Ok(None) | Err(OriginError::Tls(..) | OriginError::Protocol(..)) => {
            joint.by_upgrade(outgoing, asked, counted).await
        }
        Err(error) => Err(error),
    }
}

/// What is to be joined.
struct Joint<'a> {
    flow: &'a Arc<Flow>,
    context: &'a RequestContext,
    filters: FilterChain,
    /// The request target as it is sent.
    resource: &'a str,
    client: Client,
}

impl Joint<'_> {
    /// To a stream of the origin.
    async fn by_stream(
        mut self,
        (mut sender, request): (h2::client::SendRequest<bytes::Bytes>, Request<()>),
        pin: ResolvedPin,
        counted: Counted,
    ) -> Result<Response<MessageContent>, OriginError> {
        let authority = self.context.target.origin();
        let failed = |error: h2::Error| origin::failed(authority.clone(), &error);
        let (answer, mut sent) = sender.send_request(request, false).map_err(failed)?;
        let (head, received) = answer.await.map_err(failed)?.into_parts();
        if head.status.is_success() {
            let joined = self.agreed(head.headers)?;
            self.spawn(pin, Duplex::new(sent, received), counted);
            return Ok(joined);
        }
        sent.send_data(bytes::Bytes::new(), true).ok();
        let content = Inner::Http2(ReceivedContent::new(received, &head.headers));
        let held = HeldUntilRead::Stream(counted);
        let response = Response::from_parts(head, content);
        forward::returned(self.flow, (self.context, &mut self.filters), response, held)
    }

    /// To a connection that is asked to become one.
    async fn by_upgrade(
        mut self,
        mut outgoing: Outgoing<'_>,
        mut asked: HeaderMap,
        counted: Counted,
    ) -> Result<Response<MessageContent>, OriginError> {
        let target = &self.context.target;
        let broken = |what: &str| OriginError::Protocol(target.origin(), what.to_owned());
        let key = key().ok_or_else(|| broken("no random numbers for a WebSocket's key"))?;
        let host = HeaderValue::try_from(target.authority());
        let host = host.map_err(|_| broken("the authority cannot be sent"))?;
        asked.insert(header::HOST, host);
        asked.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        asked.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        let version = HeaderValue::from_static("13");
        asked
            .entry(header::SEC_WEBSOCKET_VERSION)
            .or_insert(version);
        let value = HeaderValue::try_from(&key).map_err(|_| broken("the key cannot be sent"))?;
        asked.insert(KEY, value);
        let resource = Uri::try_from(self.resource);
        *outgoing.request.uri_mut() =
            resource.map_err(|_| broken("the request target cannot be sent"))?;
        *outgoing.request.headers_mut() = asked;
        let sent = origin::send(outgoing).await.map_err(|error| match error {
            OriginError::Tls(_, why) => broken(&format!(
                "takes no WebSocket over HTTP/2 (RFC 8441), and HTTP/1.1 neither: {why}"
            )),
            other => other,
        });
        let (mut response, lease) = sent?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !accepts(response.headers(), &key) {
                return Err(broken("did not agree to a WebSocket as RFC 6455 says"));
            }
            return self.upgraded(&mut response, counted).await;
        }
        if response.status().is_success() {
            return Err(broken(
                "answered a request for a WebSocket with something else",
            ));
        }
        let response = response.map(Inner::Http1);
        let held = HeldUntilRead::Lease(lease);
        forward::returned(self.flow, (self.context, &mut self.filters), response, held)
    }

    async fn upgraded(
        mut self,
        response: &mut Response<Incoming>,
        counted: Counted,
    ) -> Result<Response<MessageContent>, OriginError> {
        let lost = || {
            let ended = "ended the connection".to_owned();
            OriginError::Protocol(self.context.target.origin(), ended)
        };
        let upgraded = hyper::upgrade::on(&mut *response)
            .await
            .map_err(|_| lost())?;
        let (origin, pin) = origin_of(upgraded).ok_or_else(lost)?;
        let fields = std::mem::take(response.headers_mut());
        let joined = self.agreed(fields)?;
        self.spawn(pin, origin, counted);
        Ok(joined)
    }

    /// The answer to the client: a stream needs no more than a status.
    fn agreed(&mut self, fields: HeaderMap) -> Result<Response<MessageContent>, OriginError> {
        let (mut head, content) = Response::new(MessageContent::empty()).into_parts();
        head.headers = fields;
        let switched = self.filters.switched(&mut head);
        switched
            .map_err(|what| OriginError::Protocol(self.context.target.origin(), what.to_owned()))?;
        fields::strip_hop_by_hop(&mut head.headers);
        for name in [ACCEPT, header::CONTENT_LENGTH] {
            head.headers.remove(name);
        }
        Ok(Response::from_parts(head, content))
    }

    /// Relays once the client has its answer.
    fn spawn(
        self,
        pin: ResolvedPin,
        origin: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        counted: Counted,
    ) {
        let (flow, context) = (Arc::clone(self.flow), self.context.clone());
        let (filters, client) = (self.filters, self.client);
        self.flow.session().tasks().spawn(async move {
            if let Ok(client) = client.await {
                converse(&flow, (&context, filters), pin, (client, origin)).await;
            }
            drop(counted);
        });
    }
}

/// The request on a stream (RFC 8441 4).
fn extended(
    (target, resource): (&Target, &str),
    carrier: Carrier,
    fields: HeaderMap,
) -> Result<Request<()>, OriginError> {
    let uri = Uri::builder()
        .scheme(carrier.scheme(Upgrade::None).as_str())
        .authority(target.authority())
        .path_and_query(resource)
        .build();
    let what = "the request target cannot be sent".to_owned();
    let uri = uri.map_err(|_| OriginError::Protocol(target.origin(), what))?;
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri;
    *request.headers_mut() = fields;
    let protocol = h2::ext::Protocol::from_static("websocket");
    request.extensions_mut().insert(protocol);
    Ok(request)
}

/// A fresh key.
fn key() -> Option<String> {
    let mut nonce = [0; 16];
    SystemRandom::new().fill(&mut nonce).ok()?;
    Some(STANDARD.encode(nonce))
}

/// Whether an origin agreed, and to this very key (RFC 6455 4.1).
fn accepts(fields: &HeaderMap, key: &str) -> bool {
    let hash = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{SUFFIX}").as_bytes(),
    );
    let expected = STANDARD.encode(hash.as_ref());
    let is = |name: HeaderName, value: &[u8]| {
        let found = fields.get(name).map(HeaderValue::as_bytes);
        found.is_some_and(|found| found.eq_ignore_ascii_case(value))
    };
    let accept = fields.get(ACCEPT).map(HeaderValue::as_bytes);
    is(header::UPGRADE, b"websocket") && accept == Some(expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_agrees_to_the_key_it_was_sent() {
        let fields = |accept: &str, upgrade: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            fields.insert(header::UPGRADE, HeaderValue::from_str(upgrade).unwrap());
            fields
        };
        // The example of RFC 6455 1.3.
        let (key, accept) = ("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(accepts(&fields(accept, "WebSocket"), key));
        assert!(!accepts(&fields(accept, "h2c"), key));
        assert!(!accepts(
            &fields(accept, "websocket"),
            "AAAAAAAAAAAAAAAAAAAAAA=="
        ));
        assert!(!accepts(&HeaderMap::new(), key));
        let (one, other) = (super::key().unwrap(), super::key().unwrap());
        assert_eq!(one.len(), 24);
        assert_ne!(one, other);
    }
}
