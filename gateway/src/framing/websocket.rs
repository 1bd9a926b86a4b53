//! The messages of a WebSocket, from client to server (RFC 6455 5). Frames are unmasked for
//! the scan and masked anew: the key of a mask is its sender's to choose, goes in front of
//! each frame, and says nothing to anybody who reads messages. Compression was not agreed
//! on, so a frame that uses an extension is refused.

use bytes::Bytes;

use super::{Framing, MessageCoding, MessageFault, Sink};
use crate::random;
use crate::text::shortened;

/// Follows the frames of one direction.
#[derive(Debug, Default)]
pub(crate) struct WebSocketFrames {
    state: FrameState,
    /// Whether a message began and has not ended.
    open: bool,
    masks: Masks,
}

/// The key of a mask.
type MaskKey = [u8; 4];

/// Keys for frames that go on.
#[derive(Debug, Default)]
enum Masks {
    /// None was asked for.
    #[default]
    Unused,
    /// Random ones, and how many bytes of them were used.
    Random(Box<[u8; 256]>, usize),
    /// The same for each.
    #[cfg(any(test, fuzzing))]
    Fixed(MaskKey),
}

impl Masks {
    fn next(&mut self) -> Result<MaskKey, MessageFault> {
        if let Self::Random(keys, used) = self
            && let Some(key) = keys.get(*used..).and_then(<[u8]>::first_chunk)
        {
            *used += key.len();
            return Ok(*key);
        }
        #[cfg(any(test, fuzzing))]
        if let Self::Fixed(key) = self {
            return Ok(*key);
        }
        let mut keys = Box::new([0; 256]);
        random::fill(&mut *keys)
            .map_err(|_| MessageFault::Framing("a WebSocket frame that cannot be masked"))?;
        let key = keys.first_chunk().copied().unwrap_or_default();
        *self = Self::Random(keys, key.len());
        Ok(key)
    }
}

#[derive(Debug)]
enum FrameState {
    /// The beginning of a frame that is not whole.
    Head(Vec<u8>),
    Payload(Payload),
}

impl Default for FrameState {
    fn default() -> Self {
        Self::Head(Vec::with_capacity(HEAD_BYTES_MAX))
    }
}

#[derive(Debug)]
struct Payload {
    left: u64,
    mask: MaskKey,
    /// Of what goes on.
    sent: MaskKey,
    /// Bytes that were unmasked.
    at: usize,
    kind: FrameKind,
}

