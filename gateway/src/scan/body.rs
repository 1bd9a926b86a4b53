//! The content of a request as it leaves the scan. The beginning is read before
//! anything is sent, so that the refusal of a short request is a clean one; what
//! comes later ends the request where it stands, and it never becomes whole.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout, timeout_at};

use super::Guard;
use crate::content::{ContentError, Inner};
use crate::limits;

/// Content on its way through a guard, where there is one.
#[derive(Debug)]
pub(crate) struct Screened {
    inner: Inner,
    guard: Option<Guard>,
    /// Read and cleared before anything was sent.
    ahead: VecDeque<Frame<Bytes>>,
    /// Trailers that wait for the last data.
    trailers: Option<HeaderMap>,
    stage: Stage,
    /// Others have a turn before the guard goes on.
    rests: bool,
    /// When what is held is let go although nothing follows.
    pause: Option<Pin<Box<Sleep>>>,
}

/// How far the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Coming,
    /// Nothing more comes into the guard.
    Ended,
    /// Nothing more comes out of it.
    Over,
}

type Polled = Poll<Option<Result<Frame<Bytes>, ContentError>>>;

impl Screened {
    pub(crate) fn new(inner: Inner, guard: Option<Guard>) -> Self {
        Self {
            stage: if inner.is_end_stream() {
                Stage::Over
            } else {
                Stage::Coming
            },
            rests: false,
            inner,
            guard,
            ahead: VecDeque::new(),
            trailers: None,
            pause: None,
        }
    }

    /// Reads the beginning: all of it where it is short and comes in time.
    ///
    /// # Errors
    /// It may not leave, or its sender ended it.
    pub(crate) async fn read_ahead(&mut self) -> Result<(), ContentError> {
        if self.guard.is_none() {
            return Ok(());
        }
        let most = limits::SCAN_AHEAD_BYTES_MAX;
        let length = self.inner.size_hint().exact();
        let is_short = length.is_some_and(|length| length <= most);
        let end = Instant::now() + limits::SCAN_AHEAD_TIME;
        let mut read: u64 = 0;
        while read < most && self.stage != Stage::Over {
            let next = poll_fn(|context| self.poll_screened(context));
            let next = if is_short {
                timeout_at(end, next).await
            } else {
                timeout(limits::SCAN_PAUSE_TIME, next).await
            };
            let Ok(Some(frame)) = next else { break };
            let frame = frame?;
            let count = frame.data_ref().map_or(0, Bytes::len);
            read = read.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            self.ahead.push_back(frame);
        }
        Ok(())
    }

    fn poll_screened(&mut self, context: &mut Context<'_>) -> Polled {
        loop {
            let Some(guard) = &mut self.guard else {
                let polled = ready!(Pin::new(&mut self.inner).poll_frame(context));
                return Poll::Ready(polled);
            };
            if self.stage == Stage::Over {
                return Poll::Ready(self.trailers.take().map(|own| Ok(Frame::trailers(own))));
            }
            if std::mem::take(&mut self.rests) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut bytes = Bytes::new();
            if guard.has_more() {
                bytes = guard.go_on()?;
            } else {
                let Poll::Ready(polled) = Pin::new(&mut self.inner).poll_frame(context) else {
                    if guard.waiting() == 0 {
                        return Poll::Pending;
                    }
                    let pause = self
                        .pause
                        .get_or_insert_with(|| Box::pin(sleep(limits::SCAN_PAUSE_TIME)));
                    ready!(pause.as_mut().poll(context));
                    // Once is enough: what is held now may still become a credential.
                    pause
                        .as_mut()
                        .reset(Instant::now() + limits::SCAN_HELD_TIME);
                    let bytes = guard.pause()?;
                    if bytes.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                };
                self.pause = None;
                match polled.transpose()?.map(Frame::into_data) {
                    Some(Ok(data)) => {
                        bytes = guard.pass(data)?;
                        if self.inner.is_end_stream() {
                            self.stage = Stage::Ended;
                        }
                    }
                    Some(Err(frame)) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        guard.trailers(&trailers)?;
                        self.trailers = Some(trailers);
                        self.stage = Stage::Ended;
                    }
                    None => self.stage = Stage::Ended,
                }
            }
            self.rests = guard.has_more();
            if self.stage == Stage::Ended && !self.rests {
                bytes = join(bytes, guard.finish()?);
                self.stage = Stage::Over;
            }
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }
}

fn join(first: Bytes, second: Bytes) -> Bytes {
    if first.is_empty() {
        return second;
    }
    if second.is_empty() {
        return first;
    }
    let mut both = BytesMut::with_capacity(first.len().saturating_add(second.len()));
    both.extend_from_slice(&first);
    both.extend_from_slice(&second);
    both.freeze()
}

impl Body for Screened {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let content = self.get_mut();
        match content.ahead.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => content.poll_screened(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        let nothing_waits = self.ahead.is_empty() && self.trailers.is_none();
        match &self.guard {
            None => self.inner.is_end_stream(),
            Some(_) => self.stage == Stage::Over && nothing_waits,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let Some(guard) = &self.guard else {
            return inner;
        };
        let ahead = self
            .ahead
            .iter()
            .filter_map(Frame::data_ref)
            .map(Bytes::len);
        let waiting = ahead.sum::<usize>().saturating_add(guard.waiting());
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(waiting));
        }
        hint.set_lower(inner.lower().saturating_add(waiting));
        hint
    }
}
