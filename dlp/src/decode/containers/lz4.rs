//! LZ4 frames (lz4 Frame Format 1.6) and their predecessor without a header, block by block.

use lz4_flex::block::decompress_into_with_dict;

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};
use crate::budget::wide;

/// How far back anything may be copied from (lz4 Block Format).
const WINDOW_BYTES: usize = 64 * 1024;

/// Most bytes of a block of the legacy format.
const LEGACY_BYTES_MAX: usize = 8 << 20;

/// Bytes that go on at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// One frame.
pub(super) struct Lz4 {
    format: Lz4Format,
    stage: Lz4Stage,
    /// What came of the current part.
    gathered: Vec<u8>,
    frame: Frame,
    /// The last bytes of what came out, and behind them the block that does.
    space: Vec<u8>,
    /// How many of them are the window.
    window: usize,
}

/// Which of the two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lz4Format {
    Frame,
    Legacy,
}

/// Which part of a frame comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lz4Stage {
    Header,
    Size,
    Block { bytes: usize, form: BlockForm },
    Checksum,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockForm {
    Compressed,
    Stored,
}

/// What the header of a frame says.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    block_bytes: usize,
    /// Whether blocks copy from those before them.
    is_linked: bool,
    block_checksum: usize,
    content_checksum: usize,
}

impl Lz4 {
    pub(super) fn new(format: Lz4Format) -> Self {
        let mut new = Self {
            format,
            stage: Lz4Stage::Header,
            gathered: Vec::new(),
            frame: Frame::default(),
            space: Vec::new(),
            window: 0,
        };
        new.reset();
        new
    }

    /// How many bytes the current part has, as far as it is known.
    fn wanted(&self) -> usize {
        match self.stage {
            Lz4Stage::Header => match (self.format, self.gathered.get(4)) {
                (Lz4Format::Legacy, _) => 4,
                (Lz4Format::Frame, None) => 5,
                (Lz4Format::Frame, Some(flags)) => {
                    let size = if flags & 8 != 0 { 8 } else { 0 };
                    let dictionary = if flags & 1 != 0 { 4 } else { 0 };
                    7 + size + dictionary
                }
            },
            Lz4Stage::Size => 4,
            Lz4Stage::Block { bytes, .. } => bytes.saturating_add(self.frame.block_checksum),
            Lz4Stage::Checksum => self.frame.content_checksum,
            Lz4Stage::Done => 0,
        }
    }

    /// The current part is whole.
    fn take(&mut self, sink: &mut Sink<'_>) -> Result<(), UnpackFault> {
        let part = std::mem::take(&mut self.gathered);
        self.stage = match self.stage {
            Lz4Stage::Header => {
                if self.format == Lz4Format::Frame {
                    self.frame = frame(&part)?;
                }
                Lz4Stage::Size
            }
            Lz4Stage::Size => self.size(&part)?,
            Lz4Stage::Block { bytes, form } => {
                let block = part.get(..bytes).ok_or(UnpackFault::Damaged)?;
                self.block(block, form, sink)?;
                Lz4Stage::Size
            }
            Lz4Stage::Checksum | Lz4Stage::Done => Lz4Stage::Done,
        };
        // The space of a part is that of the next.
        self.gathered = part;
        self.gathered.clear();
        Ok(())
    }

    /// What the size of a block says comes next.
    fn size(&self, part: &[u8]) -> Result<Lz4Stage, UnpackFault> {
        const STORED: u32 = 1 << 31;
        const LEGACY_MARK: u32 = 0x184c_2102;
        let bytes = part.first_chunk::<4>().ok_or(UnpackFault::Damaged)?;
        let size = u32::from_le_bytes(*bytes);
        let is_legacy = self.format == Lz4Format::Legacy;
        match (size, self.frame.content_checksum) {
            // The next frame.
            (LEGACY_MARK, _) if is_legacy => return Ok(Lz4Stage::Size),
            (0, 0) if !is_legacy => return Ok(Lz4Stage::Done),
            (0, _) if !is_legacy => return Ok(Lz4Stage::Checksum),
            _ => {}
        }
        let form = if size & STORED != 0 && !is_legacy {
            BlockForm::Stored
        } else {
            BlockForm::Compressed
        };
        let size = if is_legacy { size } else { size & !STORED };
        // What cannot be made smaller is a little longer.
        let most = self.frame.block_bytes;
        let most = most.saturating_add(most / 255).saturating_add(16);
        match usize::try_from(size) {
            Ok(bytes) if (1..=most).contains(&bytes) => Ok(Lz4Stage::Block { bytes, form }),
            // What stands behind the last one.
            _ if is_legacy => Ok(Lz4Stage::Done),
            _ => Err(UnpackFault::Damaged),
        }
    }

