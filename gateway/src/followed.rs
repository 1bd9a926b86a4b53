//! A client's connection while HTTP/1.1 is read from it: what is read is
//! followed, and when the parser is done the connection comes back, so that
//! what the client still sends does not turn the last answer into a reset.
//! Interim responses go out between what the parser's engine writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::heads::Heads;
use crate::interim::Interim;
use crate::replay::Replay;

/// The connection.
#[derive(Debug)]
pub(crate) struct Followed {
    /// There until the connection is given back.
    stream: Option<Replay>,
    heads: Arc<Mutex<Heads>>,
    interim: Arc<Interim>,
    back: Option<oneshot::Sender<TcpStream>>,
}

/// What its owner keeps of it.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) heads: Arc<Mutex<Heads>>,
    pub(crate) interim: Arc<Interim>,
    /// Gets the connection when its reader is done with it.
    pub(crate) back: oneshot::Receiver<TcpStream>,
}

impl Followed {
    pub(crate) fn new(stream: Replay) -> (Self, Owner) {
        let heads = Arc::default();
        let interim = Arc::default();
        let (sender, back) = oneshot::channel();
        let followed = Self {
            stream: Some(stream),
            heads: Arc::clone(&heads),
            interim: Arc::clone(&interim),
            back: Some(sender),
        };
        let owner = Owner {
            heads,
            interim,
            back,
        };
        (followed, owner)
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut Replay>> {
        let stream = self.get_mut().stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn sides(&mut self) -> io::Result<(Pin<&mut Replay>, &Interim)> {
        let stream = self.stream.as_mut().map(Pin::new);
        let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        Ok((stream, &self.interim))
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // Nobody may want it any more; then it is closed.
            back.send(stream.into_parts().1).ok();
        }
    }
}

impl AsyncRead for Followed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.as_mut().stream()?.poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        let broken = match self.heads.lock() {
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

impl AsyncWrite for Followed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let (stream, interim) = self.sides()?;
        ready!(interim.poll_finish(stream, context))?;
        self.stream()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The engine flushes once all it had is written.
        let (stream, interim) = self.sides()?;
        ready!(interim.poll_send(stream, context))?;
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let (stream, interim) = self.sides()?;
        ready!(interim.poll_finish(stream, context))?;
        self.stream()?.poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(AsyncWrite::is_write_vectored)
    }
}
