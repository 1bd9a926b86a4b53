//! `connect(2)` to a Unix socket: the sandbox's own servers directly, granted
//! ones through the gateway, which relays bytes and nothing else, so that no
//! descriptor is ever passed in.
//!
//! A path is resolved once, to an inode, and the inode is what is judged and
//! connected to.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::socket::{UnixAddr, connect};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, major, minor};
use outgate_handoff::{Flow, Process, Question, ToGateway};
use outgate_sys::socket::SOCK_STREAM;

use super::Supervisor;
use super::wait::{Knocking, Want};
use crate::diag::{Diag, UnixPlace};
use crate::gateway_link::descriptors;
use crate::grip::{Begun, Grip, without_waiting};
use crate::notification::Notification;
use crate::process::describe;
use crate::redirect::{Caller, Kind, Mapped, Recognised};
use crate::sealed::Blocking;

/// Name services that the C library tries before it asks DNS: absent for the
/// command, without a word.
const NAME_SERVICES: [&[u8]; 6] = [
    b"/run/nscd/socket",
    b"/var/run/nscd/socket",
    b"/run/.nscd_socket",
    b"/run/systemd/resolve/io.systemd.Resolve",
    b"/run/systemd/userdb/io.systemd.DynamicUser",
    b"/run/systemd/userdb/io.systemd.Multiplexer",
];

/// Whether Unix sockets outside the sandbox can be reached at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// Some rule grants one.
    Granted,
    /// None does.
    Closed,
}

/// A connection to a Unix socket outside the sandbox.
#[derive(Debug)]
pub(super) struct UnixCall {
    grip: Grip,
    target: Option<OwnedFd>,
    path: Vec<u8>,
    process: Process,
}

/// The inode a path leads to.
struct Resolved {
    target: OwnedFd,
    path: Vec<u8>,
    stat: FileStat,
}

/// How often a path with `..` is resolved that cannot be while files are renamed, in
/// count: beside one process that renames without end a twentieth of the tries fail.
const RESOLVE_TRIES: u32 = 64;

/// Resolves a path as the caller would, to an inode. `ECONNREFUSED` when files are
/// renamed faster than that.
fn resolve(thread: u32, path: &[u8]) -> Result<Resolved, Errno> {
    let (base, resolve) = if path.first() == Some(&b'/') {
        let flags = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        ("root", flags)
    } else {
        ("cwd", ResolveFlag::RESOLVE_NO_MAGICLINKS)
    };
    let base = format!("/proc/{thread}/{base}");
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let base = open(base.as_str(), flags | OFlag::O_DIRECTORY, Mode::empty())?;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    // EAGAIN (openat2(2)): something on the machine was renamed meanwhile.
    let target = (0..RESOLVE_TRIES)
        .map(|_| openat2(base.as_fd(), OsStr::from_bytes(path), how))
        .find(|target| !matches!(target, Err(Errno::EAGAIN)))
        .unwrap_or(Err(Errno::ECONNREFUSED))?;
    let stat = fstat(&target)?;
    let link = format!("/proc/self/fd/{}", target.as_raw_fd());
    let path = nix::fcntl::readlinkat(AT_FDCWD, link.as_str())?.into_vec();
    Ok(Resolved { target, path, stat })
}

