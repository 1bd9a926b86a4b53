//! The content of a request as it leaves the scan. The beginning is read before
//! anything is sent, so that the refusal of a short request is a clean one; what
//! comes later ends the request where it stands, and it never becomes whole.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout, timeout_at};

use super::Guard;
use super::apart::Apart;
use super::input::Input;
use super::passing::{AfterPieces, Passing};
use crate::body::{ContentError, Inner, Polled, ReadAhead, Stopped};
use crate::limits;

/// Content on its way through a guard.
#[derive(Debug)]
pub(crate) struct Screened {
    input: Box<Input>,
    keeper: GuardHolder,
    /// How many bytes came into the guard.
    taken: u64,
    /// How long the scan has taken here.
    spent: Duration,
    /// Where the guard goes on.
    course: ScanCourse,
    /// How much was gathered when others last had a turn to send more.
    gathered: usize,
    /// Read and cleared before anything was sent.
    ahead: VecDeque<Frame<Bytes>>,
    /// Cleared by another thread.
    cleared: VecDeque<Bytes>,
    /// Trailers that wait for the last data.
    trailers: Option<Box<HeaderMap>>,
    stage: ContentStage,
    /// Others have a turn before the guard goes on.
    rests: bool,
    /// When what is held is let go although nothing follows.
    pause: Option<Pin<Box<Sleep>>>,
}

/// Who has the guard.
#[derive(Debug)]
enum GuardHolder {
    Here(Guard),
    /// A thread, and some pieces with it: so many bytes wait there.
    Apart(Box<Apart<Passing>>, usize),
    /// Nobody, and nothing more goes on.
    Lost,
}

/// Where content is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanCourse {
    Here,
    /// Beside, from here on.
    Apart,
}

/// Who goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// This content.
    Here,
    Others,
}

/// How far the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentStage {
    Coming,
    /// Nothing more comes into the guard.
    Ended,
    /// Nothing more comes out of it.
    Over,
}

impl Screened {
    pub(super) fn new(inner: Inner, guard: Guard) -> Self {
        Self {
            stage: if inner.is_end_stream() {
                ContentStage::Over
            } else {
                ContentStage::Coming
            },
            rests: false,
            input: Box::new(Input::new(inner)),
            keeper: GuardHolder::Here(guard),
            taken: 0,
            spent: Duration::ZERO,
            course: ScanCourse::Here,
            gathered: 0,
            ahead: VecDeque::new(),
            cleared: VecDeque::new(),
            trailers: None,
            pause: None,
        }
    }

