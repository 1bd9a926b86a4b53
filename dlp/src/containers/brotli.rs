//! Brotli (RFC 7932).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use crate::limits;

use super::unpack::{Fault, Made, Progress, Sink, Unpack};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// Bytes that come out at a time.
const SPACE_BYTES: usize = 8 * 1024;

/// Bytes that come out at most where it is only tried.
const TRIED_BYTES: usize = 64;

/// Whether a first byte asks for a window of 16 MiB, or for one of the large windows that
/// no browser reads: above the limit of decoders. One block of at most a MiB, the last,
/// takes no more than its own length whatever it asks for.
pub(super) fn is_large(first: u8) -> bool {
    let is_last = first & 0x30 == 0x10;
    let is_small = is_last && first >> 6 <= 1;
    first & 0x7f == 0x11 || (first & 0x0f == 0x0f && !is_small)
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
        &mut fresh(),
    );
    written > 0 || !matches!(result, BrotliResult::ResultFailure)
}

/// Brotli.
pub(super) struct Brotli {
    state: Box<State>,
    space: Vec<u8>,
    is_begun: bool,
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
        }
    }
}

impl Unpack for Brotli {
    fn reset(&mut self) {
        if self.is_begun {
            self.state = fresh();
            self.is_begun = false;
        }
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<Progress, Fault> {
        if !self.is_begun
            && let Some(first) = input.first()
        {
            self.is_begun = true;
            if is_large(*first) {
                return Err(Fault::Memory);
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
        made.min(limits::DECODER_WINDOW_BYTES_MAX)
    }
}
