//! Message content on its way through: streamed, never gathered but where it
//! may hold a placeholder, with back-pressure in both directions. Counts bytes
//! and keeps trailers from saying what only a head may say (RFC 9110 6.5.1).
//! Decides nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::body::{ContentError, Inner, Outbound, Polled, Traffic};
use crate::broker::{Last, Masked, Watch};
use crate::budget::{Purse, field_bytes};
use crate::fields;
use crate::origin::{Counted, Lease};
use crate::overrides::Form;
use crate::scan::{Returns, Screened};

/// The content of one message.
#[derive(Debug)]
pub(crate) enum Content {
    /// None, or a text of the gateway's own.
    Own(Option<Bytes>),
    /// From the client.
    Request(RequestContent),
    /// From the client, read to its end before anything is sent.
    Held(HeldContent),
    /// From the origin.
    Response(ResponseContent),
}

/// Content of a request.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) inner: Screened,
    pub(crate) traffic: Arc<Traffic>,
    /// Set once all of it was read: only then may the connection be reused.
    pub(crate) complete: Arc<AtomicBool>,
    /// What looks for placeholders, where the session has secrets.
    pub(crate) watch: Option<Box<Watch>>,
    /// What its bytes are spent from, where a rule says how many may leave.
    pub(crate) purse: Option<Purse>,
    /// What looks for another method, where the rules tell methods apart.
    pub(crate) form: Option<Box<Form>>,
    /// Trailers that wait for data that was held back.
    pub(crate) trailers: Option<HeaderMap>,
}

/// Content that was read whole.
#[derive(Debug, Default)]
pub(crate) struct HeldContent {
    pub(crate) data: Option<Bytes>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Content of a response; holds the connection it comes from.
#[derive(Debug)]
pub(crate) struct ResponseContent {
    pub(crate) inner: Inner,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) held: Option<Held>,
    /// Shows that the response is not over yet.
    pub(crate) during: Option<Arc<()>>,
    /// What masks values, where the session has secrets.
    pub(crate) masked: Option<Box<Masked>>,
    /// What looks for canaries, where there are any.
    pub(crate) returns: Option<Box<Returns>>,
    /// Trailers that wait for data that was held back.
    pub(crate) trailers: Option<HeaderMap>,
}

/// What a response holds until it was read.
#[derive(Debug)]
pub(crate) enum Held {
    /// A connection, to be given back.
    Lease(Lease),
    /// A place among the streams of a connection.
    Stream(Counted),
}

impl Held {
    fn release(self) {
        match self {
            Self::Lease(lease) => lease.release(),
            Self::Stream(counted) => drop(counted),
        }
    }
}

impl Content {
    pub(crate) fn empty() -> Self {
        Self::Own(None)
    }

    /// Keeps this as long as the content comes from somebody else.
    pub(crate) fn during(mut self, over: Arc<()>) -> Self {
        if let Self::Response(content) = &mut self {
            content.during = Some(over);
        }
        self
    }

    pub(crate) fn text(text: String) -> Self {
        Self::Own(Some(Bytes::from(text)))
    }

    /// On its way to an origin.
    pub(crate) fn outbound(self) -> Outbound {
        match self {
            Self::Own(None) => Outbound::None,
            some => Outbound::Some(Box::pin(some)),
        }
    }
}

impl RequestContent {
    pub(crate) fn new(inner: Screened, traffic: Arc<Traffic>) -> Self {
        let complete = Arc::new(AtomicBool::new(inner.is_end_stream()));
        Self {
            inner,
            traffic,
            complete,
            watch: None,
            purse: None,
            form: None,
            trailers: None,
        }
    }

