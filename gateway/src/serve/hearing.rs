//! What a launcher says while its sandbox runs: questions, connections handed over, other
//! policy text, and the end. A frame that breaks the contract ends the session.

use std::sync::Arc;

use outgate_handoff::{Ask, CallQuestion, ToGateway, ToLauncher};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::change::PolicyChange;
use super::opening::{PolicyTexts, expect_descriptors};
use crate::ask::held::{self, HeldCall};
use crate::audit::{Event, Kind, Outcome};
use crate::control::{ControlError, ControlSocket, ReceivedFrame};
use crate::session::Session;
use crate::{accept, ask, limits, stub};

/// Who hears one launcher until its sandbox is empty or it is gone.
pub(crate) struct SessionHearing<'c> {
    control: &'c Arc<ControlSocket>,
    changes: mpsc::Sender<PolicyChange>,
    /// Policy text on its way, and how much there may be.
    texts: PolicyTexts,
    bytes_max: usize,
    stubs: usize,
    leftovers: usize,
}

/// Whether the launcher has more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hearing {
    More,
    Over,
}

impl<'c> SessionHearing<'c> {
    /// `changes` is who puts other policy text in force, of at most `bytes_max` bytes.
    pub(crate) fn new(
        control: &'c Arc<ControlSocket>,
        changes: mpsc::Sender<PolicyChange>,
        bytes_max: usize,
    ) -> Self {
        Self {
            control,
            changes,
            texts: PolicyTexts::default(),
            bytes_max,
            stubs: 0,
            leftovers: 0,
        }
    }

