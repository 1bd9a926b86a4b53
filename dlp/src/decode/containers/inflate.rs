//! Deflate (RFC 1951), bare, as zlib (RFC 1950) and as one member of gzip
//! (RFC 1952). Checksums at the end are not compared: what came out was looked
//! at whatever they say.

use crate::span;
use std::cell::Cell;

use miniz_oxide::DataFormat;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};

/// How far back anything may be copied from (RFC 1951 2). What comes out is taken
/// from here: nothing waits for room elsewhere when damage comes.
const WINDOW_BYTES: usize = 32 * 1024;

/// The space of a decompressor.
struct Space {
    state: DecompressorOxide,
    /// Zeros, but where something came out.
    window: Vec<u8>,
}

fn fresh() -> Box<Space> {
    Box::new(Space {
        state: DecompressorOxide::new(),
        window: vec![0; WINDOW_BYTES],
    })
}

thread_local! {
    /// The space of the last that was dropped: what may be compressed begins often and is
    /// over soon, and fresh memory takes longer than that.
    static SPARE: Cell<Option<Box<Space>>> = const { Cell::new(None) };
}

/// Deflate, bare or as zlib.
pub(super) struct Inflate {
    /// There until it is dropped.
    space: Option<Box<Space>>,
    flags: u32,
    /// Where in the window the next byte comes out.
    at: usize,
    /// Up to where in it something came out.
    used: usize,
}

impl Inflate {
    pub(super) fn new(format: DataFormat) -> Self {
        let header = match format {
            DataFormat::Raw => 0,
            _ => inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER,
        };
        let mut space = SPARE.take().unwrap_or_else(fresh);
        space.state.init();
        Self {
            space: Some(space),
            flags: header
                | inflate_flags::TINFL_FLAG_HAS_MORE_INPUT
                | inflate_flags::TINFL_FLAG_IGNORE_ADLER32,
            at: 0,
            used: 0,
        }
    }
}

impl Drop for Inflate {
    fn drop(&mut self) {
        if let Some(mut space) = self.space.take() {
            // Nothing of one stream is seen in another.
            let used = space.window.get_mut(..self.used);
            used.unwrap_or_default().fill(0);
            SPARE.set(Some(space));
        }
    }
}

impl Unpack for Inflate {
    fn reset(&mut self) {
        if let Some(space) = &mut self.space {
            space.state.init();
        }
        self.at = 0;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let Some(space) = &mut self.space else {
            return Err(UnpackFault::Memory);
        };
        let mut used = 0_usize;
        loop {
            let rest = span::from(input, used);
            let (status, taken, count) = decompress(
                &mut space.state,
                rest,
                &mut space.window,
                self.at,
                self.flags,
            );
            used = used.saturating_add(taken);
            let end = self.at.saturating_add(count);
            self.used = self.used.max(end);
            let made = span::within(&space.window, self.at..end);
            self.at = end % WINDOW_BYTES;
            if !made.is_empty() && !sink(Unpacked::Bytes(made)) {
                return Err(UnpackFault::Stopped);
            }
            let is_done = match status {
                TINFLStatus::Done => true,
                TINFLStatus::NeedsMoreInput => false,
                TINFLStatus::HasMoreOutput => continue,
                _ => return Err(UnpackFault::Damaged),
            };
            return Ok(UnpackProgress { used, is_done });
        }
    }

    fn is_pending(&self) -> bool {
        false
    }
}

/// One member of gzip.
pub(super) struct Gzip {
    stage: GzipStage,
    inflate: Inflate,
}

/// What of a member comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GzipStage {
    /// The ten bytes every member begins with: how many came, and the flags.
    Fixed(u8, u8),
    /// The length of the extra field: flags, bytes that came, and their value.
    ExtraLength(u8, u8, u16),
    /// The extra field.
    Extra(u8, u16),
    /// A text that ends with a zero.
    Text(u8),
    /// The checksum of the header.
    Checksum(u8),
    Body,
    /// Checksum and length.
    Trailer(u8),
    Done,
}

const FLAG_CHECKSUM: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            stage: GzipStage::Fixed(0, 0),
            inflate: Inflate::new(DataFormat::Raw),
        }
    }

    /// One byte of the header or the trailer.
    fn step(&mut self, byte: u8) -> Result<(), UnpackFault> {
        self.stage = match self.stage {
            GzipStage::Fixed(count, flags) => {
                let expected = [0x1f, 0x8b, 8].get(usize::from(count));
                if expected.is_some_and(|expected| *expected != byte) {
                    return Err(UnpackFault::Damaged);
                }
                // Those that mean nothing have to be zero (RFC 1952 2.3.1.2): some programs
                // read on where they are not.
                let flags = if count == 3 { byte & 0x1f } else { flags };
                match count {
                    9 => next(flags),
                    _ => GzipStage::Fixed(count.saturating_add(1), flags),
                }
            }
            GzipStage::ExtraLength(flags, 0, _) => {
                GzipStage::ExtraLength(flags, 1, u16::from(byte))
            }
            GzipStage::ExtraLength(flags, _, low) => match low | (u16::from(byte) << 8) {
                0 => next(flags),
                length => GzipStage::Extra(flags, length),
            },
            GzipStage::Extra(flags, 1) => next(flags),
            GzipStage::Extra(flags, left) => GzipStage::Extra(flags, left.saturating_sub(1)),
            GzipStage::Text(flags) if byte == 0 => next(flags),
            GzipStage::Text(flags) => GzipStage::Text(flags),
            GzipStage::Checksum(1) => GzipStage::Body,
            GzipStage::Checksum(left) => GzipStage::Checksum(left.saturating_sub(1)),
            GzipStage::Trailer(1) => GzipStage::Done,
            GzipStage::Trailer(left) => GzipStage::Trailer(left.saturating_sub(1)),
            GzipStage::Body | GzipStage::Done => self.stage,
        };
        Ok(())
    }
}

/// What follows in a header whose flags are what is left of them.
fn next(flags: u8) -> GzipStage {
    if flags & FLAG_EXTRA != 0 {
        GzipStage::ExtraLength(flags & !FLAG_EXTRA, 0, 0)
    } else if flags & FLAG_NAME != 0 {
        GzipStage::Text(flags & !FLAG_NAME)
    } else if flags & FLAG_COMMENT != 0 {
        GzipStage::Text(flags & !FLAG_COMMENT)
    } else if flags & FLAG_CHECKSUM != 0 {
        GzipStage::Checksum(2)
    } else {
        GzipStage::Body
    }
}

impl Unpack for Gzip {
    fn reset(&mut self) {
        self.stage = GzipStage::Fixed(0, 0);
        self.inflate.reset();
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let mut used = 0_usize;
        while used < input.len() && self.stage != GzipStage::Done {
            let rest = span::from(input, used);
            if self.stage == GzipStage::Body {
                let progress = self.inflate.push(rest, sink)?;
                used = used.saturating_add(progress.used);
                if progress.is_done {
                    self.stage = GzipStage::Trailer(8);
                } else {
                    break;
                }
            } else if let Some(byte) = rest.first() {
                self.step(*byte)?;
                used = used.saturating_add(1);
            }
        }
        let is_done = self.stage == GzipStage::Done;
        Ok(UnpackProgress { used, is_done })
    }

    fn is_ahead(&self) -> bool {
        !matches!(
            self.stage,
            GzipStage::Body | GzipStage::Trailer(_) | GzipStage::Done
        )
    }

    fn is_pending(&self) -> bool {
        false
    }
}
