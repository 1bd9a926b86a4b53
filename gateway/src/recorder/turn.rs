//! Gives way once: what other tasks do in the same turn of the event loop can be
//! done together with what this one does.

use std::future::poll_fn;
use std::task::Poll;

/// Lets every task that is ready now have its turn.
pub(super) async fn turn() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
