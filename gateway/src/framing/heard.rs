//! Somebody who writes down what a framing says, for its tests: the same whatever
//! way the bytes were cut.

#![expect(clippy::expect_used, reason = "a framing that says it is at fault")]

#[cfg(test)]
use super::Framing;
use super::{MessageCoding, MessageFault, Sink};

/// What was said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeardEvent {
    /// A message, whole.
    Message(Vec<u8>),
    /// One beside it.
    Apart(Vec<u8>),
}

/// All that was said, the bytes as they came, and the fault that ended it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HeardFraming {
    pub(super) events: Vec<HeardEvent>,
    pub(super) raw: Vec<u8>,
    pub(super) fault: Option<MessageFault>,
    /// The message that is not over.
    open: Option<Vec<u8>>,
}

impl Sink for HeardFraming {
    fn framing(&mut self, raw: &[u8]) {
        self.raw.extend_from_slice(raw);
    }

    fn begin(&mut self, _: MessageCoding) {
        assert_eq!(self.open.replace(Vec::new()), None, "one at a time");
    }

    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), MessageFault> {
        assert_eq!(raw.len(), plain.len());
        self.raw.extend_from_slice(raw);
        let open = self.open.as_mut().expect("a message began");
        open.extend_from_slice(plain);
        Ok(())
    }

    fn end(&mut self) -> Result<(), MessageFault> {
        let open = self.open.take().expect("a message began");
        self.events.push(HeardEvent::Message(open));
        Ok(())
    }

    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), MessageFault> {
        assert!(plain.ends_with(text));
        self.raw.extend_from_slice(raw);
        self.events.push(HeardEvent::Apart(plain.to_vec()));
        Ok(())
    }

    fn has_enough(&self) -> bool {
        false
    }
}

/// Hands bytes to a framing in pieces of these sizes, and the rest at once.
#[cfg(test)]
pub(super) fn hear(framing: &mut dyn Framing, bytes: &[u8], cuts: &[usize]) -> HeardFraming {
    let mut heard = HeardFraming::default();
    let mut rest = bytes;
    for size in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        match framing.take(piece, &mut heard) {
            Ok(taken) => assert_eq!(taken, piece.len()),
            Err(fault) => {
                heard.fault = Some(fault);
                break;
            }
        }
    }
    heard
}
