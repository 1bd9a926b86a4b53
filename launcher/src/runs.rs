//! The runs of a user, from outside: found by the sockets their launchers
//! answer on, asked, and ended. What a socket's name says is believed only as
//! far as the kernel confirms who listens.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, recv, send, socket,
    sockopt,
};
pub use outgate_handoff::Status;
use outgate_handoff::{FRAME_BYTES_MAX, ToRun};

use crate::presence::{PREFIX, mark};

/// Runs looked at, at most.
const RUNS_MAX: usize = 4096;
/// How long a launcher may take to answer. It does nothing that waits; only a
/// stopped one takes longer.
const ANSWER: Duration = Duration::from_secs(1);
/// How long a tree may take to end: the time between SIGTERM and SIGKILL, and
/// the gateway's last words.
const END: Duration = Duration::from_secs(15);
/// How often a launcher that may be stopped is continued meanwhile: it may stop anew just
/// before it hears that it is to end.
const CONTINUED_EVERY: Duration = Duration::from_millis(250);
/// How long a launcher that was killed, and then its guardian, may take to be gone.
const KILLED: Duration = Duration::from_secs(5);

/// A run whose launcher is there.
#[derive(Debug)]
pub struct Run {
    /// Process id of the launcher, as the kernel says.
    pub pid: u32,
    /// Its user, as the kernel says.
    pub uid: u32,
    /// What it says about itself; `None` when it does not answer (stopped).
    pub status: Option<Status>,
    /// Ends with the mark of its name.
    address: String,
    socket: OwnedFd,
}

/// The runs of the caller; all of them for root.
///
/// # Errors
/// The sockets of the machine cannot be listed.
pub fn list() -> io::Result<Vec<Run>> {
    // Who ends a crowd must not wait behind it.
    outgate_sys::schedule::take_short_turns();
    let own = nix::unistd::geteuid().as_raw();
    let table = std::fs::read("/proc/net/unix")?;
    // Counted only once they are runs: names alone are anybody's.
    let mut runs: Vec<Run> = names(&String::from_utf8_lossy(&table))
        .into_iter()
        .filter_map(|name| reach(&name, own))
        .take(RUNS_MAX)
        .collect();
    let until = Instant::now().checked_add(ANSWER);
    for run in &mut runs {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        run.hear(left.unwrap_or(ANSWER));
    }
    runs.sort_by_key(|run| {
        run.status
            .as_ref()
            .map(|status| (status.started, status.pid))
    });
    Ok(runs)
}

/// Names of listening sockets that begin like ours (proc_net_unix: the flag
/// `__SO_ACCEPTCON` marks listeners, `@` names without a file), of the type that no command
/// of a run can listen on, however many others it has.
fn names(table: &str) -> Vec<String> {
    const LISTENS: &str = "00010000";
    const SEQPACKET: &str = "0005";
    table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (flags, kind, path) = (fields.nth(3)?, fields.next()?, fields.nth(2)?);
            let name = path.strip_prefix('@')?;
            let is_ours = flags == LISTENS && kind == SEQPACKET && name.starts_with(PREFIX);
            is_ours.then(|| name.to_owned())
        })
        .collect()
}

/// Connects, if the one who listens is who the caller may ask about.
fn reach(name: &str, own: u32) -> Option<Run> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).ok()?;
    let address = UnixAddr::new_abstract(name.as_bytes()).ok()?;
    connect(socket.as_raw_fd(), &address).ok()?;
    let peer = getsockopt(&socket, sockopt::PeerCredentials).ok()?;
    (own == 0 || peer.uid() == own).then_some(())?;
    let mut run = Run {
        pid: u32::try_from(peer.pid()).ok()?,
        uid: peer.uid(),
        status: None,
        address: name.to_owned(),
        socket,
    };
    // Asked at once, heard when all were asked.
    run.say(ToRun::Tell).ok()?;
    Some(run)
}

impl Run {
    fn say(&mut self, word: ToRun) -> io::Result<()> {
        let frame = word.encode().map_err(io::Error::other)?;
        send(self.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL)?;
        Ok(())
    }

    fn hear(&mut self, wait: Duration) {
        if !readable(&self.socket, wait) {
            return;
        }
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        if let Ok(count) = recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            bytes.truncate(count);
            self.status = Status::decode(&bytes).ok();
        }
    }

    /// Whether this is the name of its sandbox. One that does not answer said so when it
    /// began.
    pub fn is_called(&self, name: &str) -> bool {
        match &self.status {
            Some(status) => status.name == name,
            None => self.address.ends_with(&format!("-{}", mark(name))),
        }
    }

    /// Ends the whole tree by its launcher, and waits until that is gone. A launcher that
    /// does not end it in time is killed, by which its guardian does.
    ///
    /// # Errors
    /// It is not gone in time, or cannot be told.
    pub fn end(mut self) -> io::Result<()> {
        // RACE: the id may be another's by now, unless the launcher's socket is
        // still open after the descriptor was: then it was its own.
        let process = outgate_sys::pidfd::open(self.pid)?;
        match self.say(ToRun::End) {
            // Gone by itself.
            Err(error) if error.raw_os_error() == Some(Errno::EPIPE as i32) => return Ok(()),
            other => other?,
        }
        let until = Instant::now().checked_add(END);
        while until.is_some_and(|until| Instant::now() < until) {
            send_to(&process, Signal::SIGCONT);
            if readable(&process, CONTINUED_EVERY) {
                return Ok(());
            }
        }
        self.kill(&process)
    }

    /// Kills the launcher, and waits for its helpers, the guardian among them.
    fn kill(&self, process: &OwnedFd) -> io::Result<()> {
        let children = crate::process::children(self.pid).into_iter();
        let children: Vec<OwnedFd> = children
            .filter_map(|pid| outgate_sys::pidfd::open(pid).ok())
            .collect();
        send_to(process, Signal::SIGKILL);
        let mut gone = readable(process, KILLED);
        for child in &children {
            gone &= readable(child, KILLED);
        }
        if gone {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// Sends a signal; who cannot take it any more is gone, which shows by itself.
fn send_to(process: &OwnedFd, signal: Signal) {
    drop(outgate_sys::process::signal(process.as_fd(), signal as i32));
}

fn readable(descriptor: &impl AsFd, wait: Duration) -> bool {
    let until = Instant::now().checked_add(wait);
    loop {
        let left = until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        match poll(&mut polled, left) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_of_our_names_are_runs() {
        let table = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0005 01 17 @outgate-run-0-1-a
0000000000000000: 00000003 00000000 00000000 0005 03 18 @outgate-run-0-1-a
0000000000000000: 00000002 00000000 00010000 0005 01 19 /tmp/outgate-run-0-2-b
0000000000000000: 00000002 00000000 00010000 0001 01 20 @other
0000000000000000: 00000002 00000000 00010000 0001 01 21
0000000000000000: 00000002 00000000 00010000 0001 01 22 @outgate-run-0-3-c
short
";
        assert_eq!(names(table), ["outgate-run-0-1-a"]);
        assert!(names("").is_empty());
    }
}
