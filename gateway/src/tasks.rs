//! The tasks of one sandbox: each ends with it at the latest.

use std::sync::Mutex;

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
