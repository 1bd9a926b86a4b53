//! What no rule decides, requests, connections and calls, held until a person said what is to happen: one question
//! for all that are the same, so many at once and no more, each for a time. Whoever waits does
//! so by itself and holds nobody else; nothing is sent meanwhile. What a person says yes to is
//! a rule, by which all that waits is judged anew.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outgate_handoff::{OpenQuestion, Settlement, ToLauncher};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::control::ControlSocket;
use crate::limits;

/// How a question went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A rule was granted.
    Granted,
    /// A person said no.
    Denied,
    /// Nobody is there to ask.
    Nobody,
    /// Nobody answered in time.
    Late,
    /// Too many wait already.
    Crowded,
}

impl Asked {
    /// What a denial says of it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Granted => "asked, and what was granted does not allow it",
            Self::Denied => "asked, and the answer was no",
            Self::Nobody => "nobody is there to ask (`outgate approve` answers)",
            Self::Late => "asked, no answer yet; try again",
            Self::Crowded => "too many questions wait for an answer; try again",
        }
    }
}

/// The questions of one sandbox.
#[derive(Debug)]
pub(crate) struct Questions {
    /// How long a request may wait.
    time: Duration,
    waiters_max: usize,
    control: Arc<ControlSocket>,
    state: Mutex<QuestionState>,
}

#[derive(Debug, Default)]
struct QuestionState {
    next: u64,
    open: HashMap<u64, Pending>,
    /// Questions that were answered with no: not asked again in this run.
    denied: HashSet<Key>,
    waiters: usize,
}

/// What tells questions apart: what is asked for, and the executable that asks.
type Key = (String, String);

#[derive(Debug)]
struct Pending {
    key: Key,
    /// Whether the command put it in its own words, which no other question has.
    is_proposal: bool,
    /// All that is asked of one host.
    host: String,
    until: Instant,
    waiters: usize,
    settled: watch::Sender<Option<Asked>>,
}

impl Pending {
    /// Whether it is the same question.
    fn is_of(&self, key: &Key, question: &OpenQuestion) -> bool {
        self.key == *key && self.is_proposal != question.words.is_empty()
    }
}

/// A question as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownQuestion {
    pub(crate) id: u64,
    pub(crate) subject: String,
    /// The executable that asks.
    pub(crate) program: String,
    pub(crate) left: Duration,
}

/// Whose question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entrance {
    /// It was put for this one.
    First,
    /// It was there.
    Joined,
}

/// A request that joined its question, or had it put.
struct Entered<'q> {
    waiter: Waiter<'q>,
    settled: watch::Receiver<Option<Asked>>,
    until: Instant,
    entrance: Entrance,
}

/// A request that waits, for as long as this lives.
struct Waiter<'q> {
    questions: &'q Questions,
    id: u64,
}

impl Questions {
    /// `flows_max` connections may be served at once: some of them may wait.
    pub(super) fn new(seconds: u32, flows_max: usize, control: Arc<ControlSocket>) -> Self {
        let seconds = u64::from(seconds);
        Self {
            time: Duration::from_secs(seconds).min(limits::ASK_TIME_MAX),
            waiters_max: (flows_max / 4).clamp(1, limits::ASK_WAITERS_MAX),
            control,
            state: Mutex::default(),
        }
    }

    /// Whether anybody is asked at all.
    pub(crate) fn are_asked(&self) -> bool {
        !self.time.is_zero()
    }

    /// Those that are open, for people; the oldest first.
    pub(crate) fn shown(&self) -> Vec<ShownQuestion> {
        let Ok(state) = self.state.lock() else {
            return Vec::new();
        };
        let now = Instant::now();
        let open = state.open.iter().map(|(id, own)| ShownQuestion {
            id: *id,
            subject: own.key.0.clone(),
            program: own.key.1.clone(),
            left: own.until.saturating_duration_since(now),
        });
        let mut open: Vec<ShownQuestion> = open.collect();
        open.sort_by_key(|own| own.id);
        open
    }

    /// How long a question is open.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Waits for what a person says, or for the end of the time.
    pub(crate) async fn hold(&self, question: OpenQuestion) -> Asked {
        self.hold_for(question, self.time, || ()).await
    }

