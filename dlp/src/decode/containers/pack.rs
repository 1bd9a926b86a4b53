//! Packs of git (gitformat-pack(5)): every object, inflated. Of a delta only
//! what it adds comes out; what it copies lies where it is copied from.

use crate::span;
use miniz_oxide::DataFormat;

use super::inflate::Inflate;
use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};

/// Bytes of the header: name, version, number of objects.
const HEADER_BYTES: u8 = 12;

/// Bytes of the name of an object that a delta refers to.
const NAME_BYTES: u8 = 20;

/// Longest number of variable length.
const NUMBER_BYTES_MAX: u8 = 10;

/// A pack.
pub(super) struct Pack {
    stage: PackStage,
    left: u32,
    inflate: Inflate,
    delta: Option<Delta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackStage {
    Header(u8),
    /// Kind and length of an object: the kind, and bytes that came.
    Kind(u8, u8),
    /// How far back the base of a delta lies: bytes that came.
    Offset(u8),
    /// The name of the base of a delta: bytes that came.
    Name(u8),
    Body,
    Done,
}

impl Pack {
    pub(super) fn new() -> Self {
        Self {
            stage: PackStage::Header(0),
            left: 0,
            inflate: Inflate::new(DataFormat::Zlib),
            delta: None,
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), UnpackFault> {
        let goes_on = byte & 0x80 != 0;
        self.stage = match self.stage {
            PackStage::Header(count) => {
                if count >= 8 {
                    self.left = (self.left << 8) | u32::from(byte);
                }
                match count.saturating_add(1) {
                    HEADER_BYTES => self.next(),
                    count => PackStage::Header(count),
                }
            }
            PackStage::Kind(_, NUMBER_BYTES_MAX..) | PackStage::Offset(NUMBER_BYTES_MAX..) => {
                return Err(UnpackFault::Damaged);
            }
            PackStage::Kind(kind, count) => {
                let kind = if count == 0 { (byte >> 4) & 7 } else { kind };
                if goes_on {
                    PackStage::Kind(kind, count.saturating_add(1))
                } else {
                    self.object(kind)?
                }
            }
            PackStage::Offset(count) if goes_on => PackStage::Offset(count.saturating_add(1)),
            PackStage::Name(count) if count.saturating_add(1) < NAME_BYTES => {
                PackStage::Name(count.saturating_add(1))
            }
            PackStage::Offset(_) | PackStage::Name(_) => PackStage::Body,
            PackStage::Body | PackStage::Done => self.stage,
        };
        Ok(())
    }

    /// What follows the kind of an object.
    fn object(&mut self, kind: u8) -> Result<PackStage, UnpackFault> {
        self.inflate.reset();
        self.delta = None;
        match kind {
            1..=4 => Ok(PackStage::Body),
            6 => {
                self.delta = Some(Delta::new());
                Ok(PackStage::Offset(0))
            }
            7 => {
                self.delta = Some(Delta::new());
                Ok(PackStage::Name(0))
            }
            _ => Err(UnpackFault::Damaged),
        }
    }

    fn next(&mut self) -> PackStage {
        if self.left == 0 {
            return PackStage::Done;
        }
        self.left = self.left.saturating_sub(1);
        PackStage::Kind(0, 0)
    }

    fn body(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let Some(delta) = &mut self.delta else {
            return self.inflate.push(input, sink);
        };
        let mut added = Vec::new();
        self.inflate.push(input, &mut |made| match made {
            Unpacked::Bytes(bytes) => {
                added.clear();
                delta.push(bytes, &mut added);
                added.is_empty() || sink(Unpacked::Bytes(&added))
            }
            Unpacked::Border => sink(Unpacked::Border),
        })
    }
}

impl Unpack for Pack {
    fn reset(&mut self) {
        self.stage = PackStage::Header(0);
        self.left = 0;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let mut used = 0_usize;
        while used < input.len() && self.stage != PackStage::Done {
            let rest = span::from(input, used);
            if self.stage == PackStage::Body {
                let progress = self.body(rest, sink)?;
                used = used.saturating_add(progress.used);
                if !progress.is_done {
                    break;
                }
                if !sink(Unpacked::Border) {
                    return Err(UnpackFault::Stopped);
                }
                self.stage = self.next();
            } else if let Some(byte) = rest.first() {
                self.step(*byte)?;
                used = used.saturating_add(1);
            }
        }
        let is_done = self.stage == PackStage::Done;
        Ok(UnpackProgress { used, is_done })
    }

    fn covers(&self) -> bool {
        true
    }

    fn is_pending(&self) -> bool {
        false
    }
}

/// Reads a delta: two lengths, then what to copy and what to add.
struct Delta {
    /// Lengths that have not come.
    lengths: u8,
    /// Bytes of a copy's place and length that have not come.
    skip: u32,
    /// Bytes to be added that have not come.
    add: usize,
}

impl Delta {
    fn new() -> Self {
        Self {
            lengths: 2,
            skip: 0,
            add: 0,
        }
    }

    fn push(&mut self, mut bytes: &[u8], added: &mut Vec<u8>) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.add > 0 {
                let (now, later) = bytes.split_at_checked(self.add).unwrap_or((bytes, &[]));
                added.extend_from_slice(now);
                self.add = self.add.saturating_sub(now.len());
                bytes = later;
                continue;
            }
            bytes = rest;
            if self.lengths > 0 {
                self.lengths = self.lengths.saturating_sub(u8::from(first & 0x80 == 0));
            } else if self.skip > 0 {
                self.skip = self.skip.saturating_sub(1);
            } else if first & 0x80 != 0 {
                self.skip = (first & 0x7f).count_ones();
            } else {
                self.add = usize::from(*first);
            }
        }
    }
}
