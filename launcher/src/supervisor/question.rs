//! Questions of the gateway that people answer: who watches gets each as it comes, and what
//! one of them says is done. Where nobody watches, the gateway hears that at once. Nothing
//! here waits: a watcher that does not read is none.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use outgate_handoff::status::TO_RUN_BYTES_MAX;
use outgate_handoff::{
    FromRun, GrantRequest, HoldForm, OpenQuestion, PersonAnswer, Settlement, ToGateway, ToRun,
};

use super::Supervisor;
use super::change::ChangeFor;
use super::decider::DeciderChild;
use super::wait::Want;
use crate::presence::{Delivery, answer, deliver};
use crate::process::{ancestors, parent};
use crate::sealed::Blocking;
use crate::text::cut;

/// Who may watch at once.
const WATCHERS_MAX: usize = 8;
/// Questions that are open at once; the gateway has fewer.
const OPEN_MAX: usize = 256;
/// Words that a watcher has not read yet: more than all that may be open, and their ends.
const BEHIND_MAX: usize = 1024;
/// Bytes shown of the path of a program that asks, and of each of those it runs below.
const PROGRAM_BYTES_MAX: usize = 512;
const PARENT_BYTES_MAX: usize = 256;
/// Answers of one watcher that are read in a row.
const ANSWERS_IN_A_ROW: usize = 16;

/// Who watches, and what is asked.
#[derive(Debug, Default)]
pub(super) struct People {
    watchers: Vec<Watcher>,
    open: BTreeMap<u64, OpenQuestion>,
    answers: VecDeque<GrantedAnswer>,
    decider: Option<DeciderChild>,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatcherKind {
    /// Somebody who came by the run's name.
    Person,
    /// What the run started itself.
    Program,
}

/// Somebody who answers.
#[derive(Debug)]
struct Watcher {
    socket: OwnedFd,
    uid: u32,
    kind: WatcherKind,
    /// What it is to hear, once it read what is before.
    behind: VecDeque<FromRun>,
}

impl Watcher {
    /// Who it is, in the words of a record.
    fn by(&self) -> String {
        match self.kind {
            WatcherKind::Person => format!("asked, user {}", self.uid),
            WatcherKind::Program => "asked, --ask-with".to_owned(),
        }
    }

    /// Hears what it answers; whether it is still there.
    fn receive(&self, heard: &mut Vec<HeardAnswer>) -> Delivery {
        for _ in 0..ANSWERS_IN_A_ROW {
            let mut bytes = [0_u8; TO_RUN_BYTES_MAX + 1];
            let flags = MsgFlags::MSG_DONTWAIT;
            let count = match recv(self.socket.as_raw_fd(), &mut bytes, flags) {
                Err(Errno::EAGAIN | Errno::EINTR) => return Delivery::Done,
                Ok(count @ 1..) => count,
                Ok(0) | Err(_) => return Delivery::Gone,
            };
            match ToRun::decode(bytes.get(..count).unwrap_or_default()) {
                Ok(ToRun::Answer(id, word)) => {
                    let who = Answerer {
                        number: self.socket.as_raw_fd(),
                        by: self.by(),
                    };
                    heard.push((who, id, word));
                }
                Ok(_) | Err(_) => return Delivery::Gone,
            }
        }
        Delivery::Done
    }

    /// Tells it what it can take now; whether it is still there.
    fn catch_up(&mut self) -> Delivery {
        while let Some(word) = self.behind.front() {
            match deliver(&self.socket, word) {
                Delivery::Done => drop(self.behind.pop_front()),
                Delivery::Later if self.behind.len() <= BEHIND_MAX => return Delivery::Done,
                Delivery::Later | Delivery::Gone => return Delivery::Gone,
            }
        }
        Delivery::Done
    }
}

/// Who said something.
#[derive(Debug)]
struct Answerer {
    /// Its descriptor, which no other watcher has while it is there.
    number: RawFd,
    by: String,
}

/// What somebody said to the question of this number.
type HeardAnswer = (Answerer, u64, PersonAnswer);

/// A yes that is not in force yet.
#[derive(Debug)]
struct GrantedAnswer {
    id: u64,
    request: GrantRequest,
    by: String,
}

impl People {
    /// What to poll for reading.
    pub(super) fn each(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watchers.iter().map(|watcher| watcher.socket.as_fd())
    }

