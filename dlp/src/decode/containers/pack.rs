//! Packs of git (gitformat-pack(5)): every object, inflated. Of a delta only
//! what it adds comes out; what it copies lies where it is copied from.

use miniz_oxide::DataFormat;

use super::inflate::Inflate;
use super::unpack::{Fault, Made, Progress, Sink, Unpack};

/// Bytes of the header: name, version, number of objects.
const HEADER_BYTES: u8 = 12;

/// Bytes of the name of an object that a delta refers to.
const NAME_BYTES: u8 = 20;

/// Longest number of variable length.
const NUMBER_BYTES_MAX: u8 = 10;

/// A pack.
pub(super) struct Pack {
    stage: Stage,
    left: u32,
    inflate: Inflate,
    delta: Option<Delta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
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
            stage: Stage::Header(0),
            left: 0,
            inflate: Inflate::new(DataFormat::Zlib),
            delta: None,
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), Fault> {
        let goes_on = byte & 0x80 != 0;
        self.stage = match self.stage {
            Stage::Header(count) => {
                if count >= 8 {
                    self.left = (self.left << 8) | u32::from(byte);
                }
                match count.saturating_add(1) {
                    HEADER_BYTES => self.next(),
                    count => Stage::Header(count),
                }
            }
            Stage::Kind(_, NUMBER_BYTES_MAX..) | Stage::Offset(NUMBER_BYTES_MAX..) => {
                return Err(Fault::Damaged);
            }
            Stage::Kind(kind, count) => {
                let kind = if count == 0 { (byte >> 4) & 7 } else { kind };
                if goes_on {
                    Stage::Kind(kind, count.saturating_add(1))
                } else {
                    self.object(kind)?
                }
            }
            Stage::Offset(count) if goes_on => Stage::Offset(count.saturating_add(1)),
            Stage::Name(count) if count.saturating_add(1) < NAME_BYTES => {
                Stage::Name(count.saturating_add(1))
            }
            Stage::Offset(_) | Stage::Name(_) => Stage::Body,
            Stage::Body | Stage::Done => self.stage,
        };
        Ok(())
    }

    /// What follows the kind of an object.
    fn object(&mut self, kind: u8) -> Result<Stage, Fault> {
        self.inflate.reset();
        self.delta = None;
        match kind {
            1..=4 => Ok(Stage::Body),
            6 => {
                self.delta = Some(Delta::new());
                Ok(Stage::Offset(0))
            }
            7 => {
                self.delta = Some(Delta::new());
                Ok(Stage::Name(0))
            }
            _ => Err(Fault::Damaged),
        }
    }

    fn next(&mut self) -> Stage {
        if self.left == 0 {
            return Stage::Done;
        }
        self.left = self.left.saturating_sub(1);
        Stage::Kind(0, 0)
    }

    fn body(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<Progress, Fault> {
        let Some(delta) = &mut self.delta else {
            return self.inflate.push(input, sink);
        };
        let mut added = Vec::new();
        self.inflate.push(input, &mut |made| match made {
            Made::Bytes(bytes) => {
                added.clear();
                delta.push(bytes, &mut added);
                added.is_empty() || sink(Made::Bytes(&added))
            }
            Made::Border => sink(Made::Border),
        })
    }
}

impl Unpack for Pack {
    fn reset(&mut self) {
        self.stage = Stage::Header(0);
        self.left = 0;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<Progress, Fault> {
        let mut used = 0_usize;
        while used < input.len() && self.stage != Stage::Done {
            let rest = input.get(used..).unwrap_or_default();
            if self.stage == Stage::Body {
                let progress = self.body(rest, sink)?;
                used = used.saturating_add(progress.used);
                if !progress.is_done {
                    break;
                }
                if !sink(Made::Border) {
                    return Err(Fault::Stopped);
                }
                self.stage = self.next();
            } else if let Some(byte) = rest.first() {
                self.step(*byte)?;
                used = used.saturating_add(1);
            }
        }
        let is_done = self.stage == Stage::Done;
        Ok(Progress { used, is_done })
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
