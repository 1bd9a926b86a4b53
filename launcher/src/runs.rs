//! The runs of a user, from outside: found by the sockets their launchers
//! answer on, asked, changed, and ended. What a socket's name says is believed only as
//! far as the kernel confirms who listens.

mod watched;

use std::io;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials,
    connect, getsockopt, recv, recvmsg, send, socket, sockopt,
};
pub use outgate_handoff::Status;
use outgate_handoff::{FRAME_BYTES_MAX, FromRun, ToRun};
pub use outgate_handoff::{GrantRequest, GrantUses, LISTEN_RULE, OpenQuestion, PersonAnswer};
use outgate_policy::{Context, Source};

use crate::opening::read_texts_file;
use crate::presence::{PREFIX, mark};
use crate::process::stands_still;

pub use watched::{Watched, WatchedWord, end_own_group};

/// Runs looked at, at most.
const RUNS_MAX: usize = 4096;
/// How long a launcher may take to answer. It does nothing that waits; only a
/// stopped one takes longer.
const ANSWER: Duration = Duration::from_secs(1);
/// How long all of them together may leave who asks before their doors.
const ENTER: Duration = Duration::from_secs(1);
/// How often that is tried meanwhile: a launcher makes room within some hundred microseconds.
const ENTER_AGAIN_MS: u8 = 2;
/// How long a change may take: longer than a launcher waits for its gateway and its files,
/// and for the changes before.
const CHANGE: Duration = Duration::from_secs(40);
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

/// A change of a run's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChange {
    /// One more rule that allows.
    Grant {
        /// Its text.
        rule: String,
        /// For how many seconds; 0: as long as the run.
        seconds: u32,
        /// Whether it is for one request.
        once: bool,
    },
    /// Without what was granted by a rule.
    Revoke {
        /// Its text; empty for all.
        rule: String,
    },
    /// Its files read again.
    Reload,
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
    let until = Instant::now().checked_add(ENTER);
    let mut runs: Vec<Run> = names(&String::from_utf8_lossy(&table))
        .into_iter()
        .filter_map(|name| reach(&name, own, until))
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
fn reach(name: &str, own: u32, until: Option<Instant>) -> Option<Run> {
    let (socket, peer) = loop {
        match enter(name) {
            // Strangers stand in its queue, who are turned away as fast as they come.
            Err(Errno::EAGAIN) if until.is_some_and(|until| Instant::now() < until) => {
                let _ = poll(&mut [], ENTER_AGAIN_MS);
            }
            entered => break entered.ok()?,
        }
    };
    (own == 0 || peer.uid() == own).then_some(())?;
    // Whoever holds a socket of one who is gone is no run.
    match outgate_sys::socket::peer_process(socket.as_fd()) {
        Ok(process) if readable(&process, Duration::ZERO) => return None,
        Err(error) if !is_unknown(&error) => return None,
        Ok(_) | Err(_) => {}
    }
    let mut run = Run {
        pid: u32::try_from(peer.pid()).ok()?,
        uid: peer.uid(),
        status: None,
        address: name.to_owned(),
        socket,
    };
    // Asked at once, heard when all were asked.
    run.say(&ToRun::Tell).ok()?;
    Some(run)
}

/// Connects to who listens by a name, and what the kernel says of them.
fn enter(name: &str) -> nix::Result<(OwnedFd, UnixCredentials)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    let address = UnixAddr::new_abstract(name.as_bytes())?;
    connect(socket.as_raw_fd(), &address)?;
    let peer = getsockopt(&socket, sockopt::PeerCredentials)?;
    Ok((socket, peer))
}

