//! Look-ups of paths that may wait, made by a process of its own: a file system that
//! asks another process (FUSE) or another machine may never answer, and who waits for
//! it cannot even be killed. The launcher waits for nothing but the answer, and not
//! for that for long; what is stuck stays behind when it ends.
//!
//! Decides nothing. What is known without waiting needs no look-up
//! (`unix_inode::resolve_cached`).

use std::collections::HashSet;
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockType, UnixAddr, recvmsg, sendmsg,
};
use nix::sys::statfs::fstatfs;
use outgate_sys::process::fork_helper;

use crate::call_socket::without_waiting;
use crate::coprocess::pair;
use crate::sealed::keep_only;
use crate::unix_inode::{Occupant, Resolved, connect_to, occupant, resolve};

/// Look-ups made at once, in count: as many can be stuck.
const THREADS_MAX: usize = 16;
/// Look-ups that wait for one of those to end, in count.
const QUEUE_MAX: usize = 1024;
/// Bytes of a thread's stack there: paths and short calls.
const STACK_BYTES: usize = 256 * 1024;
/// Bytes of a request: numbers, and a path of a Unix socket.
const REQUEST_BYTES: usize = 256;
/// Bytes of a reply.
const REPLY_BYTES: usize = 32;
/// Bytes of the table of mounts that are read: thousands of them.
const MOUNTS_BYTES: u64 = 1 << 20;
/// File systems known to be answered for by this kernel, in count.
const DEVICES_MAX: usize = 4096;

/// Names of file systems for which this kernel answers by itself (proc_pid_mountinfo(5)).
const LOCAL_NAMES: [&str; 13] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "devtmpfs", "overlay", "zfs", "f2fs",
    "bcachefs", "squashfs",
];
/// Numbers of the same (statfs(2)).
const LOCAL_NUMBERS: [i64; 10] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
    0x7371_7368,
];

/// Whether what is done with an inode may wait for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// This kernel answers for it.
    No,
    /// Somebody else may have to be asked.
    Perhaps,
}

/// What a path leads to.
#[derive(Debug)]
pub struct FoundPath {
    /// The inode.
    pub place: Resolved,
    /// Whether what is done with it may wait.
    pub waits: Waits,
    /// Who listens there; not asked yet where that waits for nobody.
    pub occupant: Option<Occupant>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct LookupReply {
    /// To which.
    pub id: u64,
    /// What was found; nothing where a connection was asked for.
    pub result: Result<Option<FoundPath>, Errno>,
}

/// The launcher's end of the process that looks up.
#[derive(Debug, Default)]
pub struct Lookups {
    helper: Option<Helper>,
    local: Option<HashSet<u64>>,
    next: u64,
}

#[derive(Debug)]
struct Helper {
    socket: OwnedFd,
    pid: u32,
}

impl Lookups {
    /// Whether what is done with an inode of `device` may wait.
    pub fn waits(&mut self, device: u64) -> Waits {
        let local = self.local.get_or_insert_with(|| local_devices(&mounts()));
        if local.contains(&device) {
            Waits::No
        } else {
            Waits::Perhaps
        }
    }

    /// Asks where a path of `thread` leads, and who listens there for `kind`. The
    /// number by which the answer comes; none where nobody can be asked now.
    pub fn find(&mut self, thread: u32, path: &[u8], kind: SockType) -> Option<u64> {
        let mut bytes = vec![b'F', u8::from(kind == SockType::SeqPacket)];
        bytes.extend(thread.to_ne_bytes());
        bytes.extend(path);
        self.ask(&bytes, &[])
    }

    /// Asks for a connection of a socket to an inode.
    pub fn connect(&mut self, socket: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Option<u64> {
        self.ask(b"C", &[socket.as_raw_fd(), target.as_raw_fd()])
    }

    fn ask(&mut self, what: &[u8], descriptors: &[RawFd]) -> Option<u64> {
        if self.helper.is_none() {
            self.helper = start().ok();
        }
        let helper = self.helper.as_ref()?;
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let number = id.to_ne_bytes();
        let slices = [IoSlice::new(&number), IoSlice::new(what)];
        match send(helper.socket.as_fd(), &slices, descriptors, flags) {
            Ok(()) => Some(id),
            Err(Errno::EPIPE | Errno::ECONNRESET) => {
                // The next one finds another process.
                self.helper = None;
                None
            }
            Err(_) => None,
        }
    }

    /// The descriptor to poll, while the process runs.
    pub fn poll(&self) -> Option<BorrowedFd<'_>> {
        self.helper.as_ref().map(|helper| helper.socket.as_fd())
    }

    /// Its process id.
    pub fn pid(&self) -> Option<u32> {
        self.helper.as_ref().map(|helper| helper.pid)
    }

    /// The next answer, if one is there.
    pub fn receive(&mut self) -> Option<LookupReply> {
        let helper = self.helper.as_ref()?;
        let mut bytes = [0_u8; REPLY_BYTES];
        match receive(helper.socket.as_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Ok((count, descriptors)) => {
                let reply = decode(bytes.get(..count).unwrap_or_default(), descriptors);
                if let Some(reply) = &reply {
                    self.learn(reply);
                } else {
                    self.helper = None;
                }
                reply
            }
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Err(_) => {
                self.helper = None;
                None
            }
        }
    }

