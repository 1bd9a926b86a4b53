//! Policy text of a run that takes the place of what is in force: whole, or not at all. The
//! rules that come of it are compiled beside everything else, one change after the other.
//! What was granted for a time ends here as well, whatever becomes of the launcher.

use std::sync::Arc;
use std::time::Instant;

use outgate_handoff::{LINE_BYTES_MAX, ToLauncher};
use outgate_policy::{Context, Policy, Source, compile};
use tokio::sync::mpsc;

use super::timed::TimedTexts;
use crate::in_force::Scanned;
use crate::rules::SessionPolicies;
use crate::session::Session;
use crate::text::shortened;

/// Other policy text for a run, and what it is about, in words for the record.
#[derive(Debug)]
pub(crate) struct PolicyChange {
    pub(crate) id: u64,
    pub(crate) what: String,
    pub(crate) texts: TimedTexts,
}

impl PolicyChange {
    /// Says what came of it.
    pub(crate) fn answer(&self, session: &Session, outcome: Result<(), String>) {
        let message = match outcome {
            Ok(()) => String::new(),
            Err(message) if message.is_empty() => "it cannot be".to_owned(),
            Err(message) => shortened(&message, LINE_BYTES_MAX),
        };
        session.post().tell(ToLauncher::Changed(self.id, message));
    }
}

/// What a run is judged by, and what is left of it once the time of rules is over.
#[derive(Debug)]
pub(crate) struct TextsInForce {
    texts: TimedTexts,
    /// The text that was put in force last because a time was over: the launcher, which has
    /// a clock as well, is about to say the same.
    left: Option<Vec<Source>>,
}

impl TextsInForce {
    pub(crate) fn new(texts: TimedTexts) -> Self {
        Self { texts, left: None }
    }

    pub(crate) fn texts(&self) -> &TimedTexts {
        &self.texts
    }

    /// Takes over what is in force from now on because a change says so.
    pub(crate) fn change(&mut self, texts: TimedTexts) {
        *self = Self::new(texts);
    }

    /// The same because a time is over.
    pub(crate) fn end(&mut self, texts: TimedTexts) {
        self.left = Some(texts.sources.clone());
        self.texts = texts;
    }

    /// Whether a change says what was done already because a time is over.
    pub(crate) fn is_ended_by(&mut self, change: &PolicyChange) -> bool {
        let is_same = self.left.as_ref() == Some(&change.texts.sources);
        if is_same {
            self.change(change.texts.clone());
        }
        is_same
    }
}

/// Puts the changes of a run with a gateway of its own in force, as they come, and ends what
/// was granted for a time.
pub(super) async fn follow(
    session: Arc<Session>,
    (texts, context): (TimedTexts, Context),
    changes: mpsc::Receiver<PolicyChange>,
) {
    let following = Following {
        session: &session,
        context,
        run: TextsInForce::new(texts),
        changes,
    };
    tokio::select! {
        () = following.follow() => {}
        () = session.post().deliver(session.control()) => {}
    }
}

struct Following<'s> {
    session: &'s Session,
    context: Context,
    run: TextsInForce,
    changes: mpsc::Receiver<PolicyChange>,
}

impl Following<'_> {
    async fn follow(mut self) {
        let mut waiting: Option<PolicyChange> = None;
        loop {
            let change = if let Some(change) = waiting.take() {
                change
            } else {
                tokio::select! {
                    biased;
                    () = self.run.texts().end() => {
                        self.end().await;
                        continue;
                    }
                    change = self.changes.recv() => match change {
                        Some(change) => change,
                        None => return,
                    },
                }
            };
            waiting = self.change(change).await;
        }
    }

    /// Puts a change in force. It is given back where a time was over meanwhile, which comes
    /// first.
    async fn change(&mut self, change: PolicyChange) -> Option<PolicyChange> {
        if self.run.is_ended_by(&change) {
            change.answer(self.session, Ok(()));
            return None;
        }
        let scanned = tokio::select! {
            biased;
            () = self.run.texts().end() => {
                self.end().await;
                return Some(change);
            }
            scanned = self.scanned(&change.texts) => scanned,
        };
        let outcome = scanned.map(|scanned| {
            self.session.revise(scanned, &change.what);
            self.run.change(change.texts.clone());
        });
        change.answer(self.session, outcome);
        None
    }

    /// Ends the rules whose time is over. Where nothing can be without them, nothing passes.
    async fn end(&mut self) {
        let Some((texts, line)) = self.run.texts().expired(Instant::now()) else {
            return;
        };
        let scanned = self.scanned(&texts).await;
        let scanned = scanned.unwrap_or_else(|_| self.session.shut());
        self.session.revise(scanned, &line);
        self.run.end(texts);
    }

    async fn scanned(&self, texts: &TimedTexts) -> Result<Scanned, String> {
        let (sources, context) = (texts.sources.clone(), self.context.clone());
        let compiling = move || compiled(&sources, &context);
        let compiled = tokio::task::spawn_blocking(compiling).await;
        let policy = compiled.map_err(|error| error.to_string())??;
        self.session.scanned(SessionPolicies::private(policy))
    }
}

fn compiled(sources: &[Source], context: &Context) -> Result<Policy, String> {
    compile(sources, context).map_err(|errors| errors.to_string())
}
