//! Frames of a client before the engine reads them (RFC 9113 4, 10.5). Those that
//! carry nothing (priorities, room for content, settings, pings, resets, empty
//! content, frames of no kind) cost their sender next to nothing and us a look, so
//! there is a budget of them: some at once, some each second, and more for what is
//! sent to the client, which has to make room for it. Header blocks are handed on
//! whole, and what is wrong with a request is kept until it is asked for.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use outgate_dlp::span;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::hpack::{HeaderBlocks, UnreadableBlock};
use crate::limits;

/// What is said of a connection that spent its budget.
pub(super) const FLOOD: &str = "a flood of frames that carry nothing";

/// What is said of one whose header blocks cannot be followed.
pub(super) const UNREADABLE: &str = "header blocks that cannot be read";

/// Bytes that stand before the first frame (RFC 9113 3.4).
const PREFACE_BYTES: usize = 24;

/// Bytes in front of each frame (RFC 9113 4.1).
const HEADER_BYTES: usize = 9;

/// Bytes of a kept buffer for header blocks; a larger one is given back.
const BLOCK_BYTES_KEPT: usize = 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x01;
const END_HEADERS: u8 = 0x04;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;

/// What is wrong with requests that the engine takes for whole: by the stream.
#[derive(Debug, Default)]
pub(super) struct StreamFaults(Mutex<Vec<(u32, &'static str)>>);

impl StreamFaults {
    /// Why the request on this stream has two readings.
    pub(super) fn take(&self, stream: u32) -> Option<&'static str> {
        let Ok(mut faults) = self.0.lock() else {
            return Some(UNREADABLE);
        };
        let place = faults.iter().position(|(of, _)| *of == stream)?;
        Some(faults.swap_remove(place).1)
    }

    fn put(&self, stream: u32, because: &'static str) -> Result<(), UnreadableBlock> {
        let mut faults = self.0.lock().map_err(|_| UnreadableBlock)?;
        // The engine resets most of them itself, and nobody asks for those.
        if faults.len() >= limits::STREAMS_FAULTY_MAX {
            return Err(UnreadableBlock);
        }
        faults.push((stream, because));
        Ok(())
    }
}

/// Frames as they come, in pieces of any size.
#[derive(Debug)]
struct Http2Frames {
    /// Bytes that belong to no header.
    skip: usize,
    header: [u8; HEADER_BYTES],
    filled: usize,
    /// Whether these bytes are of a header block.
    is_block: bool,
    /// The stream whose header block goes on in the next frame.
    goes_on: Option<u32>,
    block: Vec<u8>,
    blocks: HeaderBlocks,
    faults: Arc<StreamFaults>,
}

impl Http2Frames {
    fn new() -> Self {
        Self {
            skip: PREFACE_BYTES,
            header: [0; HEADER_BYTES],
            filled: 0,
            is_block: false,
            goes_on: None,
            block: Vec::new(),
            blocks: HeaderBlocks::new(),
            faults: Arc::default(),
        }
    }

    /// How many frames that carry nothing begin in these bytes.
    fn read(&mut self, mut bytes: &[u8]) -> Result<u64, UnreadableBlock> {
        let mut count = 0;
        loop {
            let skipped = self.skip.min(bytes.len());
            let (content, rest) = bytes.split_at_checked(skipped).unwrap_or((bytes, &[]));
            if self.is_block {
                self.block.extend_from_slice(content);
            }
            self.skip -= skipped;
            bytes = rest;
            if self.skip == 0 && self.is_block {
                self.is_block = false;
                self.block_ends()?;
            }
            let Some((first, rest)) = bytes.split_first() else {
                return Ok(count);
            };
            if let Some(place) = self.header.get_mut(self.filled) {
                *place = *first;
                self.filled += 1;
            }
            bytes = rest;
            if self.filled == HEADER_BYTES {
                self.filled = 0;
                count += u64::from(!self.begin()?);
            }
        }
    }

    fn kind(&self) -> (u8, u8, u32) {
        let [_, _, _, kind, flags, a, b, c, d] = self.header;
        (kind, flags, u32::from_be_bytes([a & 0x7f, b, c, d]))
    }

    /// A frame whose header was read begins. Says whether it carries something.
    fn begin(&mut self) -> Result<bool, UnreadableBlock> {
        let [a, b, c, ..] = self.header;
        let (kind, flags, stream) = self.kind();
        let length = u32::from_be_bytes([0, a, b, c]);
        self.skip = usize::try_from(length).unwrap_or(usize::MAX);
        let is_next = match self.goes_on {
            None => kind != CONTINUATION && kind != PUSH_PROMISE,
            Some(of) => kind == CONTINUATION && stream == of,
        };
        self.is_block = matches!(kind, HEADERS | CONTINUATION);
        let after = self.block.len().saturating_add(self.skip);
        if !is_next || self.is_block && after > limits::HEAD_BLOCK_BYTES_MAX {
            return Err(UnreadableBlock);
        }
        Ok(match kind {
            DATA => length > 0 || flags & END_STREAM != 0,
            // Bounded by what a head may take.
            HEADERS | CONTINUATION => true,
            _ => false,
        })
    }

    /// A frame with a header block, or a piece of one, was read.
    fn block_ends(&mut self) -> Result<(), UnreadableBlock> {
        let (kind, flags, stream) = self.kind();
        if kind == HEADERS {
            let piece = piece(&self.block, flags, stream)?;
            self.block.truncate(piece.end);
            self.block.drain(..piece.start);
        }
        if flags & END_HEADERS == 0 {
            self.goes_on = Some(stream);
            return Ok(());
        }
        self.goes_on = None;
        if let Some(because) = self.blocks.read(&self.block)? {
            self.faults.put(stream, because)?;
        }
        self.block.clear();
        self.block.shrink_to(BLOCK_BYTES_KEPT);
        Ok(())
    }
}

/// Where in a HEADERS frame its piece of a header block stands (RFC 9113 6.2).
fn piece(payload: &[u8], flags: u8, stream: u32) -> Result<Range<usize>, UnreadableBlock> {
    let (mut start, mut padding) = (0, 0);
    if flags & PADDED != 0 {
        padding = usize::from(*payload.first().ok_or(UnreadableBlock)?);
        start = 1;
    }
    if flags & PRIORITY != 0 {
        let priority = payload.get(start..).and_then(|rest| rest.first_chunk());
        let [a, b, c, d, _] = *priority.ok_or(UnreadableBlock)?;
        // The engine reads no block of a stream that depends on itself.
        if u32::from_be_bytes([a & 0x7f, b, c, d]) == stream {
            return Err(UnreadableBlock);
        }
        start += 5;
    }
    let end = payload.len().checked_sub(padding).ok_or(UnreadableBlock)?;
    (start <= end).then_some(start..end).ok_or(UnreadableBlock)
}

/// What is left of a budget, in frames.
#[derive(Debug)]
struct FrameBudget {
    left: u64,
    /// Up to when time was counted.
    since: Instant,
    /// Bytes to the client that were not counted yet.
    bytes: u64,
}

impl FrameBudget {
    fn new(now: Instant) -> Self {
        Self {
            left: limits::EMPTY_FRAMES_MAX,
            since: now,
            bytes: 0,
        }
    }

    fn sent(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether so many frames may be taken.
    fn spend(&mut self, frames: u64, now: Instant) -> bool {
        let millis = now.saturating_duration_since(self.since).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        let earned = millis.saturating_mul(limits::EMPTY_FRAMES_PER_SECOND) / 1000;
        if earned > 0 {
            self.since = now;
        }
        let for_bytes = self.bytes / limits::EMPTY_FRAME_PER_BYTES;
        self.bytes %= limits::EMPTY_FRAME_PER_BYTES;
        let all = self.left.saturating_add(earned).saturating_add(for_bytes);
        match all.min(limits::EMPTY_FRAMES_MAX).checked_sub(frames) {
            None => false,
            Some(left) => {
                self.left = left;
                true
            }
        }
    }
}

/// A client's connection that ends when its budget is spent, or when its header
/// blocks cannot be followed.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    frames: Http2Frames,
    budget: FrameBudget,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            frames: Http2Frames::new(),
            budget: FrameBudget::new(Instant::now()),
        }
    }

    /// What is wrong with requests as they come.
    pub(super) fn faults(&self) -> Arc<StreamFaults> {
        Arc::clone(&self.frames.faults)
    }
}

