//! The launcher's end of the control connection: starts the gateway, sends the
//! policy, questions and descriptors, reads answers, notices its death.
//!
//! Nothing here waits: frames that do not fit the socket are queued with a
//! bound, and a gateway that is gone answers every question with a denial.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use outgate_handoff::{
    Begin, DESCRIPTORS_MAX, FRAME_BYTES_MAX, FrameError, Hello, PROTOCOL, SOURCE_CHUNK_BYTES_MAX,
    Source, SourceKind, ToGateway, ToLauncher,
};

/// Frames queued for a gateway that does not read, at most. Beyond, the
/// gateway counts as gone.
const QUEUE_FRAMES_MAX: usize = 8192;

/// What a session needs to start.
#[derive(Debug)]
pub struct Opening {
    /// Path of the gateway's program.
    pub program: PathBuf,
    /// Its arguments after `serve --handoff-fd N`.
    pub arguments: Vec<String>,
    /// Name of the sandbox.
    pub sandbox: String,
    /// Policy texts in merge order.
    pub sources: Vec<(SourceKind, String, String)>,
    /// Directories and command line, for the policy and the records.
    pub begin: Begin,
}

/// The control connection.
#[derive(Debug)]
pub enum Link {
    /// Nothing asked yet.
    Idle(Box<Opening>),
    /// Running.
    Open(Box<Open>),
    /// Gone, with the reason: everything is denied.
    Gone(String),
}

/// A running gateway.
#[derive(Debug)]
pub struct Open {
    socket: OwnedFd,
    child: Child,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
}

impl Link {
    /// Starts the gateway unless it runs or is gone.
    pub fn start(&mut self) {
        let Self::Idle(opening) = self else {
            return;
        };
        *self = match open(opening) {
            Ok(open) => Self::Open(Box::new(open)),
            Err(error) => Self::Gone(format!("{}: {error}", opening.program.display())),
        };
    }

    /// Sends a frame, now or when the socket has room; starts the gateway first
    /// when nothing was sent yet. Descriptors close once they are sent.
    pub fn send(&mut self, frame: &ToGateway, descriptors: Vec<OwnedFd>) {
        self.start();
        let Self::Open(open) = self else {
            return;
        };
        match frame.encode() {
            Ok(bytes) => open.queue.push_back((bytes, descriptors)),
            Err(error) => {
                self.fail(&error.to_string());
                return;
            }
        }
        if open.queue.len() > QUEUE_FRAMES_MAX {
            self.fail("it does not read");
            return;
        }
        self.flush();
    }

    /// Sends what is queued, as far as the socket has room.
    pub fn flush(&mut self) {
        if let Self::Open(open) = self
            && let Err(error) = open.flush()
        {
            self.fail(&error.to_string());
        }
    }

    /// The next frame, if one is there.
    pub fn receive(&mut self) -> Option<ToLauncher> {
        let Self::Open(open) = self else {
            return None;
        };
        match open.receive() {
            Ok(frame) => frame,
            Err(reason) => {
                self.fail(&reason);
                None
            }
        }
    }

    /// The descriptor to poll, and whether to poll it for room.
    pub fn poll(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match self {
            Self::Open(open) => Some((open.socket.as_fd(), !open.queue.is_empty())),
            Self::Idle(_) | Self::Gone(_) => None,
        }
    }

    /// Process id of the gateway.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Open(open) => Some(open.child.id()),
            Self::Idle(_) | Self::Gone(_) => None,
        }
    }

    /// Why the gateway is gone, if it is.
    pub fn gone(&self) -> Option<&str> {
        match self {
            Self::Gone(reason) => Some(reason),
            Self::Idle(_) | Self::Open(_) => None,
        }
    }

    /// Ends the connection: the gateway sees it and goes.
    pub fn fail(&mut self, reason: &str) {
        if let Self::Open(open) = std::mem::replace(self, Self::Gone(reason.to_owned())) {
            open.end();
        }
    }
}

