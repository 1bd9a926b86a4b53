//! What a shared gateway waits for: launchers, its front, and the end of what runs once it
//! is to end. Decides nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use outgate_handoff::{POLICY_BYTES_MAX, ToGateway, ToLauncher};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::SharedGateway;
use crate::control::{ControlError, ControlSocket, ReceivedFrame};
use crate::limits;
use crate::serve::PolicyTexts;

/// A gateway that serves.
pub(super) struct Serving {
    pub(super) shared: Arc<SharedGateway>,
    pub(super) control: ControlSocket,
    pub(super) sessions: JoinSet<()>,
    /// Tells sessions that it is over.
    pub(super) stopped: watch::Receiver<()>,
    /// Time that what runs has once it is to end.
    pub(super) ending_time: Duration,
}

/// How the front went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastWord {
    /// It asked for the end, and waits for it.
    Finish,
    /// It is gone, or says what means nothing.
    Gone,
}

/// When what runs has to be finished.
#[derive(Debug, Clone, Copy)]
struct WindingDown {
    /// From when on every session knows.
    known: Instant,
    latest: Instant,
}

impl WindingDown {
    fn of(time: Duration) -> Self {
        let now = Instant::now();
        let latest = now + time;
        Self {
            known: latest.min(now + limits::ENDING_PAUSE),
            latest,
        }
    }
}

/// What a frame of the front leads to.
enum NextStep {
    GoOn,
    /// What runs is finished first.
    WindDown,
    End(LastWord),
}

impl Serving {
    /// Serves until the front is gone, or says so and everything that runs is finished, or
    /// has had its time, or the front says it again.
    pub(super) async fn serve(
        &mut self,
        listener: Option<&UnixListener>,
        buffer: &mut Vec<u8>,
    ) -> Result<LastWord, ControlError> {
        let mut texts = PolicyTexts::default();
        let mut end: Option<WindingDown> = None;
        loop {
            tokio::select! {
                accepted = accept(listener) => match accepted {
                    Ok(socket) => self.shared.take(socket, &self.stopped, &mut self.sessions),
                    // Descriptors or memory are short: those who hold them let go.
                    Err(_) => sleep(limits::ACCEPT_PAUSE).await,
                },
                received = self.control.receive(buffer) => {
                    let next = self.next(received?, &mut texts).await?;
                    match (next, end) {
                        (NextStep::GoOn, _) => {}
                        (NextStep::WindDown, None) => {
                            end = Some(WindingDown::of(self.ending_time));
                            self.shared.ending.send_replace(true);
                        }
                        (NextStep::WindDown, Some(_)) => return Ok(LastWord::Finish),
                        (NextStep::End(word), _) => return Ok(word),
                    }
                }
                Some(_) = self.sessions.join_next() => {}
                () = finished(&self.shared, end) => return Ok(LastWord::Finish),
            }
        }
    }

    async fn next(
        &mut self,
        received: Option<ReceivedFrame>,
        texts: &mut PolicyTexts,
    ) -> Result<NextStep, ControlError> {
        let Some(ReceivedFrame { frame, descriptors }) = received else {
            return Ok(NextStep::End(LastWord::Gone));
        };
        match frame {
            ToGateway::Source(piece) => texts.add(piece, POLICY_BYTES_MAX)?,
            ToGateway::Begin(_) => {
                let sources = std::mem::take(texts).finish()?.sources;
                self.control
                    .send(&self.shared.revise(sources).await)
                    .await?;
            }
            ToGateway::Token(token) => {
                let sessions = &mut self.sessions;
                self.shared
                    .take_token(token, descriptors, &self.stopped, sessions)?;
            }
            ToGateway::Ping(id) => self.control.send(&ToLauncher::Pong(id)).await?,
            ToGateway::Finish { .. } => return Ok(NextStep::WindDown),
            _ => return Ok(NextStep::End(LastWord::Gone)),
        }
        Ok(NextStep::GoOn)
    }
}

/// Returns once nothing is under way, or its time is over; never before it is to end.
async fn finished(shared: &SharedGateway, end: Option<WindingDown>) {
    let Some(end) = end else {
        return std::future::pending().await;
    };
    sleep_until(end.known).await;
    timeout_at(end.latest, shared.under_way.none()).await.ok();
}

/// The next connection; never one where there is no listener.
async fn accept(listener: Option<&UnixListener>) -> io::Result<OwnedFd> {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let (socket, _) = listener.accept().await?;
    Ok(socket.into_std()?.into())
}
