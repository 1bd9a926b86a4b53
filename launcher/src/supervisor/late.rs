//! When the gateway starts, and bundles of certificates that need its authority: at the
//! first call that asks for it, when somebody opens a bundle, or a moment after the
//! command began where it may reach somebody.

use std::time::{Duration, Instant};

use super::{Eager, Supervisor};
use crate::gateway_link::GatewayLink;
use crate::trust::Late;

/// How long after the command the gateway starts beside it. A command that is over
/// sooner needs none, and one that connects needs longer to come to it.
const BESIDE: Duration = Duration::from_millis(1);

/// How long somebody waits for a bundle at most, before it is written without the
/// authority: as long as for a gateway to begin.
const WANTED_TIME: Duration = Duration::from_secs(10);

/// What waits for the gateway to begin.
#[derive(Debug)]
pub(super) struct PendingCall {
    bundles: Option<Late>,
    /// The authority, once it is known.
    authority: Option<String>,
    /// Since when somebody waits for a bundle.
    wanted: Option<Instant>,
    /// When the gateway starts beside the command.
    beside: Option<Instant>,
}

impl PendingCall {
    pub(super) fn new(bundles: Option<Late>, eager: Eager) -> Self {
        let beside = match eager {
            Eager::Yes => Instant::now().checked_add(BESIDE),
            Eager::No => None,
        };
        Self {
            bundles,
            authority: None,
            wanted: None,
            beside,
        }
    }

    /// Whether somebody waits for a bundle.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// How long until the gateway starts beside the command, if it is to.
    pub(super) fn starts_in(&self) -> Option<Duration> {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.beside.map(left)
    }
}

impl Supervisor<'_> {
    /// Starts the gateway beside the command when its moment came.
    pub(super) fn begin_beside(&mut self) {
        if self.late.starts_in().is_some_and(|left| left.is_zero()) {
            self.late.beside = None;
            self.link.start();
            self.notice_gateway();
        }
    }

    /// Somebody opened a bundle and waits for it.
    pub(super) fn certificates_wanted(&mut self) {
        if self.late.bundles.is_none() {
            return;
        }
        self.late.wanted.get_or_insert_with(Instant::now);
        self.link.start();
        self.notice_gateway();
        self.write_certificates();
    }

    /// The gateway said which authority it opens TLS with.
    pub(super) fn authority_known(&mut self, authority: String) {
        self.late.authority = Some(authority);
        self.write_certificates();
    }

    /// Who waits for too long, or for a gateway that is gone, gets what there is.
    pub(super) fn certificates_due(&mut self, now: Instant) {
        let Some(since) = self.late.wanted else {
            return;
        };
        let is_over = now.saturating_duration_since(since) > WANTED_TIME;
        if is_over || matches!(self.link, GatewayLink::Gone(_)) {
            self.late.authority.get_or_insert_default();
        }
        self.write_certificates();
    }

    fn write_certificates(&mut self) {
        if self.late.wanted.is_none() || self.late.authority.is_none() {
            return;
        }
        self.late.wanted = None;
        let (Some(bundles), Some(authority)) = (self.late.bundles.take(), &self.late.authority)
        else {
            return;
        };
        // About files, it may take the time that it takes.
        self.alarm.stop();
        if let Err(error) = bundles.write(authority) {
            let line = format!(
                "outgate: warning: certificates for the command cannot be written ({error}): \
                 clients do not trust the run"
            );
            self.voice.say(&line);
        }
    }
}
