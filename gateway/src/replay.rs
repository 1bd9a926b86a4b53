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
pub(crate) struct Replay {
    read: Bytes,
    stream: TcpStream,
    ended: Arc<Notify>,
}

impl Replay {
    pub(crate) fn new(read: Vec<u8>, stream: TcpStream) -> Self {
        Self {
            read: Bytes::from(read),
            stream,
            ended: Arc::default(),
        }
    }

    /// Notified when the client ended its side.
    pub(crate) fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Waits until there is something to read, or the end.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        if self.read.is_empty() {
            // Readiness alone may be of long ago.
            self.stream.peek(&mut [0]).await?;
        }
        Ok(())
    }

    /// What was read, and the connection.
    pub(crate) fn into_parts(self) -> (Bytes, TcpStream) {
        (self.read, self.stream)
    }
}

impl AsyncRead for Replay {
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

impl AsyncWrite for Replay {
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
