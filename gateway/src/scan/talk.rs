//! Bytes of a WebSocket that go through its messages beside what is sent and received, in
//! steps of a few milliseconds, whatever is made of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::{Bytes, BytesMut};

use super::apart::{Step, Work};
use super::messages::Messages;
use super::passing::Stride;
use super::websocket::Frames;
use crate::body::Stopped;

/// Both halves of what looks at one direction.
#[derive(Debug)]
pub(super) struct Talk {
    frames: Frames,
    messages: Messages,
}

impl Talk {
    pub(super) fn new(messages: Messages) -> Self {
        Self {
            frames: Frames::default(),
            messages,
        }
    }

    /// Takes some of the next bytes, and gives those that may go on, and how many were
    /// taken.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<(Bytes, usize), Stopped> {
        self.messages.pass(&mut self.frames, bytes)
    }

    /// Why it ended, in a sentence.
    pub(super) fn why(&self) -> String {
        self.messages.why()
    }
}

/// The same with bytes that it takes.
#[derive(Debug)]
pub(super) struct Talking {
    talk: Talk,
    coming: Bytes,
    stride: Stride,
    cleared: BytesMut,
    end: Result<(), Stopped>,
}

impl Talking {
    pub(super) fn new(talk: Talk, coming: Bytes) -> Self {
        Self {
            talk,
            coming,
            stride: Stride::default(),
            cleared: BytesMut::new(),
            end: Ok(()),
        }
    }

    /// What looks at them, what may go on, and whether more may.
    pub(super) fn end(self) -> (Talk, Bytes, Result<(), Stopped>) {
        (self.talk, self.cleared.freeze(), self.end)
    }
}

impl Work for Talking {
    fn owner(&self) -> usize {
        self.talk.messages.owner()
    }

    fn halt(&self) -> Arc<AtomicBool> {
        self.talk.messages.halt()
    }

    fn step(&mut self) -> Step {
        let before = self.talk.messages.cost();
        let part = self.coming.len().min(self.stride.bytes());
        let part = self.coming.get(..part).unwrap_or_default();
        match self.talk.pass(part) {
            Ok((cleared, taken)) => {
                self.cleared.extend_from_slice(&cleared);
                drop(self.coming.split_to(taken.min(self.coming.len())));
            }
            Err(stopped) => {
                self.end = Err(stopped);
                return Step::Done;
            }
        }
        let made = self.talk.messages.cost().saturating_sub(before);
        self.stride.took(made);
        if self.coming.is_empty() {
            Step::Done
        } else {
            Step::More
        }
    }
}
