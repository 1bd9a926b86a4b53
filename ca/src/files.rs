//! Files with keys and certificates: bounded, regular, and a key only where
//! nobody else can have it: not readable by others, not another account's, and
//! without a second name elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::authority::CaError;

/// Bytes of a certificate or key file, at most.
const FILE_BYTES_MAX: u64 = 64 * 1024;

pub(crate) fn fault(path: &Path, fault: impl std::fmt::Display) -> CaError {
    CaError::File {
        path: path.display().to_string(),
        fault: fault.to_string(),
    }
}

/// The text of a file with certificates.
///
/// # Errors
/// [`CaError::File`]: it is missing, no regular file, too large or no text.
pub fn read_public(path: &Path) -> Result<String, CaError> {
    let file = open(path, OFlag::empty()).map_err(|error| fault(path, error))?;
    text(file).map_err(|error| fault(path, error))
}

/// The text of a file with a key, if it is nobody's but ours.
///
/// # Errors
/// [`CaError::File`]: as [`read_public`]; it is a link, or others can have it.
pub fn read_key(path: &Path) -> Result<String, CaError> {
    let file = match open(path, OFlag::O_NOFOLLOW) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            return Err(fault(path, "is a link; name the key itself"));
        }
        Err(error) => return Err(fault(path, error)),
    };
    let about = file.metadata().map_err(|error| fault(path, error))?;
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("others may use this key (mode {mode:03o}); chmod 600 it");
        return Err(fault(path, why));
    }
    let own = nix::unistd::geteuid().as_raw();
    if about.uid() != own && about.uid() != 0 {
        let why = format!(
            "this key belongs to user {}, not to you (user {own}); make a copy that is yours",
            about.uid()
        );
        return Err(fault(path, why));
    }
    if about.nlink() != 1 {
        let why = "this key has a second name elsewhere (a hard link); make a copy without one";
        return Err(fault(path, why));
    }
    text(file).map_err(|error| fault(path, error))
}

/// Makes a file that must not be there yet, with this mode, and what it holds
/// on the disk.
pub(crate) fn create(path: &Path, mode: u32, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

/// Opening a pipe would wait for its writer.
fn open(path: &Path, more: OFlag) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY | more).bits())
        .open(path)
}

fn text(file: File) -> Result<String, String> {
    let regular = file.metadata().map_err(|error| error.to_string())?;
    if !regular.is_file() {
        return Err("is no regular file".to_owned());
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let count = read.map_err(|error| error.to_string())?;
    if u64::try_from(count).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(format!("is longer than {FILE_BYTES_MAX} bytes"));
    }
    Ok(text)
}
