//! What every decompressor here is: bytes go in as they come, and what they
//! stand for comes out in pieces, as much as there is.

use crate::magic::Magic;

/// What comes out.
pub(super) enum Unpacked<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// What follows does not belong to what came before.
    Border,
}

/// Takes what comes out; answers whether to go on.
pub(super) type Sink<'s> = dyn FnMut(Unpacked<'_>) -> bool + 's;

/// How far a decompressor came.
pub(super) struct UnpackProgress {
    /// Bytes taken; all, unless it is done.
    pub(super) used: usize,
    /// Whether its end was in them.
    pub(super) is_done: bool,
}

/// Why a decompressor cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnpackFault {
    /// The bytes make no sense.
    Damaged,
    /// They need something nobody here reads.
    Unknown,
    /// They need more memory than the limit.
    Memory,
    /// The sink said so.
    Stopped,
}

/// A decompressor.
pub(super) trait Unpack: Send + Sync {
    /// Begins anew.
    fn reset(&mut self);

    /// Takes the next bytes.
    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault>;

    /// Whether bytes went in that could have come out and did not.
    fn is_pending(&self) -> bool;

    /// Whether it is at a header still: nothing of what went in can come out.
    fn is_ahead(&self) -> bool {
        false
    }

    /// How many bytes it made at most that have not come out.
    fn behind(&self) -> u64 {
        0
    }

    /// How many bytes it keeps at most, of so many that came out; nothing where they are
    /// fewer than a layer keeps.
    fn kept(&self, _: u64) -> u64 {
        0
    }

    /// Whether what is compressed in it is undone in it: nobody else has to look there.
    fn covers(&self) -> bool {
        false
    }

    /// What begins another stream that it goes on with, where it goes on.
    fn joins(&self) -> Option<Magic> {
        None
    }

    /// Where such ones began since it was asked last, in bytes that went in.
    fn begun(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Nothing will come: what waited for it comes out.
    fn finish(&mut self, _: &mut Sink<'_>) {}

    /// Whether the end of the input is no damage.
    fn may_end(&self) -> bool {
        false
    }
}
