//! Content made of messages on its way through the scan: what a framing finds in
//! the bytes is looked at message by message, and the bytes go on as they came,
//! framing and all, once what they carry is cleared. A message's end clears it,
//! so that nobody waits for an answer to half a message; what is split over
//! several is found by the window over them.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use outgate_dlp::{Action, Description, Finding, Part, Piece, Place, Source, Stop, Stream};

use super::said::Asked;
use super::values::Seen;
use super::{Scan, destination, host};
use crate::audit::{Kind, Outcome};
use crate::body::Stopped;
use crate::caller::Caller;
use crate::limits;
use crate::refusal::Refusal;
use crate::target::Target;

/// Where it is said why content ended.
pub(crate) type Slot = Arc<Mutex<Option<Refusal>>>;

/// Whether a message is compressed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coded {
    No,
    Yes,
}

/// Finds the messages in bytes, however they are cut.
pub(super) trait Framing: Send + Sync {
    /// Takes bytes and says what they are, piece by piece and in order, until the
    /// sink has had enough for now; the result is how many were taken.
    ///
    /// # Errors
    /// Why they are none of its messages, or the scan's refusal.
    fn take(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fault>;
}

/// Who is told what a framing found.
pub(super) trait Sink {
    /// Bytes of the framing itself.
    fn framing(&mut self, raw: &[u8]);

    /// A message begins.
    fn begin(&mut self, coded: Coded);

    /// Bytes of the message that began, as they came and as they are meant.
    ///
    /// # Errors
    /// They may not leave.
    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), Fault>;

    /// The message is over.
    ///
    /// # Errors
    /// It may not leave.
    fn end(&mut self) -> Result<(), Fault>;

    /// A short message beside the one that began, whole: as it came, as it is meant, and
    /// what of that is text.
    ///
    /// # Errors
    /// It may not leave.
    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), Fault>;

    /// Whether others should have a turn.
    fn has_enough(&self) -> bool;
}

/// Why bytes do not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// They break the framing.
    Framing(&'static str),
    /// They hold what may not leave; it was said.
    Stopped,
}

/// Bytes that wait, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    /// They may go as soon as what is before them went.
    Cleared(usize),
    /// They are part of the message that is not over.
    Payload(usize),
}

/// The messages of one direction of a connection, and the bytes that wait.
pub(crate) struct Messages {
    scan: Arc<Scan>,
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
    seen: Seen,
    held: BytesMut,
    segments: VecDeque<Segment>,
    /// Messages that were looked at in this turn.
    turn: usize,
    slot: Slot,
    /// What was made of the messages before this one, in bytes.
    spent: u64,
    halt: Arc<AtomicBool>,
}

impl Drop for Messages {
    /// What came of a message that stopped short is part of what comes later; what
    /// was refused is not.
    fn drop(&mut self) {
        let was_refused = self.slot.lock().map_or(true, |slot| slot.is_some());
        if self.stream.is_some() && !was_refused {
            let to = destination(&self.host, self.target.port);
            self.scan.split(&to, &mut self.seen);
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
        scan: &Arc<Scan>,
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
            seen: Seen::default(),
            held: BytesMut::new(),
            segments: VecDeque::new(),
            turn: 0,
            slot: Slot::default(),
            spent: 0,
            halt: Arc::default(),
        }
    }

