//! Content that goes through its guard beside what is sent and received, in steps that
//! take a few milliseconds each, whatever is made of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::Guard;
use super::apart::{Step, Work};
use crate::body::Stopped;
use crate::limits;

/// What follows behind the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
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
    then: Then,
    stride: Stride,
    /// What may go on.
    cleared: VecDeque<Bytes>,
    is_stopped: bool,
}

impl Passing {
    pub(super) fn new(mut guard: Guard, pieces: VecDeque<Bytes>, then: Then) -> Self {
        Self {
            again: VecDeque::from(guard.go_apart()),
            guard,
            pieces,
            then,
            stride: Stride::default(),
            cleared: VecDeque::new(),
            is_stopped: false,
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
    pub(super) fn end(self) -> Result<(Guard, VecDeque<Bytes>, Then), Stopped> {
        if self.is_stopped {
            return Err(Stopped);
        }
        Ok((self.guard, self.cleared, self.then))
    }

    fn act(&mut self) -> Result<(Bytes, Step), Stopped> {
        if let Some(part) = part(&mut self.again, self.stride.bytes()) {
            return Ok((self.guard.pass_again(&part)?, Step::More));
        }
        if self.guard.has_more() {
            return Ok((self.guard.go_on()?, Step::More));
        }
        if let Some(part) = part(&mut self.pieces, self.stride.bytes()) {
            return Ok((self.guard.pass(part)?, Step::More));
        }
        let bytes = match self.then {
            Then::Goes => Bytes::new(),
            Then::Pauses => self.guard.pause()?,
            Then::Ends => self.guard.finish()?,
        };
        Ok((bytes, Step::Done))
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

    fn step(&mut self) -> Step {
        let before = self.guard.cost();
        let Ok((bytes, step)) = self.act() else {
            self.is_stopped = true;
            return Step::Done;
        };
        if !bytes.is_empty() {
            self.cleared.push_back(bytes);
        }
        self.stride.took(self.guard.cost().saturating_sub(before));
        step
    }
}
