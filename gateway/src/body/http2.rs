//! Content of one stream of HTTP/2, as it comes and as it goes, with the
//! stream's own flow control (RFC 9113 5.2). Knows no connection and no policy.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::header::{self, HeaderMap};
use http_body::{Body, Frame, SizeHint};

use super::{ContentError, Stopped};

/// Content as it comes.
pub(crate) struct ReceivedContent {
    stream: RecvStream,
    has_data: bool,
    /// What is left of the length that the head names.
    left: Option<u64>,
    /// Says that the content is wanted, once it is.
    waits: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl fmt::Debug for ReceivedContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Received")
            .field("stream", &self.stream)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl ReceivedContent {
    /// That of a message with these fields.
    pub(crate) fn new(stream: RecvStream, fields: &HeaderMap) -> Self {
        let length = fields.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Self {
            stream,
            has_data: true,
            left: length,
            waits: None,
        }
    }

    /// The same, of a client that waits until its content is wanted
    /// (RFC 9110 10.1.1), and is told so by `go_on`.
    pub(crate) fn awaited(mut self, go_on: impl FnOnce() + Send + Sync + 'static) -> Self {
        self.waits = Some(Box::new(go_on));
        self
    }
}

impl Body for ReceivedContent {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let own = self.get_mut();
        if let Some(go_on) = own.waits.take() {
            go_on();
        }
        if own.has_data {
            match ready!(own.stream.poll_data(context)) {
                Some(Ok(bytes)) => {
                    own.stream.flow_control().release_capacity(bytes.len())?;
                    let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    own.left = own.left.map(|left| left.saturating_sub(count));
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => own.has_data = false,
            }
        }
        let trailers = ready!(own.stream.poll_trailers(context));
        Poll::Ready(
            trailers
                .transpose()
                .map(|trailers| trailers.map(Frame::trailers)),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Sends content to its end, as fast as the other side takes it. Where either
/// fails, the stream is reset for the same reason; `tell` hears before why a filter stopped
/// it.
pub(crate) async fn pour(
    mut content: impl Body<Data = Bytes, Error = ContentError> + Unpin,
    mut stream: SendStream<Bytes>,
    tell: impl FnOnce(Stopped),
) {
    match pour_all(&mut content, &mut stream).await {
        Ok(()) => {}
        Err(PourFault::Reset(reason)) => stream.send_reset(reason),
        Err(PourFault::Stopped(stopped)) => {
            tell(stopped);
            stream.send_reset(Reason::CANCEL);
        }
    }
}

/// Why content did not come to its end.
#[derive(Debug)]
enum PourFault {
    Reset(Reason),
    Stopped(Stopped),
}

impl From<Reason> for PourFault {
    fn from(reason: Reason) -> Self {
        Self::Reset(reason)
    }
}

async fn pour_all(
    content: &mut (impl Body<Data = Bytes, Error = ContentError> + Unpin),
    stream: &mut SendStream<Bytes>,
) -> Result<(), PourFault> {
    let lost = |error: h2::Error| PourFault::Reset(error.reason().unwrap_or(Reason::CANCEL));
    loop {
        let next = poll_fn(|context| {
            // Nobody reads on: whoever still sends hears of it.
            if let Poll::Ready(reset) = stream.poll_reset(context) {
                return Poll::Ready(Err(reset.unwrap_or(Reason::CANCEL)));
            }
            Pin::new(&mut *content).poll_frame(context).map(Ok)
        });
        let frame = match next.await? {
            None => return stream.send_data(Bytes::new(), true).map_err(lost),
            Some(Err(ContentError::Http2(error))) => {
                return Err(error.reason().unwrap_or(Reason::INTERNAL_ERROR).into());
            }
            Some(Err(ContentError::Http1(_))) => return Err(Reason::INTERNAL_ERROR.into()),
            Some(Err(ContentError::Stopped(stopped))) => return Err(PourFault::Stopped(stopped)),
            Some(Ok(frame)) => frame,
        };
        match frame.into_data() {
            Ok(data) => {
                let is_last = content.is_end_stream();
                if !data.is_empty() {
                    // A claim on the connection's window only for what is there.
                    stream.reserve_capacity(1);
                    poll_fn(|context| poll_room(stream, context))
                        .await
                        .map_err(lost)?;
                }
                stream.send_data(data, is_last).map_err(lost)?;
                if is_last {
                    return Ok(());
                }
            }
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                stream.reserve_capacity(0);
                return stream.send_trailers(trailers).map_err(lost);
            }
        }
    }
}

/// Waits until the other side takes something.
pub(crate) fn poll_room(
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    if let Poll::Ready(reset) = stream.poll_reset(context) {
        return Poll::Ready(Err(reset?.into()));
    }
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Poll::Ready(Err(error)),
            None => return Poll::Ready(Err(Reason::CANCEL.into())),
        }
    }
    Poll::Ready(Ok(()))
}
