//! Datagram sockets that can reach nothing: they live in a network namespace
//! without links, where every address is local for port 53, and only the DNS stub
//! listens there; no other port of any address but loopback's can be sent to.
//!
//! A helper process makes the namespace at the first datagram socket the
//! command asks for, hands its port-53 sockets over once, and then one socket
//! per request. The namespace belongs to one sandbox, since whoever has the
//! same user id may change it.

mod network;

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn,
    SockaddrIn6, UnixAddr, bind, recv, recvmsg, send, sendmsg, setsockopt, socket, sockopt,
};
use outgate_sys::process::{Namespaces, fork_helper, leave_namespaces};

use crate::address::Family;
use crate::coprocess::pair;

/// Requests on the way at most; further sockets are refused.
const REQUESTS_MAX: usize = 1024;

/// How long an attempt may take, in milliseconds.
const ATTEMPT_MS: u16 = 5_000;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelperRequest {
    /// Address family.
    pub family: Family,
    /// Whether the socket is non-blocking.
    pub blocking: Blocking,
}

/// Whether calls on a socket wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// They wait.
    Yes,
    /// `O_NONBLOCK` is set.
    No,
}

/// The helper, as far as it got.
#[derive(Debug)]
pub enum SealedNetwork<T> {
    /// Nothing asked yet.
    Idle,
    /// Running.
    Open(RunningHelper<T>),
    /// Not to be had, with the reason: datagram sockets are refused.
    Absent(String),
}

/// A running helper and the requests it has not answered, in order.
#[derive(Debug)]
pub struct RunningHelper<T> {
    socket: OwnedFd,
    pid: u32,
    waiting: VecDeque<T>,
    namespace: Option<u64>,
}

/// Datagrams that went nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedDatagrams {
    /// No way leads there; connects count as well.
    pub no_way: u64,
    /// Nobody listens there.
    pub no_port: u64,
}

/// What two tables of proc_pid_net(5) say: of IPv4 in pairs of lines with names and numbers,
/// of IPv6 with one of each a line.
fn counted(v4: &str, v6: &str) -> RefusedDatagrams {
    let in_pairs = |table: &str, name: &str| {
        let mut lines = v4.lines().filter_map(|line| line.strip_prefix(table));
        let (names, numbers) = (lines.next()?, lines.next()?);
        let mut both = names.split_whitespace().zip(numbers.split_whitespace());
        both.find_map(|(own, number)| (own == name).then(|| number.parse::<u64>().ok())?)
    };
    let in_lines = |name: &str| {
        let mut lines = v6
            .lines()
            .filter_map(|line| line.split_once(char::is_whitespace));
        lines.find_map(|(own, number)| (own == name).then(|| number.trim().parse::<u64>().ok())?)
    };
    let both =
        |one: Option<u64>, other: Option<u64>| one.unwrap_or(0).saturating_add(other.unwrap_or(0));
    RefusedDatagrams {
        no_way: both(in_pairs("Ip:", "OutNoRoutes"), in_lines("Ip6OutNoRoutes")),
        no_port: both(in_pairs("Udp:", "NoPorts"), in_lines("Udp6NoPorts")),
    }
}

/// What the helper said.
#[derive(Debug)]
pub enum HelperReply<T> {
    /// The two port-53 sockets, for the gateway.
    Stubs(Vec<OwnedFd>),
    /// A socket for the oldest request.
    Socket(T, OwnedFd),
    /// The oldest request failed.
    Failed(T, Errno),
    /// The helper is gone; what waited.
    Gone(Vec<T>),
    /// Nothing is there.
    None,
}

impl<T> SealedNetwork<T> {
    /// Asks for a socket on behalf of `asker`.
    ///
    /// # Errors
    /// The asker, when there is no helper or too many wait.
    pub fn request(&mut self, request: HelperRequest, asker: T) -> Result<(), T> {
        if matches!(self, Self::Idle) {
            *self = match start() {
                Ok((socket, pid)) => Self::Open(RunningHelper {
                    socket,
                    pid,
                    waiting: VecDeque::new(),
                    namespace: None,
                }),
                Err(error) => Self::Absent(error.to_string()),
            };
        }
        let Self::Open(open) = self else {
            return Err(asker);
        };
        if open.waiting.len() >= REQUESTS_MAX {
            return Err(asker);
        }
        let bytes = [
            u8::from(request.family == Family::V6),
            u8::from(request.blocking == Blocking::No),
        ];
        match send(
            open.socket.as_raw_fd(),
            &bytes,
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
        ) {
            Ok(_) => {
                open.waiting.push_back(asker);
                Ok(())
            }
            Err(_) => Err(asker),
        }
    }

