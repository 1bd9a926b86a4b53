//! Content on its way through the scan: what was not cleared is held back, in
//! the order it came, and nothing of it is changed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use http::header::HeaderMap;
use http::request;
use outgate_dlp::{Action, Finding, Stop, Stream};

use super::about::ContentDescription;
use super::json_values::JsonValues;
use super::messages::Messages;
use super::said::ShownRequest;
use super::values::SeenEnd;
use super::{SandboxScan, destination, host};
use crate::audit::Outcome;
use crate::body::Stopped;
use crate::caller::Caller;
use crate::framing::Prefixed;
use crate::limits;
use crate::refusal::Refusal;
use crate::target::Target;

mod split;

/// Holds the content of one request back until the scan has cleared it.
#[derive(Debug)]
pub(crate) enum Guard {
    /// As one stream of bytes.
    Whole(Box<WholeContent>),
    /// As messages of gRPC; the bytes whose turn has not come.
    Messages(Box<Messages>, Prefixed, Bytes),
}

impl Guard {
    pub(super) fn new(
        scan: &Arc<SandboxScan>,
        asked: (&Arc<Caller>, &Target),
        head: &request::Parts,
    ) -> Self {
        let value = |name: &str| head.headers.get(name).map(http::HeaderValue::as_bytes);
        let media_type = value("content-type").unwrap_or_default();
        if media_type.starts_with(b"application/grpc")
            && !media_type.starts_with(b"application/grpc-web")
        {
            let coding = value("grpc-encoding").map(<[u8]>::to_vec);
            let messages = Messages::new(scan, asked, coding);
            return Self::Messages(Box::new(messages), Prefixed::new(), Bytes::new());
        }
        Self::Whole(Box::new(WholeContent::new(scan, asked, head)))
    }

    /// Whether it has to go on beside what is sent and received: what it was given takes
    /// long to look at, or may.
    pub(super) fn goes_apart(&self) -> bool {
        matches!(self, Self::Messages(..)) || self.is_broken_off()
    }

    /// Whether it was given what takes too long, and has to begin anew.
    pub(super) fn is_broken_off(&self) -> bool {
        matches!(self, Self::Whole(whole) if whole.stream.is_broken_off())
    }

    /// It goes on beside what is sent and received, and may take its time: the result is
    /// what it has to be given again before all else.
    pub(super) fn go_apart(&mut self) -> Vec<Bytes> {
        match self {
            Self::Whole(whole) => whole.begin_anew(),
            Self::Messages(..) => Vec::new(),
        }
    }

    /// Takes what it was given before once more, and gives what may go on.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn pass_again(&mut self, bytes: &Bytes) -> Result<Bytes, Stopped> {
        match self {
            Self::Whole(whole) => whole.pass_again(bytes),
            Self::Messages(..) => Ok(Bytes::new()),
        }
    }

    /// What was made of the bytes that came, in bytes.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Self::Whole(whole) => whole.stream.cost(),
            Self::Messages(messages, ..) => messages.cost(),
        }
    }

    /// What breaks it off once nobody waits for it.
    pub(super) fn halt(&self) -> Arc<AtomicBool> {
        match self {
            Self::Whole(whole) => Arc::clone(&whole.halt),
            Self::Messages(messages, ..) => messages.halt(),
        }
    }

    /// What stands for the sandbox whose content it is.
    pub(super) fn owner(&self) -> usize {
        match self {
            Self::Whole(whole) => whole.scan.owner(),
            Self::Messages(messages, ..) => messages.owner(),
        }
    }

    /// How many bytes are held back.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Whole(whole) => whole.waiting(),
            Self::Messages(messages, _, rest) => messages.waiting().saturating_add(rest.len()),
        }
    }

    /// Takes the next bytes, and gives those that may go on.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(crate) fn pass(&mut self, bytes: Bytes) -> Result<Bytes, Stopped> {
        match self {
            Self::Whole(whole) => whole.pass(bytes),
            Self::Messages(_, _, rest) => {
                *rest = bytes;
                self.go_on()
            }
        }
    }

    /// Whether bytes are left whose turn has not come: many short messages take
    /// their time, and others have a turn between.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Messages(.., rest) => !rest.is_empty(),
        }
    }

    /// Goes on with these, and gives those that may go on.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(crate) fn go_on(&mut self) -> Result<Bytes, Stopped> {
        match self {
            Self::Whole(_) => Ok(Bytes::new()),
            Self::Messages(messages, framing, rest) => {
                let (cleared, taken) = messages.pass(framing, rest)?;
                rest.advance(taken.min(rest.len()));
                Ok(cleared)
            }
        }
    }

    /// Nothing comes for a while: what cannot become a credential may go on.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(crate) fn pause(&mut self) -> Result<Bytes, Stopped> {
        match self {
            Self::Whole(whole) => whole.pause(),
            Self::Messages(..) => Ok(Bytes::new()),
        }
    }

    /// The end: gives what is left. Half a message is left out.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(crate) fn finish(&mut self) -> Result<Bytes, Stopped> {
        match self {
            Self::Whole(whole) => whole.finish(),
            Self::Messages(messages, ..) => messages.finish(),
        }
    }

    /// Trailers, before they go on.
    ///
    /// # Errors
    /// They hold what may not leave.
    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Stopped> {
        match self {
            Self::Whole(whole) => whole.trailers(trailers),
            // Clients of gRPC send none.
            Self::Messages(messages, ..) => messages.trailers(trailers),
        }
    }
}

