//! The messages of gRPC (gRPC over HTTP/2, "Length-Prefixed-Message"): a byte
//! that says whether the message is compressed, four of length, the message.

use super::{Framing, MessageCoding, MessageFault, Sink};

/// Follows the messages of one request.
#[derive(Debug)]
pub(crate) struct Prefixed {
    /// The beginning of a prefix that is not whole.
    prefix: Vec<u8>,
    left: u64,
}

const PREFIX_BYTES: usize = 5;

impl Prefixed {
    pub(crate) fn new() -> Self {
        Self {
            prefix: Vec::with_capacity(PREFIX_BYTES),
            left: 0,
        }
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), MessageFault> {
        let [coded, length @ ..] = self.prefix.as_slice() else {
            return Ok(());
        };
        let coded = match coded {
            0 => MessageCoding::No,
            1 => MessageCoding::Yes,
            _ => {
                return Err(MessageFault::Framing(
                    "a gRPC message of a kind nobody knows",
                ));
            }
        };
        self.left = length
            .iter()
            .fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
        sink.begin(coded);
        sink.framing(&self.prefix);
        self.prefix.clear();
        if self.left == 0 { sink.end() } else { Ok(()) }
    }
}

impl Framing for Prefixed {
    fn take(&mut self, mut bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, MessageFault> {
        let all = bytes.len();
        while !bytes.is_empty() && !sink.has_enough() {
            let (taken, rest) = if self.left == 0 {
                let missing = PREFIX_BYTES.saturating_sub(self.prefix.len());
                let (more, rest) = bytes.split_at(missing.min(bytes.len()));
                self.prefix.extend_from_slice(more);
                if self.prefix.len() == PREFIX_BYTES {
                    self.begin(sink)?;
                }
                (&[][..], rest)
            } else {
                let count = usize::try_from(self.left).unwrap_or(usize::MAX);
                bytes.split_at(count.min(bytes.len()))
            };
            if !taken.is_empty() {
                let count = u64::try_from(taken.len()).unwrap_or(u64::MAX);
                self.left = self.left.saturating_sub(count);
                sink.payload(taken, taken)?;
                if self.left == 0 {
                    sink.end()?;
                }
            }
            bytes = rest;
        }
        Ok(all.saturating_sub(bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::heard::{HeardEvent, HeardFraming, hear};
    use super::*;
    use proptest::prelude::*;

    fn heard(bytes: &[u8], cuts: &[usize]) -> HeardFraming {
        hear(&mut Prefixed::new(), bytes, cuts)
    }

    proptest! {
        #[test]
        fn messages_are_those_that_were_written(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
            cuts in prop::collection::vec(1_usize..40, 0..60),
        ) {
            let mut bytes = Vec::new();
            for message in &messages {
                bytes.push(0);
                bytes.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
                bytes.extend(message);
            }
            let heard = heard(&bytes, &cuts);
            prop_assert_eq!(heard.fault, None);
            prop_assert_eq!(heard.raw, bytes);
            let expected: Vec<HeardEvent> = messages.into_iter().map(HeardEvent::Message).collect();
            prop_assert_eq!(heard.events, expected);
        }

        #[test]
        fn cuts_change_nothing_whatever_comes(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..3], 0..400),
            cuts in prop::collection::vec(1_usize..9, 0..200),
        ) {
            prop_assert_eq!(heard(&bytes, &cuts), heard(&bytes, &[]));
        }
    }

    #[test]
    fn a_message_of_an_unknown_kind_is_a_fault() {
        assert!(heard(&[2, 0, 0, 0, 0], &[]).fault.is_some());
        assert!(heard(&[0, 0xff, 0xff, 0xff, 0xff], &[]).fault.is_none());
    }
}
