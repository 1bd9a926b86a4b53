//! The keeper: a process beside a gateway that has confined itself, started
//! before that. It looks again at the files and commands that secrets come from,
//! and tells the gateway what changed. It reads nothing but the numbers of
//! secrets from the gateway, and nothing at all from the network; which files
//! and commands there are was said when it started.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use outgate_handoff::{GatewaySetting, ToGateway};
use outgate_policy::{NamedSecret, SecretKind, SecretSource};
use zeroize::Zeroizing;

use super::source;
use super::value::{Material, SecretValue, SigningKeys};
use crate::{control, limits};

/// Bytes of one message at most: a number, three lengths and three values.
const MESSAGE_BYTES_MAX: usize = 16 + 3 * limits::SECRET_BYTES_MAX;

/// The gateway's end of the connection to its keeper.
#[derive(Debug)]
pub(crate) struct Keeper(OwnedFd);

impl Keeper {
    /// Starts one for these secrets; `None` where none of them can change. To
    /// be done before the process confines itself.
    ///
    /// # Errors
    /// No process can be started.
    pub(crate) fn start(named: &[NamedSecret]) -> io::Result<Option<Self>> {
        if !named.iter().any(source::may_change) {
            return Ok(None);
        }
        let (ours, theirs) = control::pair()?;
        let theirs = theirs.as_fd();
        rustix::io::fcntl_setfd(theirs, rustix::io::FdFlags::empty())?;
        let mut keeper = Command::new("/proc/self/exe");
        keeper.arg("keep").arg("--handoff-fd");
        keeper.arg(theirs.as_raw_fd().to_string());
        // It ends with us (prctl(2), PR_SET_PDEATHSIG), and with the connection.
        keeper.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let secrets = named.iter().cloned().map(GatewaySetting::Secret);
        for setting in secrets.chain([GatewaySetting::End]) {
            let frame = ToGateway::Setting(setting).encode();
            let frame =
                frame.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            send(ours.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL)?;
        }
        Ok(Some(Self(ours)))
    }

    pub(crate) fn into_socket(self) -> OwnedFd {
        self.0
    }
}

/// Keeps these secrets until the gateway is gone.
pub(crate) fn keep(socket: &OwnedFd, named: &[NamedSecret]) -> io::Result<()> {
    let mut marks: Vec<Option<Mark>> = named.iter().map(mark).collect();
    loop {
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, limits::SECRET_LOOK_MS)? > 0 {
            let mut number = [0_u8; 1];
            let count = recv(socket.as_raw_fd(), &mut number, MsgFlags::empty())?;
            if count == 0 {
                return Ok(());
            }
            let [number] = number;
            if let Some(named) = named.get(usize::from(number)) {
                tell(socket, number, named)?;
            }
            continue;
        }
        for (number, (named, known)) in named.iter().zip(&mut marks).enumerate() {
            let now = mark(named);
            if now.is_some() && now != *known {
                *known = now;
                tell(socket, u8::try_from(number).unwrap_or(u8::MAX), named)?;
            }
        }
    }
}

/// Reads a secret and tells it. What cannot be read stays what it was: files are
/// missing for a moment while they are replaced.
fn tell(socket: &OwnedFd, number: u8, named: &NamedSecret) -> io::Result<()> {
    let Ok(material) = source::read(named) else {
        return Ok(());
    };
    let mut message = Zeroizing::new(Vec::with_capacity(MESSAGE_BYTES_MAX));
    message.push(number);
    for value in material.values() {
        let bytes = value.reveal();
        let length = u16::try_from(bytes.len()).unwrap_or(0);
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(bytes);
    }
    send(socket.as_raw_fd(), &message, MsgFlags::MSG_NOSIGNAL)?;
    Ok(())
}

/// By what a change of a file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(u64, u64, Option<SystemTime>);

fn mark(named: &NamedSecret) -> Option<Mark> {
    use std::os::unix::fs::MetadataExt;
    let SecretSource::File(path) = &named.source else {
        return None;
    };
    let found = std::fs::metadata(path).ok()?;
    Some(Mark(found.ino(), found.len(), found.modified().ok()))
}

/// What a keeper told: the number of a secret, and its material.
pub(super) fn decode(message: &[u8], named: &[NamedSecret]) -> Option<(usize, Material)> {
    let (number, mut rest) = message.split_first()?;
    let number = usize::from(*number);
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, after) = after.split_at_checked(length)?;
        values.push(SecretValue::new(Zeroizing::new(value.to_vec())));
        rest = after;
    }
    let mut values = values.into_iter();
    let material = match named.get(number)?.kind {
        SecretKind::Value => Material::Text(values.next()?),
        SecretKind::Aws => Material::Keys(SigningKeys {
            id: values.next()?,
            secret: values.next()?,
            session: values.next(),
        }),
    };
    values.next().is_none().then_some((number, material))
}

/// The next message of a keeper, if one is there.
pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut message = Zeroizing::new(vec![0; MESSAGE_BYTES_MAX]);
    let mut slices = [IoSliceMut::new(&mut message)];
    let received = nix::sys::socket::recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        None,
        MsgFlags::MSG_DONTWAIT,
    )?;
    let count = received.bytes;
    message.truncate(count);
    Ok(message)
}

/// Asks for a secret to be read again.
pub(super) fn ask(socket: BorrowedFd<'_>, number: usize) {
    if let Ok(number) = u8::try_from(number) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        send(socket.as_raw_fd(), &[number], flags).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_keeper_tells_is_understood_and_nothing_else() {
        let named = [("A", SecretKind::Value), ("B", SecretKind::Aws)];
        let named = named.map(|(name, kind)| NamedSecret {
            name: name.to_owned(),
            kind,
            source: SecretSource::Command("x".to_owned()),
        });
        for (message, number) in [
            (&b"\x00\x00\x03abc"[..], Some(0)),
            (b"\x01\x00\x01a\x00\x01b", Some(1)),
            (b"\x01\x00\x01a\x00\x01b\x00\x01c", Some(1)),
            (b"", None),
            (b"\x00", None),
            (b"\x00\x00", None),
            (b"\x00\x00\x04abc", None),
            (b"\x00\x00\x01a\x00\x01b", None),
            (b"\x01\x00\x01a", None),
            (b"\x02\x00\x01a", None),
        ] {
            let found = decode(message, &named).map(|(number, _)| number);
            assert_eq!(found, number, "{message:?}");
        }
    }
}
