//! The standard streams by their names: what `/dev/stdout` leads to is whatever the caller
//! opened, and gives no more than that was opened for.

use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use landlock::{AccessFs, BitFlags};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};
use outgate_sys::descriptor::Standard;

const STREAMS: [Standard; 3] = [Standard::Input, Standard::Output, Standard::Error];

/// The stream that a path names.
fn named(path: &Path) -> Option<Standard> {
    let name = path.to_str()?;
    let number = name
        .strip_prefix("/dev/fd/")
        .or_else(|| name.strip_prefix("/proc/self/fd/"));
    match number.unwrap_or(name) {
        "0" | "/dev/stdin" => Some(Standard::Input),
        "1" | "/dev/stdout" => Some(Standard::Output),
        "2" | "/dev/stderr" => Some(Standard::Error),
        _ => None,
    }
}

/// The accesses of a grant of `path` by which `object` was opened; `None` where it gives none.
/// A log that is appended to is not read by its name, and a directory opens nothing below it.
pub(super) fn within(
    path: &Path,
    object: &OwnedFd,
    accesses: BitFlags<AccessFs>,
) -> Option<BitFlags<AccessFs>> {
    if path == Path::new("/dev/tty") {
        // Who has no terminal for its streams has nothing to ask the user there.
        return is_any_a_terminal().then_some(accesses);
    }
    let Some(stream) = named(path) else {
        return Some(accesses);
    };
    let kind = fstat(object).ok()?.st_mode & SFlag::S_IFMT.bits();
    if kind == SFlag::S_IFDIR.bits() {
        return None;
    }
    if kind != SFlag::S_IFREG.bits() {
        return Some(accesses);
    }
    let flags = fcntl(stream.as_fd(), FcntlArg::F_GETFL).ok()?;
    let mode = OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE;
    let opened = match mode {
        OFlag::O_RDONLY => AccessFs::ReadFile.into(),
        OFlag::O_WRONLY => AccessFs::WriteFile | AccessFs::Truncate,
        _ => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate,
    };
    let given = accesses & opened;
    (!given.is_empty()).then_some(given)
}

fn is_any_a_terminal() -> bool {
    STREAMS.iter().any(|stream| stream.as_fd().is_terminal())
}
