//! The socket to one launcher: whole frames in and out, descriptors with the
//! frame they belong to (unix(7), `SOCK_SEQPACKET`). Knows no meanings; what
//! does not fit the contract's bounds is an error that ends the session.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use nix::poll::{PollFd, PollFlags, poll};
use outgate_dlp::span;
use outgate_handoff::{
    DESCRIPTORS_MAX, FRAME_BYTES_MAX, FrameError, GatewaySetting, SETTINGS_MAX, ToGateway,
    ToLauncher,
};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::config::GatewaySettings;
use crate::limits;
use crate::text::shortened;

/// Why a control connection ends other than by its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The launcher broke the contract.
    #[error("launcher sent an invalid frame")]
    Frame(#[from] FrameError),
    /// The frame does not carry the descriptors its kind needs.
    #[error("frame carries {actual} descriptors instead of {expected}")]
    Descriptors {
        /// How many its kind carries.
        expected: usize,
        /// How many came.
        actual: usize,
    },
    /// A frame came at a time when its kind has no meaning.
    #[error("frame out of order: {what}")]
    Order {
        /// What came when.
        what: &'static str,
    },
    /// The socket failed.
    #[error("control socket")]
    Io(#[from] io::Error),
}

/// A launcher sent something else than sockets and paths.
#[derive(Debug, thiserror::Error)]
#[error("a descriptor is neither a socket nor a path")]
struct Stranger(Closing);

/// What was sent is being closed, aside: as long as that takes.
#[derive(Debug, Clone)]
pub(crate) struct Closing(Weak<()>);

impl Closing {
    /// Begins; done when what is returned beside it is dropped.
    pub(crate) fn begin() -> (Self, Arc<()>) {
        let until = Arc::new(());
        (Self(Arc::downgrade(&until)), until)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl ControlError {
    /// The closing of what the launcher sent, if no launcher sends such a thing.
    pub(crate) fn stranger(&self) -> Option<Closing> {
        let Self::Io(error) = self else {
            return None;
        };
        let stranger = error.get_ref()?.downcast_ref::<Stranger>()?;
        Some(stranger.0.clone())
    }
}

/// One frame and what came with it. Dropping it closes the descriptors.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) frame: ToGateway,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// The socket. Sending needs no order among tasks: a frame is one message.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    /// Any Unix socket of messages is driven alike; only the calls below use it.
    socket: UnixDatagram,
}

impl ControlSocket {
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixDatagram::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixDatagram::from_std(socket)?,
        })
    }

    /// The next frame, or `None` when the launcher is gone.
    pub(crate) async fn receive(
        &self,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<ReceivedFrame>, ControlError> {
        let (bytes, descriptors) = loop {
            // While nothing comes no room is kept for it: most sandboxes are silent.
            *buffer = Vec::new();
            self.socket.readable().await?;
            // One byte more than allowed, so that a larger message is seen as such.
            buffer.resize(FRAME_BYTES_MAX + 1, 0);
            let received = self.socket.try_io(Interest::READABLE, || {
                receive_message(self.socket.as_fd(), buffer)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => break received?,
            }
        };
        if bytes == 0 {
            return Ok(None);
        }
        let frame = ToGateway::decode(span::upto(buffer, bytes))?;
        Ok(Some(ReceivedFrame { frame, descriptors }))
    }

    /// Sends a frame, waiting for room.
    pub(crate) async fn send(&self, frame: &ToLauncher) -> Result<(), ControlError> {
        let bytes = frame.encode()?;
        let sent = self.socket.async_io(Interest::WRITABLE, || {
            send_message(self.socket.as_fd(), &bytes)
        });
        Ok(sent.await?)
    }

    /// Sends a frame if there is room now. For what may be lost: a launcher
    /// that does not read must not hold up a decision.
    pub(crate) fn offer(&self, frame: &ToLauncher) {
        if let Ok(bytes) = frame.encode() {
            send_message(self.socket.as_fd(), &bytes).ok();
        }
    }
}

/// What whoever started this process tells it before anything else.
///
/// # Errors
/// It says something else, too much, or nothing in time.
pub(crate) fn settings(socket: &OwnedFd) -> Result<GatewaySettings, ControlError> {
    let mut settings = GatewaySettings::default();
    let mut buffer = vec![0; FRAME_BYTES_MAX + 1];
    for _ in 0..=SETTINGS_MAX {
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, limits::SETTINGS_WAIT_MS).map_err(io::Error::from)? == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        let (bytes, descriptors) = receive_message(socket.as_fd(), &mut buffer)?;
        if bytes == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if !descriptors.is_empty() {
            return Err(ControlError::Descriptors {
                expected: 0,
                actual: descriptors.len(),
            });
        }
        match ToGateway::decode(span::upto(&buffer, bytes))? {
            ToGateway::Setting(GatewaySetting::End) => return Ok(settings),
            ToGateway::Setting(setting) => settings
                .take(setting)
                .map_err(|what| ControlError::Order { what })?,
            _ => {
                return Err(ControlError::Order {
                    what: "something else than settings before they ended",
                });
            }
        }
    }
    Err(ControlError::Order {
        what: "more settings than there may be",
    })
}

