//! Content made of messages on its way through the scan: what a framing finds in
//! the bytes is looked at message by message, and the bytes go on as they came,
//! framing and all, once what they carry is cleared. A message's end clears it,
//! so that nobody waits for an answer to half a message; what is split over
//! several is found by the window over them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use outgate_dlp::{
    Action, Description, Finding, Piece, PieceSource, Place, ScanReport, Stop, Stream,
};

use super::guard::ContentFate;
use super::said::ShownRequest;
use super::values::SeenEnd;
use super::{SandboxScan, destination, host};
use outgate_record::Reason;

use crate::audit::{Kind, Outcome};
use crate::body::Stopped;
use crate::caller::Caller;
use crate::framing::{Framing, MessageCoding, MessageFault, Sink};
use crate::limits;
use crate::lock::Poisoned;
use crate::refusal::Refusal;
use crate::target::Target;

/// Bytes that wait, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldSegment {
    /// They may go as soon as what is before them went.
    Cleared(usize),
    /// They are part of the message that is not over.
    Payload(usize),
}

/// The messages of one direction of a connection, and the bytes that wait.
pub(crate) struct Messages {
    scan: Arc<SandboxScan>,
    caller: Arc<Caller>,
    target: Target,
    host: String,
    /// How compressed messages are coded, where some may be.
    coding: Option<Vec<u8>>,
    stream: Option<Stream>,
    /// Bytes of the message's payload that went on, and that may.
    passed: u64,
    cleared: u64,
    /// The message, for the window over several.
    seen: SeenEnd,
    held: BytesMut,
    segments: VecDeque<HeldSegment>,
    /// Messages that were looked at in this turn.
    turn: usize,
    /// Whether they were refused, so that they are no part of what comes later.
    fate: ContentFate,
    /// What was made of the messages before this one, in bytes.
    spent: u64,
    halt: Arc<AtomicBool>,
}

impl Drop for Messages {
    /// What came of a message that stopped short is part of what comes later; what
    /// was refused is not.
    fn drop(&mut self) {
        if self.stream.is_some() && self.fate == ContentFate::Passes {
            let to = destination(&self.host, self.target.port);
            // Without it nothing more goes anywhere.
            let seen = (&mut self.seen, self.stream.as_ref());
            self.scan.split(&to, seen).ok();
        }
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Messages").finish_non_exhaustive()
    }
}

impl Messages {
    pub(super) fn new(
        scan: &Arc<SandboxScan>,
        (caller, target): (&Arc<Caller>, &Target),
        coding: Option<Vec<u8>>,
    ) -> Self {
        Self {
            scan: Arc::clone(scan),
            caller: Arc::clone(caller),
            host: host(&target.host),
            target: target.clone(),
            coding,
            stream: None,
            passed: 0,
            cleared: 0,
            seen: SeenEnd::default(),
            held: BytesMut::new(),
            segments: VecDeque::new(),
            turn: 0,
            fate: ContentFate::Passes,
            spent: 0,
            halt: Arc::default(),
        }
    }

    /// What was made of the bytes that came, in bytes.
    pub(super) fn cost(&self) -> u64 {
        let own = self.stream.as_ref().map_or(0, Stream::cost);
        self.spent.saturating_add(own)
    }

