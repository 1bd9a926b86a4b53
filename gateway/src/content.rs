//! Message content on its way through its filters: streamed, never gathered but where a
//! filter asks for all of it, with back-pressure in both directions. Counts bytes
//! and keeps trailers from saying what only a head may say (RFC 9110 6.5.1).
//! Decides nothing, and knows no filter.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::body::{ContentError, Inner, Outbound, Polled, Traffic};
use crate::fields;
use crate::filter::{ContentFilter, StreamEnd};
use crate::origin::{Counted, Lease};
use crate::tasks::WorkPiece;

/// The content of one message.
#[derive(Debug)]
pub(crate) enum MessageContent {
    /// None, or a text of the gateway's own.
    Own(Option<Bytes>),
    /// From the client.
    Request(RequestContent),
    /// From the client, read to its end before anything is sent.
    Held(HeldContent),
    /// From the origin.
    Response(ResponseContent),
}

/// Content with the filters it passes.
#[derive(Debug)]
struct FilteredContent {
    inner: Inner,
    filters: Vec<Box<dyn ContentFilter>>,
    /// Trailers that wait for data that was held back.
    trailers: Option<HeaderMap>,
    /// Whether all of it was read, and its end.
    was_read: bool,
}

/// Content of a request.
#[derive(Debug)]
pub(crate) struct RequestContent {
    content: FilteredContent,
    traffic: Arc<Traffic>,
    /// Set once all of it was read: only then may the connection be reused.
    complete: Arc<AtomicBool>,
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
    content: FilteredContent,
    traffic: Arc<Traffic>,
    held: Option<HeldUntilRead>,
    /// Shows that the response is not over yet.
    during: Option<Arc<()>>,
    piece: Option<WorkPiece>,
}

/// What a response holds until it was read.
#[derive(Debug)]
pub(crate) enum HeldUntilRead {
    /// A connection, to be given back.
    Lease(Lease),
    /// A place among the streams of a connection.
    Stream(Counted),
}

impl HeldUntilRead {
    fn release(self) {
        match self {
            Self::Lease(lease) => lease.release(),
            Self::Stream(counted) => drop(counted),
        }
    }
}

impl MessageContent {
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

