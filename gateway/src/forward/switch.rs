//! Connections that stop being HTTP: both sides agreed to become a WebSocket, and
//! what follows is relayed, through the scan where there is one, for as long as
//! the rules in force allow it.

use std::sync::Arc;

use http::Response;
use http::header::{self, HeaderMap, HeaderValue};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Upgradable;
use crate::audit::Kind;
use crate::broker::{Veiled, Watched};
use crate::budget::Purse;
use crate::carrier::Upgrade;
use crate::content::Content;
use crate::decide;
use crate::fields;
use crate::flow::Flow;
use crate::origin::{Link, OriginError};
use crate::replay::Replay;
use crate::resolve::Pin;
use crate::target::Target;
use crate::tunnel;

/// Both sides agreed to become a WebSocket: relays what follows.
pub(super) fn switch(
    flow: &Arc<Flow>,
    (target, purse): (Target, Option<Purse>),
    mut response: Response<Incoming>,
    client: Upgradable,
) -> Result<Response<Content>, OriginError> {
    let agreed = response
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if target.upgrade() != Upgrade::WebSocket || !agreed {
        let what = "switched to a protocol nobody asked for".to_owned();
        return Err(OriginError::Protocol(target.origin(), what));
    }
    plain(flow, &target, response.headers())?;
    let origin = hyper::upgrade::on(&mut response);
    let (mut head, _) = response.into_parts();
    fields::strip_hop_by_hop(&mut head.headers);
    fields::strip_our_reason(&mut head.extensions);
    if let Some(mask) = flow.session().secrets().and_then(|own| own.mask()) {
        mask.fields(&mut head.headers);
        head.extensions.remove::<ReasonPhrase>();
    }
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
        converse(&task, (&target, purse), pin, ends).await;
    });
    Ok(Response::from_parts(head, Content::empty()))
}

/// Whether the messages of a WebSocket come as they are, where they have to be
/// looked into.
///
/// # Errors
/// The origin agreed to an extension, which could change them.
pub(crate) fn plain(flow: &Flow, target: &Target, fields: &HeaderMap) -> Result<(), OriginError> {
    let session = flow.session();
    let looked_into = session.scan(target.mode).is_some() || session.secrets().is_some();
    if looked_into && fields.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        let what = "agreed to an extension of WebSocket nobody asked for".to_owned();
        return Err(OriginError::Protocol(target.origin(), what));
    }
    Ok(())
}

/// The connection to an origin that is no longer HTTP's, and where it leads.
pub(crate) fn origin_of(upgraded: Upgraded) -> Option<(Replay<Link>, Pin)> {
    // Every connection that a request is sent over is a link.
    let parts = upgraded.downcast::<TokioIo<Link>>().ok()?;
    let origin = Replay::new(parts.read_buf, parts.io.into_inner());
    let pin = origin.stream().pin();
    Some((origin, pin))
}

/// Relays between two ends that agreed to become a WebSocket, as long as the
/// rules in force allow it.
pub(crate) async fn converse<C, O>(
    flow: &Arc<Flow>,
    (target, purse): (&Target, Option<Purse>),
    pin: Pin,
    (client, origin): (C, O),
) where
    C: AsyncRead + AsyncWrite + Unpin,
    O: AsyncRead + AsyncWrite + Unpin,
{
    let (session, process) = (flow.session(), flow.process());
    let still = || decide::still_requested(&session.rules(), process, target, pin);
    let relayed = async {
        let secrets = session.secrets();
        let secrets = secrets.and_then(|own| Some((own, own.mask()?)));
        let traffic = (&**flow.traffic(), purse.as_ref());
        let ended = session.ended();
        match (secrets, session.scan(target.mode)) {
            (None, None) => tunnel::relay(client, origin, traffic, ended).await,
            (None, Some(scan)) => {
                let client = scan.watched(client, (flow.caller(), target));
                tunnel::relay(client, origin, traffic, ended).await;
            }
            (Some((own, mask)), None) => {
                let client = Watched::new(client, own, flow.caller(), target);
                tunnel::relay(client, Veiled::new(origin, mask), traffic, ended).await;
            }
            (Some((own, mask)), Some(scan)) => {
                let client = Watched::new(client, own, flow.caller(), target);
                let client = scan.watched(client, (flow.caller(), target));
                tunnel::relay(client, Veiled::new(origin, mask), traffic, ended).await;
            }
        }
    };
    tokio::select! {
        () = relayed => {}
        refusal = session.current().revoked(still) => flow.caller().refuse(Kind::Request, &refusal),
    }
}
