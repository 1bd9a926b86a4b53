//! A connection with the bytes that were already read from it put back in
//! front. Nothing else.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// The connection.
#[derive(Debug)]
pub(crate) struct Replay<S = TcpStream> {
    read: Bytes,
    stream: S,
    ended: Arc<Notify>,
}

impl<S> Replay<S> {
    pub(crate) fn new(read: impl Into<Bytes>, stream: S) -> Self {
        Self {
            read: read.into(),
            stream,
            ended: Arc::default(),
        }
    }

    /// Notified when the client ended its side.
    pub(crate) fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Whether bytes that were read before are still to be read again.
    pub(crate) fn has_more(&self) -> bool {
        !self.read.is_empty()
    }

    /// The connection.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// What was read, and the connection.
    pub(crate) fn into_parts(self) -> (Bytes, S) {
        (self.read, self.stream)
    }
}

impl Replay {
    /// Waits until there is something to read, or the end.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        if self.read.is_empty() {
            // Readiness alone may be of long ago.
            self.stream.peek(&mut [0]).await?;
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replay<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.has_remaining() {
            let count = self.read.len().min(buffer.remaining());
            buffer.put_slice(&self.read.split_to(count));
            if self.read.is_empty() {
                // Give the memory back: connections live long.
                self.read = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) && buffer.filled().len() == before {
            self.ended.notify_one();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replay<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
