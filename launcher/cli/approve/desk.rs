//! The questions of runs, numbered for whoever answers here, and the answers on their way to
//! the run that asked. Who shows them and who is asked is nobody's matter here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use outgate_launcher::runs::{
    self, GrantRequest, GrantUses, LISTEN_RULE, OpenQuestion, PersonAnswer, Watched, WatchedWord,
};
use outgate_policy::printable;

use super::answer::{GrantKind, RuleKind, Said};
use super::kept::KeptRules;

/// How often runs that began since are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// A question that waits here.
#[derive(Debug)]
pub(super) struct Waiting {
    run: u32,
    id: u64,
    /// The name of the run.
    pub(super) name: String,
    /// The program that was started, and where.
    pub(super) about: String,
    /// Since when it waits.
    pub(super) since: Instant,
    /// What is asked.
    pub(super) question: OpenQuestion,
}

/// Where runs come from.
#[derive(Debug)]
enum Runs {
    /// Looked for again and again: all of the user's, or those of this name.
    Sought(Option<Instant>),
    /// One that started us.
    Given,
}

/// Runs that are watched, and what is asked.
#[derive(Debug)]
pub(super) struct Desk {
    name: Option<String>,
    always: Option<KeptRules>,
    runs: Runs,
    watched: BTreeMap<u32, Watched>,
    /// Those that took this for somebody who answers.
    begun: BTreeSet<u32>,
    /// What each of them runs.
    about: BTreeMap<u32, String>,
    waiting: BTreeMap<u64, Waiting>,
    numbered: u64,
}

/// What there is to show.
#[derive(Debug)]
pub(super) enum DeskEvent {
    /// This run's questions come here.
    Watching(String),
    /// The question of this number.
    Asked(u64),
    /// The question of this number is no more, and how that came.
    Gone(u64, String),
    /// An answer was not taken, and why.
    Refused(String),
}

impl Desk {
    /// That of all runs of the user, or of those with this name or process id.
    pub(super) fn new(name: Option<String>, always: Option<KeptRules>) -> Self {
        Self {
            name,
            always,
            runs: Runs::Sought(None),
            watched: BTreeMap::new(),
            begun: BTreeSet::new(),
            about: BTreeMap::new(),
            waiting: BTreeMap::new(),
            numbered: 0,
        }
    }

    /// That of this run alone.
    pub(super) fn of(watched: Watched) -> Self {
        Self {
            runs: Runs::Given,
            watched: BTreeMap::from([(watched.pid, watched)]),
            ..Self::new(Some(String::new()), None)
        }
    }

    /// The questions that wait, by number.
    pub(super) fn waiting(&self) -> &BTreeMap<u64, Waiting> {
        &self.waiting
    }

    /// How many runs are watched.
    pub(super) fn runs(&self) -> usize {
        self.watched.len()
    }

    /// Puts a question there that nobody asked.
    #[cfg(test)]
    pub(super) fn put(&mut self, question: OpenQuestion) -> u64 {
        self.asked((1, 1), "agent".to_owned(), question);
        self.numbered
    }

    /// Whether no run is watched.
    pub(super) fn is_over(&self) -> bool {
        self.watched.is_empty()
    }

    /// Looks for runs, and hears those that are watched.
    ///
    /// # Errors
    /// The run that was named is not there, or over.
    pub(super) fn turn(&mut self) -> Result<Vec<DeskEvent>, String> {
        if let Runs::Sought(looked) = self.runs
            && looked.is_none_or(|since| since.elapsed() >= LOOK)
        {
            self.look()?;
            if looked.is_none() {
                self.is_anybody()?;
            }
            self.runs = Runs::Sought(Some(Instant::now()));
        }
        self.hear()
    }

    fn look(&mut self) -> Result<(), String> {
        let found = runs::list().map_err(|error| format!("the runs of this machine: {error}"))?;
        let named = self.name.clone();
        let pid = named.as_ref().and_then(|name| name.parse::<u32>().ok());
        let wanted = found.into_iter().filter(|run| {
            let name = named.as_ref();
            name.is_none_or(|name| pid == Some(run.pid) || run.is_called(name))
        });
        for run in wanted {
            if !self.watched.contains_key(&run.pid)
                && let Ok(watched) = run.watch()
            {
                if let Some(status) = &run.status {
                    let about = format!("{} in {}", status.command, status.directory);
                    self.about.insert(run.pid, about);
                }
                self.watched.insert(run.pid, watched);
            }
        }
        Ok(())
    }

    /// A run that is named must be there.
    fn is_anybody(&self) -> Result<(), String> {
        match &self.name {
            Some(name) if self.watched.is_empty() => Err(format!(
                "no run of yours is called `{}`; `outgate ps` lists them",
                printable(name)
            )),
            _ => Ok(()),
        }
    }