fn invalid(because: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, because)
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let metered = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut metered.stream).poll_read(context, buffer))?;
        let read = span::from(buffer.filled(), before);
        let Ok(count) = metered.frames.read(read) else {
            return Poll::Ready(Err(invalid(UNREADABLE)));
        };
        if count > 0 && !metered.budget.spend(count, Instant::now()) {
            return Poll::Ready(Err(invalid(FLOOD)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let metered = self.get_mut();
        let count = ready!(Pin::new(&mut metered.stream).poll_write(context, bytes))?;
        metered.budget.sent(count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let metered = self.get_mut();
        let count = ready!(Pin::new(&mut metered.stream).poll_write_vectored(context, parts))?;
        metered.budget.sent(count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn frame(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.extend(content);
        frame
    }

    #[test]
    fn what_carries_nothing_is_counted_in_pieces_of_any_size() {
        let mut all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for (kind, flags, content) in [
            (1, 1, &b"\x82"[..]),
            (9, 4, b"\x86\x84"),
            (0, 0, b"content"),
            (0, 1, b""),
            (1, 0, b""),
            (9, 4, b""),
            (0, 0, b""),
            (2, 0, b"\0\0\0\0\x09"),
            (8, 0, b"\0\0\0\x01"),
            (4, 0, b""),
            (6, 0, b"\0\0\0\0\0\0\0\0"),
            (3, 0, b"\0\0\0\x08"),
            (0xbb, 0, &[0; 300]),
        ] {
            all.extend(frame(kind, flags, content));
        }
        for size in [1, 2, 7, 9, 10, 100, all.len()] {
            let mut frames = Http2Frames::new();
            let count: u64 = all
                .chunks(size)
                .map(|piece| frames.read(piece).unwrap())
                .sum();
            assert_eq!(count, 7, "in pieces of {size}");
        }
    }

    #[test]
    fn a_budget_grows_with_time_and_with_what_is_sent() {
        let now = Instant::now();
        let mut budget = FrameBudget::new(now);
        assert!(budget.spend(limits::EMPTY_FRAMES_MAX, now));
        assert!(!budget.spend(1, now));
        let later = now + Duration::from_secs(1);
        assert!(budget.spend(limits::EMPTY_FRAMES_PER_SECOND, later));
        assert!(!budget.spend(1, later));
        for _ in 0..limits::EMPTY_FRAME_PER_BYTES {
            budget.sent(1);
        }
        assert!(budget.spend(1, later));
        assert!(!budget.spend(1, later));
        budget.sent(usize::MAX);
        assert!(!budget.spend(limits::EMPTY_FRAMES_MAX + 1, later));
    }
}
