//! Zstandard (RFC 8878): one frame, block by block, so that what a few bytes
//! expand to never lies in memory beyond a window and a block.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};
use crate::limits;
use crate::span;

/// A last block with nothing in it, and a checksum in case one is asked for.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Bytes that come out at a time.
const SPACE_BYTES: usize = 8 * 1024;

/// Largest block (RFC 8878 3.1.1.2.4).
const BLOCK_BYTES_MAX: usize = 128 * 1024;

/// One frame.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    stage: ZstdStage,
    /// What came of the current header or block.
    gathered: Vec<u8>,
    has_checksum: bool,
    /// What the decoder keeps of what it made, in bytes.
    window: u64,
    space: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ZstdStage {
    Header,
    Block,
    /// A frame to be skipped: what it holds is looked at where it stands.
    Skipped,
    Done,
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(limits::DECODER_WINDOW_BYTES_MAX);
        Self {
            decoder,
            stage: ZstdStage::Header,
            gathered: Vec::new(),
            has_checksum: false,
            window: 0,
            space: vec![0; SPACE_BYTES],
        }
    }

    /// Whether what came is a frame that readers skip.
    pub(super) fn is_skipped(&self) -> bool {
        self.stage == ZstdStage::Skipped
    }

    /// How many bytes the current header or block has, as far as it is known.
    fn wanted(&self) -> Result<usize, UnpackFault> {
        match self.stage {
            ZstdStage::Header => self.header_length(),
            ZstdStage::Block => self.block_length(),
            ZstdStage::Skipped | ZstdStage::Done => Ok(0),
        }
    }

    fn header_length(&self) -> Result<usize, UnpackFault> {
        let Some([first, second, third, fourth, descriptor]) = self.gathered.first_chunk::<5>()
        else {
            return Ok(5);
        };
        match [*fourth, *third, *second, *first] {
            [0x18, 0x4d, 0x2a, 0x50..=0x5f] => Ok(8),
            [0xfd, 0x2f, 0xb5, 0x28] => {
                let is_single = descriptor & 0x20 != 0;
                let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3));
                let content = match (descriptor >> 6, is_single) {
                    (0, false) => 0,
                    (0, true) => 1,
                    (1, _) => 2,
                    (2, _) => 4,
                    _ => 8,
                };
                let window = usize::from(!is_single);
                Ok(dictionary.map_or(5, |length| 5 + window + length + content))
            }
            _ => Err(UnpackFault::Damaged),
        }
    }

    fn block_length(&self) -> Result<usize, UnpackFault> {
        let Some([low, middle, high]) = self.gathered.first_chunk::<3>() else {
            return Ok(3);
        };
        let header = u32::from_le_bytes([*low, *middle, *high, 0]);
        let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
        let body = match (header >> 1) & 3 {
            1 => 1,
            0 | 2 if size <= BLOCK_BYTES_MAX => size,
            _ => return Err(UnpackFault::Damaged),
        };
        let is_last = header & 1 != 0;
        let checksum = if is_last && self.has_checksum { 4 } else { 0 };
        Ok(3_usize.saturating_add(body).saturating_add(checksum))
    }

    /// The current header or block is whole.
    fn take(&mut self, sink: &mut Sink<'_>) -> Result<(), UnpackFault> {
        let gathered = std::mem::take(&mut self.gathered);
        match self.stage {
            ZstdStage::Header if gathered.len() == 8 && gathered.get(3) == Some(&0x18) => {
                self.stage = ZstdStage::Skipped;
            }
            ZstdStage::Header => {
                let descriptor = gathered.get(4).copied().unwrap_or_default();
                if descriptor & 3 != 0 {
                    return Err(UnpackFault::Unknown);
                }
                self.has_checksum = descriptor & 4 != 0;
                let result = self.decoder.reset(gathered.as_slice());
                result.map_err(|_| UnpackFault::Memory)?;
                self.window = window(descriptor, span::from(&gathered, 5));
                self.stage = ZstdStage::Block;
            }
            ZstdStage::Block => {
                let is_last = gathered.first().is_some_and(|byte| byte & 1 != 0);
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let result = self.decoder.decode_blocks(gathered.as_slice(), one);
                result.map_err(|_| UnpackFault::Damaged)?;
                self.drain(sink)?;
                if is_last {
                    self.stage = ZstdStage::Done;
                }
            }
            ZstdStage::Skipped | ZstdStage::Done => {}
        }
        Ok(())
    }

    fn feed(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<usize, UnpackFault> {
        let mut used = 0_usize;
        while used < input.len() && !matches!(self.stage, ZstdStage::Done | ZstdStage::Skipped) {
            let wanted = self.wanted()?.saturating_sub(self.gathered.len());
            let rest = span::from(input, used);
            let (now, _) = rest.split_at_checked(wanted).unwrap_or((rest, &[]));
            self.gathered.extend_from_slice(now);
            used = used.saturating_add(now.len());
            // Only with all of a header it is known how long it is.
            if self.gathered.len() >= self.wanted()? {
                self.take(sink)?;
            }
        }
        Ok(used)
    }

    fn drain(&mut self, sink: &mut Sink<'_>) -> Result<(), UnpackFault> {
        loop {
            let count = self
                .decoder
                .read(&mut self.space)
                .map_err(|_| UnpackFault::Damaged)?;
            let made = span::upto(&self.space, count);
            if made.is_empty() {
                return Ok(());
            }
            if !sink(Unpacked::Bytes(made)) {
                return Err(UnpackFault::Stopped);
            }
        }
    }
}

/// The window that a header asks for (RFC 8878 3.1.1.1.2), in bytes; where it says only how
/// long the content is (3.1.1.1.4), that. `rest` is what follows the descriptor.
fn window(descriptor: u8, rest: &[u8]) -> u64 {
    match rest {
        [window, ..] if descriptor & 0x20 == 0 => {
            let base = 1_u64 << (10 + (window >> 3));
            base + (base >> 3) * u64::from(window & 7)
        }
        [one] => u64::from(*one),
        _ => {
            let mut eight = [0; 8];
            for (to, from) in eight.iter_mut().zip(rest) {
                *to = *from;
            }
            let more = if rest.len() == 2 { 256 } else { 0 };
            u64::from_le_bytes(eight).saturating_add(more)
        }
    }
}

impl Unpack for Zstd {
    fn reset(&mut self) {
        self.stage = ZstdStage::Header;
        self.gathered.clear();
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let used = match self.feed(input, sink) {
            Ok(used) => used,
            Err(fault) => {
                self.finish(sink);
                return Err(fault);
            }
        };
        let is_done = matches!(self.stage, ZstdStage::Done | ZstdStage::Skipped);
        Ok(UnpackProgress { used, is_done })
    }

    fn kept(&self, _: u64) -> u64 {
        self.behind()
    }

    fn behind(&self) -> u64 {
        match self.stage {
            ZstdStage::Block => limits::DECODER_WINDOW_BYTES_MAX.min(self.window),
            ZstdStage::Header | ZstdStage::Skipped | ZstdStage::Done => 0,
        }
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if self.stage == ZstdStage::Block {
            self.stage = ZstdStage::Done;
            // The decoder keeps a window of what it made until somebody ends the frame.
            let one = BlockDecodingStrategy::UptoBlocks(1);
            if self.decoder.decode_blocks(END.as_slice(), one).is_ok() {
                // Whoever takes it has had enough, or has all.
                let _ = self.drain(sink);
            }
        }
    }

    fn is_pending(&self) -> bool {
        // What is within the window comes out when the frame ends.
        !matches!(self.stage, ZstdStage::Done | ZstdStage::Skipped)
    }
}
