//! The policy changed while the run goes on: rules granted and revoked, files read again,
//! rules whose time or use is over. One change after the other: the next is sent once the
//! gateway answered the one before. Who asks was looked at by `presence.rs`.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use outgate_handoff::{BeginFrame, FromRun, GrantRequest, ToGateway, ToRun};
use outgate_policy::Source;

use super::Supervisor;
use super::question::WatcherKind;
use crate::granted::RunTexts;
use crate::limits::GRANTS_MAX;
use crate::opening::{end_frames, source_frames, texts_file};
use crate::options::Sealing;
use crate::presence::{WantedChange, answer, answer_with};
use crate::process::is_below;
use crate::reload::{Reread, Rereading};

/// How long a gateway may take to compile a policy, and a reading of files.
const CHANGE_TIME: Duration = Duration::from_secs(30);

/// The policy that a run begins with, and who may change it.
#[derive(Debug)]
pub(crate) struct ChangeSetting {
    /// Texts in merge order.
    pub base: Vec<Source>,
    /// The directories that they name.
    pub begin: BeginFrame,
    /// Whether they may change.
    pub sealing: Sealing,
    /// How they are read again.
    pub reread: Reread,
}

/// The policy of the run, and what is on its way to change it.
#[derive(Debug)]
pub(super) struct Changes {
    texts: RunTexts,
    begin: BeginFrame,
    sealing: Sealing,
    reread: Reread,
    /// How often the policy was changed, for ids.
    sent: u64,
    pending: Option<Pending>,
    reading: Option<Reading>,
    /// Rules for one request that had it, while another change is on its way.
    used: Vec<String>,
}

/// A change that the gateway has not answered.
#[derive(Debug)]
struct Pending {
    id: u64,
    whom: ChangeFor,
    texts: RunTexts,
    line: String,
    until: Option<Instant>,
}

/// Who waits for a change.
#[derive(Debug)]
pub(super) enum ChangeFor {
    /// Who asked for it.
    Asker(OwnedFd),
    /// The question of this id, which somebody answered.
    Question(u64),
    /// Nobody: something is over.
    Nobody,
}

/// Files that are being read again.
#[derive(Debug)]
struct Reading {
    /// Who waits for it, until it takes too long.
    asker: Option<OwnedFd>,
    by: String,
    texts: Receiver<Rereading>,
    until: Option<Instant>,
}

impl Changes {
    pub(super) fn new(setting: ChangeSetting) -> Self {
        Self {
            texts: RunTexts::new(setting.base),
            begin: setting.begin,
            sealing: setting.sealing,
            reread: setting.reread,
            sent: 0,
            pending: None,
            reading: None,
            used: Vec::new(),
        }
    }

    /// Whether something is on its way.
    pub(super) fn is_waiting(&self) -> bool {
        self.pending.is_some() || self.reading.is_some()
    }

    /// How long until the next rule ends, where that is to be waited for.
    pub(super) fn ends_in(&self) -> Option<Duration> {
        if self.pending.is_some() {
            return None;
        }
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.texts.next_end().map(left)
    }
}

