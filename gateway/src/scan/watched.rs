//! A client's side of a WebSocket: what is read from it went through the scan.
//! What may not leave ends the connection, and the client is told so in a frame
//! of its own (RFC 6455 7.4.1, 1008).

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::apart::Apart;
use super::messages::Messages;
use super::talk::{Talk, Talking};
use crate::body::Stopped;
use crate::framing::close;
use crate::limits;

/// The client's connection.
#[derive(Debug)]
pub(crate) struct WatchedClient<C> {
    client: C,
    keeper: WatchHolder,
    /// Cleared and not read yet.
    ready: Bytes,
    /// The last words, once nothing more may leave.
    last: Option<Bytes>,
    buffer: Vec<u8>,
    /// Where the bytes in it lie whose turn has not come.
    left: Range<usize>,
    /// Others have a turn before those.
    rests: bool,
    /// How long the scan has taken here.
    spent: Duration,
}

/// Who looks at what is sent.
#[derive(Debug)]
enum WatchHolder {
    Here(Box<Talk>),
    /// A thread, with all that was read.
    Apart(Box<Apart<Talking>>),
    /// Nobody, and nothing more goes on.
    Lost,
}

impl<C> WatchedClient<C> {
    pub(super) fn new(client: C, messages: Messages) -> Self {
        Self {
            client,
            keeper: WatchHolder::Here(Box::new(Talk::new(messages))),
            ready: Bytes::new(),
            last: None,
            buffer: vec![0; limits::TUNNEL_BUFFER_BYTES],
            left: 0..0,
            rests: false,
            spent: Duration::ZERO,
        }
    }

    /// Looks at what was read, or has a thread do that: where it is much, and from then on
    /// where some has taken long.
    fn look(&mut self) {
        let is_short = self.left.len() <= limits::SCAN_TALK_BYTES;
        let WatchHolder::Here(talk) = &mut self.keeper else {
            return;
        };
        let bytes = self.buffer.get(self.left.clone()).unwrap_or_default();
        if is_short && self.spent < limits::SCAN_HERE_TIME {
            let began = Instant::now();
            match talk.pass(bytes) {
                Ok((cleared, taken)) => {
                    self.ready = cleared;
                    self.left.start = self.left.start.saturating_add(taken);
                    // Many short messages take their time.
                    self.rests = !self.left.is_empty();
                }
                Err(stopped) => self.last = Some(last_words(&stopped)),
            }
            // Time that a short message takes is forgotten with time.
            self.spent = self.spent.saturating_add(began.elapsed()) / 2;
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        self.left = 0..0;
        if let WatchHolder::Here(talk) = std::mem::replace(&mut self.keeper, WatchHolder::Lost) {
            let talking = Talking::new(*talk, bytes);
            self.keeper = WatchHolder::Apart(Box::new(Apart::begin(talking)));
        }
    }

    /// Waits for whoever looks at it.
    fn poll_apart(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let WatchHolder::Apart(apart) = &mut self.keeper else {
            return Poll::Ready(());
        };
        let brought = ready!(apart.poll(context));
        // Until all is well, nobody has it.
        self.keeper = WatchHolder::Lost;
        let talking = match brought {
            Ok(talking) => talking,
            Err(stopped) => {
                self.last = Some(last_words(&stopped));
                return Poll::Ready(());
            }
        };
        let (talk, cleared, end) = talking.end();
        self.ready = cleared;
        if let Err(stopped) = end {
            self.last = Some(last_words(&stopped));
        }
        self.keeper = WatchHolder::Here(Box::new(talk));
        Poll::Ready(())
    }
}

/// The frame that tells the client why nothing more may leave.
fn last_words(stopped: &Stopped) -> Bytes {
    match stopped {
        Stopped::Refused(refusal) => close(&refusal.sentence()),
        Stopped::Lost => close("what was sent cannot be looked at"),
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> WatchedClient<C> {
    /// Says why it ends, as far as the client takes it.
    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(last) = &mut self.last
            && last.has_remaining()
        {
            let count = ready!(Pin::new(&mut self.client).poll_write(context, last))?;
            last.advance(count);
        }
        ready!(Pin::new(&mut self.client).poll_flush(context))?;
        let what = "what was to be sent may not leave";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::PermissionDenied, what)))
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncRead for WatchedClient<C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.ready.is_empty() {
                let count = this.ready.len().min(buffer.remaining());
                buffer.put_slice(&this.ready.split_to(count));
                return Poll::Ready(Ok(()));
            }
            if this.last.is_some() {
                return this.poll_last(context);
            }
            if matches!(this.keeper, WatchHolder::Apart(_)) {
                ready!(this.poll_apart(context));
                continue;
            }
            if std::mem::take(&mut this.rests) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if this.left.is_empty() {
                let mut read = ReadBuf::new(&mut this.buffer);
                ready!(Pin::new(&mut this.client).poll_read(context, &mut read))?;
                this.left = 0..read.filled().len();
                if this.left.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            this.look();
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedClient<C> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().client).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().client).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().client).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().client).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.client.is_write_vectored()
    }
}
