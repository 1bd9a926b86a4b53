//! The body of a message as the engines of HTTP give it: content and trailers, frame by
//! frame, and why it did not come to its end. Knows no filter and no policy.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::refusal::Refusal;

mod http2;

pub(crate) use http2::{ReceivedContent, poll_room, pour};

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
    Http2(ReceivedContent),
    /// Behind a filter that waits, or works beside.
    Filtered(Box<dyn ReadAhead>),
}

/// Content that may have to be read before anything is sent.
pub(crate) trait ReadAhead:
    Body<Data = Bytes, Error = ContentError> + fmt::Debug + Send + Sync + Unpin
{
    /// Reads its beginning.
    ///
    /// # Errors
    /// It may not leave, or its sender ended it.
    fn read_ahead(&mut self)
    -> Pin<Box<dyn Future<Output = Result<(), ContentError>> + Send + '_>>;
}

impl Inner {
    /// Reads the beginning, where a filter wants that.
    ///
    /// # Errors
    /// It may not leave, or its sender ended it.
    pub(crate) async fn read_ahead(&mut self) -> Result<(), ContentError> {
        match self {
            Self::None | Self::Http1(_) | Self::Http2(_) => Ok(()),
            Self::Filtered(content) => content.read_ahead().await,
        }
    }
}

/// Why content did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a filter lets nothing more go on. It was recorded and told where it was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the content holds what may not leave")]
pub(crate) enum Stopped {
    Refused(Box<Refusal>),
    /// Whoever looked at it is gone.
    Lost,
}

impl Stopped {
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }

    /// What an error of an engine was caused by, where that was a filter.
    pub(crate) fn cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(ContentError::Stopped(stopped)) = error.downcast_ref() {
                return Some(stopped);
            }
            next = error.source();
        }
        None
    }
}

impl Body for Inner {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Http1(content) => Pin::new(content).poll_frame(context).map_err(Into::into),
            Self::Http2(content) => Pin::new(content).poll_frame(context).map_err(Into::into),
            Self::Filtered(content) => Pin::new(content).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Http1(content) => content.is_end_stream(),
            Self::Http2(content) => content.is_end_stream(),
            Self::Filtered(content) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Http1(content) => content.size_hint(),
            Self::Http2(content) => content.size_hint(),
            Self::Filtered(content) => content.size_hint(),
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
