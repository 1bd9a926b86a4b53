//! Compresses the files of records that nobody writes any more: block by block into a file
//! beside, which is on the disk before the plain one goes. What is broken off, by the end
//! of the process or a full disk, leaves the plain file, which counts where both are there.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use outgate_record::{block_length, pack_block};

use super::listing::{RecordFile, listed};

/// Bytes that are read at once.
const READ_BYTES: usize = 1024 * 1024;

/// Compresses every record of the directory that is done, but `current`.
pub(super) fn pack_done(directory: &Path, current: &Path) {
    for file in listed(directory) {
        if file.plain != current {
            // What cannot be compressed stays as it is, and is tried with the next file.
            pack(&file).ok();
        }
    }
}

fn pack(record: &RecordFile) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Whatever bears the name is not waited for.
    let options = options.read(true).append(true);
    let options = options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let mut file = match options.open(&record.plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    // Who writes it holds it, and so do we: nobody else compresses or removes it.
    if file.try_lock().is_err() {
        return Ok(());
    }
    let about = file.metadata()?;
    // Another process may have been faster.
    if !about.is_file() || about.nlink() != 1 {
        return Ok(());
    }
    let target = record.packed();
    // Of an attempt that was broken off: the plain file is whole.
    std::fs::remove_file(&target).ok();
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut packed = options.open(&target)?;
    let written = copy(&mut file, &mut packed).and_then(|()| packed.sync_all());
    if let Err(error) = written {
        std::fs::remove_file(&target).ok();
        return Err(error);
    }
    std::fs::remove_file(&record.plain)
}

/// Block by block.
fn copy(plain: &mut impl Read, packed: &mut impl Write) -> io::Result<()> {
    let wrong = |fault| io::Error::new(io::ErrorKind::InvalidData, fault);
    let mut ahead = Vec::new();
    loop {
        let read = Read::by_ref(plain)
            .take(u64::try_from(READ_BYTES).unwrap_or(u64::MAX))
            .read_to_end(&mut ahead)?;
        loop {
            let length = block_length(&ahead).map_err(wrong)?;
            // A block that could be longer waits, until there is no more.
            let is_last = read == 0 || length == 0;
            let waits = ahead.len() < READ_BYTES && !is_last;
            if length == 0 || waits {
                break;
            }
            let lines = ahead.get(..length).unwrap_or_default();
            packed.write_all(&pack_block(lines).map_err(wrong)?)?;
            ahead.drain(..length);
        }
        if read == 0 {
            // A line that a full disk cut off.
            if !ahead.is_empty() {
                packed.write_all(&pack_block(&ahead).map_err(wrong)?)?;
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const NAME: &str = "20261121T131734.957Z-1.jsonl";

    #[test]
    fn what_somebody_writes_or_what_is_no_file_stays() {
        let path = std::env::temp_dir().join(format!("outgate-packing-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir(&path).unwrap();
        let plain = path.join(NAME);
        std::fs::write(&plain, "{\"a\":1}\n{\"cut").unwrap();
        let held = File::open(&plain).unwrap();
        held.lock_shared().unwrap();
        pack_done(&path, Path::new("/none"));
        assert!(plain.exists());
        drop(held);
        // The remains of an attempt.
        std::fs::write(path.join(format!("{NAME}.gz")), "half").unwrap();
        let other = path.join("20261121T131734.957Z-2.jsonl");
        std::os::unix::fs::symlink("/etc/hostname", &other).unwrap();
        pack_done(&path, Path::new("/none"));
        assert!(!plain.exists() && other.is_symlink());
        let packed = std::fs::read(path.join(format!("{NAME}.gz"))).unwrap();
        assert_eq!(packed.get(..2), Some([0x1f, 0x8b].as_slice()));
        std::fs::remove_dir_all(path).unwrap();
    }
}
