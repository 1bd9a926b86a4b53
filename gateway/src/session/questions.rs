//! Requests that no rule decides, held until a person said what is to happen: one question
//! for all that are the same, so many at once and no more, each for a time. Whoever waits is
//! a request of its own and holds nobody else; nothing is sent meanwhile. What a person says
//! yes to is a rule, by which the request is judged anew.

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
            Self::Denied => "asked, and denied by a person",
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
    /// All that is asked of one host.
    host: String,
    until: Instant,
    waiters: usize,
    settled: watch::Sender<Option<Asked>>,
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

    /// Waits for what a person says, or for the end of the time.
    pub(crate) async fn hold(&self, question: OpenQuestion) -> Asked {
        self.hold_for(question, self.time).await
    }

    /// The same with a time of its own, for what no client waits for.
    pub(crate) async fn hold_for(&self, question: OpenQuestion, time: Duration) -> Asked {
        let (waiter, mut settled, until) = match self.enter(question, time) {
            Ok(entered) => entered,
            Err(asked) => return asked,
        };
        let heard = timeout_at(until, settled.wait_for(Option::is_some)).await;
        let asked = match heard {
            Ok(Ok(asked)) => asked.unwrap_or(Asked::Nobody),
            Ok(Err(_)) => Asked::Nobody,
            Err(_) => Asked::Late,
        };
        drop(waiter);
        asked
    }

    /// Joins the question, or puts it.
    fn enter(
        &self,
        question: OpenQuestion,
        time: Duration,
    ) -> Result<(Waiter<'_>, watch::Receiver<Option<Asked>>, Instant), Asked> {
        let key = (
            question.subject.clone(),
            question.process.executable.clone(),
        );
        let mut state = self.state.lock().map_err(|_| Asked::Crowded)?;
        if state.denied.contains(&key) {
            return Err(Asked::Denied);
        }
        if state.waiters >= self.waiters_max {
            return Err(Asked::Crowded);
        }
        let known = state.open.iter_mut().find(|(_, own)| own.key == key);
        if let Some((id, pending)) = known {
            let (id, until) = (*id, pending.until);
            pending.waiters += 1;
            let settled = pending.settled.subscribe();
            state.waiters += 1;
            let waiter = Waiter {
                questions: self,
                id,
            };
            return Ok((waiter, settled, until));
        }
        let of_host = state.open.values().filter(|own| own.host == question.broad);
        let is_crowded = of_host.count() >= limits::ASK_OF_HOST_MAX;
        if is_crowded || state.open.len() >= limits::ASK_OPEN_MAX {
            return Err(Asked::Crowded);
        }
        state.next += 1;
        let id = state.next;
        let (settled, receiver) = watch::channel(None);
        let until = Instant::now() + time;
        let pending = Pending {
            key,
            host: question.broad.clone(),
            until,
            waiters: 1,
            settled,
        };
        state.open.insert(id, pending);
        state.waiters += 1;
        drop(state);
        let waiter = Waiter {
            questions: self,
            id,
        };
        // Where there is no room for it, nobody hears it, and it is late.
        self.control.offer(&ToLauncher::Question(id, question));
        Ok((waiter, receiver, until))
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
