//! Content that goes through its guard beside what is sent and received, in steps that
//! take a few milliseconds each, whatever is made of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::Guard;
use super::apart::{Work, WorkStep};
use crate::body::Stopped;
use crate::limits;

/// What follows behind the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterPieces {
    /// More of them.
    Goes,
    /// Nothing for a while.
    Pauses,
    /// Nothing.
    Ends,
}

/// A guard with the pieces that it takes.
#[derive(Debug)]
pub(super) struct Passing {
    guard: Guard,
    /// What it was given before, and is given again.
    again: VecDeque<Bytes>,
    pieces: VecDeque<Bytes>,
    then: AfterPieces,
    stride: Stride,
    /// What may go on.
    cleared: VecDeque<Bytes>,
    /// Why nothing more may go on.
    stopped: Option<Stopped>,
}

impl Passing {
    pub(super) fn new(mut guard: Guard, pieces: VecDeque<Bytes>, then: AfterPieces) -> Self {
        Self {
            again: VecDeque::from(guard.go_apart()),
            guard,
            pieces,
            then,
            stride: Stride::default(),
            cleared: VecDeque::new(),
            stopped: None,
        }
    }

    /// How many bytes it holds.
    pub(super) fn waiting(&self) -> usize {
        let coming: usize = self.pieces.iter().map(Bytes::len).sum();
        self.guard.waiting().saturating_add(coming)
    }

    /// The guard, what may go on, and what followed.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn end(self) -> Result<(Guard, VecDeque<Bytes>, AfterPieces), Stopped> {
        if let Some(stopped) = self.stopped {
            return Err(stopped);
        }
        Ok((self.guard, self.cleared, self.then))
    }

    fn act(&mut self) -> Result<(Bytes, WorkStep), Stopped> {
        if let Some(part) = part(&mut self.again, self.stride.bytes()) {
            return Ok((self.guard.pass_again(&part)?, WorkStep::More));
        }
        if self.guard.has_more() {
            return Ok((self.guard.go_on()?, WorkStep::More));
        }
        if let Some(part) = part(&mut self.pieces, self.stride.bytes()) {
            return Ok((self.guard.pass(part)?, WorkStep::More));
        }
        let bytes = match self.then {
            AfterPieces::Goes => Bytes::new(),
            AfterPieces::Pauses => self.guard.pause()?,
            AfterPieces::Ends => self.guard.finish()?,
        };
        Ok((bytes, WorkStep::Done))
    }
}

/// How many bytes a step looks at: fewer the more is made of them.
#[derive(Debug)]
pub(super) struct Stride(usize);

impl Default for Stride {
    fn default() -> Self {
        Self(limits::SCAN_PART_BYTES_FIRST)
    }
}

impl Stride {
    /// Bytes of the next step.
    pub(super) fn bytes(&self) -> usize {
        self.0
    }

    /// So many bytes were made in the last one.
    pub(super) fn took(&mut self, made: u64) {
        if made > limits::SCAN_STEP_BYTES_MADE {
            self.0 = (self.0 / 4).max(limits::SCAN_PART_BYTES_MIN);
        } else if made < limits::SCAN_STEP_BYTES_MADE / 2 {
            self.0 = self.0.saturating_mul(2).min(limits::SCAN_PART_BYTES);
        }
    }
}

/// The next part of some pieces, no longer than `most`.
fn part(pieces: &mut VecDeque<Bytes>, most: usize) -> Option<Bytes> {
    while let Some(piece) = pieces.front_mut() {
        let part = piece.split_to(piece.len().min(most));
        if piece.is_empty() {
            pieces.pop_front();
        }
        if !part.is_empty() {
            return Some(part);
        }
    }
    None
}

impl Work for Passing {
    fn owner(&self) -> usize {
        self.guard.owner()
    }

    fn halt(&self) -> Arc<AtomicBool> {
        self.guard.halt()
    }

    fn step(&mut self) -> WorkStep {
        let before = self.guard.cost();
        let (bytes, step) = match self.act() {
            Ok(acted) => acted,
            Err(stopped) => {
                self.stopped = Some(stopped);
                return WorkStep::Done;
            }
        };
        if !bytes.is_empty() {
            self.cleared.push_back(bytes);
        }
        self.stride.took(self.guard.cost().saturating_sub(before));
        step
    }
}
