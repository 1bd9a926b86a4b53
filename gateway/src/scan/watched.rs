//! A client's side of a WebSocket: what is read from it went through the scan.
//! What may not leave ends the connection, and the client is told so in a frame
//! of its own (RFC 6455 7.4.1, 1008).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::messages::Messages;
use super::websocket::{Frames, close};
use crate::limits;

/// The client's connection.
#[derive(Debug)]
pub(crate) struct Watched<C> {
    client: C,
    frames: Frames,
    messages: Messages,
    /// Cleared and not read yet.
    ready: Bytes,
    /// The last words, once nothing more may leave.
    last: Option<Bytes>,
    buffer: Vec<u8>,
    /// Where the bytes in it lie whose turn has not come.
    left: std::ops::Range<usize>,
    /// Others have a turn before those.
    rests: bool,
}

impl<C> Watched<C> {
    pub(super) fn new(client: C, messages: Messages) -> Self {
        Self {
            client,
            frames: Frames::default(),
            messages,
            ready: Bytes::new(),
            last: None,
            buffer: vec![0; limits::TUNNEL_BUFFER_BYTES],
            left: 0..0,
            rests: false,
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> Watched<C> {
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

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.last.is_some() {
                return this.poll_last(context);
            }
            if !this.ready.is_empty() {
                let count = this.ready.len().min(buffer.remaining());
                buffer.put_slice(&this.ready.split_to(count));
                return Poll::Ready(Ok(()));
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
            let bytes = this.buffer.get(this.left.clone()).unwrap_or_default();
            match this.messages.pass(&mut this.frames, bytes) {
                Ok((cleared, taken)) => {
                    this.ready = cleared;
                    this.left.start = this.left.start.saturating_add(taken);
                    // Many short messages take their time.
                    this.rests = !this.left.is_empty();
                }
                Err(_) => this.last = Some(close(&this.messages.why())),
            }
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<C> {
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
