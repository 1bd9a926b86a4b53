//! Brotli (RFC 7932).

use std::cell::Cell;

use brotli_decompressor::{
    Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper, SliceWrapperMut,
    StandardAlloc,
};

use crate::limits;
use crate::span;

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};

type State = BrotliState<Rooms, StandardAlloc, StandardAlloc>;

/// Bytes that come out at a time.
const SPACE_BYTES: usize = 8 * 1024;

/// Bytes that come out at most where it is only tried.
const TRIED_BYTES: usize = 64;

/// Low bits of a first byte that asks for one of the large windows that no browser reads:
/// above the limit of decoders.
const LARGE_WINDOW: u8 = 0x11;

/// Low bits of one that asks for 16 MiB, as programs do that cannot know how much comes.
const WIDE_WINDOW: u8 = 0x0f;

/// That window, in bytes.
const WIDE_BYTES: u64 = 16 << 20;

/// How far behind the last byte that came out a decompressor may have written (two copies of
/// 16 bytes, or a word of 37), and more.
const ROOM_SLACK: usize = 256;

/// A window, all zeros but where something came out.
#[derive(Default)]
struct BrotliWindow {
    bytes: Vec<u8>,
    /// How many of them a stream asked for.
    count: usize,
}

impl SliceWrapper<u8> for BrotliWindow {
    fn slice(&self) -> &[u8] {
        span::upto(&self.bytes, self.count)
    }
}

impl SliceWrapperMut<u8> for BrotliWindow {
    fn slice_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.count).unwrap_or_default()
    }
}

thread_local! {
    /// The window of the last stream that was dropped: what may be compressed begins often
    /// and is over soon, and megabytes of zeros take longer than that.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Where a decompressor has its bytes from.
#[derive(Default)]
struct Rooms;

impl Allocator<u8> for Rooms {
    type AllocatedMemory = BrotliWindow;

    fn alloc_cell(&mut self, count: usize) -> BrotliWindow {
        let spare = if count >= limits::ROOM_BYTES_MIN {
            SPARE.take()
        } else {
            Vec::new()
        };
        let bytes = if spare.len() >= count {
            spare
        } else {
            vec![0; count]
        };
        BrotliWindow { bytes, count }
    }

    fn free_cell(&mut self, _: BrotliWindow) {}
}

/// What goes on between two pieces.
struct BrotliDecoder(Box<State>);

impl BrotliDecoder {
    fn new() -> Self {
        let (bytes, numbers, codes) = Default::default();
        Self(Box::new(BrotliState::new_strict(bytes, numbers, codes)))
    }
}

impl Drop for BrotliDecoder {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.0.ringbuffer);
        let end = usize::try_from(self.0.pos).unwrap_or(usize::MAX);
        let used = end.saturating_add(ROOM_SLACK).min(room.bytes.len());
        // INVARIANT: the position is behind all that came out. Large windows, whose distances
        // end a decompressor before it says where it is, are refused.
        let is_little = self.0.rb_roundtrips == 0 && end <= limits::ROOM_USED_MAX;
        let sizes = limits::ROOM_BYTES_MIN..=limits::ROOM_BYTES_MAX;
        if is_little && sizes.contains(&room.bytes.len()) {
            // Nothing of one stream is seen in another.
            room.bytes.get_mut(..used).unwrap_or_default().fill(0);
            SPARE.set(room.bytes);
        }
    }
}

/// Whether something comes out of these bytes before anything in them makes no sense.
pub(super) fn makes_some(bytes: &[u8]) -> bool {
    let mut space = [0_u8; TRIED_BYTES];
    let (mut left, mut used, mut total) = (bytes.len(), 0, 0);
    let (mut room, mut written) = (space.len(), 0);
    let result = BrotliDecompressStream(
        &mut left,
        &mut used,
        bytes,
        &mut room,
        &mut written,
        &mut space,
        &mut total,
        &mut BrotliDecoder::new().0,
    );
    written > 0 || !matches!(result, BrotliResult::ResultFailure)
}