    /// The same for no longer than this. Who had the question put says by `first` what is
    /// done about it beside the wait.
    pub(crate) async fn hold_for(
        &self,
        question: OpenQuestion,
        at_most: Duration,
        first: impl FnOnce(),
    ) -> Asked {
        let Entered {
            waiter,
            mut settled,
            until,
            entrance,
        } = match self.enter(question, self.time.max(at_most)) {
            Ok(entered) => entered,
            Err(asked) => return asked,
        };
        if entrance == Entrance::First {
            first();
        }
        let until = until.min(Instant::now() + at_most);
        let heard = timeout_at(until, settled.wait_for(Option::is_some)).await;
        let asked = match heard {
            Ok(Ok(asked)) => asked.unwrap_or(Asked::Nobody),
            Ok(Err(_)) => Asked::Nobody,
            Err(_) => Asked::Late,
        };
        drop(waiter);
        asked
    }

    /// How the asking would go where that is known before; `None` where it would wait.
    pub(crate) fn refuses(&self, question: &OpenQuestion) -> Option<Asked> {
        let Ok(state) = self.state.lock() else {
            return Some(Asked::Crowded);
        };
        self.refusal(&state, &key(question), question)
    }

    fn refusal(&self, state: &QuestionState, key: &Key, question: &OpenQuestion) -> Option<Asked> {
        if state.denied.contains(key) {
            return Some(Asked::Denied);
        }
        let is_crowded = if state.open.values().any(|own| own.is_of(key, question)) {
            // Whoever else asks for something finds room all the same.
            state.waiters >= self.waiters_max
        } else {
            let host = host(question);
            let of_host = state.open.values().filter(|own| own.host == host);
            of_host.count() >= limits::ASK_OF_HOST_MAX || state.open.len() >= limits::ASK_OPEN_MAX
        };
        is_crowded.then_some(Asked::Crowded)
    }

    /// Joins the question, or puts it.
    fn enter(&self, question: OpenQuestion, time: Duration) -> Result<Entered<'_>, Asked> {
        let key = key(&question);
        let mut state = self.state.lock().map_err(|_| Asked::Crowded)?;
        if let Some(asked) = self.refusal(&state, &key, &question) {
            return Err(asked);
        }
        let mut open = state.open.iter_mut();
        let known = open.find(|(_, own)| own.is_of(&key, &question));
        if let Some((id, pending)) = known {
            let (id, until) = (*id, pending.until);
            pending.waiters += 1;
            let settled = pending.settled.subscribe();
            state.waiters += 1;
            return Ok(self.entered(id, (settled, until), Entrance::Joined));
        }
        state.next += 1;
        let id = state.next;
        let (settled, receiver) = watch::channel(None);
        let until = Instant::now() + time;
        let pending = Pending {
            key,
            is_proposal: !question.words.is_empty(),
            host: host(&question),
            until,
            waiters: 1,
            settled,
        };
        state.open.insert(id, pending);
        state.waiters += 1;
        drop(state);
        let entered = self.entered(id, (receiver, until), Entrance::First);
        // Where there is no room for it, nobody hears it, and it is late.
        self.control.offer(&ToLauncher::Question(id, question));
        Ok(entered)
    }

    fn entered(
        &self,
        id: u64,
        (settled, until): (watch::Receiver<Option<Asked>>, Instant),
        entrance: Entrance,
    ) -> Entered<'_> {
        Entered {
            waiter: Waiter {
                questions: self,
                id,
            },
            settled,
            until,
            entrance,
        }
    }

    /// The launcher says what became of a question.
    pub(crate) fn settled(&self, id: u64, settlement: Settlement) {
        let lock = self.state.lock();
        let is_sound = lock.is_ok();
        let mut state = lock.unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = state.open.remove(&id) else {
            return;
        };
        let asked = match settlement {
            // Somebody failed who had it: nothing in it lets anything by.
            _ if !is_sound => Asked::Crowded,
            Settlement::Granted => Asked::Granted,
            Settlement::Nobody => Asked::Nobody,
            Settlement::Denied => {
                if state.denied.len() < limits::ASK_DENIED_MAX {
                    state.denied.insert(pending.key.clone());
                }
                Asked::Denied
            }
        };
        state.waiters = state.waiters.saturating_sub(pending.waiters);
        pending.settled.send_replace(Some(asked));
    }

    /// A request waits no longer; a question that nobody waits for is no more.
    fn leave(&self, id: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = state.open.get_mut(&id) else {
            return;
        };
        pending.waiters = pending.waiters.saturating_sub(1);
        let is_over = pending.waiters == 0;
        state.waiters = state.waiters.saturating_sub(1);
        if is_over {
            state.open.remove(&id);
            drop(state);
            self.control.offer(&ToLauncher::Withdrawn(id));
        }
    }
}

