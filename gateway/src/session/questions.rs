//! What no rule decides, requests, connections and calls, held until a person said what is to happen: one question
//! for all that are the same, so many at once and no more, each for a time. Whoever waits does
//! so by itself and holds nobody else; nothing is sent meanwhile. What a person says yes to is
//! a rule, by which all that waits is judged anew. Who waited in vain leaves its question open
//! for who tries again, for its time, or until another needs its room.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outgate_handoff::{AskTimes, OpenQuestion, Settlement, ToLauncher};
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
    held: Duration,
    /// How long a question is open, from when it was put.
    open: Duration,
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
    stay: QuestionStay,
    settled: watch::Sender<Option<Asked>>,
}

/// How long a question stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionStay {
    /// As long as somebody waits for it.
    Awaited,
    /// For its time: somebody waited in vain, and may try again.
    ItsTime,
}

/// A question that stays for its time, which somebody has to see to.
#[must_use = "it stays for ever where nobody keeps it"]
pub(crate) struct KeptQuestion {
    id: u64,
    settled: watch::Receiver<Option<Asked>>,
    until: Instant,
}

impl Pending {
    /// Whether it is the same question.
    fn is_of(&self, key: &Key, question: &OpenQuestion) -> bool {
        self.key == *key && self.is_proposal != question.words.is_empty()
    }

    /// Whether somebody waits for it: nobody else has its room.
    fn is_awaited(&self) -> bool {
        self.waiters > 0
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

/// A request that joined its question, or had it put.
struct Entered<'q> {
    waiter: Waiter<'q>,
    settled: watch::Receiver<Option<Asked>>,
    until: Instant,
}

/// A request that waits, for as long as this lives.
struct Waiter<'q> {
    questions: &'q Questions,
    id: u64,
}

impl Questions {
    /// `flows_max` connections may be served at once: some of them may wait.
    pub(super) fn new(ask: AskTimes, flows_max: usize, control: Arc<ControlSocket>) -> Self {
        let time = |seconds: u32| Duration::from_secs(seconds.into()).min(limits::ASK_TIME_MAX);
        let held = time(ask.held_seconds);
        Self {
            held,
            open: time(ask.open_seconds).max(held),
            waiters_max: (flows_max / 4).clamp(1, limits::ASK_WAITERS_MAX),
            control,
            state: Mutex::default(),
        }
    }

    /// Whether anybody is asked at all.
    pub(crate) fn are_asked(&self) -> bool {
        !self.held.is_zero()
    }

