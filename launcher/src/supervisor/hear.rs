//! Frames from the gateway: answers, lines for the user, new generations.

use std::time::Duration;

use nix::errno::Errno;
use outgate_handoff::{Answer, Decision, ToLauncher};

use super::Supervisor;
use super::wait::{Asked, Want};

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
                    ..
                } => {
                    self.generation = generation;
                    if let Some(presence) = &mut self.presence {
                        presence.status().record = audit;
                    }
                    self.hosts_known(&hosts);
                }
                ToLauncher::Refused { message } => self.link.fail(&message),
                ToLauncher::Answer(id, answer) => self.answered(id, answer),
                ToLauncher::Notice { line } | ToLauncher::Kept { message: line } => {
                    self.voice.say(&line);
                }
                ToLauncher::Generation { generation } => {
                    self.generation = generation;
                    self.verdicts.clear();
                }
                ToLauncher::Summary { lines } => self.summary = Some(lines),
                // The command has its environment by now.
                ToLauncher::Variables { .. } => {}
            }
        }
        self.notice_gateway();
    }

    fn answered(&mut self, id: u64, answer: Answer) {
        // An answer to a call that is no longer held is for nobody.
        let Some(Asked {
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
            Want::Listen(_) if is_void => notification.fail(Errno::EACCES),
            Want::Unix(call) => match answer.decision {
                Decision::Redirect => self.connect_relayed(notification, call),
                Decision::Deny | Decision::Direct(_) => notification.fail(Errno::ECONNREFUSED),
            },
            Want::Listen(call) => match answer.decision {
                Decision::Direct(_) => self.listen_now(notification, &call),
                Decision::Deny | Decision::Redirect => notification.fail(Errno::EACCES),
            },
        }
    }
}
