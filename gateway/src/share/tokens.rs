//! Sandboxes of the explicit proxy: the front of a shared gateway brings the credentials of
//! each, and the socket on which it opens its session as a launcher does.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outgate_handoff::TokenFrame;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::SharedGateway;
use crate::control::{self, ControlError};
use crate::proxy::TokenInForce;
use crate::tenant::Full;

impl SharedGateway {
    /// Starts the session of a token, or says why not.
    ///
    /// # Errors
    /// There is no socket with it.
    pub(super) fn take_token(
        self: &Arc<Self>,
        token: TokenFrame,
        descriptors: Vec<OwnedFd>,
        stopped: &watch::Receiver<()>,
        sessions: &mut JoinSet<()>,
    ) -> Result<(), ControlError> {
        let actual = descriptors.len();
        let mut descriptors = descriptors.into_iter();
        let (Some(socket), None) = (descriptors.next(), descriptors.next()) else {
            return Err(ControlError::Descriptors {
                expected: 1,
                actual,
            });
        };
        let admitted = if *self.ending.borrow() {
            Err(Full::Ending)
        } else {
            self.tenants.admit_token(&token.name)
        };
        match admitted {
            Ok(tenant) => {
                let shared = Arc::clone(self);
                let stopped = stopped.clone();
                sessions.spawn(async move {
                    let pid = std::process::id();
                    let ended = shared.attend(socket, pid, (tenant, Some(token)), stopped);
                    // How it ends is in the record, and the front's to say.
                    ended.await.ok();
                });
            }
            Err(full) => {
                self.refused.add(&full);
                control::refuse(&socket, &full);
            }
        }
        Ok(())
    }
}

/// Returns when the time of a token is over; never where there is none.
pub(super) async fn over(token: Option<&TokenInForce>) {
    match token {
        Some(token) => token.over().await,
        None => std::future::pending().await,
    }
}