    /// How long a request may wait.
    pub(crate) fn held(&self) -> Duration {
        self.held
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

    /// Waits for what a person says, so long and no longer. Where that was in vain and the
    /// question goes on, it is to be kept for who tries again.
    pub(crate) async fn hold(
        &self,
        question: OpenQuestion,
        at_most: Duration,
    ) -> (Asked, Option<KeptQuestion>) {
        let Entered {
            waiter,
            mut settled,
            until,
        } = match self.enter(question, self.open.max(at_most)) {
            Ok(entered) => entered,
            Err(asked) => return (asked, None),
        };
        let own = until.min(Instant::now() + at_most);
        let heard = timeout_at(own, settled.wait_for(Option::is_some)).await;
        let heard = heard.map(|heard| heard.map(|asked| asked.unwrap_or(Asked::Nobody)));
        match heard {
            Ok(Ok(asked)) => (asked, None),
            Ok(Err(_)) => (Asked::Nobody, None),
            Err(_) => {
                let id = waiter.id;
                let kept = self
                    .stays(id)
                    .then_some(KeptQuestion { id, settled, until });
                (Asked::Late, kept)
            }
        }
    }

    /// Has a question stay for its time, whoever waits; whether that is new.
    fn stays(&self, id: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = state.open.get_mut(&id);
        let is_due = |pending: &&mut Pending| {
            pending.stay == QuestionStay::Awaited && pending.until > Instant::now()
        };
        pending
            .filter(is_due)
            .map(|pending| pending.stay = QuestionStay::ItsTime)
            .is_some()
    }

    /// Sees to a question that stays: until it is answered, or its time is over.
    pub(crate) async fn keep(&self, kept: KeptQuestion) {
        let KeptQuestion {
            id,
            mut settled,
            until,
        } = kept;
        let heard = timeout_at(until, settled.wait_for(Option::is_some)).await;
        if heard.is_ok() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = state.open.get_mut(&id) else {
            return;
        };
        // Who still waits for it ends it.
        pending.stay = QuestionStay::Awaited;
        if !pending.is_awaited() {
            self.withdraw(&mut state, id);
        }
    }

    /// Takes a question back for which nobody waits.
    fn withdraw(&self, state: &mut QuestionState, id: u64) {
        state.open.remove(&id);
        self.control.offer(&ToLauncher::Withdrawn(id));
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
            // Those that only stay give way.
            let host = host(question);
            let awaited = || state.open.values().filter(|own| own.is_awaited());
            let of_host = awaited().filter(|own| own.host == host);
            of_host.count() >= limits::ASK_OF_HOST_MAX || awaited().count() >= limits::ASK_OPEN_MAX
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
            return Ok(self.entered(id, settled, until));
        }
        self.make_room(&mut state, &host(&question));
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
            stay: QuestionStay::Awaited,
            settled,
        };
        state.open.insert(id, pending);
        state.waiters += 1;
        drop(state);
        let entered = self.entered(id, receiver, until);
        // Where there is no room for it, nobody hears it, and it is late.
        self.control.offer(&ToLauncher::Question(id, question));
        Ok(entered)
    }

    /// Has the oldest questions that only stay give way to one more about this host.
    fn make_room(&self, state: &mut QuestionState, host: &str) {
        let limits = [
            (Some(host), limits::ASK_OF_HOST_MAX),
            (None, limits::ASK_OPEN_MAX),
        ];
        for (host, most) in limits {
            let own = |pending: &Pending| host.is_none_or(|host| pending.host == host);
            let count = state.open.values().filter(|pending| own(pending)).count();
            let stay = state.open.iter().filter(|(_, pending)| own(pending));
            let stay = stay.filter(|(_, pending)| !pending.is_awaited());
            let mut stay: Vec<u64> = stay.map(|(id, _)| *id).collect();
            stay.sort_unstable();
            let over = (count + 1).saturating_sub(most);
            for id in stay.into_iter().take(over) {
                self.withdraw(state, id);
            }
        }
    }

    fn entered(
        &self,
        id: u64,
        settled: watch::Receiver<Option<Asked>>,
        until: Instant,
    ) -> Entered<'_> {
        Entered {
            waiter: Waiter {
                questions: self,
                id,
            },
            settled,
            until,
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

    /// A request waits no longer; a question that nobody waits for is no more, unless it stays.
    fn leave(&self, id: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = state.open.get_mut(&id) else {
            return;
        };
        pending.waiters = pending.waiters.saturating_sub(1);
        let is_over = !pending.is_awaited() && pending.stay == QuestionStay::Awaited;
        state.waiters = state.waiters.saturating_sub(1);
        if is_over {
            self.withdraw(&mut state, id);
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
    const SHORT: Duration = Duration::from_millis(1);

    fn questions(seconds: u64) -> (Arc<Questions>, UnixDatagram) {
        let time = Duration::from_secs(seconds);
        questions_of(time, time)
    }

    fn questions_of(held: Duration, open: Duration) -> (Arc<Questions>, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let control = ControlSocket::new(OwnedFd::from(ours)).unwrap();
        let own = Questions::new(AskTimes::default(), 1024, Arc::new(control));
        (Arc::new(Questions { held, open, ..own }), theirs)
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

    /// As a request asks: whoever waits in vain leaves the question to somebody who keeps it.
    async fn asked(questions: &Arc<Questions>, own: OpenQuestion) -> Asked {
        let (asked, kept) = questions.hold(own, questions.held()).await;
        if let Some(kept) = kept {
            let questions = Arc::clone(questions);
            tokio::spawn(async move { questions.keep(kept).await });
        }
        asked
    }

    async fn held(questions: &Arc<Questions>, count: usize) -> Vec<tokio::task::JoinHandle<Asked>> {
        let mut held = Vec::new();
        for _ in 0..count {
            let questions = Arc::clone(questions);
            held.push(tokio::spawn(async move {
                let own = question("GET http://a.test/x", "http://a.test");
                asked(&questions, own).await
            }));
        }
        tokio::task::yield_now().await;
        held
    }

    #[tokio::test]
    async fn the_same_question_of_many_is_one_and_its_answer_is_for_all() {
        let (questions, launcher) = questions(60);
        let held_ones = held(&questions, 50).await;
        let ToLauncher::Question(id, put) = next_frame(&launcher).await else {
            panic!("no question");
        };
        assert_eq!(put.subject, "GET http://a.test/x");
        assert!(launcher.recv(&mut [0; 4096]).is_err());
        questions.settled(id, Settlement::Denied);
        for one in held_ones {
            assert_eq!(one.await.unwrap(), Asked::Denied);
        }
        // A no is remembered, and not asked for again.
        let again = question("GET http://a.test/x", "http://a.test");
        assert_eq!(asked(&questions, again).await, Asked::Denied);
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
    async fn a_question_is_open_for_as_long_as_a_request_waits_at_least() {
        for (held_seconds, open_seconds, want) in [(25, 300, (25, 300)), (60, 5, (60, 60))] {
            let (ours, _theirs) = UnixDatagram::pair().unwrap();
            let control = Arc::new(ControlSocket::new(OwnedFd::from(ours)).unwrap());
            let ask = AskTimes {
                held_seconds,
                open_seconds,
            };
            let own = Questions::new(ask, 1024, Arc::clone(&control));
            assert_eq!((own.held.as_secs(), own.open.as_secs()), want);
            assert!(own.are_asked());
            assert!(!Questions::new(AskTimes::default(), 1024, control).are_asked());
        }
    }

    #[tokio::test]
    async fn who_waits_in_vain_leaves_the_question_to_who_tries_again() {
        let (questions, launcher) = questions_of(SHORT, LONG);
        let own = || question("GET http://a.test/x", "http://a.test");
        assert_eq!(asked(&questions, own()).await, Asked::Late);
        let ToLauncher::Question(id, _) = next_frame(&launcher).await else {
            panic!("no question");
        };
        // Who tries again waits for the same one, and may hang up.
        for number in 0..4 {
            let own = Box::pin(questions.hold(own(), LONG));
            let ended = tokio::time::timeout(SHORT, own).await;
            assert!(ended.is_err(), "{number}");
        }
        let again = Arc::clone(&questions);
        let own = own();
        let again = tokio::spawn(async move { again.hold(own, LONG).await.0 });
        tokio::task::yield_now().await;
        assert!(launcher.recv(&mut [0; 4096]).is_err());
        questions.settled(id, Settlement::Granted);
        assert_eq!(again.await.unwrap(), Asked::Granted);
        let state = questions.state.lock().unwrap();
        assert_eq!((state.waiters, state.open.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_ends_with_its_time() {
        let (questions, launcher) = questions_of(SHORT, Duration::from_secs(1));
        let own = |name: &str| question(name, "http://a.test");
        assert_eq!(
            asked(&questions, own("GET http://a.test/x")).await,
            Asked::Late
        );
        // This one ends under who waits for it, and after the other.
        let (heard, kept) = questions
            .hold(own("GET http://a.test/y"), questions.open)
            .await;
        assert!(heard == Asked::Late && kept.is_none());
        let mut said = Vec::new();
        for _ in 0..4 {
            said.push(match next_frame(&launcher).await {
                ToLauncher::Question(id, _) => (id, "asked"),
                ToLauncher::Withdrawn(id) => (id, "withdrawn"),
                other => panic!("{other:?}"),
            });
        }
        said.sort_unstable();
        let each = |id| [(id, "asked"), (id, "withdrawn")];
        assert_eq!(said, [each(1), each(2)].concat());
        let state = questions.state.lock().unwrap();
        assert_eq!((state.waiters, state.open.len()), (0, 0));
    }

    #[tokio::test]
    async fn questions_that_only_stay_are_bounded_and_give_way() {
        let (questions, launcher) = questions_of(SHORT, LONG);
        let (mut open, mut most) = (HashSet::new(), 0);
        // Whoever heard of one hears that it is gone.
        let mut hear = || {
            let mut bytes = [0; 4096];
            while let Ok(count) = launcher.recv(&mut bytes) {
                match ToLauncher::decode(&bytes[..count]).unwrap() {
                    ToLauncher::Question(id, _) => drop(open.insert(id)),
                    ToLauncher::Withdrawn(id) => assert!(open.remove(&id), "{id}"),
                    other => panic!("{other:?}"),
                }
                most = most.max(open.len());
            }
            (most, open.len())
        };
        for number in 0..100 {
            let subject = format!("GET http://a.test/{number}");
            let own = question(&subject, "http://a.test");
            assert_eq!(asked(&questions, own).await, Asked::Late, "{number}");
            hear();
        }
        assert_eq!(hear(), (limits::ASK_OF_HOST_MAX, limits::ASK_OF_HOST_MAX));
        for number in 0..100 {
            let host = format!("http://h{number}.test");
            assert_eq!(asked(&questions, question(&host, &host)).await, Asked::Late);
            hear();
        }
        assert_eq!(hear(), (limits::ASK_OPEN_MAX, limits::ASK_OPEN_MAX));
        // One that somebody waits for stays, whatever else is asked.
        let awaited = questions.enter(question("GET http://a.test/x", "http://a.test"), LONG);
        for number in 100..200 {
            let host = format!("http://h{number}.test");
            assert_eq!(questions.refuses(&question(&host, &host)), None);
            assert_eq!(asked(&questions, question(&host, &host)).await, Asked::Late);
        }
        let state = questions.state.lock().unwrap();
        assert!(state.open.values().any(|own| own.host == "http://a.test"));
        assert_eq!(state.open.len(), limits::ASK_OPEN_MAX);
        drop((state, awaited));
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