    /// Whether somebody answers.
    pub(super) fn are_there(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Whether somebody has something to hear yet.
    pub(super) fn are_behind(&self) -> bool {
        let mut all = self.watchers.iter();
        all.any(|watcher| !watcher.behind.is_empty())
    }

    /// What the run started to answer in a person's place.
    pub(super) fn begin(&mut self, decider: DeciderChild) {
        self.decider = Some(decider);
    }

    /// Its process id.
    pub(super) fn decider_pid(&self) -> Option<u32> {
        self.decider.as_ref().and_then(DeciderChild::id)
    }

    /// The run is over: nobody is asked any more.
    pub(super) fn end(&mut self) {
        self.watchers.clear();
        if let Some(decider) = self.decider.take() {
            decider.end();
        }
    }

    /// Tells everybody, each at their own pace; who reads far too little is gone.
    fn tell(&mut self, word: &FromRun) {
        for watcher in &mut self.watchers {
            watcher.behind.push_back(word.clone());
        }
        self.catch_up();
    }

    /// Tells one why its answer is none.
    fn refuse(&self, who: &Answerer, message: &str) {
        let mut watchers = self.watchers.iter();
        let is_it = |watcher: &&Watcher| watcher.socket.as_raw_fd() == who.number;
        if let Some(watcher) = watchers.find(is_it) {
            let message = message.to_owned();
            answer(&watcher.socket, &FromRun::Refused { message });
        }
    }

    fn catch_up(&mut self) {
        self.watchers
            .retain_mut(|watcher| watcher.catch_up() == Delivery::Done);
    }
}

impl Supervisor<'_> {
    /// How a call may wait for a person's word. Those that wait leave room for all others.
    ///
    /// RACE: `O_NONBLOCK` is the command's to change at any time. What it says of a moment
    /// decides how its own call waits, and nothing else.
    pub(super) fn hold_form(&self, want: &Want) -> HoldForm {
        if !self.people.are_there() {
            return HoldForm::Refuse;
        }
        if self.asked.len() >= self.room.calls / 2 {
            return HoldForm::Crowded;
        }
        match want {
            Want::Connect(call) => hold_by(call.socket.blocking()),
            Want::Unix(call) => hold_by(call.blocking()),
            Want::Bind(_) | Want::Listen(_) => HoldForm::Call,
        }
    }

    /// Somebody watches from now on.
    pub(super) fn watch(&mut self, socket: OwnedFd, uid: u32, kind: WatcherKind) {
        let refuse = |message: &str| {
            let message = message.to_owned();
            answer(&socket, &FromRun::Refused { message });
        };
        if !self.asks_people() {
            return refuse("the run asks nobody; --ask has one ask");
        }
        if self.people.watchers.len() >= WATCHERS_MAX {
            return refuse("as many watch already as may");
        }
        let watched = FromRun::Done {
            line: "watched".to_owned(),
            generation: self.generation,
        };
        let open = self.people.open.iter();
        let open = open.map(|(id, question)| FromRun::Question(*id, question.clone()));
        let mut watcher = Watcher {
            socket,
            uid,
            kind,
            behind: std::iter::once(watched).chain(open).collect(),
        };
        if watcher.catch_up() == Delivery::Done {
            self.people.watchers.push(watcher);
        }
    }

    /// The gateway asks.
    pub(super) fn asked_of_people(&mut self, id: u64, mut question: OpenQuestion) {
        let pid = question.process.pid;
        let process = &mut question.process;
        process.parents = ancestors(parent(pid), self.root);
        let shown = |path: &mut String, most| *path = cut(std::mem::take(path), most);
        shown(&mut process.executable, PROGRAM_BYTES_MAX);
        for parent in &mut process.parents {
            shown(&mut parent.executable, PARENT_BYTES_MAX);
        }
        if self.people.open.len() < OPEN_MAX {
            self.people.tell(&FromRun::Question(id, question.clone()));
            self.people.open.insert(id, question);
        }
        self.nobody_watches();
    }

