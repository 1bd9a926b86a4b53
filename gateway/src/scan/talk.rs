//! Bytes of a WebSocket that go through its messages beside what is sent and received, in
//! steps of a few milliseconds, whatever is made of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::{Bytes, BytesMut};

use super::apart::{Work, WorkStep};
use super::messages::Messages;
use super::passing::Stride;
use crate::body::Stopped;
use crate::framing::WebSocketFrames;

/// Both halves of what looks at one direction.
#[derive(Debug)]
pub(super) struct Talk {
    frames: WebSocketFrames,
    messages: Messages,
}

impl Talk {
    pub(super) fn new(messages: Messages) -> Self {
        Self {
            frames: WebSocketFrames::default(),
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

    fn step(&mut self) -> WorkStep {
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
                return WorkStep::Done;
            }
        }
        let made = self.talk.messages.cost().saturating_sub(before);
        self.stride.took(made);
        if self.coming.is_empty() {
            WorkStep::Done
        } else {
            WorkStep::More
        }
    }
}