    /// Serves a session until its sandbox is empty or its launcher gone.
    pub(crate) async fn run(
        mut self,
        session: &Arc<Session>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ControlError> {
        while let Some(received) = self.control.receive(buffer).await? {
            if self.serve_frame(session, received, buffer).await? == Hearing::Over {
                return Ok(());
            }
        }
        session.close().await;
        let event = Event::new(Kind::Finish, Outcome::Note, "").detail("launcher gone");
        session.recorder().record(&event).ok();
        Ok(())
    }

    /// Serves one frame.
    async fn serve_frame(
        &mut self,
        session: &Arc<Session>,
        received: ReceivedFrame,
        buffer: &mut Vec<u8>,
    ) -> Result<Hearing, ControlError> {
        let expected = descriptors_with(&received.frame);
        expect_descriptors(&received, expected)?;
        match received.frame {
            ToGateway::Ask(id, ask) => question(session, self.control, id, ask).await?,
            ToGateway::Flow(handed) => accept::accept(session, handed, received.descriptors)?,
            ToGateway::Stub => {
                self.stubs += 1;
                if self.stubs > session.stubs_max() {
                    return Err(ControlError::Order {
                        what: "more stub sockets than the limit",
                    });
                }
                if let Some(socket) = received.descriptors.into_iter().next() {
                    stub::accept(session, socket)?;
                }
            }
            ToGateway::Leftover { kind, path, detail } => {
                self.leftovers += 1;
                leftover(session, self.leftovers, &path, (&kind, &detail))?;
            }
            ToGateway::Finish { status } => {
                finish(session, self.control, buffer, status).await?;
                return Ok(Hearing::Over);
            }
            ToGateway::Source(piece) => self.texts.add(piece, self.bytes_max)?,
            ToGateway::Until { place, left_ms } => self.texts.until(place, left_ms)?,
            ToGateway::Settled(id, settlement) => {
                session.open_questions().settled(id, settlement);
            }
            ToGateway::Change(id, what) => {
                let texts = std::mem::take(&mut self.texts).finish()?;
                let change = PolicyChange { id, what, texts };
                // One change is sent after the other was answered.
                if self.changes.try_send(change).is_err() {
                    return Err(ControlError::Order {
                        what: "more changes of the policy than the limit",
                    });
                }
            }
            ToGateway::Setting(_)
            | ToGateway::Hello(_)
            | ToGateway::Begin(_)
            | ToGateway::Ping(_) => {
                return Err(ControlError::Order {
                    what: "a second opening",
                });
            }
            ToGateway::Token(_) => {
                return Err(ControlError::Order {
                    what: "credentials that only a gateway's front brings",
                });
            }
        }
        Ok(Hearing::More)
    }
}

/// How many descriptors come with a frame.
fn descriptors_with(frame: &ToGateway) -> usize {
    match frame {
        ToGateway::Flow(flow) => match flow.question {
            CallQuestion::Connect { .. } | CallQuestion::Listen { .. } => 1,
            CallQuestion::Unix { .. } => 2,
        },
        ToGateway::Stub => 1,
        ToGateway::Setting(_)
        | ToGateway::Hello(_)
        | ToGateway::Source(_)
        | ToGateway::Begin(_)
        | ToGateway::Change(..)
        | ToGateway::Settled(..)
        | ToGateway::Until { .. }
        | ToGateway::Ask(..)
        | ToGateway::Leftover { .. }
        | ToGateway::Ping(_)
        | ToGateway::Token(_)
        | ToGateway::Finish { .. } => 0,
    }
}

/// The sandbox is empty: says the last words, and waits for the launcher to hang up.
async fn finish(
    session: &Arc<Session>,
    control: &Arc<ControlSocket>,
    buffer: &mut Vec<u8>,
    status: u8,
) -> Result<(), ControlError> {
    session.drain().await;
    session.close().await;
    let mut detail = format!("status {status}");
    if let Some(unopened) = session.unopened() {
        detail.push_str("; ");
        detail.push_str(&unopened);
    }
    let event = Event::new(Kind::Finish, Outcome::Note, "").detail(&detail);
    session.recorder().record(&event).ok();
    let lines = session.summary();
    control.send(&ToLauncher::Summary { lines }).await?;
    // The launcher hangs up first, so that it never mistakes the
    // end for a failure.
    let hung_up = async { while let Ok(Some(_)) = control.receive(buffer).await {} };
    timeout(limits::LINGER_TIME, hung_up).await.ok();
    Ok(())
}

/// Records what the command left that runs by itself later.
fn leftover(
    session: &Session,
    count: usize,
    path: &str,
    (kind, detail): (&str, &str),
) -> Result<(), ControlError> {
    if count > limits::LEFTOVERS_MAX {
        return Err(ControlError::Order {
            what: "more leftovers than the limit",
        });
    }
    let event = Event::new(Kind::Leftover, Outcome::Note, path);
    session.recorder().record(&event.left(kind, detail)).ok();
    Ok(())
}

/// Answers at once where no name has to be resolved and nobody is asked; otherwise beside
/// the others, so that one slow name, or person, holds up nobody.
async fn question(
    session: &Arc<Session>,
    control: &Arc<ControlSocket>,
    id: u64,
    ask: Ask,
) -> Result<(), ControlError> {
    let asked = match held::held(session, &ask) {
        HeldCall::Waits(question) => {
            let (session, control) = (Arc::clone(session), Arc::clone(control));
            let tasks = Arc::clone(&session);
            tasks.tasks().spawn(async move {
                let asked = held::briefly(&session, question).await;
                let answer = ask::answer(&session, &ask, Some(asked)).await;
                control.send(&ToLauncher::Answer(id, answer)).await.ok();
            });
            return Ok(());
        }
        HeldCall::Redirected => {
            let answer = ask::waiting(session);
            return control.send(&ToLauncher::Answer(id, answer)).await;
        }
        HeldCall::Denied(asked) => Some(asked),
        HeldCall::Decided => None,
    };
    if asked.is_some() || !may_wait(session, &ask.question) {
        let answer = ask::answer(session, &ask, asked).await;
        return control.send(&ToLauncher::Answer(id, answer)).await;
    }
    let Some(slot) = session.question_slot().await else {
        return Ok(());
    };
    let (task_session, control) = (Arc::clone(session), Arc::clone(control));
    session.tasks().spawn(async move {
        let answer = ask::answer(&task_session, &ask, None).await;
        control.send(&ToLauncher::Answer(id, answer)).await.ok();
        drop(slot);
    });
    Ok(())
}

/// Whether an answer may need the DNS: only names do.
fn may_wait(session: &Session, question: &CallQuestion) -> bool {
    match question {
        CallQuestion::Connect { destination } => {
            let destination = session.destination(*destination);
            matches!(destination.party, crate::destination::Party::Name(_))
        }
        CallQuestion::Unix { .. } | CallQuestion::Listen { .. } => false,
    }
}
