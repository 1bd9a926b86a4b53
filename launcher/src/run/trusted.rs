//! How the command of a run comes to trust what the gateway opens TLS with.

use std::path::Path;

use outgate_policy::Policy;

use super::{Options, RunError};
use crate::gateway_link::Link;
use crate::supervisor::Voice;
use crate::trust::splice::Stores;
use crate::trust::{Late, Trust, Way};

/// Whether the command is told to trust the authority that the gateway opens TLS with:
/// where it is opened, or only to say there what is denied, and where the command may read
/// what it is told.
pub(super) fn trusts(policy: &Policy, options: &Options, private: &Path) -> bool {
    let is_told = || policy.has_network_rules() || is_readable(policy, private);
    // What a shared gateway opens, only it knows.
    options.gateway.is_some() || (policy.opens_tls() && is_told())
}

/// Whether the command may read what lies in the private directory.
pub(super) fn is_readable(policy: &Policy, private: &Path) -> bool {
    let files = policy.filesystem();
    let mut grants = files.read.iter().chain(&files.write);
    grants.any(|grant| private.starts_with(&grant.path))
}

/// Has the command trust the authority that the gateway opens TLS with: at once, or once
/// somebody opens one of the bundles.
pub(super) fn stores(
    trust: Trust,
    way: Way,
    link: &mut Link,
    voice: &mut dyn Voice,
) -> Result<(Option<Stores>, Option<Late>), RunError> {
    let machine = |source| RunError::Machine {
        what: "certificates for the command",
        source,
    };
    let trust = if way == Way::Variables {
        match Late::make(trust).map_err(machine)? {
            Ok(late) => return Ok((None, Some(late))),
            Err(trust) => trust,
        }
    } else {
        trust
    };
    link.start();
    let authority = link.authority();
    trust.write(&authority).map_err(machine)?;
    if way == Way::Variables || authority.is_empty() {
        return Ok((None, None));
    }
    let stores = Stores::make(&authority).map_err(machine)?;
    if stores.is_none() {
        voice.say(
            "outgate: warning: --trust splice has no effect: no system bundle of certificates \
             can be read",
        );
    }
    Ok((stores, None))
}
