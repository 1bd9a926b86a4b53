//! How the files of a record follow one another, as whoever starts a gateway says it.
//! Values only.

use crate::wire::{FrameError, FrameReader, FrameWriter};

/// When a record goes on in the next file, and which files stay. The files that are done
/// are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRotation {
    /// Bytes after which a file is done; `u64::MAX` for never.
    pub bytes: u64,
    /// Seconds after which it is; `u64::MAX` for never.
    pub seconds: u64,
    /// Files that stay, the one that is written among them.
    pub files: u64,
    /// Seconds that a file stays after it was done; `u64::MAX` for ever.
    pub stay_seconds: u64,
}

impl RecordRotation {
    /// Never, and all stay: what options then change.
    pub const NEVER: Self = Self {
        bytes: u64::MAX,
        seconds: u64::MAX,
        files: u64::MAX,
        stay_seconds: u64::MAX,
    };

    pub(crate) fn write(&self, w: &mut FrameWriter) {
        for number in [self.bytes, self.seconds, self.files, self.stay_seconds] {
            w.u64(number);
        }
    }

    pub(crate) fn read(r: &mut FrameReader<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            bytes: r.u64("bytes")?,
            seconds: r.u64("seconds")?,
            files: r.u64("files")?,
            stay_seconds: r.u64("stay")?,
        })
    }
}
