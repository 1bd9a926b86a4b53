//! A client's connection while HTTP/1.1 is read from it: what is read is
//! followed, and when the parser is done the connection comes back, so that
//! what the client still sends does not turn the last answer into a reset.
//! Interim responses go out between what the parser's engine writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use outgate_dlp::span;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::heads::RequestHeads;
use crate::interim::Interim;
use crate::tls::ClientStream;

/// The connection.
#[derive(Debug)]
pub(crate) struct FollowedStream {
    /// There until the connection is given back.
    stream: Option<ClientStream>,
    state: Arc<ConnectionState>,
    back: Option<oneshot::Sender<ClientStream>>,
}

/// What is known of the connection beside its engine.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    pub(crate) heads: Mutex<RequestHeads>,
    pub(crate) interim: Interim,
    /// Whether the engine wrote something that it did not flush yet.
    unflushed: AtomicBool,
    /// Whether the engine ends and the connection does not.
    outlives: AtomicBool,
}

impl ConnectionState {
    /// Whether everything read was a whole number of requests, so many, and
    /// everything written is flushed.
    pub(crate) fn is_between(&self, requests: u64) -> bool {
        let between = self
            .heads
            .lock()
            .is_ok_and(|heads| heads.are_read(requests));
        between && !self.unflushed.load(Ordering::Relaxed)
    }

    /// Whether the connection goes on when its engine shuts it down.
    pub(crate) fn outlive(&self, engine: Outlives) {
        let outlives = engine == Outlives::Engine;
        self.outlives.store(outlives, Ordering::Relaxed);
    }
}

/// What ends with the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlives {
    /// The engine alone: the connection gets another.
    Engine,
    /// Both.
    Nothing,
}

/// What its owner keeps of it.
#[derive(Debug)]
pub(crate) struct StreamOwner {
    pub(crate) state: Arc<ConnectionState>,
    /// Gets the connection when its reader is done with it.
    pub(crate) back: oneshot::Receiver<ClientStream>,
}

impl FollowedStream {
    pub(crate) fn new(stream: ClientStream) -> (Self, StreamOwner) {
        let state = Arc::default();
        let (sender, back) = oneshot::channel();
        let followed = Self {
            stream: Some(stream),
            state: Arc::clone(&state),
            back: Some(sender),
        };
        (followed, StreamOwner { state, back })
    }

    /// Waits until the client sends more, or ends its side.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        match &self.stream {
            Some(stream) => stream.wait().await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut ClientStream>> {
        let stream = self.get_mut().stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn sides(&mut self) -> io::Result<(Pin<&mut ClientStream>, &ConnectionState)> {
        let stream = self.stream.as_mut().map(Pin::new);
        let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        Ok((stream, &self.state))
    }

    /// To be called before anything is written.
    fn poll_before_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (stream, state) = self.sides()?;
        state.unflushed.store(true, Ordering::Relaxed);
        state.interim.poll_finish(stream, context)
    }
}

impl Drop for FollowedStream {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // Nobody may want it any more; then it is closed.
            back.send(stream).ok();
        }
    }
}

impl AsyncRead for FollowedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.as_mut().stream()?.poll_read(context, buffer))?;
        let new = span::from(buffer.filled(), before);
        let broken = match self.state.heads.lock() {
            Ok(mut heads) => {
                heads.follow(new);
                heads.broken()
            }
            Err(_) => Some("nobody follows the connection"),
        };
        let broken = broken.map(|why| io::Error::new(io::ErrorKind::InvalidData, why));
        Poll::Ready(broken.map_or(Ok(()), Err))
    }
}

impl AsyncWrite for FollowedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_before_write(context))?;
        self.stream()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The engine flushes once all it had is written.
        let (stream, state) = self.sides()?;
        ready!(state.interim.poll_send(stream, context))?;
        state.unflushed.store(false, Ordering::Relaxed);
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.state.outlives.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_before_write(context))?;
        self.stream()?.poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(AsyncWrite::is_write_vectored)
    }
}
