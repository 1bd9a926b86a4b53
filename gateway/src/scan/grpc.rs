//! The messages of gRPC (gRPC over HTTP/2, "Length-Prefixed-Message"): a byte
//! that says whether the message is compressed, four of length, the message.

use super::messages::{Coded, Fault, Framing, Messages};

/// Follows the messages of one request.
#[derive(Debug)]
pub(crate) struct Prefixed {
    /// The beginning of a prefix that is not whole.
    prefix: Vec<u8>,
    left: u64,
}

const PREFIX_BYTES: usize = 5;

impl Prefixed {
    pub(super) fn new() -> Self {
        Self {
            prefix: Vec::with_capacity(PREFIX_BYTES),
            left: 0,
        }
    }

    fn begin(&mut self, sink: &mut Messages) -> Result<(), Fault> {
        let [coded, length @ ..] = self.prefix.as_slice() else {
            return Ok(());
        };
        let coded = match coded {
            0 => Coded::No,
            1 => Coded::Yes,
            _ => return Err(Fault::Framing("a gRPC message of a kind nobody knows")),
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
    fn take(&mut self, mut bytes: &[u8], sink: &mut Messages) -> Result<(), Fault> {
        while !bytes.is_empty() {
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
        Ok(())
    }
}
