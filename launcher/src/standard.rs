//! Descriptors the command inherits: 0, 1 and 2, and nothing else. A socket
//! there may only be a connected stream, since any other would let the command
//! name a destination when it sends.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{SockaddrStorage, getpeername};
use nix::sys::termios::{LocalFlags, tcgetattr};
use outgate_sys::alarm::CallAlarm;
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

/// Lines that wait for standard error at most; what comes after them is lost.
const LINES_MAX: usize = 256;
/// How long a write may take.
const WRITE_MAX: Duration = Duration::from_millis(1);
/// How long standard error is waited for at the end.
const LAST_MAX: Duration = Duration::from_secs(1);

/// Lines for standard error, which may be a terminal that the command has stopped
/// (tcflow(3)) or a pipe that nobody reads: they are written as it takes them, and
/// nothing waits for that but the end. A terminal in raw mode shows a program's screen,
/// into which nothing is written: lines wait until it is a terminal of lines again.
#[derive(Debug, Default)]
pub struct Lines {
    waiting: VecDeque<Vec<u8>>,
    /// How many more there were than are kept.
    lost: usize,
}

/// Whether standard error is a terminal that a program draws on (termios(3), non-canonical
/// mode).
fn is_drawn_on() -> bool {
    let mode = tcgetattr(Standard::Error);
    mode.is_ok_and(|mode| !mode.local_flags.contains(LocalFlags::ICANON))
}

impl Lines {
    /// Says a line, or keeps it until standard error takes it.
    pub fn say(&mut self, line: &str) {
        if self.waiting.len() < LINES_MAX {
            self.waiting.push_back([line.as_bytes(), b"\n"].concat());
        } else {
            self.lost = self.lost.saturating_add(1);
        }
        if !is_drawn_on() {
            self.write(Duration::ZERO);
        }
    }

    /// Writes what waits, as far as standard error takes it within `wait`.
    fn write(&mut self, wait: Duration) {
        let error = Standard::Error;
        let deadline = Instant::now() + wait;
        // Its mode is the command's too, so it may begin to wait at any moment.
        let Ok(alarm) = CallAlarm::new(WRITE_MAX) else {
            return;
        };
        while let Some(line) = self.waiting.front_mut() {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut polled = [PollFd::new(error.as_fd(), PollFlags::POLLOUT)];
            match poll(
                &mut polled,
                u16::try_from(left.as_millis()).unwrap_or(u16::MAX),
            ) {
                Ok(1..) => {}
                Err(Errno::EINTR) if !left.is_zero() => continue,
                _ => return,
            }
            alarm.set();
            let written = nix::unistd::write(error, line);
            alarm.stop();
            match written {
                Ok(count) if count < line.len() => drop(line.drain(..count)),
                Err(Errno::EINTR | Errno::EAGAIN) if left.is_zero() => return,
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                // A run goes on when nobody listens any more.
                Ok(_) | Err(_) => drop(self.waiting.pop_front()),
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if self.lost > 0 {
            let line = format!(
                "outgate: {} more lines were not kept; `outgate why last` explains\n",
                self.lost
            );
            self.waiting.push_back(line.into_bytes());
        }
        self.write(LAST_MAX);
    }
}