impl Supervisor<'_> {
    pub(super) fn connect_path(&mut self, notification: Notification, grip: Grip, path: &[u8]) {
        let thread = notification.held().thread;
        let resolved = match resolve(thread, path) {
            Ok(resolved) => resolved,
            Err(errno) => return notification.fail(errno),
        };
        if !notification.holds() {
            return;
        }
        if NAME_SERVICES.contains(&resolved.path.as_slice()) {
            return notification.fail(Errno::ENOENT);
        }
        let socket_bits = SFlag::S_IFMT.bits() & resolved.stat.st_mode;
        if socket_bits != SFlag::S_IFSOCK.bits() {
            return notification.fail(Errno::ECONNREFUSED);
        }
        let device = resolved.stat.st_dev;
        let place = UnixPlace::Inode {
            device: u32::try_from((major(device) << 20) | minor(device)).unwrap_or(0),
            inode: u32::try_from(resolved.stat.st_ino & u64::from(u32::MAX)).unwrap_or(0),
        };
        if self.own.serves_unix(&place) {
            return self.connect_own(notification, grip, resolved.target);
        }
        // What a server left behind is nothing that could be allowed or denied.
        // A granted one may listen in another network, where nobody sees it.
        if self.outside == Outside::Closed && is_left_behind(&place) {
            return notification.fail(Errno::ECONNREFUSED);
        }
        let call = UnixCall {
            grip,
            target: Some(resolved.target),
            path: resolved.path,
            process: describe(thread),
        };
        self.ask_unix(notification, call);
    }

    pub(super) fn connect_abstract(&mut self, notification: Notification, grip: Grip, name: &[u8]) {
        if self.own.serves_unix(&UnixPlace::Abstract(name.to_vec())) {
            let Ok(address) = UnixAddr::new_abstract(name) else {
                return notification.fail(Errno::EINVAL);
            };
            // A full backlog is refused rather than waited for: an abstract name
            // gives nothing to hold on to meanwhile.
            let result = grip.begin(|socket| connect(socket.as_raw_fd(), &address));
            return match result {
                Ok((begun, _)) => grip.conclude(notification, begun),
                Err(errno) => notification.fail(errno),
            };
        }
        let mut path = b"@".to_vec();
        path.extend(name);
        let call = UnixCall {
            grip,
            target: None,
            path,
            process: describe(notification.held().thread),
        };
        self.ask_unix(notification, call);
    }

    fn ask_unix(&mut self, notification: Notification, call: UnixCall) {
        let process = self.with_ancestors(&call.process);
        let question = Question::Unix {
            path: call.path.clone(),
        };
        self.ask(notification, question, process, Want::Unix(call));
    }

    /// One of the sandbox's own servers, by its inode.
    fn connect_own(&mut self, notification: Notification, grip: Grip, target: OwnedFd) {
        let blocking = grip.blocking();
        let Grip::Shared(socket) = grip else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        let timeout = outgate_sys::socket::send_timeout_us(socket.as_fd()).unwrap_or(0);
        let until = (timeout > 0)
            .then(|| Instant::now().checked_add(std::time::Duration::from_micros(timeout)))
            .flatten();
        let knocking = Knocking {
            notification,
            socket,
            target,
            until,
        };
        match blocking {
            Blocking::Yes => self.knock(knocking),
            Blocking::No => match try_knock(&knocking) {
                Ok(()) => knocking.notification.succeed(0),
                Err(errno) => knocking.notification.fail(errno),
            },
        }
    }

    /// Tries a connection that may find the backlog full, and waits if it is.
    pub(super) fn knock(&mut self, knocking: Knocking) {
        match try_knock(&knocking) {
            Ok(()) => knocking.notification.succeed(0),
            Err(Errno::EAGAIN) => self.knocking.push(knocking),
            Err(errno) => knocking.notification.fail(errno),
        }
    }

    /// A granted server: connect to our own listener, hand the other end over.
    pub(super) fn connect_relayed(&mut self, notification: Notification, call: UnixCall) {
        let socket = call.grip.socket();
        if outgate_sys::socket::kind(socket).ok() != Some(SOCK_STREAM) {
            return notification.fail(Errno::EPROTOTYPE);
        }
        let attracted = match self.redirect.listener(Kind::Unix) {
            Ok(private) => private.attract(&call.grip, Mapped::No),
            Err(_) => Err(Errno::ECONNREFUSED),
        };
        let begun = match attracted {
            Ok((begun, _)) => begun,
            Err(errno) => return notification.fail(errno),
        };
        // The connection waits at the listener already, and the process that
        // made it is ourselves. All such connections look alike, so none may
        // stay there: if this one is not found, the listener goes.
        let ourselves = i32::try_from(std::process::id()).unwrap_or(-1);
        let accepted = self.redirect.existing(Kind::Unix).and_then(|private| {
            private.accept(|caller| match caller {
                Caller::Process(pid) if *pid == ourselves => Recognised::Yes,
                Caller::Process(_) | Caller::Tcp(_) => Recognised::No,
            })
        });
        if let Some(accepted) = accepted {
            self.hand_over_unix(notification, call, (accepted, begun));
        } else {
            self.redirect.forget_unix();
            notification.fail(Errno::ECONNREFUSED);
        }
    }

    fn hand_over_unix(
        &mut self,
        notification: Notification,
        call: UnixCall,
        (accepted, begun): (OwnedFd, Begun),
    ) {
        let UnixCall {
            grip,
            target,
            path,
            process,
        } = call;
        let Some(target) = target else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        let question = Question::Unix { path };
        let flow = ToGateway::Flow(Flow { question, process });
        self.tell(&flow, descriptors([accepted, target]));
        grip.conclude(notification, begun);
    }
}

/// Whether nobody listens at `place` any more.
fn is_left_behind(place: &UnixPlace) -> bool {
    let listens = Diag::open().and_then(|diag| diag.unix_listens(place));
    matches!(listens, Ok(false))
}

fn try_knock(knocking: &Knocking) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", knocking.target.as_raw_fd());
    let address = UnixAddr::new(path.as_str())?;
    let socket = knocking.socket.as_fd();
    without_waiting(socket, || connect(socket.as_raw_fd(), &address))
}