impl Run {
    fn say(&mut self, word: &ToRun) -> io::Result<()> {
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

    /// Changes its policy; what was done, in a line.
    ///
    /// # Errors
    /// A sentence: nothing changed, or nobody knows.
    pub fn change(&mut self, change: &PolicyChange) -> Result<String, String> {
        let word = match change.clone() {
            PolicyChange::Grant {
                rule,
                seconds,
                once,
            } => ToRun::Grant(GrantRequest {
                rule,
                seconds,
                uses: if once {
                    GrantUses::Once
                } else {
                    GrantUses::All
                },
            }),
            PolicyChange::Revoke { rule } => ToRun::Revoke { rule },
            PolicyChange::Reload => ToRun::Reload,
        };
        match self.ask(&word)? {
            (FromRun::Done { line, generation }, _) => Ok(format!("policy {generation}: {line}")),
            (FromRun::Refused { message }, _) => Err(message),
            (FromRun::Shown { .. } | FromRun::Question(..) | FromRun::Gone(..), _) => {
                Err("the run answers something else".to_owned())
            }
        }
    }

    /// Its policy as it is in force: the texts, and the directories that they name.
    ///
    /// # Errors
    /// A sentence: it does not say.
    pub fn policy(&mut self) -> Result<(Vec<Source>, Context), String> {
        let (bytes, file) = match self.ask(&ToRun::Show)? {
            (FromRun::Shown { bytes }, Some(file)) => (bytes, file),
            (FromRun::Refused { message }, _) => return Err(message),
            _ => return Err("the run answers something else".to_owned()),
        };
        let read = read_texts_file(file, bytes);
        let (sources, begin) = read.map_err(|error| format!("the policy of the run: {error}"))?;
        let context = Context {
            home: begin.home,
            working_directory: begin.working_directory,
            private_directory: begin.private_directory,
            ..Context::default()
        };
        Ok((sources, context))
    }

    /// Says something of which the answer is waited for.
    fn ask(&mut self, word: &ToRun) -> Result<(FromRun, Option<OwnedFd>), String> {
        let takes_back = matches!(word, ToRun::Revoke { .. });
        if self.status.is_none() && !takes_back {
            return Err(format!("process {} does not answer: stopped?", self.pid));
        }
        // RACE: as where a run is ended: the socket is entered after this is open.
        let process = takes_back.then(|| outgate_sys::pidfd::open(self.pid));
        let process = process
            .transpose()
            .map_err(|_| "the run ended".to_owned())?;
        // Each by a connection of its own, which the launcher closes once it answered.
        let (socket, peer) = enter(&self.address).map_err(|_| "the run ended".to_owned())?;
        if u32::try_from(peer.pid()) != Ok(self.pid) {
            return Err("the run ended".to_owned());
        }
        self.socket = socket;
        let said = self.say(word);
        said.map_err(|error| format!("the run cannot be asked: {error}"))?;
        if !self.answers(process.as_ref()) {
            return Err(
                "the run does not answer; what it does with it shows in its record".to_owned(),
            );
        }
        let answer = self.receive().map_err(|error| error.to_string())?;
        answer.ok_or_else(|| "the run ended".to_owned())
    }

    /// Waits for an answer. A launcher that may be continued, and stands still, is: a command
    /// that stops itself must not keep what it was granted.
    fn answers(&self, process: Option<&OwnedFd>) -> bool {
        let Some(process) = process else {
            return readable(&self.socket, CHANGE);
        };
        let until = Instant::now().checked_add(CHANGE);
        while until.is_some_and(|until| Instant::now() < until) {
            if i32::try_from(self.pid).is_ok_and(stands_still) {
                send_to(process, Signal::SIGCONT);
            }
            if readable(&self.socket, CONTINUED_EVERY) {
                return true;
            }
        }
        false
    }

    fn receive(&self) -> io::Result<Option<(FromRun, Option<OwnedFd>)>> {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let mut space = nix::cmsg_space!(std::os::fd::RawFd);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut space),
            flags,
        )?;
        let mut files = Vec::new();
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = part {
                let owned = numbers
                    .into_iter()
                    .filter_map(outgate_sys::descriptor::inherited);
                files.extend(owned);
            }
        }
        let count = message.bytes;
        bytes.truncate(count);
        if bytes.is_empty() {
            return Ok(None);
        }
        let word = FromRun::decode(&bytes).map_err(io::Error::other)?;
        Ok(Some((word, files.pop())))
    }

    /// Watches what it asks.
    ///
    /// # Errors
    /// A sentence: it asks nobody, or is gone.
    pub fn watch(&self) -> Result<Watched, String> {
        let gone = || "the run ended".to_owned();
        let (socket, peer) = enter(&self.address).map_err(|_| gone())?;
        if u32::try_from(peer.pid()) != Ok(self.pid) {
            return Err(gone());
        }
        let name = self.status.as_ref().map(|status| status.name.clone());
        let watched = Watched {
            socket,
            pid: self.pid,
            name: name.unwrap_or_else(|| self.pid.to_string()),
        };
        watched.say(&ToRun::Watch)?;
        Ok(watched)
    }

    /// Ends the whole tree by its launcher, and waits until that is gone. A launcher that
    /// does not end it in time is killed, by which its guardian does.
    ///
    /// # Errors
    /// It is not gone in time, or cannot be told.
    pub fn end(mut self) -> io::Result<()> {
        let process = self.launcher()?;
        match self.say(&ToRun::End) {
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
        // It may have become another program meanwhile.
        self.check_account(&process)?;
        self.kill(&process)
    }

    /// The process that had the socket listen, which still is of the account that the kernel
    /// named then: root ends what an account has, and nothing else on its word.
    fn launcher(&self) -> io::Result<OwnedFd> {
        let process = match outgate_sys::socket::peer_process(self.socket.as_fd()) {
            // RACE: the id may be another's by now. One of the same account is all that its
            // socket can name then.
            Err(error) if is_unknown(&error) => {
                self.check_id()?;
                outgate_sys::pidfd::open(self.pid)?
            }
            found => found?,
        };
        self.check_account(&process)?;
        Ok(process)
    }

    /// The account of a process whose id is this run's as long as it is there.
    fn check_account(&self, process: &OwnedFd) -> io::Result<()> {
        let checked = self.check_id();
        if readable(process, Duration::ZERO) {
            // Gone: signals reach nobody.
            return Ok(());
        }
        checked
    }

    fn check_id(&self) -> io::Result<()> {
        let is_root = nix::unistd::geteuid().is_root();
        match crate::process::accounts(self.pid) {
            Some(accounts) if accounts.iter().all(|account| *account == self.uid) => Ok(()),
            // Whoever is not root signals his own processes alone.
            None if !is_root => Ok(()),
            Some(_) | None => Err(io::Error::other(
                "its process is not of the account that the run is of",
            )),
        }
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

/// Whether the kernel does not know what was asked of a socket.
fn is_unknown(error: &outgate_sys::SysError) -> bool {
    error.raw_os_error() == Some(Errno::ENOPROTOOPT as i32)
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