    /// The descriptor to poll, while the helper runs.
    pub fn poll(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Open(open) => Some(open.socket.as_fd()),
            Self::Idle | Self::Absent(_) => None,
        }
    }

    /// Process id of the helper.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Open(open) => Some(open.pid),
            Self::Idle | Self::Absent(_) => None,
        }
    }

    /// What the namespace counted that was sent, or connected, to where nothing goes.
    pub fn refused(&self) -> Option<RefusedDatagrams> {
        let pid = self.pid()?;
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let v4 = read("snmp").ok()?;
        // A kernel without IPv6 has no such file.
        let v6 = read("snmp6").unwrap_or_default();
        Some(counted(&v4, &v6))
    }

    /// Whether the socket lives in this sandbox's sealed namespace.
    pub fn owns(&self, socket: BorrowedFd<'_>) -> bool {
        let Self::Open(open) = self else {
            return false;
        };
        let cookie = outgate_sys::socket::namespace_cookie(socket).ok();
        cookie.is_some() && cookie == open.namespace
    }

    /// Reads one reply.
    pub fn receive(&mut self) -> HelperReply<T> {
        let Self::Open(open) = self else {
            return HelperReply::None;
        };
        match receive(open.socket.as_fd()) {
            Ok(Some(Message::Stubs(stubs))) => {
                open.namespace = stubs
                    .first()
                    .and_then(|stub| outgate_sys::socket::namespace_cookie(stub.as_fd()).ok());
                HelperReply::Stubs(stubs)
            }
            Ok(Some(Message::Socket(socket))) => match open.waiting.pop_front() {
                Some(asker) => HelperReply::Socket(asker, socket),
                None => HelperReply::None,
            },
            Ok(Some(Message::Failed(errno))) => match open.waiting.pop_front() {
                Some(asker) => HelperReply::Failed(asker, errno),
                None => HelperReply::None,
            },
            Ok(None) => HelperReply::None,
            Err(reason) => {
                let waiting = std::mem::take(&mut open.waiting);
                *self = Self::Absent(reason);
                HelperReply::Gone(waiting.into())
            }
        }
    }
}

enum Message {
    Stubs(Vec<OwnedFd>),
    Socket(OwnedFd),
    Failed(Errno),
}

fn receive(socket: BorrowedFd<'_>) -> Result<Option<Message>, String> {
    let mut bytes = [0_u8; 256];
    let mut space = nix::cmsg_space!([RawFd; 2]);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let raw = socket.as_raw_fd();
    // A helper that ends with a request unread resets the connection, and what it
    // said before lies behind that (unix(7)).
    let mut received = recvmsg::<UnixAddr>(raw, &mut slices, Some(&mut space), flags);
    if matches!(received, Err(Errno::ECONNRESET)) {
        received = recvmsg::<UnixAddr>(raw, &mut slices, Some(&mut space), flags);
    }
    let (count, descriptors) = match received {
        Ok(message) => {
            let mut descriptors = Vec::new();
            for control in message.cmsgs().map_err(|errno| errno.to_string())? {
                if let ControlMessageOwned::ScmRights(numbers) = control {
                    descriptors.extend(numbers.into_iter().filter_map(own));
                }
            }
            (message.bytes, descriptors)
        }
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        Err(errno) => return Err(errno.to_string()),
    };
    let text = bytes.get(..count).unwrap_or_default();
    let mut descriptors = descriptors;
    match (text.split_first(), descriptors.len()) {
        (Some((b'S', _)), 1 | 2) => Ok(Some(Message::Stubs(descriptors))),
        (Some((b'D', _)), 1) => Ok(descriptors.pop().map(Message::Socket)),
        (Some((b'E', [errno, ..])), 0) => {
            Ok(Some(Message::Failed(Errno::from_raw(i32::from(*errno)))))
        }
        (Some((b'X', reason)), 0) => Err(String::from_utf8_lossy(reason).into_owned()),
        _ => Err("the helper ended".to_owned()),
    }
}

fn own(number: RawFd) -> Option<OwnedFd> {
    outgate_sys::descriptor::inherited(number)
}

/// Whether a sealed network can be made here: makes one, and lets it go.
///
/// # Errors
/// What the kernel refuses, in words.
pub fn attempt() -> Result<(), String> {
    let (socket, _) = start().map_err(|error| error.to_string())?;
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    if !matches!(poll(&mut polled, ATTEMPT_MS), Ok(1)) {
        return Err("no answer of the process that would make a network namespace".to_owned());
    }
    match receive(socket.as_fd())? {
        Some(Message::Stubs(_)) => Ok(()),
        Some(Message::Socket(_) | Message::Failed(_)) | None => Err("an odd answer".to_owned()),
    }
}

fn start() -> io::Result<(OwnedFd, u32)> {
    let (ours, theirs) = pair()?;
    let kept = theirs.as_raw_fd();
    let pid = fork_helper(move || {
        keep_only(kept);
        match seal() {
            Ok(stubs) => serve(theirs.as_fd(), &stubs),
            Err(reason) => {
                let mut text = vec![b'X'];
                text.extend(reason.bytes().take(200));
                let _ = send(theirs.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL);
                1
            }
        }
    })?;
    Ok((ours, u32::try_from(pid).unwrap_or(0)))
}

