//! What a feature that looks at requests is to those who judge and send them: a filter.
//! A request passes every filter of its session in one order ([`crate::filters`]): its
//! head before and after the verdict, the head as it is sent, its content piece by piece,
//! and the response as it comes back. Knows none of them.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{request, response};
use outgate_policy::{Permit, Verdict};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::{Inner, Stopped};
use crate::caller::Caller;
use crate::carrier::Carrier;
use crate::refusal::Refusal;
use crate::target::{Target, TargetVisibility};

mod chain;

pub(crate) use chain::{FilterChain, InterimFilters};

/// A request on its way: who sends it, where to, and over what.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) caller: Arc<Caller>,
    pub(crate) target: Target,
    pub(crate) carrier: Carrier,
}

/// A head on its way to the origin.
#[derive(Debug)]
pub(crate) struct SentHead {
    pub(crate) head: request::Parts,
    /// The request target as it is sent, where it is another than the one that was judged.
    pub(crate) resource: Option<String>,
    /// Bytes of content that follow at least.
    pub(crate) content_bytes: u64,
    pub(crate) wording: Wording,
}

impl SentHead {
    pub(crate) fn new(head: request::Parts, wording: Wording, content_bytes: u64) -> Self {
        Self {
            head,
            resource: None,
            content_bytes,
            wording,
        }
    }

    /// The request target as it is sent.
    pub(crate) fn resource<'a>(&'a self, target: &'a Target) -> &'a str {
        let judged = target.resource.as_str();
        self.resource.as_deref().unwrap_or(judged)
    }
}

/// How a request is put to its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// As the client put it.
    Client,
    /// In other words for the same: a WebSocket between two versions of HTTP.
    Gateway,
}

/// Why a filter does not let a request or a response go on.
#[derive(Debug)]
pub(crate) enum FilterFault {
    /// It may not; whoever asked records it.
    Denied(Refusal),
    /// It may not, which was recorded and told.
    Stopped(Stopped),
}

impl From<Refusal> for FilterFault {
    fn from(refusal: Refusal) -> Self {
        Self::Denied(refusal)
    }
}

impl From<Stopped> for FilterFault {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// Whether anything follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Yes,
    No,
}

/// Looks at one request and at what comes back; one value for each request. Methods are
/// called in the order in which they stand here, most of them once at most.
pub(crate) trait Filter: fmt::Debug + Send + Sync {
    /// How much of a target people and records may see; asked where no head was judged.
    fn visibility(&self, _: &Target) -> Option<TargetVisibility> {
        None
    }

    /// What is to be said of a head from which no target came, so that it goes nowhere.
    fn malformed(&self, _: &request::Parts) -> Option<String> {
        None
    }

    /// Looks at a head before any rule is asked. The result is the head that other filters
    /// judge in its place, where this one knows a part of it to be harmless.
    ///
    /// # Errors
    /// The request may not be sent, whatever rules say: recorded by the chain as a finding.
    fn examine(
        &mut self,
        _: &RequestContext,
        _: &request::Parts,
    ) -> Result<Option<request::Parts>, Refusal> {
        Ok(None)
    }