    /// Where it will be said why the content ended.
    pub(super) fn slot(&self) -> Slot {
        Arc::clone(&self.slot)
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

    /// Why it ended, in a sentence.
    pub(super) fn why(&self) -> String {
        let said = self.slot.lock().ok();
        let refusal = said.as_ref().and_then(|slot| slot.as_ref());
        refusal.map(Refusal::sentence).unwrap_or_default()
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
            Err(Fault::Stopped) => return Err(Stopped),
            Err(Fault::Framing(because)) => return Err(self.malformed(because)),
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
        let refusal = Refusal::own("malformed", &self.target.origin(), because);
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

    fn judge(&mut self, findings: &[Finding]) -> Result<(), Fault> {
        let mut refusal = None;
        for finding in findings {
            let said = self.asked().found(finding);
            if finding.action == Action::Block {
                refusal.get_or_insert(said);
            }
        }
        match refusal {
            None => Ok(()),
            Some(refusal) => {
                self.stop(refusal);
                Err(Fault::Stopped)
            }
        }
    }

    fn clear(&mut self, cleared: Result<u64, Stop>) -> Result<(), Fault> {
        let is_broken_off = self.stream.as_ref().is_some_and(Stream::is_broken_off);
        if is_broken_off && !matches!(cleared, Err(Stop::Found(_))) {
            // Nobody waits for it.
            return Err(Fault::Stopped);
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
                self.stop(refusal);
                Err(Fault::Stopped)
            }
        }
    }

    fn hold(&mut self, raw: &[u8], segment: Segment) {
        if raw.is_empty() {
            return;
        }
        self.held.extend_from_slice(raw);
        match (self.segments.back_mut(), segment) {
            (Some(Segment::Cleared(last)), Segment::Cleared(more))
            | (Some(Segment::Payload(last)), Segment::Payload(more)) => {
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
                Segment::Cleared(bytes) => count = count.saturating_add(*bytes),
                Segment::Payload(bytes) => {
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
        self.caller.tell(&refusal);
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(refusal);
        }
        Stopped
    }

    fn asked(&self) -> Asked<'_> {
        Asked::clean(&self.caller, &self.target)
    }
}

impl Sink for Messages {
    fn framing(&mut self, raw: &[u8]) {
        self.hold(raw, Segment::Cleared(raw.len()));
    }

    fn begin(&mut self, coded: Coded) {
        let description = Description {
            place: Place::Message,
            media_type: None,
            content_codings: match coded {
                Coded::Yes => Some(self.coding.as_deref().unwrap_or(b"unknown")),
                Coded::No => None,
            },
            length: None,
        };
        let to = destination(&self.host, self.target.port);
        let stream = self.scan.rules.stream(&to, &description);
        self.stream = Some(stream.halted_by(Arc::clone(&self.halt)));
        (self.passed, self.cleared) = (0, 0);
        self.seen = Seen::default();
    }

    fn payload(&mut self, raw: &[u8], plain: &[u8]) -> Result<(), Fault> {
        self.hold(raw, Segment::Payload(raw.len()));
        self.seen.push(plain);
        if let Some(stream) = &mut self.stream {
            let cleared = stream.push(plain);
            self.clear(cleared)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.turn = self.turn.saturating_add(1);
        let Some(mut stream) = self.stream.take() else {
            return Ok(());
        };
        let cleared = stream.finish();
        let unscanned = stream.unscanned();
        self.stream = Some(stream);
        self.clear(cleared)?;
        self.spent = self.cost();
        self.stream = None;
        if let Some(unscanned) = unscanned {
            let refused = self.scan.pass_unscanned(&self.asked(), &unscanned).err();
            if let Some(refusal) = refused {
                self.stop(refusal);
                return Err(Fault::Stopped);
            }
        }
        let to = destination(&self.host, self.target.port);
        let split = self.scan.split(&to, &mut self.seen);
        self.judge(&split)?;
        for segment in &mut self.segments {
            if let Segment::Payload(count) = *segment {
                *segment = Segment::Cleared(count);
            }
        }
        Ok(())
    }

    fn apart(&mut self, raw: &[u8], plain: &[u8], text: &[u8]) -> Result<(), Fault> {
        self.turn = self.turn.saturating_add(1);
        let part = |bytes| Part {
            place: Place::Message,
            bytes,
        };
        let parts = [part(plain), part(text)];
        let parts = if text == plain { &parts[..1] } else { &parts };
        let to = destination(&self.host, self.target.port);
        let mut report = self.scan.rules.head(&to, parts);
        if report.block().is_none() {
            let beside = Piece {
                source: Source::Beside,
                slot: b"",
                bytes: text,
            };
            // It goes on with other such frames, or with the messages.
            let pieces = [beside, Piece::of_content(text)];
            report.findings.extend(self.scan.joined(&to, &pieces));
        }
        self.judge(&report.findings)?;
        self.hold(raw, Segment::Cleared(raw.len()));
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.turn >= limits::SCAN_MESSAGES_PER_TURN
    }
}
