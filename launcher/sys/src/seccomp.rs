//! The listener of a seccomp filter: receive a held call, check that it is
//! still held, answer it, put descriptors into its thread (seccomp_unotify(2)).
//! Knows nothing of what the calls mean.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::alarm::{interrupted, silently};
use crate::{SysError, check};

/// KERNEL: 6.6. Wakes the target on the supervisor's own processor.
const SYNC_WAKE_UP: u64 = 1;

/// One classic BPF instruction as the kernel reads it (`struct sock_filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SockFilter {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when true.
    pub jt: u8,
    /// Instructions to skip when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// The descriptor on which held calls arrive.
#[derive(Debug)]
pub struct NotificationListener(OwnedFd);

/// One held call, as the kernel described it.
#[derive(Debug, Clone, Copy)]
pub struct HeldCall {
    /// Names this call in answers and checks: the notification's cookie.
    pub cookie: u64,
    /// Thread id of the caller, in our pid namespace.
    pub thread: u32,
    /// System call number.
    pub number: i32,
    /// Its six arguments.
    pub arguments: [u64; 6],
}

/// How a held call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationResponse {
    /// It returns this value.
    Value(i64),
    /// It fails with this errno, a positive number.
    Errno(i32),
    /// The kernel performs it. Never for a call whose arguments lie in memory
    /// that decide what is allowed.
    Continue,
}

/// Where a descriptor goes in the target's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The lowest free number; the held call returns it at once.
    Answer,
    /// The lowest free number; the call is held on.
    Lowest,
    /// This number, replacing what is there.
    Replace(u32),
}

/// Whether a descriptor closes on `execve(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExec {
    /// `O_CLOEXEC` set.
    Close,
    /// `O_CLOEXEC` clear.
    Keep,
}

impl NotificationListener {
    /// Takes the descriptor that `seccomp(2)` returned.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Asks the kernel to wake targets on our processor.
    ///
    /// # Errors
    /// `EINVAL` before Linux 6.6; the listener works all the same.
    pub fn wake_in_step(&self) -> Result<(), SysError> {
        // SAFETY: the ioctl takes a plain integer and touches no memory.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
                SYNC_WAKE_UP,
            )
        };
        check(result.into()).map(drop)
    }

    /// Takes the next held call. Call only after `poll(2)` says it is readable:
    /// the kernel waits otherwise, also on a non-blocking descriptor.
    ///
    /// # Errors
    /// `ENOENT` when the caller died in between: not a fault.
    pub fn receive(&self) -> Result<HeldCall, SysError> {
        // SAFETY: all-zero bytes are a valid value, and the kernel demands them.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: `raw` is a live, writable struct of the type this ioctl fills.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut raw,
            )
        };
        check(result.into())?;
        Ok(HeldCall {
            cookie: raw.id,
            thread: raw.pid,
            number: raw.data.nr,
            arguments: raw.data.args,
        })
    }

    /// Whether the call is still held. Only a `true` after a copy proves that
    /// the copied memory and descriptors belonged to the caller.
    pub fn holds(&self, cookie: u64) -> bool {
        // SAFETY: the ioctl reads one u64 through the pointer, which is live.
        let valid = || unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw const cookie,
            )
        };
        uninterrupted(valid).is_ok()
    }

    /// Ends a held call.
    ///
    /// # Errors
    /// `ENOENT` when the caller died or was answered: not a fault.
    pub fn answer(&self, cookie: u64, answer: NotificationResponse) -> Result<(), SysError> {
        let mut raw = libc::seccomp_notif_resp {
            id: cookie,
            val: 0,
            error: 0,
            flags: 0,
        };
        match answer {
            NotificationResponse::Value(value) => raw.val = value,
            NotificationResponse::Errno(errno) => raw.error = errno.saturating_neg(),
            NotificationResponse::Continue => raw.flags = 1,
        }
        // SAFETY: the ioctl reads the struct it is given, which is live.
        let send = || unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw const raw,
            )
        };
        uninterrupted(send)
    }

    /// Puts a copy of `descriptor` into the caller's table, and says its number there.
    ///
    /// # Errors
    /// `ENOENT` when the call is no longer held, `EMFILE` or `EBADF` for the
    /// caller's own table.
    pub fn add_descriptor(
        &self,
        cookie: u64,
        descriptor: BorrowedFd<'_>,
        placement: Placement,
        on_exec: OnExec,
    ) -> Result<i32, SysError> {
        let (flags, number) = match placement {
            Placement::Answer => (libc::SECCOMP_ADDFD_FLAG_SEND, 0),
            Placement::Lowest => (0, 0),
            Placement::Replace(number) => (libc::SECCOMP_ADDFD_FLAG_SETFD, number),
        };
        let raw = libc::seccomp_notif_addfd {
            id: cookie,
            flags: u32::try_from(flags).unwrap_or(0),
            srcfd: u32::try_from(descriptor.as_raw_fd()).unwrap_or(u32::MAX),
            newfd: number,
            newfd_flags: match on_exec {
                OnExec::Close => u32::try_from(libc::O_CLOEXEC).unwrap_or(0),
                OnExec::Keep => 0,
            },
        };
        // SAFETY: the ioctl reads the struct it is given, which is live.
        let add = || unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD as _,
                &raw const raw,
            )
        };
        // An interrupted one has answered the call already, without a descriptor.
        let added = silently(add);
        check(added.into()).map(|_| added)
    }
}

/// Makes a call again for as long as a signal ends it. These wait for others
/// who use the same listener alone, which takes no time to speak of.
fn uninterrupted(call: impl Fn() -> libc::c_int) -> Result<(), SysError> {
    loop {
        match check(call().into()) {
            Err(error) if interrupted(&error) => {}
            result => return result.map(drop),
        }
    }
}

impl AsFd for NotificationListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for NotificationListener {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Whether this kernel knows a filter action and flag set; reads only.
///
/// # Errors
/// `EOPNOTSUPP` or `EINVAL` when it does not.
pub fn action_is_available(action: u32) -> Result<(), SysError> {
    // SAFETY: the call reads one u32 through the pointer, which is live.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    check(result).map(drop)
}
