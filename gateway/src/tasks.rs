//! The tasks of one sandbox: each ends with it at the latest.

use std::sync::Mutex;

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
