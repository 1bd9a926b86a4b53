//! Targets for fuzzers: the framings beside readers that have all of the bytes, in
//! whatever pieces they come, and whoever wants a turn in between. There is none of
//! this in a program: it is built for tests, which replay the corpora and change
//! them a little, and for `fuzz/`, where a fuzzer is in front of it.

#![expect(
    clippy::indexing_slicing,
    reason = "what is missing is a fault of the target"
)]

use super::grpc::Prefixed;
use super::heard::{HeardEvent, HeardFraming};
use super::websocket::WebSocketFrames;
use super::{Framing, MessageCoding, MessageFault, Sink};

/// A target: it panics on bytes that show a fault.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its corpus.
pub const TARGETS: [(&str, Target); 2] = [("websocket", websocket), ("grpc", grpc)];

/// Shows a target some bytes.
///
/// # Panics
/// When they show a fault, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let target = found.map(|(_, target)| *target);
    assert!(target.is_some(), "no target `{name}`");
    if let Some(target) = target {
        target(bytes);
    }
}

/// Somebody who listens, and has enough after every few things that were said.
struct Impatient {
    heard: HeardFraming,
    said: usize,
    patience: usize,
}

impl Sink for Impatient {
    fn framing(&mut self, raw: &[u8]) {
        self.heard.framing(raw);
    }

    fn begin(&mut self, coded: MessageCoding) {
        self.heard.begin(coded);
    }

    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), MessageFault> {
        self.heard.payload(raw, plain)
    }

    fn end(&mut self) -> Result<(), MessageFault> {
        self.said += 1;
        self.heard.end()
    }

    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), MessageFault> {
        self.said += 1;
        self.heard.apart(raw, plain, text)
    }

    fn has_enough(&self) -> bool {
        self.said >= self.patience
    }
}

/// Hands an input to a framing: how it is cut follows from its first byte, and after
/// how many messages others have a turn from its second.
fn hear(framing: &mut dyn Framing, input: &[u8]) -> HeardFraming {
    let (cut, rest) = input.split_first().unwrap_or((&0, &[]));
    let (patience, mut rest) = rest.split_first().unwrap_or((&0, rest));
    let mut sink = Impatient {
        heard: HeardFraming::default(),
        said: 0,
        patience: 1 + usize::from(*patience),
    };
    let mut state = u32::from(*cut);
    while !rest.is_empty() {
        state = state.wrapping_mul(0x41c6_4e6d).wrapping_add(0x3039);
        let most = 1 + usize::from(*cut);
        let length = 1 + usize::from(state.to_be_bytes()[0]) % most;
        let (mut piece, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        while !piece.is_empty() {
            sink.said = 0;
            match framing.take(piece, &mut sink) {
                Ok(taken) => {
                    assert!(taken > 0, "it goes on");
                    assert!(taken == piece.len() || sink.has_enough(), "all is taken");
                    piece = piece.get(taken..).unwrap_or_default();
                }
                Err(fault) => {
                    sink.heard.fault = Some(fault);
                    return sink.heard;
                }
            }
        }
    }
    sink.heard
}

/// What is behind the two bytes that say how it comes.
fn stream(input: &[u8]) -> &[u8] {
    input.get(2..).unwrap_or_default()
}

/// Holds what was heard against what a reader says that has all of the bytes: the
/// messages, and whether they break the framing.
fn assert_heard(heard: &HeardFraming, bytes: &[u8], (events, is_broken): (Vec<HeardEvent>, bool)) {
    assert_eq!(heard.events, events);
    assert_eq!(heard.fault.is_some(), is_broken, "{:?}", heard.fault);
    assert!(bytes.starts_with(&heard.raw), "they go on as they came");
}

/// The frames of a client (RFC 6455 5.2).
fn websocket(input: &[u8]) {
    let (heard, bytes) = (
        hear(&mut WebSocketFrames::masked_by([7; 4]), input),
        stream(input),
    );
    let (events, is_broken) = frames(bytes);
    assert_eq!(heard.events, events);
    assert_eq!(heard.fault.is_some(), is_broken, "{:?}", heard.fault);
    // What goes on under another key says the same.
    let again = [&[0, 0][..], &heard.raw].concat();
    assert!(heard.raw.len() <= bytes.len());
    assert_eq!(
        hear(&mut WebSocketFrames::masked_by([9; 4]), &again).events,
        events
    );
}

fn frames(mut bytes: &[u8]) -> (Vec<HeardEvent>, bool) {
    let (mut events, mut message) = (Vec::new(), None);
    loop {
        let short = bytes.get(1).map(|second| second & 0x7f);
        let wide = match short {
            Some(126) => 2,
            Some(127) => 8,
            _ => 0,
        };
        let head = bytes.split_at_checked(2 + wide + 4);
        let (Some((head, rest)), Some(short)) = (head, short) else {
            return (events, false);
        };
        let length = match wide {
            0 => u64::from(short),
            2 => u64::from(u16::from_be_bytes([head[2], head[3]])),
            _ => u64::from_be_bytes([
                head[2], head[3], head[4], head[5], head[6], head[7], head[8], head[9],
            ]),
        };
        let (is_last, extensions, opcode) = (head[0] & 0x80 != 0, head[0] & 0x70, head[0] & 0x0f);
        let is_in_place = match opcode {
            0 => message.is_some(),
            1 | 2 => message.is_none(),
            8..=10 => is_last && length <= 125,
            _ => false,
        };
        if extensions != 0 || head[1] & 0x80 == 0 || !is_in_place {
            return (events, true);
        }
        let length = usize::try_from(length).ok();
        let Some((payload, behind)) = length.and_then(|length| rest.split_at_checked(length))
        else {
            return (events, false);
        };
        let masked = payload.iter().zip(head.iter().skip(2 + wide).cycle());
        let plain: Vec<u8> = masked.map(|(byte, mask)| byte ^ mask).collect();
        if opcode >= 8 {
            events.push(HeardEvent::Apart(plain));
        } else {
            let whole = [message.take().unwrap_or_default(), plain].concat();
            if is_last {
                events.push(HeardEvent::Message(whole));
            } else {
                message = Some(whole);
            }
        }
        bytes = behind;
    }
}

/// Messages with their lengths before them (gRPC over HTTP/2).
fn grpc(input: &[u8]) {
    let (heard, bytes) = (hear(&mut Prefixed::new(), input), stream(input));
    assert_heard(&heard, bytes, messages(bytes));
}

fn messages(mut bytes: &[u8]) -> (Vec<HeardEvent>, bool) {
    let mut events = Vec::new();
    while let Some(([coded, length @ ..], rest)) = bytes.split_first_chunk::<5>() {
        if *coded > 1 {
            return (events, true);
        }
        let length = u32::from_be_bytes(*length) as usize;
        let Some((message, behind)) = rest.split_at_checked(length) else {
            return (events, false);
        };
        events.push(HeardEvent::Message(message.to_vec()));
        bytes = behind;
    }
    (events, false)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    outgate_harness::fuzz_tests!(TARGETS, Duration::from_millis(500), 100_000);
}
