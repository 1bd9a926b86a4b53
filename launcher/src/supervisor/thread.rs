//! The thread of the supervisor: there before the command is, so that nothing it needs can
//! be used up by then.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use outgate_sys::alarm::Alarm;

use super::{Served, Setting, Voice, WAIT_MAX, supervise};

/// How many words each side has room for: one is said.
const WORDS: usize = 1;

/// A thread that waits for a command to supervise. It ends without one where this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Prepared<'scope> {
    thread: ScopedJoinHandle<'scope, Served>,
    is_ready: Receiver<io::Result<()>>,
    begin: SyncSender<(Setting, &'scope mut dyn Voice)>,
}

impl<'scope> Prepared<'scope> {
    /// Starts the thread. The signals that it must not take are blocked by now.
    ///
    /// # Errors
    /// `EAGAIN` where the user has too many threads.
    pub(crate) fn start(scope: &'scope Scope<'scope, '_>) -> io::Result<Self> {
        let (ready, is_ready) = sync_channel(WORDS);
        let (begin, began) = sync_channel::<(Setting, &mut dyn Voice)>(WORDS);
        let wait = move || {
            let alarm = match Alarm::new(WAIT_MAX) {
                Ok(alarm) => alarm,
                Err(error) => {
                    drop(ready.send(Err(error)));
                    return Served::default();
                }
            };
            drop(ready.send(Ok(())));
            let Ok((setting, voice)) = began.recv() else {
                return Served::default();
            };
            // Who answers held calls must not wait behind the crowd that makes them.
            outgate_sys::schedule::take_short_turns();
            supervise(setting, alarm, voice)
        };
        let thread = Builder::new().name("outgate-calls".to_owned());
        let thread = thread.spawn_scoped(scope, wait)?;
        Ok(Self {
            thread,
            is_ready,
            begin,
        })
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
        setting: Setting,
        voice: &'scope mut dyn Voice,
    ) -> ScopedJoinHandle<'scope, Served> {
        drop(self.begin.send((setting, voice)));
        self.thread
    }
}