    /// Reads the beginning: all of it where it is short and comes in time.
    ///
    /// # Errors
    /// It may not leave, or its sender ended it.
    async fn read_all_ahead(&mut self) -> Result<(), ContentError> {
        let most = limits::SCAN_AHEAD_BYTES_MAX;
        let length = self.input.size_hint().exact();
        let is_short = length.is_some_and(|length| length <= most);
        let end = Instant::now() + limits::SCAN_AHEAD_TIME;
        let mut read: u64 = 0;
        while read < most && self.stage != ContentStage::Over {
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
            if let Some(bytes) = self.cleared.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if matches!(self.keeper, GuardHolder::Apart(..)) {
                ready!(self.poll_apart(context))?;
                continue;
            }
            if self.stage == ContentStage::Over {
                return Poll::Ready(self.trailers.take().map(|own| Ok(Frame::trailers(*own))));
            }
            if std::mem::take(&mut self.rests) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.goes_apart() {
                ready!(self.poll_depart(context))?;
                continue;
            }
            let began = Instant::now();
            let polled = self.poll_here(context);
            self.spent = self.spent.saturating_add(began.elapsed());
            let bytes = ready!(polled)?;
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    /// Gives the guard here what comes next; the result is what it lets go.
    fn poll_here(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, ContentError>> {
        let GuardHolder::Here(guard) = &mut self.keeper else {
            return Poll::Ready(Err(Stopped::Lost.into()));
        };
        let mut bytes = Bytes::new();
        if guard.has_more() {
            bytes = guard.go_on()?;
        } else if self.stage == ContentStage::Coming {
            let Poll::Ready(polled) = self.input.poll_next(context) else {
                ready!(self.poll_pause(context));
                let GuardHolder::Here(guard) = &mut self.keeper else {
                    return Poll::Ready(Err(Stopped::Lost.into()));
                };
                return Poll::Ready(guard.pause().map_err(Into::into));
            };
            self.pause = None;
            match polled.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => {
                    self.taken = self.taken.saturating_add(wide(data.len()));
                    bytes = guard.pass(data)?;
                    if self.input.is_end_stream() {
                        self.stage = ContentStage::Ended;
                    }
                }
                Some(Err(frame)) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    guard.trailers(&trailers)?;
                    self.trailers = Some(Box::new(trailers));
                    self.stage = ContentStage::Ended;
                }
                None => self.stage = ContentStage::Ended,
            }
        }
        self.rests = guard.has_more();
        if self.stage == ContentStage::Ended && !self.rests && !guard.goes_apart() {
            bytes = join(bytes, guard.finish()?);
            if !guard.goes_apart() {
                self.stage = ContentStage::Over;
            }
        }
        Poll::Ready(Ok(bytes))
    }

    /// Whether the guard goes on beside, and from there on always does: it is long, or takes
    /// long.
    fn goes_apart(&mut self) -> bool {
        let GuardHolder::Here(guard) = &self.keeper else {
            return false;
        };
        let is_long = self.taken >= limits::SCAN_LONG_BYTES || self.spent >= limits::SCAN_HERE_TIME;
        if is_long || guard.goes_apart() {
            self.course = ScanCourse::Apart;
        }
        self.course == ScanCourse::Apart
    }

    /// Gathers what there is. Where that is more than the last time, others have a turn
    /// first, who may send more; without more nobody waits.
    fn gather(&mut self, context: &mut Context<'_>) -> Next {
        self.input.gather(context, limits::SCAN_APART_BYTES);
        let now = self.input.gathered();
        let before = std::mem::replace(&mut self.gathered, now);
        let is_growing = now > before && now < limits::SCAN_APART_BYTES;
        if !is_growing || self.input.has_ended() {
            self.gathered = 0;
            return Next::Here;
        }
        context.waker().wake_by_ref();
        Next::Others
    }

    /// Sends the guard to a thread with what was gathered, once there is something to do.
    fn poll_depart(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ContentError>> {
        if self.stage == ContentStage::Ended {
            return Poll::Ready(
                self.depart(VecDeque::new(), AfterPieces::Ends)
                    .map_err(Into::into),
            );
        }
        if self.gather(context) == Next::Others {
            return Poll::Pending;
        }
        let bytes = self.input.gathered();
        if bytes > 0 {
            self.pause = None;
            self.taken = self.taken.saturating_add(wide(bytes));
            let pieces = self.input.take();
            let then = if self.input.is_end_stream() {
                self.stage = ContentStage::Ended;
                AfterPieces::Ends
            } else {
                AfterPieces::Goes
            };
            return Poll::Ready(self.depart(pieces, then).map_err(Into::into));
        }
        if !self.input.has_ended() {
            // What was broken off begins anew at once.
            if !matches!(&self.keeper, GuardHolder::Here(guard) if guard.is_broken_off()) {
                ready!(self.poll_pause(context));
            }
            return Poll::Ready(
                self.depart(VecDeque::new(), AfterPieces::Pauses)
                    .map_err(Into::into),
            );
        }
        // What comes behind the last data is no data.
        let last = ready!(self.input.poll_next(context)).transpose()?;
        self.stage = ContentStage::Ended;
        if let Some(Err(frame)) = last.map(Frame::into_data) {
            let trailers = frame.into_trailers().unwrap_or_default();
            if let GuardHolder::Here(guard) = &mut self.keeper {
                guard.trailers(&trailers)?;
            }
            self.trailers = Some(Box::new(trailers));
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until what is held is to be let go although nothing follows.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let GuardHolder::Here(guard) = &self.keeper else {
            return Poll::Pending;
        };
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
        Poll::Ready(())
    }

    fn depart(&mut self, pieces: VecDeque<Bytes>, then: AfterPieces) -> Result<(), Stopped> {
        let GuardHolder::Here(guard) = std::mem::replace(&mut self.keeper, GuardHolder::Lost)
        else {
            return Err(Stopped::Lost);
        };
        let passing = Passing::new(guard, pieces, then);
        let waiting = passing.waiting();
        self.keeper = GuardHolder::Apart(Box::new(Apart::begin(passing)), waiting);
        Ok(())
    }

    /// Waits for the guard, and gathers meanwhile.
    fn poll_apart(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Stopped>> {
        self.input.gather(context, limits::SCAN_APART_BYTES);
        let GuardHolder::Apart(apart, _) = &mut self.keeper else {
            return Poll::Ready(Ok(()));
        };
        let brought = ready!(apart.poll(context));
        // Until all is well, nobody has it.
        self.keeper = GuardHolder::Lost;
        let (guard, cleared, then) = brought?.end()?;
        if then == AfterPieces::Ends {
            self.stage = ContentStage::Over;
        }
        self.cleared = cleared;
        self.keeper = GuardHolder::Here(guard);
        Poll::Ready(Ok(()))
    }
}

impl ReadAhead for Screened {
    fn read_ahead(
        &mut self,
    ) -> Pin<Box<dyn Future<Output = Result<(), ContentError>> + Send + '_>> {
        Box::pin(self.read_all_ahead())
    }
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
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
        let nothing_waits =
            self.ahead.is_empty() && self.cleared.is_empty() && self.trailers.is_none();
        self.stage == ContentStage::Over && nothing_waits
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.input.size_hint();
        let held = match &self.keeper {
            GuardHolder::Here(guard) => guard.waiting(),
            GuardHolder::Apart(_, waiting) => *waiting,
            GuardHolder::Lost => 0,
        };
        let ahead = self
            .ahead
            .iter()
            .filter_map(Frame::data_ref)
            .map(Bytes::len);
        let cleared = self.cleared.iter().map(Bytes::len);
        let waiting = ahead
            .chain(cleared)
            .sum::<usize>()
            .saturating_add(held)
            .saturating_add(self.input.gathered());
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(waiting));
        }
        hint.set_lower(inner.lower().saturating_add(waiting));
        hint
    }
}
