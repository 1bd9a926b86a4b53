//! Frames from the gateway: answers, lines for the user, new generations.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use outgate_handoff::{Answer, Decision, ToLauncher};

use super::bind::bind_now;
use super::connect::Call;
use super::wait::{GatewayAnswer, Want};
use super::{Supervisor, VERDICTS_MAX};

/// Frames read in a row before other work goes on.
const FRAMES_IN_A_ROW: usize = 256;

impl Supervisor<'_> {
    pub(super) fn hear(&mut self) {
        for _ in 0..FRAMES_IN_A_ROW {
            let Some(frame) = self.link.receive() else {
                break;
            };
            match frame {
                ToLauncher::Ready {
                    generation,
                    hosts,
                    audit,
                    authority,
                    ..
                } => {
                    self.generation = generation;
                    self.authority_known(authority);
                    self.record = Some(audit.clone());
                    self.lifetime.record(audit);
                    self.hosts_known(&hosts);
                }
                ToLauncher::Refused { message } => self.link.fail(&message),
                ToLauncher::Answer(id, answer) => self.answered(id, answer),
                ToLauncher::Notice { line } | ToLauncher::Kept { message: line } => {
                    if let Some(denials) = &mut self.denials {
                        denials.note(&line);
                    }
                    self.voice.say(&line);
                }
                ToLauncher::Generation { generation } => {
                    self.generation = generation;
                    self.verdicts.clear();
                }
                ToLauncher::Changed(id, message) => self.changed(id, message),
                ToLauncher::Spent { place } => self.grant_used(place),
                ToLauncher::Question(id, question) => self.asked_of_people(id, question),
                ToLauncher::Withdrawn(id) => self.withdrawn(id),
                ToLauncher::Summary { lines } => self.summary = Some(lines),
                // The command has its environment by now.
                ToLauncher::Variables { .. } | ToLauncher::Pong(_) => {}
            }
        }
        self.notice_gateway();
    }

    fn answered(&mut self, id: u64, answer: Answer) {
        // An answer to a call that is no longer held is for nobody.
        let Some(GatewayAnswer {
            notification, want, ..
        }) = self.asked.remove(&id)
        else {
            return;
        };
        // Decided before the policy changed, and not yet done.
        let is_void = answer.generation < self.generation;
        match want {
            Want::Connect(call) if is_void => self.ask_connect(notification, call),
            Want::Connect(call) => {
                let reuse = Duration::from_millis(answer.reuse_ms.into());
                self.remember(&call, &answer.decision, reuse);
                self.enact(notification, call, answer.decision);
            }
            Want::Unix(_) if is_void => notification.fail(Errno::ECONNREFUSED),
            Want::Bind(_) | Want::Listen(_) if is_void => notification.fail(Errno::EACCES),
            Want::Unix(call) => match answer.decision {
                Decision::Redirect => self.connect_relayed(notification, call),
                Decision::Deny | Decision::Direct(_) => notification.fail(Errno::ECONNREFUSED),
            },
            Want::Bind(call) => match answer.decision {
                Decision::Direct(_) => bind_now(notification, &call),
                Decision::Deny | Decision::Redirect => notification.fail(Errno::EACCES),
            },
            Want::Listen(call) => match answer.decision {
                Decision::Direct(_) => self.listen_now(notification, &call),
                Decision::Deny | Decision::Redirect => notification.fail(Errno::EACCES),
            },
        }
    }

    /// What was decided of such a call, as long as the gateway allows.
    pub(super) fn remembered(&mut self, call: &Call) -> Option<Decision> {
        let key = (call.destination, call.process.executable.clone());
        let verdict = self.verdicts.get(&key)?;
        if verdict.until > Instant::now() {
            return Some(verdict.decision.clone());
        }
        self.verdicts.remove(&key);
        None
    }

    /// Remembers a decision as long as the gateway allows.
    fn remember(&mut self, call: &Call, decision: &Decision, reuse: Duration) {
        let Some(until) = Instant::now()
            .checked_add(reuse)
            .filter(|_| !reuse.is_zero())
        else {
            return;
        };
        if self.verdicts.len() >= VERDICTS_MAX {
            self.verdicts.clear();
        }
        let key = (call.destination, call.process.executable.clone());
        let decision = decision.clone();
        self.verdicts
            .insert(key, super::TimedDecision { decision, until });
    }
}
