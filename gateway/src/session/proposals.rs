//! Rules that a command proposed, and what became of each: so many of a run, and so many that
//! wait at once. One that is proposed again while it waits is the same one. Asks nobody.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use super::Asked;

/// Proposals that wait for an answer at once: a person reads them one by one.
const OPEN_MAX: usize = 8;
/// Proposals of one run that a person is asked about.
const ALL_MAX: usize = 64;
/// Refusals of proposals that are recorded.
const REFUSED_MAX: u64 = 64;
/// Requests that wait for an answer at once.
const WAITERS_MAX: usize = 16;
/// How long nobody is asked after nobody was there.
const UNHEARD_TIME: Duration = Duration::from_secs(1);

/// The proposals of one sandbox.
#[derive(Debug)]
pub(crate) struct Proposals {
    state: Mutex<ProposalState>,
    waiters: Semaphore,
}

impl Default for Proposals {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            waiters: Semaphore::new(WAITERS_MAX),
        }
    }
}

#[derive(Debug, Default)]
struct ProposalState {
    next: u64,
    all: Vec<Arc<Proposal>>,
    /// When nobody was there to hear one.
    unheard: Option<Instant>,
    refused: u64,
}

/// A rule that was proposed.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) id: u64,
    pub(crate) rule: String,
    /// Why, in the command's own words, made safe.
    pub(crate) words: String,
    stage: watch::Sender<ProposalStage>,
}

/// What became of one so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProposalStage {
    /// Nobody answered yet.
    Pending,
    /// It was answered, or not in time.
    Settled(Asked),
}

/// What a rule that is proposed is.
#[derive(Debug)]
pub(crate) enum EnteredProposal {
    /// A new one: somebody has to be asked.
    New(Arc<Proposal>),
    /// One that waits already, or that a person said no to.
    Known(Arc<Proposal>),
    /// None: as many wait as may.
    Crowded,
    /// None: the run had all that it may have.
    Spent,
    /// None: nobody was there a moment ago.
    Unheard,
}

impl Proposal {
    /// What became of it so far.
    pub(crate) fn stage(&self) -> ProposalStage {
        *self.stage.borrow()
    }

    /// Waits until it is settled, at most so long.
    pub(crate) async fn settled_within(&self, time: Duration) {
        let mut stage = self.stage.subscribe();
        let settled = stage.wait_for(|stage| *stage != ProposalStage::Pending);
        tokio::time::timeout(time, settled).await.map(drop).ok();
    }
}

impl Proposals {
    /// Takes one in.
    pub(crate) fn enter(&self, rule: &str, words: &str) -> EnteredProposal {
        let Ok(mut state) = self.state.lock() else {
            return EnteredProposal::Spent;
        };
        let stays = |stage: ProposalStage| {
            matches!(
                stage,
                ProposalStage::Pending | ProposalStage::Settled(Asked::Denied)
            )
        };
        let mut known = state.all.iter().rev();
        if let Some(known) = known.find(|own| own.rule == rule && stays(own.stage())) {
            return EnteredProposal::Known(Arc::clone(known));
        }
        if state
            .unheard
            .is_some_and(|since| since.elapsed() < UNHEARD_TIME)
        {
            return EnteredProposal::Unheard;
        }
        if state.all.len() >= ALL_MAX {
            return EnteredProposal::Spent;
        }
        let open = state.all.iter();
        let open = open.filter(|own| own.stage() == ProposalStage::Pending);
        if open.count() >= OPEN_MAX {
            return EnteredProposal::Crowded;
        }
        state.next = state.next.saturating_add(1);
        let proposal = Arc::new(Proposal {
            id: state.next,
            rule: rule.to_owned(),
            words: words.to_owned(),
            stage: watch::Sender::new(ProposalStage::Pending),
        });
        state.all.push(Arc::clone(&proposal));
        EnteredProposal::New(proposal)
    }

    /// The one of this number.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<Proposal>> {
        let state = self.state.lock().ok()?;
        state.all.iter().find(|own| own.id == id).cloned()
    }

    /// Says what became of one. One that nobody heard was none.
    pub(crate) fn settle(&self, proposal: &Proposal, asked: Asked) {
        if matches!(asked, Asked::Nobody | Asked::Crowded)
            && let Ok(mut state) = self.state.lock()
        {
            state.all.retain(|own| own.id != proposal.id);
            if asked == Asked::Nobody {
                state.unheard = Some(Instant::now());
            }
        }
        proposal.stage.send_replace(ProposalStage::Settled(asked));
    }

    /// Whether a refusal is still to be recorded: the first ones are.
    pub(crate) fn is_refusal_recorded(&self) -> bool {
        let Ok(mut state) = self.state.lock() else {
            return false;
        };
        state.refused = state.refused.saturating_add(1);
        state.refused <= REFUSED_MAX
    }

    /// A place among those who wait; nothing where all are taken.
    pub(crate) fn waiter(&self) -> Option<SemaphorePermit<'_>> {
        self.waiters.try_acquire().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(proposals: &Proposals, rule: &str) -> Arc<Proposal> {
        match proposals.enter(rule, "why") {
            EnteredProposal::New(proposal) => proposal,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_flood_of_proposals_is_bounded_and_the_same_one_is_one() {
        let proposals = Proposals::default();
        let first = new(&proposals, "GET http://a.test/0");
        for _ in 0..10_000 {
            let EnteredProposal::Known(same) = proposals.enter("GET http://a.test/0", "other")
            else {
                panic!("another one");
            };
            assert_eq!(same.id, first.id);
        }
        for number in 1..OPEN_MAX {
            new(&proposals, &format!("GET http://a.test/{number}"));
        }
        for number in OPEN_MAX..10_000 {
            let rule = format!("GET http://a.test/{number}");
            assert!(matches!(
                proposals.enter(&rule, ""),
                EnteredProposal::Crowded
            ));
        }
        // Answered ones make room, up to all that a run may have.
        for number in 0..ALL_MAX - OPEN_MAX {
            proposals.settle(&first, Asked::Granted);
            let rule = format!("GET http://b.test/{number}");
            let next = new(&proposals, &rule);
            proposals.settle(&next, Asked::Late);
        }
        assert!(matches!(
            proposals.enter("GET http://c.test/", ""),
            EnteredProposal::Spent
        ));
    }

    #[tokio::test]
    async fn a_no_stays_and_one_that_nobody_heard_was_none() {
        let proposals = Proposals::default();
        let denied = new(&proposals, "GET http://a.test/");
        proposals.settle(&denied, Asked::Denied);
        denied.settled_within(Duration::from_mins(1)).await;
        assert_eq!(denied.stage(), ProposalStage::Settled(Asked::Denied));
        let again = proposals.enter("GET http://a.test/", "");
        assert!(matches!(again, EnteredProposal::Known(own) if own.id == denied.id));
        let unheard = new(&proposals, "GET http://b.test/");
        proposals.settle(&unheard, Asked::Nobody);
        assert!(proposals.find(unheard.id).is_none());
        assert!(matches!(
            proposals.enter("GET http://c.test/", ""),
            EnteredProposal::Unheard
        ));
    }
}