/// The window a stream asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowSize {
    /// At most 8 MiB.
    Usual,
    /// 16 MiB.
    Wide,
}

/// Brotli.
pub(super) struct Brotli {
    decoder: BrotliDecoder,
    space: Vec<u8>,
    is_begun: bool,
    window: WindowSize,
}

impl Brotli {
    pub(super) fn new() -> Self {
        Self {
            decoder: BrotliDecoder::new(),
            space: vec![0; SPACE_BYTES],
            is_begun: false,
            window: WindowSize::Usual,
        }
    }
}

impl Unpack for Brotli {
    fn reset(&mut self) {
        if self.is_begun {
            self.decoder = BrotliDecoder::new();
            self.is_begun = false;
            self.window = WindowSize::Usual;
        }
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        if !self.is_begun
            && let Some(first) = input.first()
        {
            self.is_begun = true;
            if first & 0x7f == LARGE_WINDOW {
                return Err(UnpackFault::Memory);
            }
            if first & 0x0f == WIDE_WINDOW {
                self.window = WindowSize::Wide;
            }
        }
        let (mut left, mut used, mut total) = (input.len(), 0, 0);
        loop {
            let (mut room, mut written) = (self.space.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut used,
                input,
                &mut room,
                &mut written,
                &mut self.space,
                &mut total,
                &mut self.decoder.0,
            );
            let made = span::upto(&self.space, written);
            if !made.is_empty() && !sink(Unpacked::Bytes(made)) {
                return Err(UnpackFault::Stopped);
            }
            let is_done = match result {
                BrotliResult::ResultSuccess => true,
                // What had no room waits beside what is missing.
                BrotliResult::NeedsMoreInput if room > 0 => false,
                BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => continue,
                BrotliResult::ResultFailure => return Err(UnpackFault::Damaged),
            };
            return Ok(UnpackProgress { used, is_done });
        }
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn kept(&self, made: u64) -> u64 {
        // It may take a window at once, or as much as comes out.
        if self.window == WindowSize::Wide && made > limits::WIDE_FREE_BYTES {
            return WIDE_BYTES;
        }
        made.min(limits::DECODER_WINDOW_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of the window of a stream that begins with a block of so many bytes that
    /// stand there as they are, and goes on with `rest`.
    fn kept(head: [u8; 3], count: usize, rest: &[u8]) -> Vec<u8> {
        let content = [&head[..], &vec![b'x'; count], rest].concat();
        let mut brotli = Brotli::new();
        let mut made = 0;
        let pushed = brotli.push(&content, &mut |bytes| {
            if let Unpacked::Bytes(bytes) = bytes {
                made += bytes.len();
            }
            true
        });
        assert!(made > 0 || pushed.is_err());
        drop(brotli);
        SPARE.take()
    }

    #[test]
    fn a_window_that_is_kept_is_all_zeros() {
        // Windows of 64 KiB and of 4 MiB; what follows is missing, the end, or damage.
        for head in [[0xf0, 0xa5, 0x1e], [0x8b, 0x2f, 0xf5]] {
            for (count, rest) in [
                (1, &b""[..]),
                (59_999, b""),
                (60_000, b"\x03"),
                (60_000, b"\xff\xff\xff"),
            ] {
                let kept = kept(head, count, rest);
                assert!(kept.len() >= 1 << 16, "{head:02x?} {count} {rest:02x?}");
                assert!(kept.iter().all(|byte| *byte == 0), "{head:02x?} {count}");
            }
        }
    }

    #[test]
    fn a_window_of_which_much_was_used_is_not_kept() {
        // All of 64 KiB.
        assert!(kept([0xf0, 0xff, 0x1f], 1 << 16, b"\x03").is_empty());
    }

    #[test]
    fn a_window_that_was_kept_is_taken_again() {
        let large = kept([0x8b, 0x2f, 0xf5], 100, b"");
        let count = large.len();
        SPARE.set(large);
        assert_eq!(kept([0xf0, 0xa5, 0x1e], 100, b"").len(), count);
    }
}