    /// Looks at a head once the rules were asked, before the verdict is recorded.
    ///
    /// # Errors
    /// The request may not be sent, which was recorded.
    fn judge(
        &mut self,
        _: &mut RequestContext,
        _: &request::Parts,
        _: &Verdict,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    /// Looks at a permitted head as it is sent, and may change it.
    ///
    /// # Errors
    /// It is not to be sent.
    fn head(
        &mut self,
        _: &RequestContext,
        _: &mut SentHead,
        _: &Permit,
    ) -> Result<(), FilterFault> {
        Ok(())
    }

    /// Takes the place of the content, where the filter has to wait or works beside
    /// ([`crate::body::ReadAhead`]).
    fn before(&mut self, _: &RequestContext, _: &request::Parts, content: Inner) -> Inner {
        content
    }

    /// What looks at the content as it passes.
    fn body(&mut self, _: &RequestContext, _: &request::Parts) -> Option<Box<dyn ContentFilter>> {
        None
    }

    /// Looks at a request all of which is there: its fields, its request target as it is
    /// sent, and its content, where that was read whole.
    ///
    /// # Errors
    /// It is not to be sent.
    fn complete(
        &mut self,
        _: &RequestContext,
        _: (&mut HeaderMap, &str),
        _: Option<&Bytes>,
    ) -> Result<(), FilterFault> {
        Ok(())
    }

    /// What looks at the fields of interim responses (RFC 9110 15.2).
    fn interim(&self) -> Option<Arc<dyn FieldFilter>> {
        None
    }

    /// Looks at the head of the response, and may change it. The result looks at its content.
    ///
    /// # Errors
    /// The response may not come back.
    fn returned(
        &mut self,
        _: &RequestContext,
        _: &mut response::Parts,
        _: ResponseContentKind,
    ) -> Result<Option<Box<dyn ContentFilter>>, Refusal> {
        Ok(None)
    }

    /// Looks at the head of a response that agrees to become a WebSocket.
    ///
    /// # Errors
    /// What the origin may not agree to.
    fn switched(&mut self, _: &mut response::Parts) -> Result<(), &'static str> {
        Ok(())
    }

    /// Looks at both ends of a WebSocket.
    ///
    /// # Errors
    /// Nothing can be looked at.
    fn relayed(&mut self, _: &RequestContext, ends: RelayEnds) -> Result<RelayEnds, Stopped> {
        Ok(ends)
    }
}

/// Looks at content as it passes, in either direction.
pub(crate) trait ContentFilter: fmt::Debug + Send + Sync {
    /// Takes the next piece, and gives what may go on: at the end all that is left. Comes
    /// once more, with nothing, where the end was not known with the last piece.
    ///
    /// # Errors
    /// Nothing more may go on.
    fn pass(&mut self, data: Bytes, end: StreamEnd) -> Result<Bytes, Stopped>;

    /// Takes trailers, before the end.
    ///
    /// # Errors
    /// They may not go on.
    fn trailers(&mut self, _: &mut HeaderMap) -> Result<(), Stopped> {
        Ok(())
    }

    /// How many bytes are held back.
    fn waiting(&self) -> usize {
        0
    }

    /// Whether content may become longer or shorter.
    fn replaces(&self) -> bool {
        false
    }

    /// Content of at most so many bytes is read whole before anything is sent, so that a
    /// refusal comes in time.
    fn whole_bytes_max(&self) -> u64 {
        0
    }

    /// It is read whole.
    fn hold(&mut self) {}
}

/// Looks at fields and may change them.
pub(crate) trait FieldFilter: fmt::Debug + Send + Sync {
    /// The next ones.
    fn fields(&self, fields: &mut HeaderMap);
}

/// Whether a response has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseContentKind {
    None,
    Some,
}

/// One end of a connection that is relayed.
pub(crate) trait RelayEnd: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> RelayEnd for T {}

/// Both ends of a WebSocket.
pub(crate) struct RelayEnds {
    pub(crate) client: Box<dyn RelayEnd>,
    pub(crate) origin: Box<dyn RelayEnd>,
}

/// Reads what is there; the place in the buffer behind which it stands.
pub(crate) fn poll_new<S: AsyncRead + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<usize>> {
    let before = buffer.filled().len();
    ready!(Pin::new(stream).poll_read(context, buffer))?;
    Poll::Ready(Ok(before))
}

/// What is written to a stream goes through to the field that it wraps.
macro_rules! writes_through {
    ($outer:ident.$inner:ident) => {
        impl<S: AsyncWrite + Unpin> AsyncWrite for $outer<S> {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.get_mut().$inner).poll_write(context, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().$inner).poll_flush(context)
            }

            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().$inner).poll_shutdown(context)
            }
        }
    };
}

pub(crate) use writes_through;

/// Messages of a WebSocket come as they are, where they have to be looked into.
///
/// # Errors
/// The origin agreed to an extension, which could change them (RFC 6455 9).
pub(crate) fn no_extensions(head: &response::Parts) -> Result<(), &'static str> {
    if head.headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err("agreed to an extension of WebSocket nobody asked for");
    }
    Ok(())
}