    /// Is under way as long as the content comes from somebody else.
    pub(crate) fn under_way(mut self, piece: WorkPiece) -> Self {
        if let Self::Response(content) = &mut self {
            content.piece = Some(piece);
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

impl FilteredContent {
    fn new(inner: Inner, filters: Vec<Box<dyn ContentFilter>>) -> Self {
        Self {
            inner,
            filters,
            trailers: None,
            was_read: false,
        }
    }

    /// The next frame that may go on; `came` is shown each as it comes in.
    fn poll(&mut self, context: &mut Context<'_>, came: impl Fn(&Frame<Bytes>)) -> Polled {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(context)).transpose()?;
            self.was_read |= frame.is_none();
            let frame = frame.map(clean);
            if let Some(frame) = &frame {
                came(frame);
            }
            if self.filters.is_empty() {
                return Poll::Ready(frame.map(Ok));
            }
            let (data, mut trailers) = split(frame);
            let is_over = data.is_none();
            let end = if is_over || self.inner.is_end_stream() {
                StreamEnd::Yes
            } else {
                StreamEnd::No
            };
            let mut data = data.unwrap_or_default();
            for filter in &mut self.filters {
                if let Some(trailers) = &mut trailers {
                    filter.trailers(trailers)?;
                }
                data = filter.pass(data, end)?;
            }
            self.trailers = trailers;
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if is_over && self.trailers.is_none() {
                return Poll::Ready(None);
            }
        }
    }

    fn waiting(&self) -> usize {
        let waiting = self.filters.iter().map(|filter| filter.waiting());
        waiting.fold(0, usize::saturating_add)
    }

    fn is_over(&self) -> bool {
        self.inner.is_end_stream() && self.waiting() == 0 && self.trailers.is_none()
    }

    fn replaces(&self) -> bool {
        self.filters.iter().any(|filter| filter.replaces())
    }

    fn size_hint(&self) -> SizeHint {
        if self.replaces() {
            return SizeHint::default();
        }
        let hint = self.inner.size_hint();
        let waiting = u64::try_from(self.waiting()).unwrap_or(u64::MAX);
        let mut sum = SizeHint::new();
        if let Some(upper) = hint.upper() {
            sum.set_upper(upper.saturating_add(waiting));
        }
        sum.set_lower(hint.lower().saturating_add(waiting));
        sum
    }
}

impl RequestContent {
    pub(crate) fn new(
        inner: Inner,
        filters: Vec<Box<dyn ContentFilter>>,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self {
            complete: Arc::new(AtomicBool::new(inner.is_end_stream())),
            content: FilteredContent::new(inner, filters),
            traffic,
        }
    }

    /// Set once all of it was read.
    pub(crate) fn complete(&self) -> &Arc<AtomicBool> {
        &self.complete
    }

    /// How much of it a filter wants to be read whole before anything is sent, in bytes.
    pub(crate) fn whole_bytes_max(&self) -> u64 {
        let filters = self.content.filters.iter();
        let bytes = filters.map(|filter| filter.whole_bytes_max());
        bytes.max().unwrap_or(0)
    }

    /// Whether it may become longer or shorter.
    pub(crate) fn replaces(&self) -> bool {
        self.content.replaces()
    }

    /// Reads all of it.
    pub(crate) async fn hold(mut self) -> Result<HeldContent, ContentError> {
        for filter in &mut self.content.filters {
            filter.hold();
        }
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
        let polled = ready!(self.content.poll(context, |_| ()));
        let was_read = self.content.was_read || self.content.inner.is_end_stream();
        if was_read && !matches!(polled, Some(Err(_))) {
            self.complete.store(true, Ordering::Relaxed);
        }
        if let Some(Ok(frame)) = &polled {
            count(frame, &self.traffic.up);
        }
        Poll::Ready(polled)
    }
}

impl ResponseContent {
    pub(crate) fn new(
        inner: Inner,
        filters: Vec<Box<dyn ContentFilter>>,
        (traffic, held): (&Arc<Traffic>, HeldUntilRead),
    ) -> Self {
        Self {
            content: FilteredContent::new(inner, filters),
            traffic: Arc::clone(traffic),
            held: Some(held),
            during: None,
            piece: None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        let traffic = &self.traffic.down;
        let polled = self.content.poll(context, |frame| count(frame, traffic));
        if self.content.was_read
            && let Some(held) = self.held.take()
        {
            held.release();
        }
        polled
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

impl Drop for ResponseContent {
    fn drop(&mut self) {
        // A reader stops at the last byte, without asking for the end.
        if self.content.inner.is_end_stream()
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

/// Counts what a frame holds, about as it is sent.
fn count(frame: &Frame<Bytes>, counter: &AtomicU64) {
    // Trailers carry as much as data.
    let data = frame.data_ref().map_or(0, Bytes::len);
    let length = data.saturating_add(frame.trailers_ref().map_or(0, fields::bytes));
    counter.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
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

impl Body for MessageContent {
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
            Self::Request(content) => content.content.is_over(),
            Self::Response(content) => content.content.is_over(),
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
            Self::Request(content) => content.content.size_hint(),
            Self::Response(content) => content.content.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use outgate_record::Reason;

    use super::*;
    use crate::body::{ReadAhead, Stopped};
    use crate::refusal::Refusal;

    /// Frames that are all there.
    #[derive(Debug)]
    struct Frames(VecDeque<Frame<Bytes>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = ContentError;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
            Poll::Ready(self.get_mut().0.pop_front().map(Ok))
        }
    }

    impl ReadAhead for Frames {
        fn read_ahead(
            &mut self,
        ) -> Pin<Box<dyn Future<Output = Result<(), ContentError>> + Send + '_>> {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    /// Puts one byte in the place of another, holds the last one back, and stops at `!`.
    #[derive(Debug)]
    struct Swap(u8, u8, BytesMut);

    impl ContentFilter for Swap {
        fn pass(&mut self, data: Bytes, end: StreamEnd) -> Result<Bytes, Stopped> {
            if data.contains(&b'!') {
                return Err(Stopped::refused(Refusal::own(Reason::Limit, "it", "why")));
            }
            let swap = |byte: &u8| if *byte == self.0 { self.1 } else { *byte };
            self.2.extend(data.iter().map(swap));
            let kept = usize::from(end == StreamEnd::No);
            Ok(self.2.split_to(self.2.len().saturating_sub(kept)).freeze())
        }

        fn waiting(&self) -> usize {
            self.2.len()
        }
    }

    /// What comes of texts and perhaps trailers behind these swaps: texts, then `+` for
    /// trailers, `-` for what was stopped.
    fn passed(swaps: &[(u8, u8)], texts: &[&'static str], trailers: Option<HeaderMap>) -> String {
        let mut frames: VecDeque<_> = texts
            .iter()
            .map(|text| Frame::data(Bytes::from_static(text.as_bytes())))
            .collect();
        frames.extend(trailers.map(Frame::trailers));
        let inner = Inner::Filtered(Box::new(Frames(frames)));
        let filters = swaps.iter().map(|(from, to)| {
            let swap: Box<dyn ContentFilter> = Box::new(Swap(*from, *to, BytesMut::new()));
            swap
        });
        let traffic = Arc::<Traffic>::default();
        let mut content = RequestContent::new(inner, filters.collect(), Arc::clone(&traffic));
        let complete = Arc::clone(content.complete());
        let mut context = Context::from_waker(Waker::noop());
        let (mut out, mut bytes) = (String::new(), 0);
        loop {
            match content.poll(&mut context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        bytes += u64::try_from(data.len()).unwrap();
                        out.push_str(std::str::from_utf8(&data).unwrap());
                    }
                    Err(_) => out.push('+'),
                },
                Poll::Ready(Some(Err(ContentError::Stopped(Stopped::Refused(why))))) => {
                    assert_eq!(why.because(), "why");
                    assert!(!complete.load(Ordering::Relaxed), "it was not read whole");
                    out.push('-');
                    break;
                }
                Poll::Ready(None) => {
                    assert!(complete.load(Ordering::Relaxed), "it was read whole");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(
            traffic.up.load(Ordering::Relaxed) >= bytes,
            "what left is counted"
        );
        out
    }

    #[test]
    fn content_passes_filters_in_their_order_and_trailers_come_last() {
        let fields = || {
            let mut fields = HeaderMap::new();
            fields.insert("x-sum", http::HeaderValue::from_static("1"));
            Some(fields)
        };
        for (swaps, texts, trailers, expected) in [
            (&[][..], &["ab", "c"][..], None, "abc"),
            (&[], &["ab", "c"], fields(), "abc+"),
            (&[(b'a', b'b')], &["ab", "ca"], fields(), "bbcb+"),
            // What the first makes the second sees, and not the other way round.
            (&[(b'a', b'b'), (b'b', b'c')], &["a", "b"], None, "cc"),
            (&[(b'b', b'c'), (b'a', b'b')], &["a", "b"], None, "bc"),
            (
                &[(b'a', b'b'), (b'b', b'c')],
                &["ab", "x"],
                fields(),
                "ccx+",
            ),
            (&[(b'a', b'b')], &["aa", "a!"], fields(), "b-"),
        ] {
            assert_eq!(
                passed(swaps, texts, trailers),
                expected,
                "{swaps:?} {texts:?}"
            );
        }
    }
}
