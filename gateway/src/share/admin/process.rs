//! What the kernel says of this process, read through descriptors that were opened before
//! it confined itself (proc(5)).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::confine;

/// Bytes of a page, as the kernel counts resident memory. Other sizes only change a gauge.
const PAGE_BYTES: u64 = 4096;

/// Open places of `/proc/self`.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    descriptors: Option<File>,
    memory: Option<File>,
}

impl OwnProcess {
    /// Opens them; to be done before the process confines itself.
    pub(crate) fn open() -> Self {
        Self {
            descriptors: File::open("/proc/self/fd").ok(),
            memory: File::open("/proc/self/statm").ok(),
        }
    }

    /// Files that are open. KERNEL: 6.2 says so in the size of the directory.
    pub(super) fn open_files(&self) -> Option<u64> {
        let metadata = self.descriptors.as_ref()?.metadata().ok()?;
        Some(metadata.len()).filter(|count| *count > 0)
    }

    /// How many may be.
    pub(super) fn open_files_limit() -> u64 {
        confine::open_files()
    }

    /// Bytes of resident memory.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let count = self.memory.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..count)?).ok()?;
        let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
        pages.checked_mul(PAGE_BYTES)
    }
}