#[derive(Debug)]
enum FrameKind {
    /// Part of a message, and whether the last one.
    Data(LastFrame),
    /// A control frame: which, as it goes on, and what it says.
    Control(ControlFrame, Vec<u8>, Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ControlFrame {
    /// Its text stands behind a status code of two bytes (RFC 6455 5.5.1).
    Close,
    /// A ping or a pong.
    Other,
}

impl ControlFrame {
    /// The text in what a frame says: of one with a status that nobody may send (RFC 6455
    /// 7.4.2), all of it.
    fn text(self, payload: &[u8]) -> &[u8] {
        let status = payload.first_chunk().copied().map(u16::from_be_bytes);
        match (self, status) {
            (Self::Close, Some(1000..=4999)) => payload.get(STATUS_BYTES..).unwrap_or_default(),
            (Self::Close | Self::Other, _) => payload,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastFrame {
    No,
    Yes,
}

/// Two bytes, eight of length, four of mask.
const HEAD_BYTES_MAX: usize = 14;
const CONTROL_BYTES_MAX: u64 = 125;
/// A status code.
const STATUS_BYTES: usize = 2;
/// What a control frame has room for beside it.
const CLOSE_TEXT_BYTES_MAX: usize = 123;

/// A frame that ends a connection for a breach of policy (RFC 6455 5.5.1,
/// 7.4.1), from a server.
pub(crate) fn close(because: &str) -> Bytes {
    const POLICY: [u8; 2] = 1008_u16.to_be_bytes();
    let because = shortened(because, CLOSE_TEXT_BYTES_MAX);
    let length = u8::try_from(because.len() + POLICY.len()).unwrap_or_default();
    let mut frame = vec![0x88, length];
    frame.extend_from_slice(&POLICY);
    frame.extend_from_slice(because.as_bytes());
    Bytes::from(frame)
}

impl Framing for WebSocketFrames {
    fn take(&mut self, mut bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, MessageFault> {
        let all = bytes.len();
        while !bytes.is_empty() && !sink.has_enough() {
            bytes = match &mut self.state {
                FrameState::Head(head) => {
                    let missing = missing(head);
                    let (more, rest) = bytes.split_at(missing.min(bytes.len()));
                    head.extend_from_slice(more);
                    if self::missing(head) == 0 {
                        let head = std::mem::take(head);
                        self.begin(&head, sink)?;
                    }
                    rest
                }
                FrameState::Payload(payload) => {
                    let count = usize::try_from(payload.left).unwrap_or(usize::MAX);
                    let (raw, rest) = bytes.split_at(count.min(bytes.len()));
                    self.payload(raw, sink)?;
                    rest
                }
            };
        }
        Ok(all.saturating_sub(bytes.len()))
    }
}

/// How many bytes a head needs at least beyond those that are there.
fn missing(head: &[u8]) -> usize {
    let length = match head.get(1).map(|second| second & 0x7f) {
        None => 2,
        Some(126) => 8,
        Some(127) => HEAD_BYTES_MAX,
        Some(_) => 6,
    };
    length.saturating_sub(head.len())
}

impl WebSocketFrames {
    /// Frames that go on with this key.
    #[cfg(any(test, fuzzing))]
    pub(super) fn masked_by(key: MaskKey) -> Self {
        Self {
            masks: Masks::Fixed(key),
            ..Self::default()
        }
    }

    fn begin(&mut self, head: &[u8], sink: &mut dyn Sink) -> Result<(), MessageFault> {
        let [first, second, rest @ ..] = head else {
            return Err(MessageFault::Framing("a WebSocket frame without a head"));
        };
        if first & 0x70 != 0 {
            return Err(MessageFault::Framing(
                "a WebSocket frame of an extension nobody agreed on",
            ));
        }
        if second & 0x80 == 0 {
            return Err(MessageFault::Framing(
                "a WebSocket frame of a client without a mask",
            ));
        }
        let (length, mask) = rest.split_at(rest.len().saturating_sub(4));
        let left = match second & 0x7f {
            short @ 0..=125 => u64::from(short),
            _ => length
                .iter()
                .fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte)),
        };
        let mask = mask.try_into().unwrap_or_default();
        let sent = self.masks.next()?;
        let mut masked = head.to_vec();
        if let Some(key) = masked.last_chunk_mut() {
            *key = sent;
        }
        let last = if first & 0x80 == 0 {
            LastFrame::No
        } else {
            LastFrame::Yes
        };
        let kind = match (first & 0x0f, self.open) {
            (0, true) => FrameKind::Data(last),
            (1 | 2, false) => {
                self.open = true;
                sink.begin(MessageCoding::No);
                FrameKind::Data(last)
            }
            (8..=10, _) if last == LastFrame::Yes && left <= CONTROL_BYTES_MAX => {
                let which = if first & 0x0f == 8 {
                    ControlFrame::Close
                } else {
                    ControlFrame::Other
                };
                FrameKind::Control(which, masked.clone(), Vec::new())
            }
            _ => return Err(MessageFault::Framing("a WebSocket frame out of place")),
        };
        if let FrameKind::Data(_) = kind {
            sink.framing(&masked);
        }
        self.state = FrameState::Payload(Payload {
            left,
            mask,
            sent,
            at: 0,
            kind,
        });
        // A frame without payload is whole now.
        self.payload(&[], sink)
    }

    fn payload(&mut self, raw: &[u8], sink: &mut dyn Sink) -> Result<(), MessageFault> {
        let FrameState::Payload(payload) = &mut self.state else {
            return Ok(());
        };
        let by = |key: &MaskKey, bytes: &[u8]| -> Vec<u8> {
            let key = key.iter().cycle().skip(payload.at % 4);
            let bytes = bytes.iter().zip(key);
            bytes.map(|(byte, key)| byte ^ key).collect()
        };
        let plain = by(&payload.mask, raw);
        let masked = by(&payload.sent, &plain);
        payload.at = payload.at.wrapping_add(raw.len());
        payload.left = payload
            .left
            .saturating_sub(u64::try_from(raw.len()).unwrap_or(u64::MAX));
        let is_whole = payload.left == 0;
        match &mut payload.kind {
            FrameKind::Data(last) => {
                sink.payload(&masked, &plain)?;
                if is_whole && *last == LastFrame::Yes {
                    self.open = false;
                    sink.end()?;
                }
            }
            FrameKind::Control(which, frame, said) => {
                frame.extend_from_slice(&masked);
                said.extend_from_slice(&plain);
                if is_whole {
                    sink.apart(frame, said, which.text(said))?;
                }
            }
        }
        if is_whole {
            self.state = FrameState::default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::heard::{HeardEvent, HeardFraming, hear};
    use super::*;
    use proptest::prelude::*;

    /// A frame as a client writes it.
    fn frame(first: u8, mask: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..=125 => frame.push(0x80 | u8::try_from(short).unwrap()),
            long @ 126..=0xffff => {
                frame.push(0xfe);
                frame.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
            huge => {
                frame.push(0xff);
                frame.extend(u64::try_from(huge).unwrap().to_be_bytes());
            }
        }
        frame.extend(mask);
        let masked = payload.iter().zip(mask.iter().cycle());
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn heard(bytes: &[u8], cuts: &[usize]) -> HeardFraming {
        hear(&mut WebSocketFrames::masked_by([1, 2, 3, 4]), bytes, cuts)
    }

    #[test]
    fn a_frame_goes_on_under_a_key_of_its_own() {
        let secret = b"ghp_";
        let bytes: Vec<u8> = (0..100)
            .flat_map(|_| frame(0x82, *secret, b"abc"))
            .collect();
        let first = hear(&mut WebSocketFrames::default(), &bytes, &[7, 50]);
        assert_eq!(first.raw.len(), bytes.len());
        assert!(memchr::memmem::find(&first.raw, secret).is_none());
        let keys: std::collections::BTreeSet<&[u8]> =
            first.raw.chunks(9).map(|one| &one[2..6]).collect();
        assert!(keys.len() > 90, "{}", keys.len());
        // It says what it said.
        assert_eq!(heard(&first.raw, &[]).events, first.events);
    }

    proptest! {
        #[test]
        fn messages_are_those_that_were_written(
            messages in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4), 0..5),
            control in prop::collection::vec(any::<u8>(), 0..126),
            mask in any::<[u8; 4]>(),
            cuts in prop::collection::vec(1_usize..40, 0..60),
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for fragments in &messages {
                for (index, fragment) in fragments.iter().enumerate() {
                    let last = if index + 1 == fragments.len() { 0x80 } else { 0 };
                    let opcode = if index == 0 { 2 } else { 0 };
                    bytes.extend(frame(last | opcode, mask, fragment));
                    if index == 0 {
                        bytes.extend(frame(0x89, mask, &control));
                        // Of one frame the message is over before what comes behind it.
                        expected.push(HeardEvent::Apart(control.clone()));
                    }
                }
                let message = HeardEvent::Message(fragments.concat());
                let place = expected.len() - usize::from(fragments.len() == 1);
                expected.insert(place, message);
            }
            let heard = hear(&mut WebSocketFrames::masked_by(mask), &bytes, &cuts);
            prop_assert_eq!(heard.fault, None);
            prop_assert_eq!(heard.events, expected);
            prop_assert_eq!(heard.raw, bytes);
        }

        #[test]
        fn cuts_change_nothing_whatever_comes(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), Just(0x81), Just(0x80), Just(0x82), Just(0x01), Just(0x89)], 0..400),
            cuts in prop::collection::vec(1_usize..9, 0..200),
        ) {
            prop_assert_eq!(heard(&bytes, &cuts), heard(&bytes, &[]));
        }
    }

    #[test]
    fn payloads_are_read_whatever_length_their_frames_have() {
        let lengths = [0, 1, 125, 126, 1000, 65535, 65536, 70000];
        let payload = |length| (0..length).map(|at: u32| at.to_le_bytes()[0]).collect();
        let payloads: Vec<Vec<u8>> = lengths.into_iter().map(payload).collect();
        let frames = payloads.iter().map(|own| frame(0x82, [1, 2, 3, 4], own));
        let bytes = frames.collect::<Vec<_>>().concat();
        for size in [1, 7, 4096, bytes.len()] {
            let heard = heard(&bytes, &vec![size; bytes.len() / size]);
            assert_eq!(heard.fault, None);
            let expected = payloads.iter().cloned().map(HeardEvent::Message);
            assert!(heard.events == expected.collect::<Vec<_>>(), "{size}");
        }
    }

    #[test]
    fn what_breaks_the_framing_is_a_fault() {
        let mask = [1, 2, 3, 4];
        let long = |bytes: [u8; 8]| [&[0x82, 0xff][..], &bytes, &mask].concat();
        for (name, bytes, is_fault) in [
            ("an extension", frame(0xc1, mask, b"a"), true),
            ("a continuation of nothing", frame(0x80, mask, b"a"), true),
            (
                "two beginnings",
                [frame(1, mask, b"a"), frame(1, mask, b"a")].concat(),
                true,
            ),
            ("a control frame in pieces", frame(0x09, mask, b"a"), true),
            ("a long control frame", frame(0x89, mask, &[0; 126]), true),
            ("an unknown kind", frame(0x83, mask, b"a"), true),
            ("no mask", vec![0x81, 1, b'a'], true),
            ("a length beyond all", long([0xff; 8]), false),
            (
                "a length that is not the shortest",
                long([0, 0, 0, 0, 0, 0, 0, 1]),
                false,
            ),
        ] {
            // A head is read whole before it is judged.
            let behind = if is_fault { &[0; 16][..] } else { &[] };
            let bytes = [&bytes, behind].concat();
            assert_eq!(heard(&bytes, &[]).fault.is_some(), is_fault, "{name}");
        }
    }
}
