//! bzip2: blocks of up to 900 kB, of which nothing comes out before the whole of one is there.

use bzip2::{Decompress, Status};

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};
use crate::budget::wide;

/// Bytes that come out at a time.
const SPACE_BYTES: usize = 8 * 1024;

/// What the decompressor keeps of the largest block, in bytes (bzip2(1), memory management).
const KEPT_BYTES: u64 = 3_700_000;

/// What it keeps beside the block, in bytes.
const TABLES_BYTES: u64 = 64 << 10;

/// Bytes of the header of a stream.
const HEADER_BYTES: u64 = 4;

/// One stream.
pub(super) struct Bzip2 {
    decoder: Decompress,
    is_done: bool,
    space: Vec<u8>,
}

impl Bzip2 {
    pub(super) fn new() -> Self {
        Self {
            decoder: Decompress::new(false),
            is_done: false,
            space: vec![0; SPACE_BYTES],
        }
    }

    /// Whether a block has begun, or may have.
    fn has_begun(&self) -> bool {
        !self.is_done && self.decoder.total_in() > HEADER_BYTES
    }
}

impl Unpack for Bzip2 {
    fn reset(&mut self) {
        self.decoder = Decompress::new(false);
        self.is_done = false;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let begin = self.decoder.total_in();
        loop {
            let used = self.decoder.total_in().saturating_sub(begin);
            let used = usize::try_from(used).unwrap_or(usize::MAX);
            if self.is_done {
                return Ok(UnpackProgress {
                    used,
                    is_done: true,
                });
            }
            let before = (self.decoder.total_in(), self.decoder.total_out());
            let rest = input.get(used..).ok_or(UnpackFault::Damaged)?;
            let status = self.decoder.decompress(rest, &mut self.space);
            let count = self.decoder.total_out().saturating_sub(before.1);
            let made = usize::try_from(count).ok();
            let made = made.and_then(|count| self.space.get(..count));
            let made = made.ok_or(UnpackFault::Damaged)?;
            if !made.is_empty() && !sink(Unpacked::Bytes(made)) {
                return Err(UnpackFault::Stopped);
            }
            match status {
                Ok(Status::StreamEnd) => self.is_done = true,
                Ok(Status::MemNeeded) => return Err(UnpackFault::Memory),
                Ok(_) => {}
                // What came out before is looked at: programs show it, too.
                Err(_) => return Err(UnpackFault::Damaged),
            }
            let is_idle = before == (self.decoder.total_in(), self.decoder.total_out());
            if is_idle && !self.is_done {
                return Ok(UnpackProgress {
                    used,
                    is_done: false,
                });
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.has_begun()
    }

    /// Of its space no more is touched than four bytes for each that comes out, and tables.
    fn kept(&self, made: u64) -> u64 {
        if !self.has_begun() {
            return 0;
        }
        let read = self.decoder.total_in().saturating_mul(16);
        let touched = made.saturating_mul(4).saturating_add(read);
        touched.saturating_add(TABLES_BYTES).min(KEPT_BYTES)
    }

    /// With the first byte of a block all of it comes out.
    fn behind(&self) -> u64 {
        wide(usize::from(self.has_begun()))
    }
}
