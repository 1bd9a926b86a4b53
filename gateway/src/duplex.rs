//! A stream of HTTP/2 as a connection of its own, once both ends agreed to
//! speak something else on it (RFC 9113 8.5, RFC 8441).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use outgate_dlp::span;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::poll_room;

/// Bytes that one write takes at most: a frame that every receiver takes.
const WRITE_BYTES_MAX: usize = 16 * 1024;

/// Both directions of the stream. Dropped before its end, it is reset.
#[derive(Debug)]
pub(crate) struct Duplex {
    sent: SendStream<Bytes>,
    received: RecvStream,
    read: Bytes,
}

impl Duplex {
    pub(crate) fn new(sent: SendStream<Bytes>, received: RecvStream) -> Self {
        Self {
            sent,
            received,
            read: Bytes::new(),
        }
    }
}

fn failed(error: h2::Error) -> io::Error {
    io::Error::other(error)
}

impl AsyncRead for Duplex {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        while own.read.is_empty() {
            match ready!(own.received.poll_data(context)) {
                Some(Ok(bytes)) => own.read = bytes,
                Some(Err(error)) => return Poll::Ready(Err(failed(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = own.read.len().min(buffer.remaining());
        buffer.put_slice(span::upto(&own.read, count));
        own.read.advance(count);
        let released = own.received.flow_control().release_capacity(count);
        Poll::Ready(released.map_err(failed))
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let own = self.get_mut();
        let wanted = bytes.len().min(WRITE_BYTES_MAX);
        own.sent.reserve_capacity(wanted);
        ready!(poll_room(&mut own.sent, context)).map_err(failed)?;
        let count = wanted.min(own.sent.capacity());
        let data = Bytes::copy_from_slice(span::upto(bytes, count));
        let sent = own.sent.send_data(data, false);
        Poll::Ready(sent.map(|()| count).map_err(failed))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.get_mut().sent.send_data(Bytes::new(), true);
        Poll::Ready(sent.map_err(failed))
    }
}
