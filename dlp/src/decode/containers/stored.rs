//! What an archive holds as it is. It lies open, and is looked at there; here it
//! is only told from the name before it and the record behind it.

use super::unpack::{Sink, Unpack, UnpackFault, UnpackProgress, Unpacked};

/// Bytes that are looked at where nobody says how many there are.
const UNKNOWN_BYTES: usize = 4096;

/// What the records of an archive begin with.
const RECORDS: [[u8; 4]; 4] = [
    *b"PK\x07\x08",
    *b"PK\x03\x04",
    *b"PK\x01\x02",
    *b"PK\x05\x06",
];

/// An entry that is stored.
pub(super) struct Stored {
    left: usize,
    /// What may be the beginning of a record, where nobody says how long the
    /// entry is.
    tail: Option<Vec<u8>>,
}

impl Stored {
    /// An entry of the given length, in four bytes with the lowest first; zero
    /// where it is said behind it.
    pub(super) fn new(length: &[u8]) -> Self {
        let length = length.first_chunk().copied().map_or(0, u32::from_le_bytes);
        match usize::try_from(length) {
            Ok(left @ 1..) => Self { left, tail: None },
            _ => Self {
                left: UNKNOWN_BYTES,
                tail: Some(Vec::new()),
            },
        }
    }

    /// What of `bytes` is content for certain, and whether a record follows.
    fn split(bytes: &[u8]) -> (usize, bool) {
        if let Some(place) = bytes
            .windows(4)
            .position(|four| RECORDS.iter().any(|record| record == four))
        {
            return (place, true);
        }
        let may_begin = |rest: &[u8]| RECORDS.iter().any(|record| record.starts_with(rest));
        let tails = (1..4)
            .rev()
            .filter_map(|length| bytes.len().checked_sub(length));
        let mut begun = tails.filter(|place| bytes.get(*place..).is_some_and(may_begin));
        (begun.next().unwrap_or(bytes.len()), false)
    }
}

impl Unpack for Stored {
    fn reset(&mut self) {
        self.left = UNKNOWN_BYTES;
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<UnpackProgress, UnpackFault> {
        let (now, _) = input.split_at_checked(self.left).unwrap_or((input, &[]));
        self.left = self.left.saturating_sub(now.len());
        let mut is_done = self.left == 0;
        let goes_on = match &mut self.tail {
            None => sink(Unpacked::Bytes(now)),
            Some(tail) => {
                tail.extend_from_slice(now);
                let (length, is_record) = Self::split(tail);
                is_done |= is_record;
                let rest = tail.split_off(length);
                let content = std::mem::replace(tail, rest);
                content.is_empty() || sink(Unpacked::Bytes(&content))
            }
        };
        if !goes_on {
            return Err(UnpackFault::Stopped);
        }
        let used = now.len();
        Ok(UnpackProgress { used, is_done })
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        // It was no record.
        let rest = self.tail.take().unwrap_or_default();
        if !rest.is_empty() {
            sink(Unpacked::Bytes(&rest));
        }
    }

    fn may_end(&self) -> bool {
        true
    }
}
