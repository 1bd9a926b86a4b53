//! Terminals that a program made (pts(4)): their numbers, and their other ends.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{SysError, check};

/// Open for reading and writing.
pub const O_RDWR: i32 = libc::O_RDWR;

/// Number of the terminal whose first end (`/dev/ptmx`) this is.
///
/// # Errors
/// `ENOTTY` or another for whatever is none (ioctl_tty(2), `TIOCGPTN`).
pub fn number(first: BorrowedFd<'_>) -> Result<u32, SysError> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the number is live, writable and of the size the request states.
    let result = unsafe { libc::ioctl(first.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    check(result.into())?;
    Ok(number)
}

/// Opens the other end, close-on-exec, never as our own controlling terminal. Of `flags`,
/// the access mode and `O_NONBLOCK` count.
///
/// # Errors
/// `EIO`: it is locked still; `ENOTTY`: there is none (ioctl_tty(2), `TIOCGPTPEER`).
pub fn peer(first: BorrowedFd<'_>, flags: i32) -> Result<OwnedFd, SysError> {
    let asked = flags & (libc::O_ACCMODE | libc::O_NONBLOCK);
    let flags = asked | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: plain integers in, a descriptor or an error out.
    let opened = unsafe { libc::ioctl(first.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    check(opened.into())?;
    // SAFETY: the kernel just returned this descriptor to us and to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd as _;

    #[test]
    fn a_first_end_has_a_number_and_anything_else_has_none() {
        let first = File::options()
            .read(true)
            .write(true)
            .open("/dev/ptmx")
            .unwrap();
        let number = number(first.as_fd()).unwrap();
        assert!(std::path::Path::new(&format!("/dev/pts/{number}")).exists());
        // Locked until its maker unlocks it.
        let locked = peer(first.as_fd(), O_RDWR).unwrap_err();
        assert_eq!(locked.raw_os_error(), Some(libc::EIO));
        let other = File::open("/dev/null").unwrap();
        assert!(super::number(other.as_fd()).is_err());
        assert!(peer(other.as_fd(), O_RDWR).is_err());
    }
}
