//! Message content on its way through: streamed, never gathered, with
//! back-pressure in both directions. Counts bytes and keeps trailers from
//! saying what only a head may say (RFC 9110 6.5.1). Decides nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::fields;
use crate::http2::Received;
use crate::origin::{Counted, Lease};

/// Bytes of content, by direction as the command sees it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
}

impl Traffic {
    /// Both directions; only differences mean something.
    pub(crate) fn total(&self) -> u64 {
        let up = self.up.load(Ordering::Relaxed);
        up.wrapping_add(self.down.load(Ordering::Relaxed))
    }
}

/// Content as an engine reads it.
#[derive(Debug)]
pub(crate) enum Inner {
    /// There is none.
    None,
    Http1(Incoming),
    Http2(Received),
}

/// Why content did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

impl Body for Inner {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Http1(content) => Pin::new(content).poll_frame(context).map_err(Into::into),
            Self::Http2(content) => Pin::new(content).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Http1(content) => content.is_end_stream(),
            Self::Http2(content) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Http1(content) => content.size_hint(),
            Self::Http2(content) => content.size_hint(),
        }
    }
}

/// The content of one message.
#[derive(Debug)]
pub(crate) enum Content {
    /// None, or a text of the gateway's own.
    Own(Option<Bytes>),
    /// From the client.
    Request(RequestContent),
    /// From the origin.
    Response(ResponseContent),
}

/// Content of a request.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) inner: Inner,
    pub(crate) traffic: Arc<Traffic>,
    /// Set once all of it was read: only then may the connection be reused.
    pub(crate) complete: Arc<AtomicBool>,
}

/// Content of a response; holds the connection it comes from.
#[derive(Debug)]
pub(crate) struct ResponseContent {
    pub(crate) inner: Inner,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) held: Option<Held>,
    /// Shows that the response is not over yet.
    pub(crate) during: Option<Arc<()>>,
}

/// What a response holds until it was read.
#[derive(Debug)]
pub(crate) enum Held {
    /// A connection, to be given back.
    Lease(Lease),
    /// A place among the streams of a connection.
    Stream(Counted),
}

impl Held {
    fn release(self) {
        match self {
            Self::Lease(lease) => lease.release(),
            Self::Stream(counted) => drop(counted),
        }
    }
}

impl Content {
    pub(crate) fn empty() -> Self {
        Self::Own(None)
    }

    /// Keeps this as long as the content comes from somebody else.
    pub(crate) fn during(mut self, over: Arc<()>) -> Self {
        if let Self::Response(content) = &mut self {
            content.during = Some(over);
        }
        self
    }

    pub(crate) fn text(text: String) -> Self {
        Self::Own(Some(Bytes::from(text)))
    }
}

impl RequestContent {
    pub(crate) fn new(inner: Inner, traffic: Arc<Traffic>) -> Self {
        let complete = Arc::new(AtomicBool::new(inner.is_end_stream()));
        Self {
            inner,
            traffic,
            complete,
        }
    }
}

impl Drop for ResponseContent {
    fn drop(&mut self) {
        // A reader stops at the last byte, without asking for the end.
        if self.inner.is_end_stream()
            && let Some(held) = self.held.take()
        {
            held.release();
        }
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, ContentError>>>;

/// Counts data and filters trailers.
fn pass(frame: Frame<Bytes>, counter: &AtomicU64) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            filter(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(frame) => {
            let length = frame.data_ref().map_or(0, Bytes::len);
            counter.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
            frame
        }
    }
}

fn filter(trailers: &mut HeaderMap) {
    let forbidden: Vec<_> = trailers
        .keys()
        .filter(|name| fields::is_forbidden_trailer(name))
        .cloned()
        .collect();
    for name in forbidden {
        trailers.remove(name);
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::Own(text) => Poll::Ready(text.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Request(content) => {
                let polled = Pin::new(&mut content.inner).poll_frame(context);
                if matches!(polled, Poll::Ready(None)) || content.inner.is_end_stream() {
                    content.complete.store(true, Ordering::Relaxed);
                }
                polled.map_ok(|frame| pass(frame, &content.traffic.up))
            }
            Self::Response(content) => {
                let polled = Pin::new(&mut content.inner).poll_frame(context);
                if matches!(polled, Poll::Ready(None))
                    && let Some(held) = content.held.take()
                {
                    held.release();
                }
                polled.map_ok(|frame| pass(frame, &content.traffic.down))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Request(content) => content.inner.is_end_stream(),
            Self::Response(content) => content.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => {
                let length = text.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Request(content) => content.inner.size_hint(),
            Self::Response(content) => content.inner.size_hint(),
        }
    }
}
