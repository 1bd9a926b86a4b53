//! A client's connection as HTTP reads it: TCP, or TLS that was opened.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::carrier::{Carrier, OriginIdentity};
use crate::either::Either;
use crate::limits;
use crate::replay::Replay;

/// The connection.
#[derive(Debug)]
pub(crate) struct ClientStream {
    stream: Either<Replay, Box<Replay<TlsStream<Replay>>>>,
    carrier: Carrier,
}

impl ClientStream {
    /// TCP, as it comes.
    pub(crate) fn plain(stream: Replay) -> Self {
        Self {
            stream: Either::One(stream),
            carrier: Carrier::Plain,
        }
    }

    /// What is inside TLS; `read` was read of it already.
    pub(crate) fn opened(read: Vec<u8>, stream: TlsStream<Replay>, called: OriginIdentity) -> Self {
        Self {
            stream: Either::Other(Box::new(Replay::new(read, stream))),
            carrier: Carrier::Tls(called),
        }
    }

    /// What carries its requests.
    pub(crate) fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Notified when the client ended its side.
    pub(crate) fn ended(&self) -> Arc<Notify> {
        match &self.stream {
            Either::One(stream) => stream.ended(),
            Either::Other(stream) => stream.ended(),
        }
    }

    /// Waits until there is something to read, or the end.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        match &self.stream {
            Either::One(stream) => stream.wait().await,
            Either::Other(stream) => {
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
        if let Either::Other(stream) = &mut self.stream {
            timeout(limits::LINGER_TIME, stream.shutdown()).await.ok();
        }
        let plain = match self.stream {
            Either::One(stream) => stream,
            Either::Other(stream) => stream.into_parts().1.into_inner().0,
        };
        plain.into_parts().1
    }
}

crate::either::through!(ClientStream, stream);
