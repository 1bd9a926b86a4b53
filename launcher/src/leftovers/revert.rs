//! Puts back what was there before a run, from what was noted before it. Follows no link, and
//! touches nothing that changed since the run ended; what it replaces stays beside the record.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::file::{self, FileContent};
use super::{KeptLeftovers, Leftover, LeftoversError, Was};

/// What became of one leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverted {
    /// It is as it was.
    Restored,
    /// There was none, and there is none.
    Removed,
    /// It stays, for this reason.
    Left(String),
}

/// Puts back what can be put back. Says for each what became of it, and where the files are
/// that were replaced.
///
/// # Errors
/// There is no place for what is replaced; nothing was touched then.
pub fn revert(
    path: &Path,
    kept: &KeptLeftovers,
) -> Result<(Vec<Reverted>, PathBuf), LeftoversError> {
    let backup =
        fresh(&path.with_extension("reverted")).map_err(|source| LeftoversError::File {
            path: path.with_extension("reverted"),
            source,
        })?;
    let one = |(number, left): (usize, &Leftover)| {
        put_back(left, number, &backup).unwrap_or_else(Reverted::Left)
    };
    let done = kept.left.iter().enumerate().map(one).collect();
    Ok((done, backup))
}

/// A new directory, with a number if there is one of this name.
fn fresh(path: &Path) -> io::Result<PathBuf> {
    for number in 1..1000_u32 {
        let path = match number {
            1 => path.to_owned(),
            number => path.with_extension(format!("reverted-{number}")),
        };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn put_back(left: &Leftover, number: usize, backup: &Path) -> Result<Reverted, String> {
    let (Some(above), Some(name)) = (left.path.parent(), left.path.file_name()) else {
        return Err("it has no name".to_owned());
    };
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let directory = openat2(AT_FDCWD, above, how)
        .map_err(|error| format!("its directory: {}", error.desc()))?;
    let is_same = || file::state(directory.as_fd(), name) == Some(left.state);
    let changed = || "it changed since the run ended".to_owned();
    if !is_same() {
        return Err(changed());
    }
    let (content, mode) = match &left.was {
        Was::Absent => (None, 0),
        Was::Unknown => return Err("nobody noted what was there before".to_owned()),
        Was::Known {
            content: FileContent::Unknown(_),
            ..
        } => return Err("what was there before could not be read".to_owned()),
        Was::Known { content, mode } => (Some(content), *mode),
    };
    let now = file::content(directory.as_fd(), name, left.state);
    match &now {
        FileContent::Text(bytes) => save(backup, number, name, bytes)?,
        FileContent::Link(target) => save(backup, number, name, target.as_bytes())?,
        // A fifo, a socket or a device holds nothing.
        FileContent::Unknown(_) if !left.state.is_file() => {}
        FileContent::Unknown(why) => return Err((*why).to_owned()),
    }
    if !is_same() {
        return Err(changed());
    }
    let desc = |error: nix::errno::Errno| error.desc().to_owned();
    let Some(content) = content else {
        unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir).map_err(desc)?;
        return Ok(Reverted::Removed);
    };
    let temporary = format!(".outgate-revert-{}-{number}", std::process::id());
    make(&directory, &temporary, content, mode).map_err(|error| error.to_string())?;
    let renamed = if is_same() {
        renameat(&directory, temporary.as_str(), &directory, name).map_err(desc)
    } else {
        Err(changed())
    };
    if renamed.is_err() {
        let _ = unlinkat(&directory, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    renamed.map(|()| Reverted::Restored)
}

/// Makes a new file or link with what was there before.
fn make(directory: &OwnedFd, name: &str, content: &FileContent, mode: u32) -> io::Result<()> {
    match content {
        FileContent::Link(target) => symlinkat(target.as_os_str(), directory, name)?,
        FileContent::Text(bytes) => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
            let opened = openat(
                directory,
                name,
                flags | OFlag::O_CLOEXEC,
                Mode::S_IRUSR | Mode::S_IWUSR,
            )?;
            let mut file = File::from(opened);
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        }
        FileContent::Unknown(_) => return Err(io::ErrorKind::InvalidData.into()),
    }
    Ok(())
}

/// Keeps what is replaced, under a number and its name.
fn save(backup: &Path, number: usize, name: &OsStr, bytes: &[u8]) -> Result<(), String> {
    let path = backup.join(format!("{number:03}-{}", file::text(name)));
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let saved = opened.and_then(|mut file| file.write_all(bytes));
    saved.map_err(|error| format!("it could not be kept first: {error}"))
}
