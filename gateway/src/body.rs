//! The body of a message as the engines of HTTP give it: content and trailers, frame by
//! frame, and why it did not come to its end. Knows no filter and no policy.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::budget::Spent;
use crate::overrides::Overridden;

mod http2;

pub(crate) use http2::{Received, poll_room, pour};

/// Bytes of content and trailers, by direction as the command sees it.
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
    #[error("the content holds the placeholder of a secret")]
    Misused,
    #[error("the content holds the value of a secret")]
    Shown,
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Spent(#[from] Spent),
    #[error(transparent)]
    Overridden(#[from] Overridden),
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

/// What a body says when it is asked for the next frame.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, ContentError>>>;

/// The body of a request on its way to an origin, whatever it went through before.
pub(crate) enum Outbound {
    /// There is none.
    None,
    Some(Pin<Box<dyn Body<Data = Bytes, Error = ContentError> + Send + Sync>>),
}

impl fmt::Debug for Outbound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.write_str(match self {
            Self::None => "None",
            Self::Some(_) => "Some",
        })
    }
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Some(body) => body.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Some(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Some(body) => body.size_hint(),
        }
    }
}

/// The scan refused the content; why is in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the content holds what may not leave")]
pub(crate) struct Stopped;
