//! What reaches the supervisor from outside: its gateway's death and return. Decides
//! nothing about calls.

use outgate_handoff::ToGateway;

use super::{Once, Supervisor};
use crate::gateway_link::Attached;

/// Comings and goings of a shared gateway that are told.
const GONE_TOLD_MAX: u32 = 8;
impl Supervisor<'_> {
    pub(super) fn notice_gateway(&mut self) {
        if let Some(reason) = self.link.gone()
            && self.said.gateway == Once::No
        {
            let until = if self.link.may_come_back() {
                "until it is back"
            } else {
                "from now on"
            };
            let line = format!(
                "outgate: the gateway is gone ({reason}); every connection is refused {until}"
            );
            self.said.gateway = Once::Yes;
            self.said.gone = self.said.gone.saturating_add(1);
            if self.said.gone <= GONE_TOLD_MAX {
                self.voice.say(&line);
            }
            self.questions_lost();
            self.changes_lost();
            self.refuse_everything();
        }
    }

    /// Begins a new session with a shared gateway that went, if it is back:
    /// the same policy, nothing remembered.
    pub(super) fn attach_again(&mut self) {
        if self.link.attach_again() == Attached::No {
            return;
        }
        self.verdicts.clear();
        self.generation = 0;
        self.said.gateway = Once::No;
        let stubs: Vec<_> = self
            .stubs
            .iter()
            .filter_map(|stub| stub.try_clone().ok())
            .collect();
        for stub in stubs {
            self.tell(&ToGateway::Stub, vec![stub]);
        }
    }
}
