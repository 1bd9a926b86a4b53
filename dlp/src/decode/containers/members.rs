//! Streams one behind the other, which programs read as one: members of gzip (RFC 1952 2.2) and
//! lzip, frames of Zstandard and LZ4, streams of xz and bzip2. What is cut over them is whole
//! in what comes out.

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress};
use crate::coding::Coding;
use crate::magic::Magic;
use crate::span::{self, wide};

/// Bytes of the mark and the length of a frame that readers skip (RFC 8878 3.1.2).
const SKIPPED_BYTES: usize = 8;

/// Streams of one kind.
pub(super) struct Members {
    inner: Box<dyn Unpack>,
    magic: Magic,
    mark: &'static [u8],
    stage: MemberStage,
    /// Bytes that were taken.
    taken: u64,
    /// Where those began that came behind another, in bytes that were taken.
    begun: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MemberStage {
    Inside,
    /// Behind one, with what may begin the next.
    Between(Vec<u8>),
    /// In a frame that is skipped, of which so many bytes are left.
    Skipped(u64),
    Over,
}

/// What the bytes behind a stream are.
enum Next {
    More,
    Member,
    Padding,
    Skipped(u64),
    Other,
}

impl Members {
    /// Streams of a coding, if it has some that programs read as one.
    pub(super) fn of(coding: Coding, inner: Box<dyn Unpack>) -> Box<dyn Unpack> {
        let (magic, mark): (Magic, &[u8]) = match coding {
            Coding::Gzip => (Magic::Gzip, &[0x1f, 0x8b, 0x08]),
            Coding::Zstd => (Magic::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
            Coding::Bzip2 => (Magic::Bzip2, b"BZh"),
            Coding::Xz => (Magic::Xz, b"\xfd7zXZ\0"),
            Coding::Lzip => (Magic::Lzip, b"LZIP\x01"),
            Coding::Lz4 => (Magic::Lz4, b"\x04\x22\x4d\x18"),
            _ => return inner,
        };
        Box::new(Self {
            inner,
            magic,
            mark,
            stage: MemberStage::Inside,
            taken: 0,
            begun: Vec::new(),
        })
    }

    fn next(&self, bytes: &[u8]) -> Next {
        let is_mark = |mark: &[u8]| bytes.starts_with(mark);
        if is_mark(self.mark) {
            return Next::Member;
        }
        let may_skip = matches!(self.magic, Magic::Zstd | Magic::Lz4);
        match bytes {
            [] => Next::More,
            [0, ..] if self.magic == Magic::Xz => Next::Padding,
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, length @ ..] if may_skip => {
                let length = length.first_chunk::<4>().copied();
                length.map_or(Next::More, |length| {
                    Next::Skipped(u32::from_le_bytes(length).into())
                })
            }
            bytes if self.mark.starts_with(bytes) => Next::More,
            [0x50..=0x5f] | [0x50..=0x5f, 0x2a] | [0x50..=0x5f, 0x2a, 0x4d] if may_skip => {
                Next::More
            }
            _ => Next::Other,
        }
    }

    /// Takes what stands behind a stream; answers how many bytes.
    fn between(
        &mut self,
        mut gathered: Vec<u8>,
        rest: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<usize, UnpackFault> {
        let before = gathered.len();
        let some = rest.iter().take(SKIPPED_BYTES.saturating_sub(before));
        for (byte, used) in some.zip(1_usize..) {
            gathered.push(*byte);
            match self.next(&gathered) {
                Next::More => {}
                Next::Padding => gathered.clear(),
                Next::Skipped(length) => {
                    self.stage = MemberStage::Skipped(length);
                    return Ok(used);
                }
                Next::Member => {
                    let end = self.taken.saturating_add(wide(used));
                    self.begun.push(end.saturating_sub(wide(gathered.len())));
                    self.inner.reset();
                    self.stage = MemberStage::Inside;
                    self.inner.push(&gathered, sink)?;
                    return Ok(used);
                }
                Next::Other => {
                    self.stage = MemberStage::Over;
                    // It belongs to what stands behind, as far as it is still here.
                    return Ok(0);
                }
            }
        }
        let used = rest.len().min(SKIPPED_BYTES.saturating_sub(before));
        self.stage = MemberStage::Between(gathered);
        Ok(used)
    }
}

impl Unpack for Members {
    fn reset(&mut self) {
        self.inner.reset();
        self.stage = MemberStage::Inside;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let mut used = 0_usize;
        while used < input.len() && self.stage != MemberStage::Over {
            let rest = span::from(input, used);
            let now = match std::mem::replace(&mut self.stage, MemberStage::Inside) {
                MemberStage::Inside => {
                    let progress = self.inner.push(rest, sink)?;
                    if progress.is_done {
                        self.stage = MemberStage::Between(Vec::new());
                    }
                    progress.used
                }
                MemberStage::Between(gathered) => self.between(gathered, rest, sink)?,
                MemberStage::Skipped(left) => {
                    let now = wide(rest.len()).min(left);
                    let left = left.saturating_sub(now);
                    self.stage = if left == 0 {
                        MemberStage::Between(Vec::new())
                    } else {
                        MemberStage::Skipped(left)
                    };
                    span::narrow(now)
                }
                MemberStage::Over => 0,
            };
            used = used.saturating_add(now);
            self.taken = self.taken.saturating_add(wide(now));
        }
        let is_done = self.stage == MemberStage::Over;
        Ok(UnpackProgress { used, is_done })
    }

    fn is_pending(&self) -> bool {
        self.stage == MemberStage::Inside && self.inner.is_pending()
    }

    fn is_ahead(&self) -> bool {
        self.stage != MemberStage::Inside || self.inner.is_ahead()
    }

    fn behind(&self) -> u64 {
        match self.stage {
            MemberStage::Inside => self.inner.behind(),
            _ => 0,
        }
    }

    fn kept(&self, made: u64) -> u64 {
        self.inner.kept(made)
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if self.stage == MemberStage::Inside {
            self.inner.finish(sink);
        }
    }

    fn may_end(&self) -> bool {
        self.stage != MemberStage::Inside || self.inner.may_end()
    }

    fn joins(&self) -> Option<Magic> {
        Some(self.magic)
    }

    fn begun(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.begun)
    }
}
