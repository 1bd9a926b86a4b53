//! The opening of a session: greeting, policy text in chunks, beginning. What
//! comes out of order or over a limit ends it. Compiles nothing.

use outgate_handoff::{
    Begin, Hello, SOURCES_MAX, Source as Piece, SourceKind as PieceKind, ToGateway,
};
use outgate_policy::{Source, SourceKind};

use crate::control::{Control, ControlError, Received};

/// All that a launcher says before its sandbox runs.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) hello: Hello,
    pub(crate) sources: Vec<Source>,
    pub(crate) begin: Begin,
}

impl Opening {
    /// Receives it. `None` when the launcher is gone before its end.
    pub(super) async fn receive(
        control: &Control,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<Option<Self>, ControlError> {
        let Some(received) = control.receive(buffer).await? else {
            return Ok(None);
        };
        expect_descriptors(&received, 0)?;
        let ToGateway::Hello(hello) = received.frame else {
            return Err(ControlError::Order {
                what: "the first frame is not a greeting",
            });
        };
        let mut texts = Texts::default();
        loop {
            let Some(received) = control.receive(buffer).await? else {
                return Ok(None);
            };
            expect_descriptors(&received, 0)?;
            match received.frame {
                ToGateway::Source(piece) => texts.add(piece, bytes_max)?,
                ToGateway::Begin(begin) => {
                    let sources = texts.finish()?;
                    return Ok(Some(Self {
                        hello,
                        sources,
                        begin,
                    }));
                }
                ToGateway::Hello(_)
                | ToGateway::Ask(..)
                | ToGateway::Flow(_)
                | ToGateway::Stub
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
pub(crate) struct Texts {
    pieces: Vec<(PieceKind, String, Vec<u8>)>,
    bytes: usize,
}

impl Texts {
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

    pub(crate) fn finish(self) -> Result<Vec<Source>, ControlError> {
        let source = |(kind, place, text): (PieceKind, String, Vec<u8>)| {
            let text = String::from_utf8(text).map_err(|_| ControlError::Order {
                what: "policy text is not UTF-8",
            })?;
            Ok(Source {
                kind: source_kind(kind),
                place,
                text,
            })
        };
        self.pieces.into_iter().map(source).collect()
    }
}

fn source_kind(kind: PieceKind) -> SourceKind {
    match kind {
        PieceKind::Document => SourceKind::Document,
        PieceKind::Allow => SourceKind::Allow,
        PieceKind::Deny => SourceKind::Deny,
        PieceKind::Pin => SourceKind::Pin,
        PieceKind::Read => SourceKind::Read,
        PieceKind::Write => SourceKind::Write,
        PieceKind::Listen => SourceKind::Listen,
        PieceKind::Project => SourceKind::Project,
        PieceKind::Secret => SourceKind::Secret,
    }
}

/// Whether a frame came with the descriptors its kind carries.
pub(super) fn expect_descriptors(received: &Received, expected: usize) -> Result<(), ControlError> {
    let actual = received.descriptors.len();
    if actual == expected {
        Ok(())
    } else {
        Err(ControlError::Descriptors { expected, actual })
    }
}
