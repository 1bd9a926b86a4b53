//! A signal that ends whatever system call this thread waits in: so that none,
//! however it came to wait, waits for longer than the alarm's period.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::time::Duration;

use crate::{SysError, check};

/// A signal that nobody sends to end a program, and that is ignored by default.
const SIGNAL: libc::c_int = libc::SIGURG;

/// An alarm of the thread that made it.
#[derive(Debug)]
pub struct CallAlarm {
    timer: libc::timer_t,
    period: Duration,
    is_set: Cell<bool>,
}

/// Does nothing: that it runs is what ends the call (signal(7), "Interruption of
/// system calls").
extern "C" fn rang(_: libc::c_int) {}

impl CallAlarm {
    /// An alarm that is not set yet, and rings every `period` once it is. The
    /// kernel sets aside what it needs to ring now, whatever else is used up then.
    ///
    /// # Errors
    /// `EAGAIN` when there is no room for a timer.
    pub fn new(period: Duration) -> Result<Self, SysError> {
        // SAFETY: all-zero bytes are a valid value of this plain struct.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // Without SA_RESTART: an interrupted call ends, with EINTR.
        action.sa_sigaction = rang as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the action is live, its handler touches nothing.
        check(unsafe { libc::sigaction(SIGNAL, &raw const action, null_mut()) }.into())?;
        mask(libc::SIG_UNBLOCK)?;
        // SAFETY: all-zero bytes are a valid value of this plain struct.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        // SAFETY: takes nothing and returns this thread's number.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = null_mut();
        // SAFETY: both structs are live for the call.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        check(made.into())?;
        Ok(Self {
            timer,
            period,
            is_set: Cell::new(false),
        })
    }

    /// Rings from now on, until it is stopped. Setting it again changes nothing.
    pub fn set(&self) {
        if !self.is_set.replace(true) {
            self.ring_every(self.period);
        }
    }

    /// Rings no more.
    pub fn stop(&self) {
        if self.is_set.replace(false) {
            self.ring_every(Duration::ZERO);
        }
    }

    fn ring_every(&self, period: Duration) {
        let period = libc::timespec {
            tv_sec: libc::time_t::try_from(period.as_secs()).unwrap_or(0),
            tv_nsec: period.subsec_nanos().into(),
        };
        let rhythm = libc::itimerspec {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: the timer is ours and not deleted yet; the struct is live. It
        // fails for values out of range alone.
        unsafe { libc::timer_settime(self.timer, 0, &raw const rhythm, null_mut()) };
    }
}

impl Drop for CallAlarm {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and this is its last use.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// Blocks the alarm's signal for this thread, or no longer.
fn mask(how: libc::c_int) -> Result<(), SysError> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable; it is made empty first.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was just made.
    unsafe { libc::sigaddset(set.as_mut_ptr(), SIGNAL) };
    // SAFETY: the set is live, and the old one is not asked for.
    match unsafe { libc::pthread_sigmask(how, set.as_ptr(), null_mut()) } {
        0 => Ok(()),
        errno => Err(SysError::from_raw_os_error(errno)),
    }
}

/// Makes a call that must not be interrupted half-way: the alarm rings after it.
/// Only for one that the command cannot have wait but by its share of processors.
pub(crate) fn silently(call: impl FnOnce() -> libc::c_int) -> libc::c_int {
    let blocked = mask(libc::SIG_BLOCK).is_ok();
    let result = call();
    // The call's own error is read by the caller: changing a mask leaves it.
    if blocked {
        drop(mask(libc::SIG_UNBLOCK));
    }
    result
}

/// Whether a call was interrupted, and is to be made again.
pub(crate) fn interrupted(error: &SysError) -> bool {
    error.raw_os_error() == Some(libc::EINTR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_call_that_waits_is_interrupted() {
        let alarm = CallAlarm::new(Duration::from_millis(1)).unwrap();
        let wait = || {
            let began = Instant::now();
            // SAFETY: no descriptors, so none is read.
            let result = unsafe { libc::poll(null_mut(), 0, 200) };
            (result, began.elapsed())
        };
        assert_eq!(wait().0, 0, "it is not set");
        alarm.set();
        for _ in 0..8 {
            let (result, waited) = wait();
            assert_eq!(result, -1);
            assert!(waited < Duration::from_millis(200), "{waited:?}");
        }
        alarm.stop();
        assert_eq!(wait().0, 0, "it was stopped");
    }
}
