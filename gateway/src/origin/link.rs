//! A connection to an origin: TCP, or TLS with the origin verified.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use outgate_handoff::Process;
use outgate_policy::Host;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::{OriginError, connect};
use crate::session::Session;
use crate::tls::{Alpn, Carrier, Offer};

/// The connection.
#[derive(Debug)]
pub(crate) enum Link {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Where a link leads, and on whose behalf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) session: &'a Session,
    pub(crate) process: &'a Process,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) carrier: Carrier,
}

impl Link {
    /// Connects; for TLS, the version of HTTP is one of those offered.
    pub(crate) async fn open(way: Way<'_>, offer: Offer) -> Result<Self, OriginError> {
        let Way {
            session,
            process,
            host,
            port,
            carrier,
        } = way;
        let stream = connect(session, process, host, port).await?;
        let failed = |why| OriginError::Tls(format!("{host}:{port}"), why);
        match (carrier, session.tls()) {
            (Carrier::Plain, _) => Ok(Self::Plain(stream)),
            (Carrier::Tls(called), Some(tls)) => {
                let opened = tls.upstream().connect(stream, (host, called), offer).await;
                let link = Self::Tls(Box::new(opened.map_err(failed)?));
                // An origin may leave open what it speaks; what was not agreed
                // on would be read as something else.
                if offer == Offer::Only(Alpn::Http2) && link.alpn() != Alpn::Http2 {
                    tls.forget((host, port), called);
                    return Err(failed("it does not speak HTTP/2".to_owned()));
                }
                Ok(link)
            }
            (Carrier::Tls(_), None) => {
                Err(failed("TLS is not opened under this policy".to_owned()))
            }
        }
    }

    /// The version of HTTP that TLS agreed on.
    pub(crate) fn alpn(&self) -> Alpn {
        match self {
            Self::Plain(_) => Alpn::Http1,
            Self::Tls(stream) => Alpn::of(stream.get_ref().1.alpn_protocol()),
        }
    }
}

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
