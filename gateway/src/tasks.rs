//! The tasks of one sandbox: each ends with it at the latest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::task::JoinSet;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<TaskSet>);

/// Those that run; nothing once they were ended.
#[derive(Debug)]
struct TaskSet(Option<JoinSet<()>>);

impl Default for TaskSet {
    fn default() -> Self {
        Self(Some(JoinSet::new()))
    }
}

impl Tasks {
    /// Runs one of them; none once all were ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(mut tasks) = self.0.lock()
            && let Some(tasks) = &mut tasks.0
        {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// Ends every one, for good.
    pub(crate) async fn end(&self) {
        let tasks = self.0.lock().ok().and_then(|mut tasks| tasks.0.take());
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn nothing_begins_once_all_were_ended() {
        let tasks = Tasks::default();
        let alive = Arc::new(());
        for _ in 0..2 {
            let held = Arc::clone(&alive);
            tasks.spawn(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
            tasks.end().await;
            assert_eq!(Arc::strong_count(&alive), 1);
        }
    }
}

/// Work that a gateway finishes before it ends: requests, and what is relayed.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    count: AtomicUsize,
    none: Notify,
}

/// One piece of it; over when dropped.
#[derive(Debug)]
pub(crate) struct WorkPiece(Arc<UnderWay>);

impl UnderWay {
    /// Begins one.
    pub(crate) fn begin(self: &Arc<Self>) -> WorkPiece {
        self.count.fetch_add(1, Ordering::Relaxed);
        WorkPiece(Arc::clone(self))
    }

    /// How much there is.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns once there is nothing.
    pub(crate) async fn none(&self) {
        loop {
            let over = self.none.notified();
            if self.count() == 0 {
                return;
            }
            over.await;
        }
    }
}

impl Drop for WorkPiece {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
