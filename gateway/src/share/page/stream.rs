//! What an open page reads: the state now and then, and events as they come, as server-sent
//! events. Who does not read is let go; what was too much meanwhile is counted, not kept.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::LivePage;
use crate::share::SharedGateway;

/// How long one connection reads; then the browser comes again by itself.
pub(super) const PAGE_TIME: Duration = Duration::from_hours(1);
/// How often there are events.
const EVENTS_TIME: Duration = Duration::from_millis(500);
/// How often there is a state.
const STATES_TIME: Duration = Duration::from_secs(1);
/// How long who reads may leave a message unread.
const UNREAD_TIME: Duration = Duration::from_secs(10);
/// Messages that wait to be read.
const MESSAGES_MAX: usize = 2;

/// Messages for one page.
#[derive(Debug)]
pub(super) struct EventStream(mpsc::Receiver<Bytes>);

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.0.poll_recv(context);
        message.map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Begins to tell a page, which holds a place for as long as it listens.
pub(super) fn begin(
    shared: Arc<SharedGateway>,
    page: Arc<LivePage>,
    place: OwnedSemaphorePermit,
) -> EventStream {
    let (sender, messages) = mpsc::channel(MESSAGES_MAX);
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&shared, &page, &sender) => {}
            () = sender.closed() => {}
        }
        drop(place);
    });
    EventStream(messages)
}

async fn tell(shared: &Arc<SharedGateway>, page: &LivePage, to: &mpsc::Sender<Bytes>) {
    let feed = shared.audit.feed();
    let _watcher = feed.watch();
    let mut next = feed.next();
    let mut state_due = Instant::now();
    loop {
        let mut message = Vec::new();
        let now = Instant::now();
        if now >= state_due {
            state_due = now + STATES_TIME;
            add(&mut message, "state", &page.state(shared).await);
        }
        let events = feed.since(next);
        next = events.next;
        if !events.events.is_empty() || events.dropped > 0 {
            add(&mut message, "events", events.json().as_bytes());
        }
        if !message.is_empty() {
            let sent = timeout(UNREAD_TIME, to.send(message.into()));
            if !matches!(sent.await, Ok(Ok(()))) {
                return;
            }
        }
        sleep(EVENTS_TIME).await;
    }
}

/// One message; `data` has no line end, as JSON has none.
fn add(message: &mut Vec<u8>, name: &str, data: &[u8]) {
    for part in [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"] {
        message.extend_from_slice(part);
    }
}