    /// What breaks the scan off once nobody waits for it.
    pub(super) fn halt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.halt)
    }

    /// What stands for the sandbox whose messages they are.
    pub(super) fn owner(&self) -> usize {
        self.scan.owner()
    }

    /// How many bytes are held back.
    pub(super) fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Takes some of the next bytes, and gives those that may go on, and how many
    /// were taken: all, unless they are many short messages.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn pass(
        &mut self,
        framing: &mut dyn Framing,
        bytes: &[u8],
    ) -> Result<(Bytes, usize), Stopped> {
        self.turn = 0;
        let taken = match framing.take(bytes, self) {
            Ok(taken) => taken,
            Err(MessageFault::Stopped(stopped)) => return Err(stopped),
            Err(MessageFault::Framing(because)) => return Err(self.malformed(because)),
        };
        let cleared = self.release();
        if self.held.len() > limits::SCAN_MESSAGE_HELD_BYTES_MAX
            || self.segments.len() > limits::SCAN_MESSAGE_HELD_PARTS_MAX
        {
            return Err(self.malformed("too much waits behind a message that is not over"));
        }
        Ok((cleared, taken))
    }

    fn malformed(&mut self, because: &str) -> Stopped {
        let refusal = Refusal::own(Reason::Malformed, &self.target.origin(), because);
        self.caller.refuse(Kind::Request, &refusal);
        self.stop(refusal)
    }

    /// The end: what is not a whole message stays here.
    ///
    /// # Errors
    /// Bytes were left over.
    pub(super) fn finish(&mut self) -> Result<Bytes, Stopped> {
        let bytes = self.release();
        if self.held.is_empty() && self.stream.is_none() {
            return Ok(bytes);
        }
        Err(self.malformed("the content ends within a message"))
    }

    /// Trailers, before they go on.
    ///
    /// # Errors
    /// They hold what may not leave.
    pub(super) fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Stopped> {
        let said = self.scan.trailers(&self.asked(), trailers);
        said.map_err(|refusal| self.stop(refusal))
    }

    /// What messages make together with what went before, if anybody knows that.
    fn known(&mut self, split: Result<ScanReport, Poisoned>) -> Result<ScanReport, MessageFault> {
        split.map_err(|poisoned| {
            let refusal = self.asked().refusal_of(poisoned);
            self.stop(refusal).into()
        })
    }

    fn judge(&mut self, findings: &[Finding]) -> Result<(), MessageFault> {
        let mut refusal = None;
        for finding in findings {
            let said = self.asked().found(finding);
            if finding.action == Action::Block {
                refusal.get_or_insert(said);
            }
        }
        match refusal {
            None => Ok(()),
            Some(refusal) => Err(self.stop(refusal).into()),
        }
    }

    fn clear(&mut self, cleared: Result<u64, Stop>) -> Result<(), MessageFault> {
        let is_broken_off = self.stream.as_ref().is_some_and(Stream::is_broken_off);
        if is_broken_off && !matches!(cleared, Err(Stop::Found(_))) {
            // Nobody waits for it.
            return Err(Stopped::Lost.into());
        }
        let warnings = self.stream.as_mut().map(Stream::warnings);
        self.judge(&warnings.unwrap_or_default())?;
        match cleared {
            Ok(cleared) => {
                self.cleared = cleared;
                Ok(())
            }
            Err(stop) => {
                let refusal = match &stop {
                    Stop::Found(finding) => self.asked().found(finding),
                    Stop::Unscannable(what) => self.asked().unscanned(what, Outcome::Deny),
                };
                Err(self.stop(refusal).into())
            }
        }
    }

    fn hold(&mut self, raw: &[u8], segment: HeldSegment) {
        if raw.is_empty() {
            return;
        }
        self.held.extend_from_slice(raw);
        match (self.segments.back_mut(), segment) {
            (Some(HeldSegment::Cleared(last)), HeldSegment::Cleared(more))
            | (Some(HeldSegment::Payload(last)), HeldSegment::Payload(more)) => {
                *last = last.saturating_add(more);
            }
            _ => self.segments.push_back(segment),
        }
    }

    /// What lies before the first byte that is not cleared.
    fn release(&mut self) -> Bytes {
        let mut count = 0_usize;
        while let Some(segment) = self.segments.front_mut() {
            match segment {
                HeldSegment::Cleared(bytes) => count = count.saturating_add(*bytes),
                HeldSegment::Payload(bytes) => {
                    let may = self.cleared.saturating_sub(self.passed);
                    let may = usize::try_from(may).unwrap_or(usize::MAX).min(*bytes);
                    count = count.saturating_add(may);
                    self.passed = self.passed.saturating_add(u64::try_from(may).unwrap_or(0));
                    if may < *bytes {
                        *bytes = bytes.saturating_sub(may);
                        break;
                    }
                }
            }
            self.segments.pop_front();
        }
        self.held.split_to(count.min(self.held.len())).freeze()
    }

    fn stop(&mut self, refusal: Refusal) -> Stopped {
        self.held.clear();
        self.segments.clear();
        self.fate = ContentFate::Refused;
        self.caller.tell(&refusal);
        Stopped::refused(refusal)
    }

    /// What a control frame says, which is whole and short: through all that a message is
    /// looked into.
    fn look(&self, text: &[u8]) -> ScanReport {
        let description = Description {
            place: Place::Message,
            media_type: None,
            content_codings: None,
            length: None,
        };
        let to = destination(&self.host, self.target.port);
        let mut stream = self.scan.rules.stream(&to, &description);
        let end = stream.push(text).and_then(|_| stream.finish());
        stream.report(end.err())
    }

    fn asked(&self) -> ShownRequest<'_> {
        ShownRequest::clean(&self.caller, &self.target)
    }
}

