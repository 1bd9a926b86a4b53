//! Streams of HTTP/2 to origins (RFC 9113): one connection to an origin per
//! connection of the command, so that neither streams nor their limits are
//! shared with anybody else. May send only what was admitted; knows no policy.

use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, Response};
use http_body::Body as _;
use outgate_policy::Host;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep, timeout};

use super::{OriginError, OriginLink, OriginPool, Outgoing, protocol};
use crate::body::{Inner, ReceivedContent, pour};
use crate::carrier::Alpn;
use crate::limits;
use crate::replies::Replies;
use crate::resolve::ResolvedPin;
use crate::tls::Offer;

/// The connections to origins that one connection of the command uses: one
/// for each name it may go by, nearly always a single one.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    connections: Mutex<HashMap<Host, StreamConnection>>,
    active: Arc<Active>,
}

/// A connection that takes streams, where it leads, and the generation of the
/// policy under which it was made.
#[derive(Debug, Clone)]
struct StreamConnection {
    sender: SendRequest<Bytes>,
    pin: ResolvedPin,
    generation: u64,
}

#[derive(Debug, Default)]
struct Active {
    now: AtomicUsize,
    ever: AtomicU64,
}

/// One of the streams in use.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Active>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Counts a stream in until it is dropped.
    pub(crate) fn count(&self) -> Counted {
        self.active.now.fetch_add(1, Ordering::Relaxed);
        self.active.ever.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.active))
    }

    /// Returns once no stream was in use for a while.
    pub(crate) async fn idle(&self) {
        loop {
            let before = self.active.ever.load(Ordering::Relaxed);
            sleep(limits::HEAD_TIME).await;
            let busy = self.active.now.load(Ordering::Relaxed) > 0;
            if !busy && self.active.ever.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// Sends a request and waits for the head of its response; interim ones go
    /// back as they come.
    pub(crate) async fn send(
        &self,
        outgoing: Outgoing<'_>,
        replies: Option<&Replies>,
    ) -> Result<Response<Inner>, OriginError> {
        let authority = outgoing.authority();
        let lost = |error: h2::Error| failed(authority.clone(), &error);
        let StreamConnection { mut sender, .. } = self.connection(&outgoing).await?;
        let (head, content) = outgoing.request.into_parts();
        let end = content.is_end_stream();
        let request = Request::from_parts(head, ());
        let (answer, stream) = sender.send_request(request, end).map_err(lost)?;
        let (tell, mut stopped) = oneshot::channel();
        if !end {
            let pouring = pour(content, stream, |why| drop(tell.send(why)));
            outgoing.origins.spawn(pouring);
        }
        let response = answered(answer, replies).await;
        // Where a filter stopped the content, the stream was reset for that.
        let response = response.map_err(|error| match stopped.try_recv() {
            Ok(stopped) => stopped.into(),
            Err(_) => lost(error),
        })?;
        let (head, received) = response.into_parts();
        let content = Inner::Http2(ReceivedContent::new(received, &head.headers));
        Ok(Response::from_parts(head, content))
    }

    /// A connection on which streams may become WebSockets, and where it leads;
    /// nothing if the origin does not say that it takes them.
    pub(crate) async fn conversing(
        &self,
        outgoing: &Outgoing<'_>,
    ) -> Result<Option<(SendRequest<Bytes>, ResolvedPin)>, OriginError> {
        let StreamConnection { sender, pin, .. } = self.connection(outgoing).await?;
        // Streams wait for its settings; so does this.
        let settled = async {
            while sender.current_max_send_streams() == 0 {
                sleep(limits::SETTINGS_PAUSE).await;
                sender.clone().ready().await?;
            }
            Ok::<_, h2::Error>(())
        };
        if !matches!(timeout(limits::SETTINGS_TIME, settled).await, Ok(Ok(()))) {
            return Ok(None);
        }
        let takes = sender.is_extended_connect_protocol_enabled();
        Ok(takes.then_some((sender, pin)))
    }

    /// The connection to an origin; made if there is none that takes streams.
    async fn connection(&self, outgoing: &Outgoing<'_>) -> Result<StreamConnection, OriginError> {
        outgoing.admitted()?;
        // Held while connecting: many streams begin at once and share it.
        let mut connections = self.connections.lock().await;
        if let Some(kept) = connections.get(outgoing.host)
            && kept.generation == outgoing.origins.generation()
            && let Ok(sender) = kept.sender.clone().ready().await
        {
            return Ok(StreamConnection {
                sender,
                ..kept.clone()
            });
        }
        let link =
            OriginLink::open(outgoing.way(), Offer::Only(Alpn::Http2), &outgoing.permit).await?;
        let kept = speak(outgoing.origins, link).await;
        let kept = kept.map_err(|error| protocol(outgoing.authority(), &error))?;
        connections.insert(outgoing.host.clone(), kept.clone());
        Ok(kept)
    }

    /// Keeps a connection that nobody used yet, for the streams to its host.
    pub(crate) async fn keep(&self, origins: &Arc<OriginPool>, host: &Host, link: OriginLink) {
        if let Ok(kept) = speak(origins, link).await {
            self.connections.lock().await.insert(host.clone(), kept);
        }
    }
}

/// Waits for the final response.
async fn answered(
    mut answer: ResponseFuture,
    replies: Option<&Replies>,
) -> Result<Response<h2::RecvStream>, h2::Error> {
    poll_fn(|context| {
        while let Poll::Ready(Some(Ok(interim))) = answer.poll_informational(context) {
            if let Some(replies) = replies {
                replies.interim(interim.status(), interim.headers());
            }
        }
        Pinned::new(&mut answer).poll(context)
    })
    .await
}

/// Begins HTTP/2 on a connection.
async fn speak(origins: &Arc<OriginPool>, link: OriginLink) -> Result<StreamConnection, h2::Error> {
    let (pin, generation) = (link.pin(), link.generation());
    let (sender, connection) = h2::client::Builder::new()
        .enable_push(false)
        // Nothing of the command's before the origin showed that it speaks
        // this: another server could read a stream's content as a request.
        .initial_max_send_streams(0)
        .initial_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::STREAMS_WINDOW_BYTES)
        .max_header_list_size(limits::HEAD_LIST_BYTES_MAX)
        .max_concurrent_reset_streams(limits::STREAMS_RESET_MAX)
        .max_pending_accept_reset_streams(limits::STREAMS_RESET_MAX)
        .max_local_error_reset_streams(Some(limits::STREAMS_RESET_MAX))
        .max_send_buffer_size(limits::BUFFER_BYTES_MAX)
        .handshake(link)
        .await?;
    origins.spawn(async move {
        connection.await.ok();
    });
    Ok(StreamConnection {
        sender,
        pin,
        generation,
    })
}

/// A stream that the origin refused or reset ends the client's the same way;
/// one it never looked at may be tried again (RFC 9113 8.7).
pub(crate) fn failed(authority: String, error: &h2::Error) -> OriginError {
    let reason = match error.reason() {
        Some(reason) if error.is_remote() && error.is_reset() => Some(reason),
        Some(h2::Reason::NO_ERROR) if error.is_remote() && error.is_go_away() => {
            Some(h2::Reason::REFUSED_STREAM)
        }
        _ => None,
    };
    match reason {
        Some(reason) => OriginError::Reset(authority, reason),
        None => protocol(authority, error),
    }
}
