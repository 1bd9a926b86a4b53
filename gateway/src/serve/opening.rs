//! The opening of a session: hello, policy text in chunks, beginning. What
//! comes out of order or over a limit ends it. Compiles nothing.

use outgate_handoff::{BeginFrame, HelloFrame, SOURCES_MAX, SourceFrame as Piece, ToGateway};
use outgate_policy::{Source, SourceKind};

use super::timed::{GrantEnds, TimedTexts};
use crate::control::{ControlError, ControlSocket, ReceivedFrame};

/// All that a launcher says before its sandbox runs.
#[derive(Debug)]
pub(crate) struct SessionOpening {
    pub(crate) hello: HelloFrame,
    pub(crate) texts: TimedTexts,
    pub(crate) begin: BeginFrame,
}

impl SessionOpening {
    /// Receives it. `None` when the launcher is gone before its end.
    pub(super) async fn receive(
        control: &ControlSocket,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<Option<Self>, ControlError> {
        let Some(received) = control.receive(buffer).await? else {
            return Ok(None);
        };
        expect_descriptors(&received, 0)?;
        let ToGateway::Hello(hello) = received.frame else {
            return Err(ControlError::Order {
                what: "the first frame is no hello",
            });
        };
        let mut texts = PolicyTexts::default();
        loop {
            let Some(received) = control.receive(buffer).await? else {
                return Ok(None);
            };
            expect_descriptors(&received, 0)?;
            match received.frame {
                ToGateway::Source(piece) => texts.add(piece, bytes_max)?,
                ToGateway::Until { place, left_ms } => texts.until(place, left_ms)?,
                ToGateway::Begin(begin) => {
                    let texts = texts.finish()?;
                    return Ok(Some(Self {
                        hello,
                        texts,
                        begin,
                    }));
                }
                ToGateway::Setting(_)
                | ToGateway::Hello(_)
                | ToGateway::Change(..)
                | ToGateway::Settled(..)
                | ToGateway::Ask(..)
                | ToGateway::Flow(_)
                | ToGateway::Stub
                | ToGateway::Ping(_)
                | ToGateway::Token(_)
                | ToGateway::Leftover { .. }
                | ToGateway::Finish { .. } => {
                    return Err(ControlError::Order {
                        what: "something else than policy text before the session began",
                    });
                }
            }
        }
    }
}

/// Policy texts as their chunks come in.
#[derive(Debug, Default)]
pub(crate) struct PolicyTexts {
    pieces: Vec<(SourceKind, String, Vec<u8>)>,
    ends: GrantEnds,
    bytes: usize,
}

impl PolicyTexts {
    pub(crate) fn add(&mut self, piece: Piece, bytes_max: usize) -> Result<(), ControlError> {
        self.bytes = self.bytes.saturating_add(piece.chunk.len());
        if self.bytes > bytes_max {
            return Err(ControlError::Order {
                what: "policy text over its limit",
            });
        }
        let index = usize::try_from(piece.index).unwrap_or(usize::MAX);
        if index == self.pieces.len() && index < SOURCES_MAX {
            self.pieces.push((piece.kind, piece.place, piece.chunk));
            return Ok(());
        }
        let is_last = index.checked_add(1) == Some(self.pieces.len());
        match self.pieces.last_mut() {
            Some((kind, place, text))
                if is_last && *kind == piece.kind && *place == piece.place =>
            {
                text.extend_from_slice(&piece.chunk);
                Ok(())
            }
            _ => Err(ControlError::Order {
                what: "policy text out of order",
            }),
        }
    }

    /// So long does what was granted there hold.
    pub(super) fn until(&mut self, place: String, left_ms: u64) -> Result<(), ControlError> {
        self.ends.add(place, left_ms)
    }

    pub(crate) fn finish(self) -> Result<TimedTexts, ControlError> {
        let source =
            |(kind, place, text): (SourceKind, String, Vec<u8>)| -> Result<_, ControlError> {
                let text = String::from_utf8(text).map_err(|_| ControlError::Order {
                    what: "policy text is not UTF-8",
                })?;
                Ok(Source { kind, place, text })
            };
        let sources = self.pieces.into_iter().map(source);
        Ok(TimedTexts::new(
            sources.collect::<Result<_, ControlError>>()?,
            self.ends,
        ))
    }
}

/// Whether a frame came with the descriptors its kind carries.
pub(super) fn expect_descriptors(
    received: &ReceivedFrame,
    expected: usize,
) -> Result<(), ControlError> {
    let actual = received.descriptors.len();
    if actual == expected {
        Ok(())
    } else {
        Err(ControlError::Descriptors { expected, actual })
    }
}