/// What tells it from others.
fn key(question: &OpenQuestion) -> Key {
    let program = question.process.executable.clone();
    (question.subject.clone(), program)
}

/// Whom it is about: all questions about one host, all about Unix sockets, and all about
/// ports to listen on count as one's.
fn host(question: &OpenQuestion) -> String {
    let rule = if question.broad.is_empty() {
        &question.narrow
    } else {
        return question.broad.clone();
    };
    match rule.split_once("://") {
        Some((scheme @ "unix", _)) => scheme.to_owned(),
        Some(_) => rule
            .rsplit_once(':')
            .map_or(rule.as_str(), |(host, _)| host)
            .to_owned(),
        None => rule.split(' ').next().unwrap_or_default().to_owned(),
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.questions.leave(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use outgate_handoff::ProcessFacts;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn questions(seconds: u32) -> (Arc<Questions>, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let control = ControlSocket::new(OwnedFd::from(ours)).unwrap();
        (
            Arc::new(Questions::new(seconds, 1024, Arc::new(control))),
            theirs,
        )
    }

    fn question(subject: &str, host: &str) -> OpenQuestion {
        OpenQuestion {
            subject: subject.to_owned(),
            narrow: subject.to_owned(),
            broad: host.to_owned(),
            process: ProcessFacts::default(),
            words: String::new(),
        }
    }

    /// The next word to the launcher, once whoever says it had a turn.
    async fn next_frame(launcher: &UnixDatagram) -> ToLauncher {
        let mut bytes = [0; 4096];
        for _ in 0..100_000 {
            if let Ok(count) = launcher.recv(&mut bytes) {
                return ToLauncher::decode(&bytes[..count]).unwrap();
            }
            tokio::task::yield_now().await;
        }
        panic!("nothing is said");
    }

    async fn held(questions: &Arc<Questions>, count: usize) -> Vec<tokio::task::JoinHandle<Asked>> {
        let mut held = Vec::new();
        for _ in 0..count {
            let questions = Arc::clone(questions);
            held.push(tokio::spawn(async move {
                questions
                    .hold(question("GET http://a.test/x", "http://a.test"))
                    .await
            }));
        }
        tokio::task::yield_now().await;
        held
    }

    #[tokio::test]
    async fn the_same_question_of_many_is_one_and_its_answer_is_for_all() {
        let (questions, launcher) = questions(60);
        let held_ones = held(&questions, 50).await;
        let ToLauncher::Question(id, asked) = next_frame(&launcher).await else {
            panic!("no question");
        };
        assert_eq!(asked.subject, "GET http://a.test/x");
        assert!(launcher.recv(&mut [0; 4096]).is_err());
        questions.settled(id, Settlement::Denied);
        for one in held_ones {
            assert_eq!(one.await.unwrap(), Asked::Denied);
        }
        // A no is remembered, and not asked for again.
        let again = questions.hold(question("GET http://a.test/x", "http://a.test"));
        assert_eq!(again.await, Asked::Denied);
        assert!(launcher.recv(&mut [0; 4096]).is_err());
        let state = questions.state.lock().unwrap();
        assert_eq!((state.waiters, state.open.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_is_late_and_withdrawn() {
        let (questions, launcher) = questions(1);
        let held_ones = held(&questions, 2).await;
        next_frame(&launcher).await;
        for one in held_ones {
            assert_eq!(one.await.unwrap(), Asked::Late);
        }
        assert_eq!(next_frame(&launcher).await, ToLauncher::Withdrawn(1));
        // Another time it is another question.
        let one = held(&questions, 1).await.pop().unwrap();
        let ToLauncher::Question(id, _) = next_frame(&launcher).await else {
            panic!("no question");
        };
        questions.settled(1, Settlement::Granted);
        questions.settled(id, Settlement::Granted);
        assert_eq!(one.await.unwrap(), Asked::Granted);
    }

    #[tokio::test]
    async fn who_hangs_up_takes_the_question_along() {
        let (questions, launcher) = questions(60);
        for one in held(&questions, 3).await {
            one.abort();
        }
        next_frame(&launcher).await;
        assert_eq!(next_frame(&launcher).await, ToLauncher::Withdrawn(1));
        let state = questions.state.lock().unwrap();
        assert_eq!((state.waiters, state.open.len()), (0, 0));
    }

    #[tokio::test]
    async fn who_waits_for_a_short_time_leaves_the_question_to_who_stays() {
        let (questions, launcher) = questions(60);
        let mut held_ones = Vec::new();
        let asked = questions
            .hold_for(
                question("connection to a.test:5432", ""),
                Duration::from_millis(1),
                || {
                    let questions = Arc::clone(&questions);
                    held_ones.push(tokio::spawn(async move {
                        questions
                            .hold(question("connection to a.test:5432", ""))
                            .await
                    }));
                },
            )
            .await;
        assert_eq!(asked, Asked::Late);
        let ToLauncher::Question(id, _) = next_frame(&launcher).await else {
            panic!("no question");
        };
        assert!(launcher.recv(&mut [0; 4096]).is_err());
        questions.settled(id, Settlement::Granted);
        for one in held_ones {
            assert_eq!(one.await.unwrap(), Asked::Granted);
        }
    }

    #[tokio::test]
    async fn ports_of_one_host_and_all_unix_sockets_are_one_each() {
        let (questions, _launcher) = questions(60);
        let ask = |narrow: &str| OpenQuestion {
            narrow: narrow.to_owned(),
            ..question(narrow, "")
        };
        let mut entered = Vec::new();
        for number in 0..1000 {
            let a = format!("tcp://a.test:{number}");
            let socket = format!("unix:///run/{number}/a:{number}");
            let port = format!("listen 192.0.2.1:{number}");
            for narrow in [a, socket, port] {
                entered.extend(questions.enter(ask(&narrow), LONG).ok());
            }
        }
        assert_eq!(entered.len(), 3 * limits::ASK_OF_HOST_MAX);
        assert_eq!(
            questions.refuses(&ask("tcp://a.test:1000")),
            Some(Asked::Crowded)
        );
        assert_eq!(questions.refuses(&ask("tcp://a.test:1")), None);
        assert_eq!(questions.refuses(&ask("tcp://b.test:1")), None);
    }

    #[tokio::test]
    async fn a_flood_of_questions_is_bounded_of_one_host_and_of_all() {
        let (questions, _launcher) = questions(60);
        let mut crowded = 0;
        let mut entered = Vec::new();
        for number in 0..10_000 {
            let subject = format!("GET http://a.test/{number}");
            match questions.enter(question(&subject, "http://a.test"), LONG) {
                Ok(one) => entered.push(one),
                Err(asked) => crowded += usize::from(asked == Asked::Crowded),
            }
        }
        assert_eq!(entered.len(), limits::ASK_OF_HOST_MAX);
        assert_eq!(crowded, 10_000 - limits::ASK_OF_HOST_MAX);
        for number in 0..10_000 {
            let host = format!("http://h{number}.test");
            entered.extend(questions.enter(question(&host, &host), LONG).ok());
        }
        assert_eq!(entered.len(), limits::ASK_OPEN_MAX);
        // One that is open is joined, up to what may wait in all.
        while let Ok(one) = questions.enter(question("GET http://a.test/0", "http://a.test"), LONG)
        {
            entered.push(one);
        }
        assert_eq!(entered.len(), 1024 / 4);
        drop(entered);
        let state = questions.state.lock().unwrap();
        assert_eq!((state.waiters, state.open.len()), (0, 0));
    }
}