/// Says why nothing will be served, on a socket nobody drives yet; whether it was taken.
pub(crate) fn refuse(socket: &OwnedFd, error: &dyn std::error::Error) -> bool {
    let message = shortened(&crate::chain(error), outgate_handoff::LINE_BYTES_MAX);
    let bytes = (ToLauncher::Refused { message }).encode();
    bytes.is_ok_and(|bytes| send_message(socket.as_fd(), &bytes).is_ok())
}

fn send_message(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_message(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(buffer)],
        &mut ancillary,
        RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    let (descriptors, strangers): (Vec<_>, Vec<_>) = descriptors.into_iter().partition(is_ours);
    if !strangers.is_empty() {
        let stranger = Stranger(bury(strangers));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, stranger));
    }
    if message
        .flags
        .intersects(ReturnFlags::CTRUNC | ReturnFlags::TRUNC)
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "message or its descriptors are larger than the contract allows",
        ));
    }
    Ok((message.bytes, descriptors))
}

/// Whether a descriptor is of a kind that frames carry: a socket, or a path.
/// Neither question reaches a file system, which could be a user's own and
/// never answer.
fn is_ours(descriptor: &OwnedFd) -> bool {
    const O_PATH: i32 = libc::O_PATH;
    rustix::net::sockopt::socket_type(descriptor).is_ok()
        || nix::fcntl::fcntl(descriptor, nix::fcntl::FcntlArg::F_GETFL)
            .is_ok_and(|flags| flags & O_PATH != 0)
}

/// Closes descriptors aside, where there is a thread for it: closing a file waits
/// for its file system.
fn bury(descriptors: Vec<OwnedFd>) -> Closing {
    let (closing, until) = Closing::begin();
    let close = move || {
        drop(descriptors);
        drop(until);
    };
    std::thread::Builder::new().spawn(close).ok();
    closing
}

/// Two ends of a connection that keeps the bounds of messages; no other program gets them.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC);
    Ok(socketpair(AddressFamily::Unix, kind, None, flags)?)
}

/// Takes over a descriptor that was inherited under a number.
///
/// The number is passed through a socket pair to ourselves and comes back as
/// an owned descriptor, close-on-exec; the number itself is closed.
///
/// # Errors
/// The number names no open descriptor.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    use std::os::fd::AsRawFd;

    let (ours, theirs) = pair()?;
    sendmsg::<()>(
        theirs.as_fd().as_raw_fd(),
        &[io::IoSlice::new(b"f")],
        &[ControlMessage::ScmRights(&[number])],
        MsgFlags::empty(),
        None,
    )?;
    let (_, mut received) = receive_message(ours.as_fd(), &mut [0])?;
    nix::unistd::close(number)?;
    received
        .pop()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}
