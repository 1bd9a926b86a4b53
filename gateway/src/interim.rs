//! Interim responses of origins (RFC 9110 15.2) on their way to the client of
//! an HTTP/1.1 connection. The server engine sends none but its own, so they
//! are put between what it writes: only where it has nothing half written, and
//! only before the final response exists. Decides nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http::{HeaderMap, StatusCode, Version, header};
use tokio::io::AsyncWrite;

use crate::fields;
use crate::limits;

/// The interim responses of one connection that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Interim {
    /// Whether there may be something to send: the lock is for then.
    pending: AtomicBool,
    queue: Mutex<InterimQueue>,
}

#[derive(Debug, Default)]
struct InterimQueue {
    /// Whether a request waits for its final response.
    open: bool,
    taken: usize,
    /// The rest of one that is being sent: nothing else may come before.
    current: Bytes,
    waiting: VecDeque<Bytes>,
    /// The task that writes to the client.
    writer: Option<Waker>,
}

impl Interim {
    /// A request is on its way to its origin.
    pub(crate) fn begin(&self) {
        if let Ok(mut queue) = self.queue.lock() {
            queue.open = true;
            queue.taken = 0;
        }
    }

    /// Its final response is there: what was not begun is too late.
    ///
    /// INVARIANT: called before the final response is given to the engine.
    pub(crate) fn end(&self) {
        if let Ok(mut queue) = self.queue.lock() {
            queue.open = false;
            queue.waiting.clear();
        }
    }

    /// Takes an interim response of the origin.
    pub(crate) fn offer(&self, status: StatusCode, fields: &HeaderMap) {
        let foreign = is_for_clients(status);
        let Ok(mut queue) = self.queue.lock() else {
            return;
        };
        if !foreign || !queue.open || queue.taken >= limits::INTERIM_MAX {
            return;
        }
        queue.taken += 1;
        queue.waiting.push_back(head(status, fields));
        self.pending.store(true, Ordering::Release);
        if let Some(writer) = queue.writer.take() {
            writer.wake();
        }
    }

    /// Finishes one that was begun; to be called before anything else is
    /// written.
    pub(crate) fn poll_finish(
        &self,
        stream: Pin<&mut (impl AsyncWrite + ?Sized)>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.pending.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let mut queue = self.queue.lock().map_err(|_| broken())?;
        send(&mut queue.current, stream, context)
    }

    /// Sends what is waiting; to be called where all else was written.
    pub(crate) fn poll_send(
        &self,
        mut stream: Pin<&mut (impl AsyncWrite + ?Sized)>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut queue = self.queue.lock().map_err(|_| broken())?;
        loop {
            ready!(send(&mut queue.current, stream.as_mut(), context))?;
            match queue.waiting.pop_front() {
                Some(next) => queue.current = next,
                None => break,
            }
        }
        self.pending.store(false, Ordering::Release);
        let known = queue.writer.as_ref();
        if !known.is_some_and(|writer| writer.will_wake(context.waker())) {
            queue.writer = Some(context.waker().clone());
        }
        Poll::Ready(Ok(()))
    }
}

fn broken() -> std::io::Error {
    std::io::ErrorKind::Other.into()
}

fn send(
    bytes: &mut Bytes,
    mut stream: Pin<&mut (impl AsyncWrite + ?Sized)>,
    context: &mut Context<'_>,
) -> Poll<std::io::Result<()>> {
    while bytes.has_remaining() {
        let count = ready!(stream.as_mut().poll_write(context, bytes))?;
        if count == 0 {
            return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
        }
        bytes.advance(count);
    }
    Poll::Ready(Ok(()))
}

/// Whether an interim response of an origin is for its client: `100` answers
/// an expectation, which is answered here, and `101` is no interim one.
pub(crate) fn is_for_clients(status: StatusCode) -> bool {
    let own = [StatusCode::CONTINUE, StatusCode::SWITCHING_PROTOCOLS];
    status.is_informational() && !own.contains(&status)
}

/// Its fields as they are passed on: an interim response has no content.
pub(crate) fn passed_on(fields: &HeaderMap, received: Version) -> HeaderMap {
    let mut fields = fields.clone();
    fields::strip_hop_by_hop(&mut fields);
    fields.remove(header::CONTENT_LENGTH);
    fields::add_via(&mut fields, received);
    fields
}

/// The head as it is sent.
fn head(status: StatusCode, fields: &HeaderMap) -> Bytes {
    let fields = passed_on(fields, Version::HTTP_11);
    let mut bytes = Vec::with_capacity(256);
    let reason = status.canonical_reason().unwrap_or_default();
    bytes.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
    for (name, value) in &fields {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn poll(
        interim: &Interim,
        stream: &mut tokio::io::DuplexStream,
        finish: impl FnOnce(
            &Interim,
            Pin<&mut tokio::io::DuplexStream>,
            &mut Context<'_>,
        ) -> Poll<std::io::Result<()>>,
    ) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        finish(interim, Pin::new(stream), &mut context).is_ready()
    }

    #[test]
    fn one_that_was_begun_is_finished_and_others_are_dropped() {
        let interim = Interim::default();
        interim.begin();
        for _ in 0..2 {
            interim.offer(StatusCode::EARLY_HINTS, &HeaderMap::new());
        }
        let (mut ours, mut theirs) = tokio::io::duplex(10);
        assert!(!poll(&interim, &mut ours, Interim::poll_send));
        interim.end();
        assert!(!poll(&interim, &mut ours, Interim::poll_finish));
        let mut got = Vec::new();
        let mut sip = [0; 10];
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        loop {
            let count = runtime.block_on(theirs.read(&mut sip)).unwrap();
            got.extend_from_slice(&sip[..count]);
            if poll(&interim, &mut ours, Interim::poll_finish) {
                break;
            }
        }
        assert!(poll(&interim, &mut ours, Interim::poll_send));
        drop(ours);
        runtime.block_on(theirs.read_to_end(&mut got)).unwrap();
        let text = String::from_utf8(got).unwrap();
        assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nvia: 1.1 outgate\r\n\r\n");
    }

    #[test]
    fn only_what_the_origin_says_beforehand_is_taken_and_within_a_bound() {
        let interim = Interim::default();
        let waiting = |interim: &Interim| interim.queue.lock().unwrap().waiting.len();
        interim.offer(StatusCode::EARLY_HINTS, &HeaderMap::new());
        assert_eq!(waiting(&interim), 0, "nobody asked");
        interim.begin();
        for status in [100, 101, 200] {
            interim.offer(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
        }
        assert_eq!(waiting(&interim), 0);
        for _ in 0..limits::INTERIM_MAX + 5 {
            interim.offer(StatusCode::PROCESSING, &HeaderMap::new());
        }
        assert_eq!(waiting(&interim), limits::INTERIM_MAX);
        interim.end();
        interim.offer(StatusCode::PROCESSING, &HeaderMap::new());
        assert_eq!(waiting(&interim), 0);
    }
}
