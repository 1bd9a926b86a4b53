//! Substitution at open, only where datagram sockets cannot exist: programs
//! that read resolv.conf(5) and hosts(5) themselves find the stub and the
//! stand-in addresses there. Every other open is performed by the kernel, where
//! Landlock judges it.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use outgate_sys::seccomp::OnExec;

use super::Supervisor;
use crate::notification::Notification;

/// Bytes of a path that can be one of the two files.
const PATH_BYTES: usize = 32;
/// What programs that speak DNS over TCP find.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions use-vc\n";
/// How long the stand-in addresses may take to arrive.
const HOSTS_TIMEOUT: Duration = Duration::from_secs(2);
const O_CLOEXEC: i32 = 0o2_000_000;

/// The substituted hosts file.
#[derive(Debug)]
pub(super) struct Hosts {
    operator: String,
    stand_ins: Option<String>,
}

impl Hosts {
    /// Starts from the operator's own hosts file.
    pub(super) fn new(operator: String) -> Self {
        Self {
            operator,
            stand_ins: None,
        }
    }
}

/// An open of the hosts file that waits for its content.
#[derive(Debug)]
pub(super) struct Opening {
    notification: Notification,
    on_exec: OnExec,
    until: Option<Instant>,
}

impl Supervisor<'_> {
    pub(super) fn on_open(&mut self, notification: Notification) {
        let number = notification.held().number;
        let (path, flags) = if Some(number) == self.numbers.open {
            (notification.word(0), Some(notification.int(1)))
        } else if number == self.numbers.openat {
            (notification.word(1), Some(notification.int(2)))
        } else {
            // openat2 keeps its flags in memory: close-on-exec is the safe one.
            (notification.word(1), None)
        };
        let on_exec = match flags {
            Some(flags) if flags & O_CLOEXEC == 0 => OnExec::Keep,
            _ => OnExec::Close,
        };
        let mut bytes = [0_u8; PATH_BYTES];
        let thread = notification.held().thread;
        let count = outgate_sys::memory::copy(thread, path, &mut bytes).unwrap_or(0);
        let bytes = bytes.get(..count).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0);
        match end.and_then(|end| bytes.get(..end)) {
            Some(b"/etc/resolv.conf") => give(notification, RESOLV_CONF, on_exec),
            Some(b"/etc/hosts") => self.open_hosts(notification, on_exec),
            _ => notification.pass(),
        }
    }

    fn open_hosts(&mut self, notification: Notification, on_exec: OnExec) {
        self.link.start();
        let known = self.hosts.stand_ins.is_some() || self.link.gone().is_some();
        let opening = Opening {
            notification,
            on_exec,
            until: Instant::now().checked_add(HOSTS_TIMEOUT),
        };
        self.opening.push(opening);
        if known {
            self.pass_opening();
        }
    }

    /// The stand-in addresses arrived.
    pub(super) fn hosts_known(&mut self, lines: &str) {
        self.hosts.stand_ins = Some(lines.to_owned());
        self.pass_opening();
    }

    /// Answers every waiting open with what is known.
    pub(super) fn pass_opening(&mut self) {
        if self.opening.is_empty() {
            return;
        }
        let stand_ins = self.hosts.stand_ins.as_deref().unwrap_or_default();
        let text = format!("{}\n{stand_ins}", self.hosts.operator);
        for opening in self.opening.drain(..) {
            give(opening.notification, &text, opening.on_exec);
        }
    }

    pub(super) fn tick_opening(&mut self, now: Instant) {
        let late = |opening: &Opening| opening.until.is_some_and(|until| now >= until);
        if self.opening.iter().any(late) {
            self.pass_opening();
        }
    }
}

/// Answers an open with a sealed file of this content.
fn give(notification: Notification, text: &str, on_exec: OnExec) {
    match file(text) {
        Ok(file) => notification.give(file.as_fd(), on_exec),
        Err(_) => notification.fail(Errno::EMFILE),
    }
}

fn file(text: &str) -> std::io::Result<OwnedFd> {
    let name = CString::from(c"outgate");
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = std::fs::File::from(memfd_create(name.as_c_str(), flags)?);
    file.write_all(text.as_bytes())?;
    std::io::Seek::rewind(&mut file)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    fcntl(
        file.as_fd(),
        FcntlArg::F_ADD_SEALS(seals | SealFlag::F_SEAL_SEAL),
    )?;
    Ok(file.into())
}
