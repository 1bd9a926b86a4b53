//! An alarm that ends whatever call the serving thread waits in. Nothing here is meant to
//! wait, but for close(2) of what others sent along: a TCP socket among it waits with unsent
//! data for as long as its `SO_LINGER` says, and everybody else's connections with it.

use std::cell::{Cell, OnceCell};
use std::io;
use std::time::Instant;

use outgate_sys::alarm::CallAlarm;

use crate::limits;

/// The alarm of the thread, and since when it rings.
struct ServingAlarm {
    alarm: CallAlarm,
    since: Cell<Option<Instant>>,
}

thread_local! {
    static ALARM: OnceCell<ServingAlarm> = const { OnceCell::new() };
}

/// Has this thread be the one that serves. To be called before the process confines itself.
///
/// # Errors
/// `EAGAIN` when there is no room for a timer: the user's programs have too many.
pub(crate) fn begin() -> io::Result<()> {
    let alarm = CallAlarm::new(limits::SERVING_CALL_MAX)?;
    let alarm = ServingAlarm {
        alarm,
        since: Cell::new(None),
    };
    ALARM.with(|own| own.set(alarm)).ok();
    Ok(())
}

/// The thread has something to do: the alarm rings from now on.
pub(crate) fn set() {
    ALARM.with(|own| {
        let Some(own) = own.get() else { return };
        if own.since.get().is_none() {
            own.since.set(Some(Instant::now()));
            own.alarm.set();
        }
    });
}

/// The thread is about to wait for something to do. The alarm is left as it is for a while: it
/// costs less to be woken by it now and then than to stop it each time.
pub(crate) fn rest() {
    ALARM.with(|own| {
        let Some(own) = own.get() else { return };
        let is_due = |since: Instant| since.elapsed() >= limits::SERVING_ALARM_TIME;
        if own.since.get().is_some_and(is_due) {
            own.since.set(None);
            own.alarm.stop();
        }
    });
}