    fn block(
        &mut self,
        block: &[u8],
        form: BlockForm,
        sink: &mut Sink<'_>,
    ) -> Result<(), UnpackFault> {
        // Each byte of a block stands for at most 255.
        let most = block.len().saturating_mul(255).saturating_add(64);
        let need = WINDOW_BYTES.saturating_add(most.min(self.frame.block_bytes));
        if self.space.len() < need {
            self.space.resize(need, 0);
        }
        let (window, made) = self
            .space
            .split_at_mut_checked(WINDOW_BYTES)
            .ok_or(UnpackFault::Damaged)?;
        let first = WINDOW_BYTES.saturating_sub(self.window);
        let before = window.get(first..).ok_or(UnpackFault::Damaged)?;
        let count = match form {
            BlockForm::Compressed => {
                decompress_into_with_dict(block, made, before).map_err(|_| UnpackFault::Damaged)?
            }
            BlockForm::Stored => {
                let to = made.get_mut(..block.len()).ok_or(UnpackFault::Damaged)?;
                to.copy_from_slice(block);
                block.len()
            }
        };
        let made = made.get(..count).ok_or(UnpackFault::Damaged)?;
        for piece in made.chunks(PIECE_BYTES) {
            if !sink(Unpacked::Bytes(piece)) {
                return Err(UnpackFault::Stopped);
            }
        }
        if self.frame.is_linked {
            let end = WINDOW_BYTES.saturating_add(count);
            self.space.copy_within(count..end, 0);
            self.window = self.window.saturating_add(count).min(WINDOW_BYTES);
        }
        Ok(())
    }
}

/// What the header of a frame says.
fn frame(part: &[u8]) -> Result<Frame, UnpackFault> {
    let (flags, block) = match part {
        [_, _, _, _, flags, block, ..] => (*flags, *block),
        _ => return Err(UnpackFault::Damaged),
    };
    if flags & 1 != 0 {
        // It copies from a dictionary that its readers have.
        return Err(UnpackFault::Unknown);
    }
    let block_bytes = match (block >> 4) & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Err(UnpackFault::Damaged),
    };
    let checksum = |bit: u8| if flags & bit != 0 { 4 } else { 0 };
    Ok(Frame {
        block_bytes,
        is_linked: flags & 0x20 == 0,
        block_checksum: checksum(0x10),
        content_checksum: checksum(4),
    })
}

impl Unpack for Lz4 {
    fn reset(&mut self) {
        self.stage = Lz4Stage::Header;
        self.gathered.clear();
        self.window = 0;
        self.frame = Frame {
            block_bytes: LEGACY_BYTES_MAX,
            ..Frame::default()
        };
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let mut used = 0_usize;
        while self.stage != Lz4Stage::Done {
            let wanted = self.wanted().saturating_sub(self.gathered.len());
            let rest = input.get(used..).unwrap_or_default();
            if rest.is_empty() && wanted > 0 {
                break;
            }
            let (now, _) = rest.split_at_checked(wanted).unwrap_or((rest, &[]));
            self.gathered.extend_from_slice(now);
            used = used.saturating_add(now.len());
            // Only with the first bytes of a header it is known how long it is.
            if self.gathered.len() >= self.wanted() {
                self.take(sink)?;
            }
        }
        let is_done = self.stage == Lz4Stage::Done;
        Ok(UnpackProgress { used, is_done })
    }

    fn is_pending(&self) -> bool {
        self.stage != Lz4Stage::Done
    }

    fn may_end(&self) -> bool {
        let is_between = self.stage == Lz4Stage::Size && self.gathered.is_empty();
        self.format == Lz4Format::Legacy && is_between
    }

    fn kept(&self, _: u64) -> u64 {
        wide(
            self.gathered
                .capacity()
                .saturating_add(self.space.capacity()),
        )
    }

    /// With the first byte of a block all of it comes out.
    fn behind(&self) -> u64 {
        wide(usize::from(matches!(self.stage, Lz4Stage::Block { .. })))
    }
}