impl Open {
    fn flush(&mut self) -> io::Result<()> {
        while let Some((bytes, descriptors)) = self.queue.front() {
            let numbers: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
            let rights = [ControlMessage::ScmRights(&numbers)];
            let control = if numbers.is_empty() { &[][..] } else { &rights };
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let slices = [IoSlice::new(bytes)];
            match sendmsg::<()>(self.socket.as_raw_fd(), &slices, control, flags, None) {
                Ok(_) => drop(self.queue.pop_front()),
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<ToLauncher>, String> {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let count = match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Err(self.epitaph()),
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.to_string()),
        };
        bytes.truncate(count);
        ToLauncher::decode(&bytes)
            .map(Some)
            .map_err(|error: FrameError| error.to_string())
    }

    /// How a gateway that closed its end fared.
    fn epitaph(&mut self) -> String {
        match self.child.try_wait() {
            Ok(Some(status)) => format!("it ended with {status}"),
            _ => "it closed the connection".to_owned(),
        }
    }

    fn end(self) {
        let Self {
            socket, mut child, ..
        } = self;
        drop(socket);
        // A gateway that is stopped or stuck must not outlive its sandbox. One
        // that is well has seen the closed connection and ended by itself.
        if matches!(child.try_wait(), Ok(None)) {
            drop(child.kill());
        }
        drop(child.wait());
    }

    /// Waits at most `wait_ms` for the gateway to end by itself, then ends it.
    pub fn finish(mut self, wait_ms: u16) {
        let pidfd = outgate_sys::pidfd::open(self.child.id());
        self.queue.clear();
        let Self { socket, child, .. } = self;
        drop(socket);
        if let Ok(pidfd) = pidfd {
            let mut polled = [nix::poll::PollFd::new(
                pidfd.as_fd(),
                nix::poll::PollFlags::POLLIN,
            )];
            let _ = nix::poll::poll(&mut polled, wait_ms);
        }
        let mut child = child;
        if matches!(child.try_wait(), Ok(None)) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Starts the gateway with one end of a socket pair, in a process group of its
/// own, so that a terminal's Ctrl-C reaches the command and not it.
fn open(opening: &Opening) -> io::Result<Open> {
    let (ours, theirs) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    fcntl(theirs.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    let child = Command::new(&opening.program)
        .arg("serve")
        .arg("--handoff-fd")
        .arg(theirs.as_raw_fd().to_string())
        .args(&opening.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()?;
    drop(theirs);
    let mut open = Open {
        socket: ours,
        child,
        queue: VecDeque::new(),
    };
    for frame in opening_frames(opening)? {
        open.queue.push_back((frame, Vec::new()));
    }
    open.flush()?;
    Ok(open)
}

fn opening_frames(opening: &Opening) -> io::Result<Vec<Vec<u8>>> {
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let hello = ToGateway::Hello(Hello {
        protocol: PROTOCOL,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        sandbox: opening.sandbox.clone(),
        pid: std::process::id(),
    });
    let mut frames = vec![hello.encode().map_err(invalid)?];
    for (index, (kind, place, text)) in opening.sources.iter().enumerate() {
        let mut chunks: Vec<&[u8]> = text.as_bytes().chunks(SOURCE_CHUNK_BYTES_MAX).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for chunk in chunks {
            let source = ToGateway::Source(Source {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                kind: *kind,
                place: place.clone(),
                chunk: chunk.to_vec(),
            });
            frames.push(source.encode().map_err(invalid)?);
        }
    }
    let begin = ToGateway::Begin(opening.begin.clone());
    frames.push(begin.encode().map_err(invalid)?);
    Ok(frames)
}

/// Descriptors a frame carries, checked against the limit of the frames.
pub fn descriptors<const N: usize>(list: [OwnedFd; N]) -> Vec<OwnedFd> {
    const { assert!(N <= DESCRIPTORS_MAX) };
    Vec::from(list)
}
