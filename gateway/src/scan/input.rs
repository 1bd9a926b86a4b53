//! What comes into the scan from a client: read piece by piece, or gathered while the
//! scan is at work, in the order it came. Looks at nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::body::{ContentError, Inner};
use crate::limits;

/// Content as it comes, and what of it was gathered.
pub(super) struct Input {
    inner: Inner,
    pieces: VecDeque<Bytes>,
    /// Short pieces behind them, put together.
    short: BytesMut,
    /// How many bytes the pieces have.
    bytes: usize,
    /// What came behind them, where it was no data.
    then: Option<Box<Next>>,
}

/// A frame, the end, or why there is neither.
type Next = Option<Result<Frame<Bytes>, ContentError>>;

impl Input {
    pub(super) fn new(inner: Inner) -> Self {
        Self {
            inner,
            pieces: VecDeque::new(),
            short: BytesMut::new(),
            bytes: 0,
            then: None,
        }
    }

    /// The next frame.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        self.join();
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes = self.bytes.saturating_sub(piece.len());
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(next) = self.then.take() {
            return Poll::Ready(*next);
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    /// Gathers what there is, up to so many bytes and a piece.
    pub(super) fn gather(&mut self, context: &mut Context<'_>, most: usize) {
        while self.bytes < most && !self.has_ended() {
            let Poll::Ready(next) = Pin::new(&mut self.inner).poll_frame(context) else {
                return;
            };
            match next.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => self.keep(piece),
                Some(Ok(Err(other))) => self.then = Some(Box::new(Some(Ok(other)))),
                Some(Err(error)) => self.then = Some(Box::new(Some(Err(error)))),
                None => self.then = Some(Box::new(None)),
            }
        }
    }

    fn keep(&mut self, piece: Bytes) {
        self.bytes = self.bytes.saturating_add(piece.len());
        if piece.len() < limits::SCAN_PIECE_BYTES_MIN {
            self.short.extend_from_slice(&piece);
        } else {
            self.join();
            self.pieces.push_back(piece);
        }
    }

    /// Makes one piece of the short ones.
    fn join(&mut self) {
        if !self.short.is_empty() {
            self.pieces.push_back(self.short.split().freeze());
        }
    }

    /// How many bytes were gathered.
    pub(super) fn gathered(&self) -> usize {
        self.bytes
    }

    /// What was gathered.
    pub(super) fn take(&mut self) -> VecDeque<Bytes> {
        self.join();
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }

    /// Whether nothing more can be gathered.
    pub(super) fn has_ended(&self) -> bool {
        self.then.is_some() || self.inner.is_end_stream()
    }

    /// Whether nothing is left to be read.
    pub(super) fn is_end_stream(&self) -> bool {
        let is_over = match self.then.as_deref() {
            Some(next) => next.is_none(),
            None => self.inner.is_end_stream(),
        };
        self.bytes == 0 && is_over
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What was gathered may be a credential.
        formatter.debug_struct("Input").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_are_put_together_in_order() {
        let mut input = Input::new(Inner::None);
        let mut sent = Vec::new();
        let long = limits::SCAN_PIECE_BYTES_MIN;
        for length in [1, 2, long, 1, 1, long - 1, long + 1, 7].repeat(9) {
            let piece = vec![u8::try_from(sent.len() % 251).unwrap(); length];
            sent.extend_from_slice(&piece);
            input.keep(Bytes::from(piece));
            assert_eq!(input.gathered(), sent.len());
        }
        for _ in 0..100_000 {
            input.keep(Bytes::from_static(b"x"));
        }
        sent.extend(std::iter::repeat_n(b'x', 100_000));
        let pieces = input.take();
        assert!(pieces.len() < 50, "{}", pieces.len());
        assert_eq!(pieces.into_iter().collect::<Vec<_>>().concat(), sent);
        assert_eq!(input.gathered(), 0);
        assert!(input.is_end_stream());
    }
}
