//! Connections that stop being HTTP: both sides agreed to become a WebSocket, and
//! what follows is relayed, through the filters of the request, for as long as the
//! rules in force allow it.

use std::sync::Arc;

use http::Response;
use http::header::{self, HeaderValue};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::Upgradable;
use crate::audit::Kind;
use crate::carrier::Upgrade;
use crate::content::MessageContent;
use crate::decide;
use crate::fields;
use crate::filter::{FilterChain, RelayEnd, RelayEnds, RequestContext};
use crate::flow::Flow;
use crate::origin::{OriginError, OriginLink};
use crate::replay::Replay;
use crate::resolve::ResolvedPin;
use crate::tunnel;

/// Both sides agreed to become a WebSocket: relays what follows.
pub(super) fn switch(
    flow: &Arc<Flow>,
    (context, mut filters): (RequestContext, FilterChain),
    mut response: Response<Incoming>,
    client: Upgradable,
) -> Result<Response<MessageContent>, OriginError> {
    let agreed = response
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let broken = |what: &str| OriginError::Protocol(context.target.origin(), what.to_owned());
    if context.target.upgrade() != Upgrade::WebSocket || !agreed {
        return Err(broken("switched to a protocol nobody asked for"));
    }
    let origin = hyper::upgrade::on(&mut response);
    let (mut head, _) = response.into_parts();
    filters.switched(&mut head).map_err(broken)?;
    fields::strip_hop_by_hop(&mut head.headers);
    fields::strip_our_reason(&mut head.extensions);
    let fields = &mut head.headers;
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let task = Arc::clone(flow);
    flow.session().tasks().spawn(async move {
        let Upgradable::Http1(client) = client else {
            return;
        };
        let (Ok(client), Ok(origin)) = (client.await, origin.await) else {
            return;
        };
        let Some((origin, pin)) = origin_of(origin) else {
            return;
        };
        let ends = (TokioIo::new(client), origin);
        converse(&task, (&context, filters), pin, ends).await;
    });
    Ok(Response::from_parts(head, MessageContent::empty()))
}

/// The connection to an origin that is no longer HTTP's, and where it leads.
pub(crate) fn origin_of(upgraded: Upgraded) -> Option<(Replay<OriginLink>, ResolvedPin)> {
    // Every connection that a request is sent over is a link.
    let parts = upgraded.downcast::<TokioIo<OriginLink>>().ok()?;
    let origin = Replay::new(parts.read_buf, parts.io.into_inner());
    let pin = origin.stream().pin();
    Some((origin, pin))
}

/// Relays between two ends that agreed to become a WebSocket, as long as the
/// rules in force allow it.
pub(crate) async fn converse<C, O>(
    flow: &Arc<Flow>,
    (context, mut filters): (&RequestContext, FilterChain),
    pin: ResolvedPin,
    (client, origin): (C, O),
) where
    C: RelayEnd + 'static,
    O: RelayEnd + 'static,
{
    let (session, process) = (flow.session(), flow.process());
    let still = || decide::still_requested(&session.rules(), process, &context.target, pin);
    let ends = RelayEnds {
        client: Box::new(client),
        origin: Box::new(origin),
    };
    let Ok(RelayEnds { client, origin }) = filters.relayed(context, ends) else {
        return;
    };
    let relayed = tunnel::relay(client, origin, flow.traffic(), session.ended());
    tokio::select! {
        () = relayed => {}
        refusal = session.current().revoked(still) => flow.caller().refuse(Kind::Request, &refusal),
    }
}