    /// Reads all of it.
    pub(crate) async fn hold(mut self) -> Result<HeldContent, ContentError> {
        let mut data = BytesMut::new();
        let mut trailers = None;
        while let Some(frame) = poll_fn(|context| self.poll(context)).await {
            match frame?.into_data() {
                Ok(piece) => data.extend_from_slice(&piece),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        let data = Some(data.freeze()).filter(|data| !data.is_empty());
        Ok(HeldContent { data, trailers })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            let polled = ready!(Pin::new(&mut self.inner).poll_frame(context)).transpose()?;
            let last = if polled.is_none() || self.inner.is_end_stream() {
                self.complete.store(true, Ordering::Relaxed);
                Last::Yes
            } else {
                Last::No
            };
            let frame = polled.map(clean);
            if let (Some(purse), Some(frame)) = (&self.purse, &frame) {
                purse.spend(length(frame))?;
            }
            if let Some(form) = &mut self.form {
                let data = frame.as_ref().and_then(Frame::data_ref);
                data.map_or(Ok(()), |data| form.read(data))?;
                if last == Last::Yes {
                    form.finish()?;
                }
            }
            let frame = frame.map(|frame| count(frame, &self.traffic.up));
            let Some(watch) = &mut self.watch else {
                return Poll::Ready(frame.map(Ok));
            };
            let (data, trailers) = split(frame);
            if let Some(trailers) = &trailers {
                watch.trailers(trailers)?;
            }
            let ended = data.is_none();
            let last = if ended { Last::Yes } else { last };
            let data = watch.pass(&data.unwrap_or_default(), last)?;
            self.trailers = trailers;
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if ended && self.trailers.is_none() {
                return Poll::Ready(None);
            }
        }
    }

    fn is_over(&self) -> bool {
        let waits = self.watch.as_ref().is_some_and(|watch| watch.waiting() > 0);
        self.inner.is_end_stream() && !waits && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.watch {
            None => self.inner.size_hint(),
            Some(watch) if watch.replaces() => SizeHint::default(),
            Some(watch) => with_waiting(&self.inner.size_hint(), watch.waiting()),
        }
    }
}

impl ResponseContent {
    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            let polled = ready!(Pin::new(&mut self.inner).poll_frame(context)).transpose()?;
            if polled.is_none()
                && let Some(held) = self.held.take()
            {
                held.release();
            }
            let frame = polled.map(|frame| count(clean(frame), &self.traffic.down));
            if let (Some(returns), Some(frame)) = (&mut self.returns, &frame) {
                match (frame.data_ref(), frame.trailers_ref()) {
                    (Some(data), _) => returns.content(data),
                    (None, Some(trailers)) => returns.fields(trailers),
                    (None, None) => {}
                }
            }
            let Some(masked) = &mut self.masked else {
                return Poll::Ready(frame.map(Ok));
            };
            let (data, mut trailers) = split(frame);
            if let Some(trailers) = &mut trailers {
                masked.fields(trailers);
            }
            let ended = data.is_none();
            let last = ended || self.inner.is_end_stream();
            let last = if last { Last::Yes } else { Last::No };
            let data = masked.pass(data.unwrap_or_default(), last)?;
            self.trailers = trailers;
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if ended && self.trailers.is_none() {
                return Poll::Ready(None);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.masked.as_ref().map_or(0, |masked| masked.waiting())
    }
}

/// Data and trailers of a frame; neither at the end.
fn split(frame: Option<Frame<Bytes>>) -> (Option<Bytes>, Option<HeaderMap>) {
    match frame.map(Frame::into_data) {
        None => (None, None),
        Some(Ok(data)) => (Some(data), None),
        Some(Err(frame)) => (None, frame.into_trailers().ok()),
    }
}

fn with_waiting(hint: &SizeHint, waiting: usize) -> SizeHint {
    let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
    let mut sum = SizeHint::new();
    if let Some(upper) = hint.upper() {
        sum.set_upper(upper.saturating_add(waiting));
    }
    sum.set_lower(hint.lower().saturating_add(waiting));
    sum
}

impl Drop for ResponseContent {
    fn drop(&mut self) {
        // A reader stops at the last byte, without asking for the end.
        if self.inner.is_end_stream()
            && let Some(held) = self.held.take()
        {
            held.release();
        }
    }
}

/// Filters trailers.
fn clean(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        filter(trailers);
    }
    frame
}

/// Counts what a frame holds.
fn count(frame: Frame<Bytes>, counter: &AtomicU64) -> Frame<Bytes> {
    let length = u64::try_from(length(&frame)).unwrap_or(u64::MAX);
    counter.fetch_add(length, Ordering::Relaxed);
    frame
}

/// About how many bytes a frame has as it is sent: trailers carry as much as data.
fn length(frame: &Frame<Bytes>) -> usize {
    let data = frame.data_ref().map_or(0, Bytes::len);
    data.saturating_add(frame.trailers_ref().map_or(0, field_bytes))
}

fn filter(trailers: &mut HeaderMap) {
    let forbidden: Vec<_> = trailers
        .keys()
        .filter(|name| fields::is_forbidden_trailer(name))
        .cloned()
        .collect();
    for name in forbidden {
        trailers.remove(name);
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::Own(text) => Poll::Ready(text.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Held(content) => {
                let data = content.data.take().map(Frame::data);
                let frame = data.or_else(|| content.trailers.take().map(Frame::trailers));
                Poll::Ready(frame.map(Ok))
            }
            Self::Request(content) => content.poll(context),
            Self::Response(content) => content.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Held(content) => content.data.is_none() && content.trailers.is_none(),
            Self::Request(content) => content.is_over(),
            Self::Response(content) => {
                let waits = content.waiting() > 0 || content.trailers.is_some();
                content.inner.is_end_stream() && !waits
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => {
                let length = text.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Held(content) => {
                let length = content.data.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Request(content) => content.size_hint(),
            Self::Response(content) => with_waiting(&content.inner.size_hint(), content.waiting()),
        }
    }
}