impl Supervisor<'_> {
    /// Takes the next change that somebody wants, and ends what is over.
    pub(super) fn serve_changes(&mut self) {
        let now = Instant::now();
        self.changes_late(now);
        if self.changes.pending.is_none() {
            self.end_grants(now);
        }
        if self.changes.pending.is_none() {
            self.read_again();
        }
        self.grant_answer(now);
        while self.changes.pending.is_none() {
            let Some(wanted) = self.lifetime.wanted() else {
                return;
            };
            self.change(wanted, now);
        }
    }

    fn change(&mut self, wanted: WantedChange, now: Instant) {
        let WantedChange {
            asker,
            word,
            uid,
            pid,
        } = wanted;
        // A scope of Landlock keeps the command from this socket; who got past it is not heard.
        if is_below(pid, self.root) {
            let message = "a command does not change its own policy".to_owned();
            return answer(&asker, &FromRun::Refused { message });
        }
        let by = format!("user {uid}");
        match word {
            ToRun::Show => return self.show(&asker),
            ToRun::Watch => return self.watch(asker, uid, WatcherKind::Person),
            _ => {}
        }
        if self.changes.sealing == Sealing::Sealed {
            let message = "the run is sealed (--sealed): its policy stays as it is".to_owned();
            return answer(&asker, &FromRun::Refused { message });
        }
        match word {
            ToRun::Grant(request) => self.grant(&request, &by, (ChangeFor::Asker(asker), now)),
            ToRun::Revoke { rule } => {
                let changed = self.changes.texts.without(&rule);
                self.make(changed, &by, ChangeFor::Asker(asker));
            }
            ToRun::Reload => self.begin_reading(asker, by, now),
            ToRun::Show | ToRun::Watch | ToRun::Answer(..) | ToRun::Tell | ToRun::End => {}
        }
    }

    /// Grants a rule.
    pub(super) fn grant(
        &mut self,
        request: &GrantRequest,
        by: &str,
        (whom, now): (ChangeFor, Instant),
    ) {
        let changed = self.changes.texts.with(request, now);
        self.make(changed, by, whom);
    }

    fn make(&mut self, changed: Result<(RunTexts, String), String>, by: &str, whom: ChangeFor) {
        match changed {
            Ok((texts, line)) => self.send_change(texts, format!("{line} ({by})"), whom),
            Err(message) => self.refuse_change(whom, message),
        }
    }

    fn refuse_change(&mut self, whom: ChangeFor, message: String) {
        match whom {
            ChangeFor::Asker(asker) => answer(&asker, &FromRun::Refused { message }),
            ChangeFor::Question(_) => self.question_refused(message),
            ChangeFor::Nobody => {}
        }
    }

    /// Whether no change is on its way.
    pub(super) fn has_no_change(&self) -> bool {
        self.changes.pending.is_none()
    }

    /// Whether people are asked about what no rule decides.
    pub(super) fn asks_people(&self) -> bool {
        self.changes.begin.ask.are_any() && self.changes.sealing == Sealing::Open
    }

    /// Brings the gateway other texts.
    fn send_change(&mut self, texts: RunTexts, line: String, whom: ChangeFor) {
        self.changes.sent = self.changes.sent.wrapping_add(1);
        let id = self.changes.sent;
        let frames = source_frames(&texts.all()).into_iter();
        for frame in frames.chain(end_frames(&texts.ends())) {
            self.tell(&frame, Vec::new());
        }
        self.tell(&ToGateway::Change(id, line.clone()), Vec::new());
        self.changes.pending = Some(Pending {
            id,
            whom,
            texts,
            line,
            until: Instant::now().checked_add(CHANGE_TIME),
        });
        if self.link.gone().is_some() {
            self.changes_lost();
        }
    }

    /// What another session with a shared gateway begins with.
    fn keep_texts(&mut self) {
        let texts = &self.changes.texts;
        self.link.set_sources(&texts.all(), texts.ends());
    }

    /// The gateway said what came of a change.
    pub(super) fn changed(&mut self, id: u64, message: String) {
        let Some(pending) = self.changes.pending.take_if(|pending| pending.id == id) else {
            return;
        };
        if !message.is_empty() {
            let ChangeFor::Nobody = pending.whom else {
                return self.refuse_change(pending.whom, message);
            };
            // What is over must not go on: without its end nothing does.
            self.changes.texts = pending.texts;
            self.keep_texts();
            self.link.fail(&message);
            return self.notice_gateway();
        }
        self.changes.texts = pending.texts;
        self.keep_texts();
        self.lifetime.granted(self.changes.texts.granted());
        let generation = self.generation;
        let line = pending.line;
        self.voice
            .say(&format!("outgate: policy {generation}: {line}"));
        match pending.whom {
            ChangeFor::Asker(asker) => answer(&asker, &FromRun::Done { line, generation }),
            ChangeFor::Question(id) => self.question_granted(id, &line),
            ChangeFor::Nobody => {}
        }
    }

    /// A rule for one request had it.
    pub(super) fn grant_used(&mut self, place: String) {
        if self.changes.used.len() < GRANTS_MAX {
            self.changes.used.push(place);
        }
    }

    /// Takes back what is over by its time or its use.
    fn end_grants(&mut self, now: Instant) {
        while let Some(place) = self.changes.used.pop() {
            if let Some((texts, line)) = self.changes.texts.used(&place) {
                return self.send_change(texts, line, ChangeFor::Nobody);
            }
        }
        if let Some((texts, line)) = self.changes.texts.expired(now) {
            self.send_change(texts, line, ChangeFor::Nobody);
        }
    }

    /// The gateway is gone: what was on its way is lost. What is over stays over, since the
    /// next session begins with the texts that are left.
    pub(super) fn changes_lost(&mut self) {
        if let Some(pending) = self.changes.pending.take() {
            match pending.whom {
                ChangeFor::Nobody => self.changes.texts = pending.texts,
                whom => self.refuse_change(whom, "the gateway is gone".to_owned()),
            }
        }
        self.changes.texts.forget_once();
        self.changes.used.clear();
        if let Some((texts, _)) = self.changes.texts.expired(Instant::now()) {
            self.changes.texts = texts;
        }
        self.keep_texts();
        self.lifetime.granted(self.changes.texts.granted());
    }

    /// Ends what took too long.
    fn changes_late(&mut self, now: Instant) {
        let is_late = |until: Option<Instant>| until.is_some_and(|until| now >= until);
        if let Some(pending) = &self.changes.pending
            && is_late(pending.until)
        {
            // What is in force then, nobody knows.
            self.link.fail("it did not answer a change of the policy");
            self.notice_gateway();
        }
        if let Some(reading) = &mut self.changes.reading
            && is_late(reading.until)
            && let Some(asker) = reading.asker.take()
        {
            let message = "reading the policy files takes too long".to_owned();
            answer(&asker, &FromRun::Refused { message });
        }
    }

    fn begin_reading(&mut self, asker: OwnedFd, by: String, now: Instant) {
        let refuse = |message: &str| {
            let message = message.to_owned();
            answer(&asker, &FromRun::Refused { message });
        };
        if self.changes.reading.is_some() {
            return refuse("the policy files are being read already");
        }
        let (done, texts) = sync_channel(1);
        let reread = self.changes.reread.clone();
        let current = self.changes.texts.base().to_vec();
        let read = move || drop(done.send(reread.read(&current)));
        let thread = std::thread::Builder::new().name("outgate-reads".to_owned());
        if thread.spawn(read).is_err() {
            return refuse("there is no thread to read the policy files with");
        }
        self.changes.reading = Some(Reading {
            asker: Some(asker),
            by,
            texts,
            until: now.checked_add(CHANGE_TIME),
        });
    }

    /// Takes what was read, once it is there.
    fn read_again(&mut self) {
        let Some(reading) = &self.changes.reading else {
            return;
        };
        let read = match reading.texts.try_recv() {
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => Err("the reading broke off".to_owned()),
            Ok(read) => read,
        };
        let Some(Reading {
            asker: Some(asker),
            by,
            ..
        }) = self.changes.reading.take()
        else {
            return;
        };
        match read {
            Ok((base, line)) => {
                let texts = self.changes.texts.on(base);
                let line = format!("the policy files were read again: {line} ({by})");
                self.send_change(texts, line, ChangeFor::Asker(asker));
            }
            Err(message) => answer(&asker, &FromRun::Refused { message }),
        }
    }

    fn show(&self, asker: &OwnedFd) {
        let shown = texts_file(&self.changes.texts.all(), &self.changes.begin);
        match shown {
            Ok((file, bytes)) => answer_with(asker, &FromRun::Shown { bytes }, &file),
            Err(error) => {
                let message = format!("the policy cannot be given: {error}");
                answer(asker, &FromRun::Refused { message });
            }
        }
    }
}
