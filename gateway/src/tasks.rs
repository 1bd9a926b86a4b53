//! The tasks of one sandbox: each ends with it at the latest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::task::JoinSet;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Runs one of them.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(mut tasks) = self.0.lock() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// Ends every one.
    pub(crate) async fn end(&self) {
        let mut tasks = match self.0.lock() {
            Ok(mut tasks) => std::mem::take(&mut *tasks),
            Err(_) => JoinSet::new(),
        };
        tasks.shutdown().await;
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