impl Sink for Messages {
    fn framing(&mut self, raw: &[u8]) {
        self.hold(raw, HeldSegment::Cleared(raw.len()));
    }

    fn begin(&mut self, coded: MessageCoding) {
        let description = Description {
            place: Place::Message,
            media_type: None,
            content_codings: match coded {
                MessageCoding::Yes => Some(self.coding.as_deref().unwrap_or(b"unknown")),
                MessageCoding::No => None,
            },
            length: None,
        };
        let to = destination(&self.host, self.target.port);
        let stream = self.scan.rules.stream(&to, &description);
        self.stream = Some(stream.halted_by(Arc::clone(&self.halt)));
        (self.passed, self.cleared) = (0, 0);
        self.seen = SeenEnd::default();
    }

    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), MessageFault> {
        self.hold(raw, HeldSegment::Payload(raw.len()));
        self.seen.push(plain);
        if let Some(stream) = &mut self.stream {
            let cleared = stream.push(plain);
            self.clear(cleared)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), MessageFault> {
        self.turn = self.turn.saturating_add(1);
        let Some(mut stream) = self.stream.take() else {
            return Ok(());
        };
        let cleared = stream.finish();
        let unscanned = stream.unscanned();
        self.stream = Some(stream);
        self.clear(cleared)?;
        self.spent = self.cost();
        let stream = self.stream.take();
        if let Some(unscanned) = unscanned {
            let refused = self.scan.pass_unscanned(&self.asked(), &unscanned).err();
            if let Some(refusal) = refused {
                return Err(self.stop(refusal).into());
            }
        }
        let to = destination(&self.host, self.target.port);
        let split = self.scan.split(&to, (&mut self.seen, stream.as_ref()));
        let split = self.known(split)?;
        let judged = self.scan.judged(&self.asked(), &split);
        judged.map_err(|refusal| self.stop(refusal))?;
        for segment in &mut self.segments {
            if let HeldSegment::Payload(count) = *segment {
                *segment = HeldSegment::Cleared(count);
            }
        }
        Ok(())
    }

    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), MessageFault> {
        self.turn = self.turn.saturating_add(1);
        let mut report = self.look(plain);
        if text != plain {
            report.add(self.look(text));
        }
        if self.scan.leaves(&report) {
            let beside = Piece {
                source: PieceSource::Beside,
                slot: b"",
                bytes: text,
            };
            // It goes on with other such frames, or with the messages.
            let pieces = [beside, Piece::of_content(text)];
            let to = destination(&self.host, self.target.port);
            let split = self.scan.joined(&to, &pieces);
            report.add(self.known(split)?);
        }
        let judged = self.scan.judged(&self.asked(), &report);
        judged.map_err(|refusal| self.stop(refusal))?;
        self.hold(raw, HeldSegment::Cleared(raw.len()));
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.turn >= limits::SCAN_MESSAGES_PER_TURN
    }
}
