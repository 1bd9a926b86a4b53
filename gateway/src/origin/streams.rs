//! Streams of HTTP/2 to origins, with prior knowledge (RFC 9113 3.3): one
//! connection to an origin per connection of the command, so that neither
//! streams nor their limits are shared with anybody else. May send only what
//! was admitted; knows no policy.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use http::Response;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use outgate_policy::Host;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::{Link, OriginError, Outgoing, protocol};
use crate::content::Content;
use crate::limits;
use crate::session::{Session, Tasks};
use crate::tls::{Alpn, Offer};

/// The connections to origins that one connection of the command uses: one
/// for each name it may go by, nearly always a single one.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    connections: Mutex<HashMap<Host, Kept>>,
    active: Arc<Active>,
}

/// A connection that takes streams, and the generation of the policy under
/// which it was made.
#[derive(Debug)]
struct Kept {
    sender: SendRequest<Content>,
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

    /// Sends a request and waits for the head of its response. What a
    /// connection did not take, because it was ending, goes over a new one.
    pub(crate) async fn send(
        &self,
        mut outgoing: Outgoing<'_>,
    ) -> Result<Response<Incoming>, OriginError> {
        let authority = outgoing.authority();
        let mut sender = self.sender(&outgoing).await?;
        let request = match sender.try_send_request(outgoing.request).await {
            Ok(response) => return Ok(response),
            Err(mut failure) => match failure.take_message() {
                Some(unsent) => unsent,
                None => return Err(failed(authority, failure.error())),
            },
        };
        outgoing.request = request;
        self.connections.lock().await.remove(outgoing.host);
        let mut sender = self.sender(&outgoing).await?;
        let sent = sender.send_request(outgoing.request).await;
        sent.map_err(|error| failed(authority, &error))
    }

    /// The connection to an origin; made if there is none that takes streams.
    async fn sender(&self, outgoing: &Outgoing<'_>) -> Result<SendRequest<Content>, OriginError> {
        // Held while connecting: many streams begin at once and share it.
        let mut connections = self.connections.lock().await;
        let generation = outgoing.session.generation();
        if let Some(kept) = connections.get(outgoing.host)
            && !kept.sender.is_closed()
            && kept.generation == generation
        {
            return Ok(kept.sender.clone());
        }
        let link = Link::open(outgoing.way(), Offer::Only(Alpn::Http2)).await?;
        let sender = speak(outgoing.session, link)
            .await
            .map_err(|error| protocol(outgoing.authority(), &error))?;
        let kept = Kept {
            sender: sender.clone(),
            generation,
        };
        connections.insert(outgoing.host.clone(), kept);
        Ok(sender)
    }

    /// Keeps a connection that nobody used yet, for the streams to its host.
    pub(crate) async fn keep(&self, session: &Arc<Session>, host: &Host, link: Link) {
        let generation = link.generation();
        if let Ok(sender) = speak(session, link).await {
            let kept = Kept { sender, generation };
            self.connections.lock().await.insert(host.clone(), kept);
        }
    }
}

/// Begins HTTP/2 on a connection.
async fn speak(session: &Arc<Session>, link: Link) -> hyper::Result<SendRequest<Content>> {
    let (sender, connection) = http2::Builder::new(Tasks::of(session))
        .timer(TokioTimer::new())
        // Nothing of the command's before the origin showed that it speaks
        // this: another server could read a stream's content as a request.
        .initial_max_send_streams(0)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::STREAMS_WINDOW_BYTES)
        .max_header_list_size(limits::HEAD_LIST_BYTES_MAX)
        .max_concurrent_reset_streams(limits::STREAMS_RESET_MAX)
        .max_pending_accept_reset_streams(limits::STREAMS_RESET_MAX)
        .max_local_error_reset_streams(limits::STREAMS_RESET_MAX)
        .max_send_buf_size(limits::BUFFER_BYTES_MAX)
        .handshake(TokioIo::new(link))
        .await?;
    session.spawn(async move {
        connection.await.ok();
    });
    Ok(sender)
}

/// A stream that the origin refused or reset ends the client's the same way;
/// one it never looked at may be tried again (RFC 9113 8.7).
fn failed(authority: String, error: &hyper::Error) -> OriginError {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let reason = cause.and_then(|cause: &h2::Error| match cause.reason() {
        Some(reason) if cause.is_remote() && cause.is_reset() => Some(reason),
        Some(h2::Reason::NO_ERROR) if cause.is_remote() && cause.is_go_away() => {
            Some(h2::Reason::REFUSED_STREAM)
        }
        _ => None,
    });
    match reason {
        Some(reason) => OriginError::Reset(authority, reason),
        None => protocol(authority, error),
    }
}
