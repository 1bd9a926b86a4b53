//! A request that is permitted, with all that forwarding it takes.

use std::sync::Arc;

use http::request;
use hyper::upgrade::OnUpgrade;
use outgate_policy::Permit;
use tokio::sync::oneshot;

use crate::body::Inner;
use crate::carrier::Upgrade;
use crate::duplex::Duplex;
use crate::filter::{FilterChain, RequestContext};
use crate::followed::ConnectionState;
use crate::origin::Streams;
use crate::replies::Replies;

/// How a request goes on to its origin: in the version it came with.
#[derive(Debug)]
pub(crate) enum Wire {
    /// Over a connection of its own for as long as it takes; what the origin
    /// says before its response goes back this way.
    Http1(Arc<ConnectionState>),
    /// As one of the streams of a connection.
    Http2(Arc<Streams>),
}

/// A request with its own content and, for an upgrade, its connection.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) permit: Permit,
    pub(crate) request: RequestContext,
    /// What it has passed so far, and passes on its way.
    pub(crate) filters: FilterChain,
    pub(crate) head: request::Parts,
    pub(crate) content: Inner,
    pub(crate) upgrade: Upgradable,
    /// How interim responses go back, where that is a matter of the request.
    pub(crate) replies: Option<Replies>,
}

/// What a request may become on the client's side, if the origin agrees.
#[derive(Debug, Default)]
pub(crate) enum Upgradable {
    /// Nothing.
    #[default]
    Never,
    /// Its connection becomes something else.
    Http1(OnUpgrade),
    /// Its stream does.
    Http2(oneshot::Receiver<Duplex>),
}

impl Admitted {
    pub(crate) fn is_websocket(&self) -> bool {
        self.request.target.upgrade() == Upgrade::WebSocket
    }
}