    /// The gateway asks no longer.
    pub(super) fn withdrawn(&mut self, id: u64) {
        self.gone(id, "nobody waits for it any more");
    }

    fn gone(&mut self, id: u64, how: &str) {
        if self.people.open.remove(&id).is_some() {
            self.people.tell(&FromRun::Gone(id, how.to_owned()));
        }
    }

    /// Where nobody is left to ask, every question is answered so.
    fn nobody_watches(&mut self) {
        self.decider_gone();
        if !self.people.watchers.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.people.open).into_keys() {
            self.tell(&ToGateway::Settled(id, Settlement::Nobody), Vec::new());
        }
    }

    /// The gateway that asked is gone.
    pub(super) fn questions_lost(&mut self) {
        self.people.answers.clear();
        for id in std::mem::take(&mut self.people.open).into_keys() {
            self.people
                .tell(&FromRun::Gone(id, "the gateway is gone".to_owned()));
        }
    }

    /// Hears everybody who watches.
    pub(super) fn serve_watchers(&mut self) {
        self.people.catch_up();
        let mut heard = Vec::new();
        self.people
            .watchers
            .retain(|watcher| watcher.receive(&mut heard) == Delivery::Done);
        // Once all of them are heard, so that each is told of what the others say.
        for (who, id, word) in heard {
            self.answered_by(&who, id, word);
        }
        self.nobody_watches();
    }

    /// Says, once, that what the run started to answer does so no longer.
    fn decider_gone(&mut self) {
        let mut watchers = self.people.watchers.iter();
        if watchers.any(|watcher| watcher.kind == WatcherKind::Program) {
            return;
        }
        if self
            .people
            .decider
            .as_mut()
            .is_some_and(DeciderChild::hung_up)
        {
            self.voice.say(
                "outgate: nobody answers for --ask-with any more (`outgate approve` does where \
                 somebody runs it)",
            );
        }
    }

    /// Somebody answers a question.
    fn answered_by(&mut self, who: &Answerer, id: u64, word: PersonAnswer) {
        let Some(question) = self.people.open.get(&id) else {
            let message = "nobody waits for an answer to that any more";
            return self.people.refuse(who, message);
        };
        match word {
            PersonAnswer::Deny => {
                let line = format!("outgate: {} was denied ({})", question.subject, who.by);
                self.voice.say(&line);
                self.tell(&ToGateway::Settled(id, Settlement::Denied), Vec::new());
                self.gone(id, "denied");
            }
            PersonAnswer::Grant(request) => {
                let offered = [&question.narrow, &question.broad];
                if request.rule.is_empty() || !offered.contains(&&request.rule) {
                    let message = "the question does not offer that rule";
                    return self.people.refuse(who, message);
                }
                if self.people.answers.len() >= OPEN_MAX {
                    let message = "too many answers wait already";
                    return self.people.refuse(who, message);
                }
                let by = who.by.clone();
                self.people
                    .answers
                    .push_back(GrantedAnswer { id, request, by });
            }
        }
    }

    /// Puts the next yes in force.
    pub(super) fn grant_answer(&mut self, now: Instant) {
        while self.has_no_change() {
            let Some(GrantedAnswer { id, request, by }) = self.people.answers.pop_front() else {
                return;
            };
            if self.people.open.contains_key(&id) {
                self.grant(&request, &by, (ChangeFor::Question(id), now));
            }
        }
    }

    /// A yes is in force.
    pub(super) fn question_granted(&mut self, id: u64, line: &str) {
        self.tell(&ToGateway::Settled(id, Settlement::Granted), Vec::new());
        self.gone(id, line);
    }

    /// A yes cannot be: the question stays.
    pub(super) fn question_refused(&mut self, message: String) {
        self.people.tell(&FromRun::Refused { message });
    }
}

fn hold_by(blocking: Blocking) -> HoldForm {
    match blocking {
        Blocking::Yes => HoldForm::Call,
        Blocking::No => HoldForm::Connection,
    }
}
