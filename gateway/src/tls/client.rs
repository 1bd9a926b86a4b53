//! A client's connection as HTTP reads it: TCP, or TLS that was opened.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::carrier::{Called, Carrier};
use crate::limits;
use crate::replay::Replay;

/// The connection.
#[derive(Debug)]
pub(crate) enum Client {
    Plain(Replay),
    Opened(Box<Replay<TlsStream<Replay>>>, Called),
}

impl Client {
    /// What carries its requests.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Plain(_) => Carrier::Plain,
            Self::Opened(_, called) => Carrier::Tls(*called),
        }
    }

    /// Notified when the client ended its side.
    pub(crate) fn ended(&self) -> Arc<Notify> {
        match self {
            Self::Plain(stream) => stream.ended(),
            Self::Opened(stream, _) => stream.ended(),
        }
    }

    /// Waits until there is something to read, or the end.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.wait().await,
            Self::Opened(stream, _) => {
                let (below, tls) = stream.stream().get_ref();
                // It wants nothing while it holds what nobody read.
                if stream.has_more() || !tls.wants_read() {
                    return Ok(());
                }
                below.wait().await
            }
        }
    }

    /// The connection below, to be closed, after TLS was told of the end: a
    /// client that is not told must take what it got for cut off (RFC 8446 6.1).
    pub(crate) async fn into_tcp(mut self) -> TcpStream {
        if let Self::Opened(stream, _) = &mut self {
            timeout(limits::LINGER_TIME, stream.shutdown()).await.ok();
        }
        let plain = match self {
            Self::Plain(stream) => stream,
            Self::Opened(stream, _) => stream.into_parts().1.into_inner().0,
        };
        plain.into_parts().1
    }
}

impl AsyncRead for Client {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Opened(stream, _) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Opened(stream, _) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Opened(stream, _) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Opened(stream, _) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Opened(stream, _) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Opened(stream, _) => stream.is_write_vectored(),
        }
    }
}
