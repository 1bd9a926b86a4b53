//! Where messages lie in bytes: the frames of a WebSocket, the prefixes of gRPC. One reader
//! of each for all who look at messages, however the bytes are cut. Knows nobody who looks.

use crate::body::Stopped;

#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod grpc;
#[cfg(any(test, fuzzing))]
mod heard;
mod websocket;

pub(crate) use grpc::Prefixed;
pub(crate) use websocket::{WebSocketFrames, close};

/// Whether a message is compressed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageCoding {
    No,
    Yes,
}

/// Finds the messages in bytes, however they are cut.
pub(crate) trait Framing: Send + Sync {
    /// Takes bytes and says what they are, piece by piece and in order, until the
    /// sink has had enough for now; the result is how many were taken.
    ///
    /// # Errors
    /// Why they are none of its messages, or the scan's refusal.
    fn take(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, MessageFault>;
}

/// Who is told what a framing found.
pub(crate) trait Sink {
    /// Bytes of the framing itself.
    fn framing(&mut self, raw: &[u8]);

    /// A message begins.
    fn begin(&mut self, coded: MessageCoding);

    /// Bytes of the message that began, as they came and as they are meant.
    ///
    /// # Errors
    /// They may not leave.
    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), MessageFault>;

    /// The message is over.
    ///
    /// # Errors
    /// It may not leave.
    fn end(&mut self) -> Result<(), MessageFault>;

    /// A short message beside the one that began, whole: as it came, as it is meant, and
    /// what of that is text.
    ///
    /// # Errors
    /// It may not leave.
    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), MessageFault>;

    /// Whether others should have a turn.
    fn has_enough(&self) -> bool;
}

/// Why bytes do not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MessageFault {
    /// They break the framing.
    Framing(&'static str),
    /// They hold what may not leave.
    Stopped(Stopped),
}

impl From<Stopped> for MessageFault {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}
