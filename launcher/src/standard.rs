//! Descriptors the command inherits: 0, 1 and 2, and nothing else. A socket
//! there may only be a connected stream, since any other would let the command
//! name a destination when it sends.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::sys::socket::{SockaddrStorage, getpeername};
use outgate_sys::descriptor::Standard;
use outgate_sys::socket::{AF_INET, AF_INET6, AF_UNIX, SOCK_SEQPACKET, SOCK_STREAM};

/// A standard stream that must not be inherited.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is a socket that is not a connected stream; outgate does not hand it to the command"
)]
pub struct StandardError {
    /// Which stream.
    pub name: &'static str,
}

/// Opens what is closed, marks everything else close-on-exec and checks what
/// the command inherits.
///
/// # Errors
/// [`StandardError`] names the stream; the caller of outgate is at fault.
pub fn sanitise() -> Result<(), StandardError> {
    // Without /dev/null there is nothing better than a closed stream.
    drop(outgate_sys::descriptor::fill_standard());
    drop(outgate_sys::descriptor::close_on_exec_from(3));
    check(Standard::Input.as_fd(), "standard input")?;
    check(Standard::Output.as_fd(), "standard output")?;
    check(Standard::Error.as_fd(), "standard error")
}

fn check(stream: BorrowedFd<'_>, name: &'static str) -> Result<(), StandardError> {
    let Ok(kind) = outgate_sys::socket::kind(stream) else {
        return Ok(());
    };
    let family = outgate_sys::socket::family(stream).unwrap_or(-1);
    let connected = getpeername::<SockaddrStorage>(stream.as_raw_fd()).is_ok();
    let kind_fits = match family {
        AF_UNIX => matches!(kind, SOCK_STREAM | SOCK_SEQPACKET),
        AF_INET | AF_INET6 => kind == SOCK_STREAM,
        _ => false,
    };
    if kind_fits && connected {
        Ok(())
    } else {
        Err(StandardError { name })
    }
}
