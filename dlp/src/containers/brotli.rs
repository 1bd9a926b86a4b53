//! Brotli (RFC 7932).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use crate::limits;

use super::unpack::{Fault, Made, Progress, Sink, Unpack};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

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
        &mut fresh(),
    );
    written > 0 || !matches!(result, BrotliResult::ResultFailure)
}

/// The window a stream asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    /// At most 8 MiB.
    Usual,
    /// 16 MiB.
    Wide,
}

/// Brotli.
pub(super) struct Brotli {
    state: Box<State>,
    space: Vec<u8>,
    is_begun: bool,
    window: Window,
}

fn fresh() -> Box<State> {
    Box::new(BrotliState::new(
        StandardAlloc::default(),
        StandardAlloc::default(),
        StandardAlloc::default(),
    ))
}

impl Brotli {
    pub(super) fn new() -> Self {
        Self {
            state: fresh(),
            space: vec![0; SPACE_BYTES],
            is_begun: false,
            window: Window::Usual,
        }
    }
}

impl Unpack for Brotli {
    fn reset(&mut self) {
        if self.is_begun {
            self.state = fresh();
            self.is_begun = false;
            self.window = Window::Usual;
        }
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<Progress, Fault> {
        if !self.is_begun
            && let Some(first) = input.first()
        {
            self.is_begun = true;
            if first & 0x7f == LARGE_WINDOW {
                return Err(Fault::Memory);
            }
            if first & 0x0f == WIDE_WINDOW {
                self.window = Window::Wide;
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
                &mut self.state,
            );
            let made = self.space.get(..written).unwrap_or_default();
            if !made.is_empty() && !sink(Made::Bytes(made)) {
                return Err(Fault::Stopped);
            }
            let is_done = match result {
                BrotliResult::ResultSuccess => true,
                // What had no room waits beside what is missing.
                BrotliResult::NeedsMoreInput if room > 0 => false,
                BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => continue,
                BrotliResult::ResultFailure => return Err(Fault::Damaged),
            };
            return Ok(Progress { used, is_done });
        }
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn kept(&self, made: u64) -> u64 {
        // It may take a window at once, or as much as comes out.
        if self.window == Window::Wide && made > limits::WIDE_FREE_BYTES {
            return WIDE_BYTES;
        }
        made.min(limits::DECODER_WINDOW_BYTES_MAX)
    }
}