    fn learn(&mut self, reply: &LookupReply) {
        if let (Ok(Some(found)), Some(local)) = (&reply.result, &mut self.local)
            && found.waits == Waits::No
            && local.len() < DEVICES_MAX
        {
            local.insert(found.place.inode().device());
        }
    }
}

fn mounts() -> String {
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open("/proc/self/mountinfo") {
        // What cannot be read waits, perhaps.
        drop(file.take(MOUNTS_BYTES).read_to_string(&mut text));
    }
    text
}

/// Devices of the file systems in a table of mounts that this kernel answers for.
fn local_devices(mounts: &str) -> HashSet<u64> {
    let local = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let kind = kind.split_whitespace().next()?;
        let (major, minor) = place.split_whitespace().nth(2)?.split_once(':')?;
        let device = nix::sys::stat::makedev(major.parse().ok()?, minor.parse().ok()?);
        LOCAL_NAMES.contains(&kind).then_some(device)
    });
    local.take(DEVICES_MAX).collect()
}

/// An answer as it came; `None` when it is none.
fn decode(bytes: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<LookupReply> {
    let (id, rest) = bytes.split_first_chunk::<8>()?;
    let (errno, rest) = rest.split_first_chunk::<4>()?;
    let id = u64::from_ne_bytes(*id);
    let errno = i32::from_ne_bytes(*errno);
    let result = match (errno, rest, descriptors.pop()) {
        (0, [], None) => Ok(None),
        (0, [waits, occupant], Some(target)) => {
            let found = Resolved::of(target).map(|place| FoundPath {
                place,
                waits: if *waits == 0 {
                    Waits::No
                } else {
                    Waits::Perhaps
                },
                occupant: Some(match occupant {
                    0 => Occupant::Listening,
                    1 => Occupant::Nobody,
                    _ => Occupant::Unknown,
                }),
            });
            found.map(Some)
        }
        (0, ..) => return None,
        (errno, ..) => Err(Errno::from_raw(errno)),
    };
    Some(LookupReply { id, result })
}

fn start() -> io::Result<Helper> {
    let (ours, theirs) = pair()?;
    let kept = theirs.as_raw_fd();
    let pid = fork_helper(move || {
        keep_only(kept);
        // What is received later lands on none of those numbers.
        drop(outgate_sys::descriptor::fill_standard());
        serve(&Arc::new(theirs))
    })?;
    Ok(Helper {
        socket: ours,
        pid: u32::try_from(pid).unwrap_or(0),
    })
}

/// A request, and what came with it.
#[derive(Debug)]
struct LookupRequest {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// Serves until the launcher is gone.
fn serve(launcher: &Arc<OwnedFd>) -> i32 {
    let (sender, receiver) = sync_channel::<LookupRequest>(QUEUE_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let under_way = Arc::new(AtomicUsize::new(0));
    let mut threads = 0;
    let mut bytes = [0_u8; REQUEST_BYTES];
    loop {
        let (count, descriptors) = match receive(launcher.as_fd(), &mut bytes, MsgFlags::empty()) {
            Ok((0, _)) => return 0,
            Ok(received) => received,
            Err(Errno::EINTR) => continue,
            Err(_) => return 1,
        };
        let request = LookupRequest {
            bytes: bytes.get(..count).unwrap_or_default().to_vec(),
            descriptors,
        };
        if under_way.fetch_add(1, Ordering::AcqRel) >= threads && threads < THREADS_MAX {
            let (requests, launcher) = (Arc::clone(&receiver), Arc::clone(launcher));
            let under_way = Arc::clone(&under_way);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let work = move || work(&requests, &launcher, &under_way);
            threads = threads.saturating_add(usize::from(thread.spawn(work).is_ok()));
        }
        let refused = match sender.try_send(request) {
            Ok(()) if threads > 0 => continue,
            Ok(()) => return 1,
            Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) => request,
        };
        under_way.fetch_sub(1, Ordering::AcqRel);
        reply(launcher, &refused, Err(Errno::EAGAIN));
    }
}

/// Takes one request after the other.
fn work(requests: &Mutex<Receiver<LookupRequest>>, launcher: &OwnedFd, under_way: &AtomicUsize) {
    loop {
        let next = requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(mut request) = next else { return };
        let result = perform(&mut request);
        reply(launcher, &request, result);
        under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What was found: the inode, whether it waits, who listens there.
type Answer = Option<(OwnedFd, [u8; 2])>;

fn perform(request: &mut LookupRequest) -> Result<Answer, Errno> {
    let body = request.bytes.get(8..).unwrap_or_default();
    match (body, &mut *request.descriptors) {
        ([b'F', kind, a, b, c, d, path @ ..], []) => {
            let kind = match kind {
                1 => SockType::SeqPacket,
                _ => SockType::Stream,
            };
            let thread = u32::from_ne_bytes([*a, *b, *c, *d]);
            find(thread, path, kind).map(Some)
        }
        ([b'C'], [socket, target]) => {
            let connected = without_waiting(socket.as_fd(), || {
                connect_to(socket.as_fd(), target.as_fd())
            });
            connected.map(|()| None)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn find(thread: u32, path: &[u8], kind: SockType) -> Result<(OwnedFd, [u8; 2]), Errno> {
    let place = resolve(thread, path)?;
    let number = fstatfs(&place.target)?.filesystem_type().0;
    // The number's type differs from one C library to the next.
    let number = i128::from(number);
    let local = LOCAL_NUMBERS
        .iter()
        .any(|local| i128::from(*local) == number);
    let occupant = match occupant(place.target.as_fd(), kind) {
        Occupant::Listening => 0,
        Occupant::Nobody => 1,
        Occupant::Unknown => 2,
    };
    Ok((place.target, [u8::from(!local), occupant]))
}

fn reply(launcher: &OwnedFd, request: &LookupRequest, result: Result<Answer, Errno>) {
    let id = request.bytes.get(..8).unwrap_or_default();
    let (errno, answer) = match result {
        Ok(answer) => (0, answer),
        Err(errno) => (errno as i32, None),
    };
    let (target, facts) = answer.unzip();
    let numbers: Vec<_> = target.iter().map(AsRawFd::as_raw_fd).collect();
    let errno_bytes = errno.to_ne_bytes();
    let slices = [
        IoSlice::new(id),
        IoSlice::new(&errno_bytes),
        IoSlice::new(facts.as_ref().map_or(&[], |facts| &facts[..])),
    ];
    let flags = MsgFlags::MSG_NOSIGNAL;
    // Too many descriptors of this user are on their way already (unix(7)).
    if let Err(errno @ (Errno::ETOOMANYREFS | Errno::ENOMEM)) =
        send(launcher.as_fd(), &slices, &numbers, flags)
    {
        let errno_bytes = (errno as i32).to_ne_bytes();
        let slices = [IoSlice::new(id), IoSlice::new(&errno_bytes)];
        let _ = send(launcher.as_fd(), &slices, &[], flags);
    }
}

fn send(
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    numbers: &[RawFd],
    flags: MsgFlags,
) -> Result<(), Errno> {
    let rights = [ControlMessage::ScmRights(numbers)];
    let control = if numbers.is_empty() { &[][..] } else { &rights };
    sendmsg::<()>(socket.as_raw_fd(), slices, control, flags, None).map(drop)
}

fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: MsgFlags,
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = nix::cmsg_space!([RawFd; 2]);
    let mut slices = [IoSliceMut::new(bytes)];
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            let own = numbers.into_iter();
            descriptors.extend(own.filter_map(outgate_sys::descriptor::inherited));
        }
    }
    Ok((message.bytes, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn answer(lookups: &mut Lookups) -> LookupReply {
        use nix::poll::{PollFd, PollFlags, poll};
        let mut polled = [PollFd::new(lookups.poll().unwrap(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut polled, 10_000_u16), Ok(1));
        lookups.receive().unwrap()
    }

    #[test]
    fn a_path_is_found_and_connected_to_by_another_process() {
        let name = format!("outgate-lookup-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::remove_file(&path).ok();
        let listener = UnixListener::bind(&path).unwrap();
        let mut lookups = Lookups::default();
        let bytes = path.as_os_str().as_bytes();
        let id = lookups.find(std::process::id(), bytes, SockType::Stream);
        let reply = answer(&mut lookups);
        assert_eq!(Some(reply.id), id);
        let found = reply.result.unwrap().unwrap();
        assert!(found.place.is_socket());
        assert_eq!(found.place.path, bytes);
        assert_eq!(found.occupant, Some(Occupant::Listening));
        let client = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Unix,
            SockType::Stream,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        );
        let client = client.unwrap();
        let id = lookups.connect(client.as_fd(), found.place.target.as_fd());
        let reply = answer(&mut lookups);
        assert_eq!(
            (Some(reply.id), reply.result.unwrap().is_none()),
            (id, true)
        );
        assert!(listener.accept().is_ok());
        drop(UnixStream::from(client));
        std::fs::remove_file(&path).unwrap();
        lookups
            .find(std::process::id(), bytes, SockType::Stream)
            .unwrap();
        assert_eq!(answer(&mut lookups).result.err(), Some(Errno::ENOENT));
    }

    #[test]
    fn mounts_that_ask_nobody_are_told_from_others() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      23 22 0:5 / /dev rw shared:2 - devtmpfs devtmpfs rw\n\
                      40 22 0:44 / /mnt/a\\040-\\040b rw - fuse.sshfs host:/ rw\n\
                      41 22 0:45 / /home rw - nfs4 server:/home rw\n\
                      42 22 0:46 / /tmp rw - tmpfs tmpfs rw\n\
                      nonsense\n";
        let local = local_devices(mounts);
        let device = nix::sys::stat::makedev;
        for (number, known) in [
            (device(254, 0), true),
            (device(0, 5), true),
            (device(0, 46), true),
            (device(0, 44), false),
            (device(0, 45), false),
        ] {
            assert_eq!(local.contains(&number), known, "{number}");
        }
    }
}