/// Closes everything but one descriptor: above all the listener, which would
/// otherwise keep held calls waiting after the launcher's death.
pub(crate) fn keep_only(kept: RawFd) {
    if let Ok(kept) = u32::try_from(kept) {
        drop(outgate_sys::descriptor::close_between(
            0,
            kept.saturating_sub(1),
        ));
        drop(outgate_sys::descriptor::close_between(
            kept.saturating_add(1),
            u32::MAX,
        ));
    }
}

/// Makes the namespace and its port-53 sockets.
fn seal() -> Result<Vec<OwnedFd>, String> {
    let namespaces = if nix::unistd::geteuid().is_root() {
        Namespaces::Network
    } else {
        Namespaces::UserAndNetwork
    };
    leave_namespaces(namespaces)
        .or_else(|_| leave_namespaces(Namespaces::UserAndNetwork))
        .map_err(|error| format!("no new network namespace: {error}"))?;
    network::make().map_err(|error| format!("no route in the new namespace: {error}"))?;
    let v4 = stub_v4().map_err(|error| format!("no port 53 in the new namespace: {error}"))?;
    let mut stubs = vec![v4];
    stubs.extend(stub_v6().ok());
    Ok(stubs)
}

fn stub_v4() -> nix::Result<OwnedFd> {
    let stub = datagram(AddressFamily::Inet)?;
    setsockopt(&stub, sockopt::Ipv4PacketInfo, &true)?;
    bind(stub.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, 53))?;
    Ok(stub)
}

fn stub_v6() -> nix::Result<OwnedFd> {
    let stub = datagram(AddressFamily::Inet6)?;
    setsockopt(&stub, sockopt::Ipv6V6Only, &true)?;
    setsockopt(&stub, sockopt::Ipv6RecvPacketInfo, &true)?;
    let any = std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, 53, 0, 0);
    bind(stub.as_raw_fd(), &SockaddrIn6::from(any))?;
    Ok(stub)
}

fn datagram(family: AddressFamily) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(family, SockType::Datagram, flags, None)
}

/// Hands out sockets until the launcher is gone.
fn serve(launcher: BorrowedFd<'_>, stubs: &[OwnedFd]) -> i32 {
    let numbers: Vec<_> = stubs.iter().map(AsRawFd::as_raw_fd).collect();
    if reply(launcher, b"S", &numbers).is_err() {
        return 1;
    }
    let mut bytes = [0_u8; 2];
    loop {
        match recv(launcher.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
            Ok(2) => {}
            Err(Errno::EINTR) => continue,
            _ => return 0,
        }
        let [v6, nonblocking] = bytes;
        let family = if v6 == 1 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        };
        let mut flags = SockFlag::SOCK_CLOEXEC;
        flags.set(SockFlag::SOCK_NONBLOCK, nonblocking == 1);
        let given = socket(family, SockType::Datagram, flags, None)
            .and_then(|made| reply(launcher, b"D", &[made.as_raw_fd()]));
        let sent = match given {
            Err(errno @ (Errno::EPIPE | Errno::ECONNRESET)) => Err(errno),
            // None was made, or too many of the user's descriptors are on their way
            // to other places (unix(7), `ETOOMANYREFS`).
            Err(errno) => {
                let errno = match errno {
                    Errno::ETOOMANYREFS => Errno::ENOBUFS,
                    errno => errno,
                };
                let number = u8::try_from(errno as i32).unwrap_or(1);
                reply(launcher, &[b'E', number], &[])
            }
            Ok(count) => Ok(count),
        };
        if sent.is_err() {
            return 1;
        }
    }
}

fn reply(launcher: BorrowedFd<'_>, text: &[u8], numbers: &[RawFd]) -> nix::Result<usize> {
    let rights = [ControlMessage::ScmRights(numbers)];
    let control = if numbers.is_empty() { &[][..] } else { &rights };
    let slices = [IoSlice::new(text)];
    sendmsg::<()>(
        launcher.as_raw_fd(),
        &slices,
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_nowhere_is_counted_in_both_families() {
        let v4 = "Ip: Forwarding OutNoRoutes OutOther\nIp: 1 7 2\nUdp: InDatagrams NoPorts\nUdp: 3 4\nUdpLite: NoPorts\nUdpLite: 9\n";
        let v6 = "Ip6InReceives 5\nIp6OutNoRoutes \t11\nUdp6NoPorts 2\n";
        let expected = RefusedDatagrams {
            no_way: 18,
            no_port: 6,
        };
        assert_eq!(counted(v4, v6), expected);
        let nothing = RefusedDatagrams {
            no_way: 0,
            no_port: 0,
        };
        assert_eq!(counted("", "x"), nothing);
    }
}
