//! A WebSocket's messages: a placeholder in one of the command's
//! ends it, since no secret goes there, and a value in one of the origin's is
//! masked. What passes keeps its length. Decides nothing else.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use outgate_dlp::span;
use outgate_record::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::mask::{Mask, Masked};
use super::{Misuse, SessionSecrets, Why};
use crate::audit::Kind;
use crate::body::Stopped;
use crate::filter::{ContentFilter as _, RequestContext, StreamEnd, poll_new, writes_through};
use crate::framing::{Framing as _, MessageCoding, MessageFault, Sink, WebSocketFrames};
use crate::limits;
use crate::refusal::Refusal;

/// The command's side.
pub(super) struct WatchedMessages<S> {
    stream: S,
    frames: WebSocketFrames,
    sought: SoughtPlaceholders,
}

/// Looks for placeholders in messages.
struct SoughtPlaceholders {
    secrets: Arc<SessionSecrets>,
    request: RequestContext,
    /// The end of what was looked through, where one may begin: of messages, and of the
    /// frames that come between.
    tails: [Vec<u8>; 2],
}

impl SoughtPlaceholders {
    /// Looks through what comes behind the tail of so many.
    fn look(&mut self, tail: usize, bytes: &[u8]) -> Result<(), MessageFault> {
        let Some(tail) = self.tails.get_mut(tail) else {
            return Err(Stopped::Lost.into());
        };
        tail.extend_from_slice(bytes);
        if let Some(token) = self.secrets.token_in(tail) {
            let misuse: Misuse = self.secrets.misplaced(token, "a message", Why::Encoded);
            let RequestContext { caller, target, .. } = &self.request;
            let refusal = caller.misused(target, &misuse.because);
            caller.tell(&refusal);
            return Err(Stopped::refused(refusal).into());
        }
        let from = self.secrets.forms.undecided(tail, 0);
        tail.drain(..from);
        Ok(())
    }
}

impl Sink for SoughtPlaceholders {
    fn framing(&mut self, _: &[u8]) {}

    fn begin(&mut self, _: MessageCoding) {}

    fn payload(&mut self, _: &[u8], plain: &[u8]) -> Result<(), MessageFault> {
        self.look(0, plain)
    }

    fn end(&mut self) -> Result<(), MessageFault> {
        Ok(())
    }

    fn apart(&mut self, _: &[u8], plain: &[u8], _: &[u8]) -> Result<(), MessageFault> {
        self.look(1, plain)
    }

    fn has_enough(&self) -> bool {
        false
    }
}

impl<S> WatchedMessages<S> {
    pub(super) fn new(stream: S, secrets: &Arc<SessionSecrets>, request: &RequestContext) -> Self {
        Self {
            stream,
            frames: WebSocketFrames::default(),
            sought: SoughtPlaceholders {
                secrets: Arc::clone(secrets),
                request: request.clone(),
                tails: Default::default(),
            },
        }
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.frames.take(bytes, &mut self.sought) {
            Ok(_) => return Ok(()),
            // That was told where it was found.
            Err(MessageFault::Stopped(_)) => {}
            Err(MessageFault::Framing(because)) => {
                let RequestContext { caller, target, .. } = &self.sought.request;
                let refusal = Refusal::own(Reason::Malformed, &target.origin(), because);
                caller.refuse(Kind::Request, &refusal);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedMessages<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = ready!(poll_new(&mut own.stream, context, buffer))?;
        let new = span::from(buffer.filled(), before);
        let looked = own.look(new);
        if looked.is_err() {
            buffer.set_filled(before);
        }
        Poll::Ready(looked)
    }
}

/// The origin's side.
pub(crate) struct Veiled<S> {
    stream: S,
    masked: Masked,
    ready: Bytes,
    ended: bool,
    /// Until when what may be the beginning of a value waits for the rest.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Veiled<S> {
    pub(super) fn new(stream: S, mask: Arc<Mask>) -> Self {
        Self {
            stream,
            masked: Masked::new(mask),
            ready: Bytes::new(),
            ended: false,
            patience: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Veiled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        loop {
            if own.ready.has_remaining() {
                let count = own.ready.len().min(buffer.remaining());
                buffer.put_slice(&own.ready.split_to(count));
                return Poll::Ready(Ok(()));
            }
            if own.ended {
                return Poll::Ready(Ok(()));
            }
            let mut space = BytesMut::zeroed(limits::TUNNEL_BUFFER_BYTES.min(buffer.remaining()));
            let mut piece = ReadBuf::new(&mut space);
            match Pin::new(&mut own.stream).poll_read(context, &mut piece) {
                Poll::Ready(read) => {
                    read?;
                    let count = piece.filled().len();
                    own.ended = count == 0;
                    space.truncate(count);
                    let last = if own.ended {
                        StreamEnd::Yes
                    } else {
                        StreamEnd::No
                    };
                    own.ready = own.masked.mask(space.freeze(), last);
                    own.patience = None;
                }
                Poll::Pending => {
                    if own.masked.waiting() == 0 {
                        return Poll::Pending;
                    }
                    let patience = own.patience.get_or_insert_with(|| {
                        Box::pin(sleep_until(Instant::now() + limits::SECRET_PATIENCE))
                    });
                    ready!(patience.as_mut().poll(context));
                    own.patience = None;
                    own.ready = own.masked.mask(Bytes::new(), StreamEnd::Yes);
                }
            }
        }
    }
}

writes_through!(WatchedMessages.stream);
writes_through!(Veiled.stream);
