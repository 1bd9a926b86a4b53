//! What comes into the scan from a client: read piece by piece, or several pieces
//! ahead, in the order they came. Looks at nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::content::{ContentError, Inner};

/// Content as it comes, and what of it was read ahead.
#[derive(Debug)]
pub(super) struct Input {
    inner: Inner,
    pieces: VecDeque<Bytes>,
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
            bytes: 0,
            then: None,
        }
    }

    /// The next frame.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes = self.bytes.saturating_sub(piece.len());
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(next) = self.then.take() {
            return Poll::Ready(*next);
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    /// Reads ahead what there is, up to so many bytes.
    pub(super) fn gather(&mut self, context: &mut Context<'_>, most: usize) {
        while self.bytes < most && self.then.is_none() && !self.inner.is_end_stream() {
            let Poll::Ready(next) = Pin::new(&mut self.inner).poll_frame(context) else {
                return;
            };
            match next.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => {
                    self.bytes = self.bytes.saturating_add(piece.len());
                    self.pieces.push_back(piece);
                }
                Some(Ok(Err(other))) => self.then = Some(Box::new(Some(Ok(other)))),
                Some(Err(error)) => self.then = Some(Box::new(Some(Err(error)))),
                None => self.then = Some(Box::new(None)),
            }
        }
    }

    /// How many bytes were read ahead.
    pub(super) fn gathered(&self) -> usize {
        self.bytes
    }

    /// What was read ahead.
    pub(super) fn take(&mut self) -> VecDeque<Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }

    /// Whether nothing more can be read ahead.
    pub(super) fn has_ended(&self) -> bool {
        self.then.is_some() || self.inner.is_end_stream()
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.then.is_none() && self.inner.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