/// Whether content may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentFate {
    Passes,
    Refused,
}

/// Content as one stream of bytes.
pub(crate) struct WholeContent {
    scan: Arc<SandboxScan>,
    caller: Arc<Caller>,
    target: Target,
    stream: Stream,
    json: Option<JsonValues>,
    /// Marks of what was found in it and went on.
    found: Vec<String>,
    held: VecDeque<Bytes>,
    /// Bytes that were let go.
    passed: u64,
    reported: bool,
    /// The content, for the window over several requests; nothing of it where it is coded,
    /// since its bytes are no values then, but what the stream made of them.
    seen: Option<SeenEnd>,
    /// Whether it was refused, so that it is no part of what comes later.
    fate: ContentFate,
    /// As the content describes itself.
    about: ContentDescription,
    /// What came while the scan had a bound, as long as it has: with these it begins anew.
    first: Option<Vec<Bytes>>,
    halt: Arc<AtomicBool>,
}

impl std::fmt::Debug for WholeContent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Whole").finish_non_exhaustive()
    }
}

impl Drop for WholeContent {
    /// What came before the content stopped short is part of what comes later,
    /// whether it went on or waited; what was refused is not.
    fn drop(&mut self) {
        if let Some(mut seen) = self.seen.take()
            && self.fate == ContentFate::Passes
            && !self.stream.has_granted()
        {
            let host = host(&self.target.host);
            let to = destination(&host, self.target.port);
            // Without it nothing more goes anywhere.
            self.scan.split(&to, (&mut seen, Some(&self.stream))).ok();
        }
    }
}

impl WholeContent {
    fn new(
        scan: &Arc<SandboxScan>,
        (caller, target): (&Arc<Caller>, &Target),
        head: &request::Parts,
    ) -> Self {
        let name = host(&target.host);
        let to = destination(&name, target.port);
        let about = ContentDescription::of(head);
        let halt = Arc::default();
        Self {
            json: JsonValues::of(
                &scan.rules,
                &to,
                about.media_type.as_deref().unwrap_or_default(),
            ),
            stream: about
                .stream(scan, target, &halt)
                .within(limits::SCAN_HERE_BYTES_MADE),
            scan: Arc::clone(scan),
            caller: Arc::clone(caller),
            target: target.clone(),
            found: Vec::new(),
            held: VecDeque::new(),
            passed: 0,
            reported: false,
            seen: Some(SeenEnd::default()),
            fate: ContentFate::Passes,
            about,
            first: Some(Vec::new()),
            halt,
        }
    }

    /// From here on the scan may take its time. Where that ended it, it begins anew, with
    /// the result.
    fn begin_anew(&mut self) -> Vec<Bytes> {
        let first = self.first.take().unwrap_or_default();
        if !self.stream.is_broken_off() {
            self.stream.unbind();
            return Vec::new();
        }
        self.stream = self.about.stream(&self.scan, &self.target, &self.halt);
        first
    }

    /// What is held and what was let go stay as they are: only the scan saw nothing yet.
    fn pass_again(&mut self, bytes: &Bytes) -> Result<Bytes, Stopped> {
        let cleared = self.stream.push(bytes);
        self.release(cleared)
    }

    fn waiting(&self) -> usize {
        self.held.iter().map(Bytes::len).sum()
    }

    fn pass(&mut self, bytes: Bytes) -> Result<Bytes, Stopped> {
        if let Some(seen) = self.seen.as_mut().filter(|_| self.about.codings.is_none()) {
            seen.push(&bytes);
        }
        if let Some(first) = &mut self.first {
            first.push(bytes.clone());
        }
        let cleared = self.stream.push(&bytes);
        let json = self.json.as_mut();
        let together = json.map_or_else(Vec::new, |json| json.push(&bytes));
        if !bytes.is_empty() {
            self.held.push_back(bytes);
        }
        let cleared = self.release(cleared)?;
        self.judge(&together)?;
        let action = self.scan.rules.unscannable();
        self.judge_apart(|reason| action.refuses(reason))?;
        Ok(cleared)
    }

