//! A session of a shared gateway kept below the ceiling that is in force, and at the policy
//! that its run has: whichever changes.

use std::sync::Arc;
use std::time::Instant;

use outgate_handoff::{LINE_BYTES_MAX, ToLauncher};
use tokio::sync::{mpsc, watch};

use super::{Ceilings, RunPolicy};
use crate::rules::Ceiling;
use crate::serve::{PolicyChange, TextsInForce};
use crate::session::Session;
use crate::text::shortened;

/// What the record says where the ceiling is another.
const OTHER_RULES: &str = "other rules are in force";

/// What a run hears that would change its policy.
const ENDING: &str = "the gateway is ending; try again once it is back";

/// Who follows both.
pub(super) struct Following {
    pub(super) session: Arc<Session>,
    pub(super) run: RunPolicy,
    pub(super) texts: TextsInForce,
    pub(super) ceilings: Ceilings,
    pub(super) changes: mpsc::Receiver<PolicyChange>,
    /// Whether the gateway takes nothing new any more.
    pub(super) ending: watch::Receiver<bool>,
}

/// What is to be done about.
enum News {
    /// There is another ceiling.
    Ceiling,
    /// The time of a granted rule is over.
    End,
    /// The run has other policy text.
    Change(PolicyChange),
    /// Nothing ever again.
    Over,
}

impl Following {
    /// Follows until the session or the gateway ends.
    pub(super) async fn follow(mut self) {
        let session = Arc::clone(&self.session);
        tokio::select! {
            () = self.follow_all() => {}
            () = session.post().deliver(session.control()) => {}
        }
    }

    /// Follows until the gateway takes nothing new: then no policy comes any more.
    async fn follow_all(&mut self) {
        let mut ending = self.ending.clone();
        let ended = async { ending.wait_for(|ending| *ending).await.map(drop).is_ok() };
        let is_ending = tokio::select! {
            biased;
            is_ending = ended => is_ending,
            () = self.follow_both() => false,
        };
        if !is_ending {
            return;
        }
        self.session.wind_down();
        while let Some(change) = self.changes.recv().await {
            change.answer(&self.session, Err(ENDING.to_owned()));
        }
        std::future::pending::<()>().await;
    }

    async fn follow_both(&mut self) {
        let mut waiting = None;
        loop {
            match self.news(&mut waiting).await {
                News::Ceiling => self.lowered().await,
                News::End => self.ended().await,
                News::Change(change) => self.changed(change, &mut waiting).await,
                News::Over => return,
            }
        }
    }

    /// What came next. A ceiling goes before everything else.
    async fn news(&mut self, waiting: &mut Option<PolicyChange>) -> News {
        match self.ceilings.has_changed() {
            Ok(true) => return News::Ceiling,
            Ok(false) => {}
            Err(_) => return News::Over,
        }
        if self.texts.texts().expired(Instant::now()).is_some() {
            return News::End;
        }
        if let Some(change) = waiting.take() {
            return News::Change(change);
        }
        tokio::select! {
            biased;
            changed = self.ceilings.changed() => match changed {
                Ok(()) => {
                    self.ceilings.mark_changed();
                    News::Ceiling
                }
                Err(_) => News::Over,
            },
            () = self.texts.texts().end() => News::End,
            change = self.changes.recv() => change.map_or(News::Over, News::Change),
        }
    }

    /// Keeps the session below the ceiling that is in force now.
    async fn lowered(&mut self) {
        let session = &self.session;
        let ceiling = Arc::clone(&self.ceilings.borrow_and_update());
        // From here on nothing passes that the new one denies; nothing at all
        // where the scans of both do not go together.
        let narrowed = session.rules().narrowed(&ceiling);
        let narrowed = session.scanned(narrowed);
        let narrowed = narrowed.unwrap_or_else(|_| session.shut());
        session.revise(narrowed, OTHER_RULES);
        let rules = tokio::select! {
            rules = self.run.rules(&ceiling) => rules,
            _ = self.ceilings.changed() => {
                self.ceilings.mark_changed();
                return;
            }
        };
        match rules.and_then(|rules| session.scanned(rules)) {
            Ok(scanned) => session.revise(scanned, OTHER_RULES),
            Err(message) => {
                session.revise(session.shut(), OTHER_RULES);
                let message = shortened(&message, LINE_BYTES_MAX);
                session.post().tell(ToLauncher::Refused { message });
            }
        }
    }

    /// Ends the rules whose time is over. Where nothing can be without them, nothing passes.
    async fn ended(&mut self) {
        let Some((texts, line)) = self.texts.texts().expired(Instant::now()) else {
            return;
        };
        let session = &self.session;
        let ceiling: Arc<Ceiling> = Arc::clone(&self.ceilings.borrow());
        let run = self.run.with(&texts);
        let rules = tokio::select! {
            biased;
            _ = self.ceilings.changed() => {
                self.ceilings.mark_changed();
                return;
            }
            rules = run.rules(&ceiling) => rules,
        };
        let scanned = rules.and_then(|rules| session.scanned(rules));
        session.revise(scanned.unwrap_or_else(|_| session.shut()), &line);
        self.run = run;
        self.texts.end(texts);
    }

    /// Puts other policy text of the run in force below the ceiling, or says why not. Where
    /// that changes meanwhile, it comes first.
    async fn changed(&mut self, change: PolicyChange, waiting: &mut Option<PolicyChange>) {
        let session = &self.session;
        if self.texts.is_ended_by(&change) {
            return change.answer(session, Ok(()));
        }
        let ceiling: Arc<Ceiling> = Arc::clone(&self.ceilings.borrow());
        let run = self.run.with(&change.texts);
        let rules = tokio::select! {
            biased;
            _ = self.ceilings.changed() => {
                self.ceilings.mark_changed();
                *waiting = Some(change);
                return;
            }
            () = self.texts.texts().end() => {
                *waiting = Some(change);
                return;
            }
            rules = run.changed(session, (&self.run, &ceiling)) => rules,
        };
        let outcome = match rules.and_then(|rules| session.scanned(rules)) {
            Ok(scanned) => {
                session.revise(scanned, &change.what);
                self.run = run;
                self.texts.change(change.texts.clone());
                Ok(())
            }
            Err(message) => Err(message),
        };
        change.answer(session, outcome);
    }
}
