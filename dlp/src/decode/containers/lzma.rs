//! What LZMA is in: a stream of the .xz format 1.2, also behind the filters for machine code,
//! a member of lzip, and a file of LZMA alone.

use std::io;

use lzma_rust2::{Action, LzipStream, LzmaStream, Status, StreamResult, XzStream};

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};
use crate::budget::wide;
use crate::limits;

/// Bytes that come out at a time.
const SPACE_BYTES: usize = 16 * 1024;

/// Bytes at a beginning without which a decoder says nothing of it.
const HEADER_BYTES: u64 = 26;

/// One stream.
pub(super) struct Lzma {
    container: LzmaContainer,
    decoder: LzmaDecoder,
    is_done: bool,
    taken: u64,
    space: Vec<u8>,
}

/// What LZMA is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LzmaContainer {
    Xz,
    Lzip,
    Alone,
}

enum LzmaDecoder {
    Xz(Box<XzStream>),
    Lzip(Box<LzipStream>),
    Alone(Box<LzmaStream>),
}

impl LzmaDecoder {
    fn new(container: LzmaContainer) -> Self {
        // Of a dictionary no more is there than came out, which is counted.
        let most = limits::DICTIONARY_KIB_MAX;
        match container {
            LzmaContainer::Xz => Self::Xz(Box::new(XzStream::new_mem_limit(false, most))),
            LzmaContainer::Lzip => Self::Lzip(Box::new(LzipStream::new_mem_limit(false, most))),
            LzmaContainer::Alone => Self::Alone(Box::new(LzmaStream::new_mem_limit(most, None))),
        }
    }

    fn process(&mut self, input: &[u8], space: &mut [u8]) -> io::Result<StreamResult> {
        match self {
            Self::Xz(stream) => stream.process(input, space, Action::Run),
            Self::Lzip(stream) => stream.process(input, space, Action::Run),
            Self::Alone(stream) => stream.process(input, space, Action::Run),
        }
    }

    /// The memory that its header asks for, in KiB, as far as it is known.
    fn wanted_kib(&self) -> Option<u32> {
        match self {
            Self::Xz(stream) => stream.memory_usage(),
            Self::Lzip(stream) => stream.memory_usage(),
            Self::Alone(stream) => stream.memory_usage(),
        }
    }

    /// How many of the bytes that went in belong to what stands behind.
    fn unused(&self) -> usize {
        match self {
            Self::Xz(_) => 0,
            Self::Lzip(stream) => stream.unused_input().len(),
            Self::Alone(stream) => stream.unused_input().len(),
        }
    }
}

impl Lzma {
    pub(super) fn new(container: LzmaContainer) -> Self {
        Self {
            container,
            decoder: LzmaDecoder::new(container),
            is_done: false,
            taken: 0,
            space: vec![0; SPACE_BYTES],
        }
    }

    /// What the decoder wrote before it found the fault: programs show that, too.
    fn last(&self) -> &[u8] {
        let end = self.space.iter().rposition(|byte| *byte != 0);
        let end = end.map_or(0, |last| last.saturating_add(1));
        self.space.get(..end).unwrap_or(&self.space)
    }
}

fn fault(error: &io::Error) -> UnpackFault {
    match error.kind() {
        io::ErrorKind::OutOfMemory => UnpackFault::Memory,
        io::ErrorKind::Unsupported => UnpackFault::Unknown,
        _ => UnpackFault::Damaged,
    }
}

impl Unpack for Lzma {
    fn reset(&mut self) {
        *self = Self::new(self.container);
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let mut used = 0_usize;
        while !self.is_done {
            let rest = input.get(used..).ok_or(UnpackFault::Damaged)?;
            self.space.fill(0);
            let result = match self.decoder.process(rest, &mut self.space) {
                Ok(result) => result,
                Err(error) => {
                    sink(Unpacked::Bytes(self.last()));
                    // A head with a checksum that says what nobody here reads.
                    let is_head = self.decoder.wanted_kib().is_none();
                    let is_unknown = is_head && self.container == LzmaContainer::Xz;
                    return Err(match fault(&error) {
                        UnpackFault::Damaged if is_unknown => UnpackFault::Unknown,
                        fault => fault,
                    });
                }
            };
            self.is_done = result.status == Status::StreamEnd;
            used = used.saturating_add(result.bytes_consumed);
            let made = self.space.get(..result.bytes_produced);
            let made = made.ok_or(UnpackFault::Damaged)?;
            if !made.is_empty() && !sink(Unpacked::Bytes(made)) {
                return Err(UnpackFault::Stopped);
            }
            if result.bytes_consumed == 0 && made.is_empty() {
                break;
            }
        }
        if self.is_done {
            used = used.saturating_sub(self.decoder.unused());
        }
        self.taken = self.taken.saturating_add(wide(used));
        let is_done = self.is_done;
        Ok(UnpackProgress { used, is_done })
    }

    fn is_pending(&self) -> bool {
        !self.is_done
    }

    fn is_ahead(&self) -> bool {
        self.taken < HEADER_BYTES
    }

    /// The space for the dictionary doubles as it fills.
    fn kept(&self, made: u64) -> u64 {
        if made < wide(limits::CONTEXT_BYTES) {
            0
        } else {
            let wanted = self.decoder.wanted_kib().map_or(0, u64::from);
            made.saturating_mul(2).min(wanted.saturating_mul(1024))
        }
    }
}
