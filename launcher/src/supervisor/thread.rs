//! The thread of the supervisor: there before the command is, so that nothing it needs can
//! be used up by then.

use std::io;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use outgate_sys::alarm::CallAlarm;

use super::{ServedCalls, SupervisorSetting, supervise};
use crate::limits::WAIT_MAX;
use crate::voice::Voice;

/// How many words each side has room for: one is said about readiness, and two orders.
const WORDS: usize = 2;

/// What the thread is told.
enum ThreadOrder<'scope> {
    /// Something to do while the run gets ready.
    Aside(Box<dyn FnOnce() + Send + 'scope>),
    /// The command to supervise.
    Begin(Box<SupervisorSetting>, &'scope mut dyn Voice),
}

/// A thread that waits for a command to supervise. It ends without one where this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Prepared<'scope> {
    thread: ScopedJoinHandle<'scope, ServedCalls>,
    is_ready: Receiver<io::Result<()>>,
    orders: SyncSender<ThreadOrder<'scope>>,
}

/// What comes of something that is done aside. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct Aside<T>(Receiver<T>);

impl<T> Aside<T> {
    /// Waits for it.
    ///
    /// # Errors
    /// `EPIPE`: nothing comes any more.
    pub(crate) fn wait(&self) -> io::Result<T> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.recv().map_err(gone)
    }
}

impl<T> Drop for Aside<T> {
    fn drop(&mut self) {
        drop(self.0.recv());
    }
}

impl<'scope> Prepared<'scope> {
    /// Starts the thread. The signals that it must not take are blocked by now.
    ///
    /// # Errors
    /// `EAGAIN` where the user has too many threads.
    pub(crate) fn start(scope: &'scope Scope<'scope, '_>) -> io::Result<Self> {
        let (ready, is_ready) = sync_channel(WORDS);
        let (orders, told) = sync_channel::<ThreadOrder<'scope>>(WORDS);
        let wait = move || {
            let alarm = match CallAlarm::new(WAIT_MAX) {
                Ok(alarm) => alarm,
                Err(error) => {
                    drop(ready.send(Err(error)));
                    return ServedCalls::default();
                }
            };
            drop(ready.send(Ok(())));
            let (setting, voice) = loop {
                match told.recv() {
                    Ok(ThreadOrder::Aside(act)) => act(),
                    Ok(ThreadOrder::Begin(setting, voice)) => break (setting, voice),
                    Err(_) => return ServedCalls::default(),
                }
            };
            // Who answers held calls must not wait behind the crowd that makes them.
            outgate_sys::schedule::take_short_turns();
            supervise(*setting, alarm, voice)
        };
        let thread = Builder::new().name("outgate-calls".to_owned());
        let thread = thread.spawn_scoped(scope, wait)?;
        Ok(Self {
            thread,
            is_ready,
            orders,
        })
    }

    /// Does something on the thread, which has nothing else to do yet, beside the caller.
    pub(crate) fn aside<T: Send + 'scope>(
        &self,
        act: impl FnOnce() -> T + Send + 'scope,
    ) -> Aside<T> {
        let (done, result) = sync_channel(WORDS);
        let order = ThreadOrder::Aside(Box::new(move || drop(done.send(act()))));
        if let Err(SendError(ThreadOrder::Aside(act))) = self.orders.send(order) {
            act();
        }
        Aside(result)
    }

    /// Waits until the thread has what it needs.
    ///
    /// # Errors
    /// `EAGAIN` where the user has too many timers.
    pub(crate) fn settle(&self) -> io::Result<()> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.is_ready.recv().map_err(gone)?
    }

    /// Begins to serve. Where the thread is gone, the end of the setting tells so.
    pub(crate) fn begin(
        self,
        setting: SupervisorSetting,
        voice: &'scope mut dyn Voice,
    ) -> ScopedJoinHandle<'scope, ServedCalls> {
        drop(
            self.orders
                .send(ThreadOrder::Begin(Box::new(setting), voice)),
        );
        self.thread
    }
}