    fn hear(&mut self) -> Result<Vec<DeskEvent>, String> {
        let mut events = Vec::new();
        let mut over = Vec::new();
        let pids: Vec<u32> = self.watched.keys().copied().collect();
        for pid in pids {
            while let Some(watched) = self.watched.get(&pid) {
                let name = watched.name.clone();
                match watched.receive() {
                    WatchedWord::Nothing => break,
                    WatchedWord::Begun => {
                        self.begun.insert(pid);
                        events.push(DeskEvent::Watching(name));
                    }
                    WatchedWord::Question(id, question) => {
                        events.push(self.asked((pid, id), name, question));
                    }
                    WatchedWord::Gone(id, how) => self.gone((pid, id), how, &mut events),
                    // One that asks nobody says so at first, and is none of those that do.
                    WatchedWord::Refused(message)
                        if self.name.is_some() || self.begun.contains(&pid) =>
                    {
                        events.push(DeskEvent::Refused(message));
                    }
                    WatchedWord::Refused(_) => {}
                    WatchedWord::Over => {
                        over.push(pid);
                        break;
                    }
                }
            }
        }
        for pid in over {
            self.watched.remove(&pid);
            self.about.remove(&pid);
            self.begun.remove(&pid);
            self.waiting.retain(|_, own| own.run != pid);
            if self.name.is_some() {
                return Err("the run asks nobody, or is over".to_owned());
            }
        }
        Ok(events)
    }

    fn asked(&mut self, (run, id): (u32, u64), name: String, question: OpenQuestion) -> DeskEvent {
        self.numbered = self.numbered.saturating_add(1);
        let waiting = Waiting {
            run,
            id,
            name,
            about: self.about.get(&run).cloned().unwrap_or_default(),
            since: Instant::now(),
            question,
        };
        self.waiting.insert(self.numbered, waiting);
        DeskEvent::Asked(self.numbered)
    }

    fn gone(&mut self, whose: (u32, u64), how: String, events: &mut Vec<DeskEvent>) {
        let is_it = |own: &Waiting| (own.run, own.id) == whose;
        let number = self.waiting.iter().find(|(_, own)| is_it(own));
        let Some(number) = number.map(|(number, _)| *number) else {
            return;
        };
        self.waiting.remove(&number);
        // Asked and answered before it was shown.
        let before = events.len();
        events.retain(|event| !matches!(event, DeskEvent::Asked(own) if *own == number));
        if events.len() == before {
            events.push(DeskEvent::Gone(number, how));
        }
    }

    /// Brings an answer to the run that asked.
    ///
    /// # Errors
    /// A sentence: no such question waits, or it cannot be answered so.
    pub(super) fn say(&self, number: u64, said: Said) -> Result<(), String> {
        let waiting = self.waiting.get(&number);
        let waiting = waiting.ok_or_else(|| format!("{number}: no such question waits"))?;
        let watched = self.watched.get(&waiting.run);
        let watched = watched.ok_or_else(|| format!("{number}: the run is over"))?;
        let (kind, rule) = match said {
            Said::Deny => return watched.answer(waiting.id, PersonAnswer::Deny),
            Said::Grant(kind, RuleKind::Narrow) => (kind, &waiting.question.narrow),
            Said::Grant(kind, RuleKind::Host) => (kind, &waiting.question.broad),
        };
        if rule.is_empty() {
            return Err(format!(
                "{number}: there is no such rule to give; the other one may be"
            ));
        }
        if kind == GrantKind::Always {
            let Some(kept) = &self.always else {
                return Err(format!("{number}: --always FILE says where a rule is kept"));
            };
            if rule.starts_with(LISTEN_RULE) {
                return Err(format!(
                    "{number}: a port to listen on is kept by `listen = [...]` in a policy, \
                     which is yours to write"
                ));
            }
            kept.keep(rule)
                .map_err(|error| format!("{number}: {error}"))?;
        }
        let request = GrantRequest {
            rule: rule.clone(),
            seconds: match kind {
                GrantKind::For(seconds) => seconds,
                GrantKind::Once | GrantKind::Run | GrantKind::Always => 0,
            },
            uses: match kind {
                GrantKind::Once => GrantUses::Once,
                GrantKind::Run | GrantKind::For(_) | GrantKind::Always => GrantUses::All,
            },
        };
        watched.answer(waiting.id, PersonAnswer::Grant(request))
    }
}

#[cfg(test)]
impl Waiting {
    /// One of run `a\nb` for tests of how it is shown.
    pub(super) fn of_test(question: OpenQuestion) -> Self {
        Self {
            run: 1,
            id: 1,
            name: "a\nb".to_owned(),
            about: "c\u{1b}d".to_owned(),
            since: Instant::now(),
            question,
        }
    }
}