    fn pause(&mut self) -> Result<Bytes, Stopped> {
        let cleared = self.stream.end_of_message();
        let bytes = self.release(cleared)?;
        if !bytes.is_empty() {
            self.so_far()?;
        }
        Ok(bytes)
    }

    fn finish(&mut self) -> Result<Bytes, Stopped> {
        let cleared = self.stream.finish();
        let bytes = self.release(cleared)?;
        if self.stream.is_broken_off() {
            return Ok(bytes);
        }
        let together = self.json.as_mut().map(JsonValues::finish);
        self.judge(&together.unwrap_or_default())?;
        self.judge_apart(|_| true)?;
        self.together()?;
        if let Some(unscanned) = self.stream.unscanned()
            && !std::mem::replace(&mut self.reported, true)
        {
            let judged = self.scan.pass_unscanned(&self.asked(), &unscanned);
            judged.map_err(|refusal| self.stop(refusal))?;
        }
        Ok(bytes)
    }

    /// What this content makes together with what went before. A form in which a
    /// credential may stand counts by itself: nobody keeps it, and one that is whole
    /// in it is not in pieces.
    fn together(&mut self) -> Result<(), Stopped> {
        self.forget_granted();
        let Some(mut seen) = self.seen.take() else {
            return Ok(());
        };
        let host = host(&self.target.host);
        let to = destination(&host, self.target.port);
        let split = self.scan.split(&to, (&mut seen, Some(&self.stream)));
        self.judge_split(split)
    }

    /// The same for content that is not over, before some of it goes on.
    fn so_far(&mut self) -> Result<(), Stopped> {
        self.forget_granted();
        let Some(seen) = &self.seen else {
            return Ok(());
        };
        let host = host(&self.target.host);
        let to = destination(&host, self.target.port);
        let split = self.scan.so_far(&to, (seen, Some(&self.stream)));
        self.judge_split(split)
    }

    fn forget_granted(&mut self) {
        if self.stream.has_granted() {
            self.seen = None;
        }
    }

    fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Stopped> {
        let said = self.scan.trailers(&self.asked(), trailers);
        said.map_err(|refusal| self.stop(refusal))
    }

    /// What values make together.
    fn judge(&mut self, findings: &[Finding]) -> Result<(), Stopped> {
        for finding in findings {
            // What was found in one piece is not found in several.
            if self.found.contains(&finding.mark) {
                continue;
            }
            let refusal = self.asked().found(finding);
            if finding.action == Action::Block {
                self.held.clear();
                return Err(self.stop(refusal));
            }
            self.found.push(finding.mark.clone());
        }
        Ok(())
    }

    fn release(&mut self, cleared: Result<u64, Stop>) -> Result<Bytes, Stopped> {
        if self.stream.is_broken_off() && !matches!(cleared, Err(Stop::Found(_))) {
            // Whoever begins anew finds all of it again; nobody else waits for it.
            let is_halted = self.halt.load(Ordering::Relaxed);
            return if is_halted {
                Err(Stopped::Lost)
            } else {
                Ok(Bytes::new())
            };
        }
        for finding in self.stream.warnings() {
            // What was told before the scan began anew is told once.
            if !self.found.contains(&finding.mark) {
                self.asked().found(&finding);
                self.found.push(finding.mark);
            }
        }
        match cleared {
            Ok(cleared) => Ok(self.take(cleared)),
            Err(stop) => {
                self.held.clear();
                let refusal = match &stop {
                    Stop::Found(finding) => self.asked().found(finding),
                    Stop::Unscannable(unscanned) => {
                        self.asked().unscanned(unscanned, Outcome::Deny)
                    }
                };
                Err(self.stop(refusal))
            }
        }
    }

    fn asked(&self) -> ShownRequest<'_> {
        ShownRequest::clean(&self.caller, &self.target)
    }

    fn stop(&mut self, refusal: Refusal) -> Stopped {
        self.fate = ContentFate::Refused;
        self.caller.tell(&refusal);
        Stopped::refused(refusal)
    }

    /// What of the held bytes lies before this offset.
    fn take(&mut self, cleared: u64) -> Bytes {
        let mut left = usize::try_from(cleared.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        let mut pieces: Vec<Bytes> = Vec::new();
        while left > 0
            && let Some(first) = self.held.front_mut()
        {
            let piece = first.split_to(left.min(first.len()));
            if first.is_empty() {
                self.held.pop_front();
            }
            left = left.saturating_sub(piece.len());
            self.passed = self
                .passed
                .saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            pieces.push(piece);
        }
        join(pieces)
    }
}

/// Several pieces as one, without copying where there is one.
fn join(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.remove(0),
        _ => {
            let length = pieces.iter().map(Bytes::len).sum();
            let mut whole = BytesMut::with_capacity(length);
            for mut piece in pieces {
                let all = piece.copy_to_bytes(piece.len());
                whole.extend_from_slice(&all);
            }
            whole.freeze()
        }
    }
}
