//! How the command of a run comes to trust what the gateway opens TLS with.

use std::io;
use std::path::Path;

use outgate_policy::{Policy, printable};

use super::{RunError, RunOptions};
use crate::gateway_link::GatewayLink;
use crate::supervisor::{Aside, Prepared};
use crate::trust::splice::Stores;
use crate::trust::{Late, Trust, TrustMeans};
use crate::voice::Voice;

/// Whether the command is told to trust the authority that the gateway opens TLS with:
/// where it is opened, or only to say there what is denied, and where the command may read
/// what it is told.
pub(super) fn trusts(policy: &Policy, options: &RunOptions, private: &Path) -> bool {
    let is_told = || policy.reaches_out() || is_readable(policy, private);
    // What a shared gateway opens, only it knows.
    options.gateway.is_some() || (policy.opens_tls() && is_told())
}

/// Whether the command may read what lies in the private directory.
pub(super) fn is_readable(policy: &Policy, private: &Path) -> bool {
    let files = policy.filesystem();
    let mut grants = files.read.iter().chain(&files.write);
    grants.any(|grant| private.starts_with(&grant.path))
}

/// Bundles of certificates on their way.
pub(super) enum Bundles {
    /// Made aside, to be written once somebody opens one; or not, where no file waits so.
    Late(Aside<io::Result<Result<Late, Trust>>>),
    /// Written at once.
    Now(Trust),
}

/// How the command comes to trust.
pub(super) fn means(trust: Option<&Trust>, options: &RunOptions) -> TrustMeans {
    trust.map_or(options.trust, |trust| trust.means(options.trust))
}

/// Makes bundles, beside whatever else is made ready.
pub(super) fn bundles(trust: Trust, way: TrustMeans, prepared: &Prepared<'_>) -> Bundles {
    match way {
        TrustMeans::Variables => Bundles::Late(prepared.aside(|| Late::make(trust))),
        TrustMeans::Nss | TrustMeans::Splice => Bundles::Now(trust),
    }
}

/// Has the command trust the authority that the gateway opens TLS with: at once, or once
/// somebody opens one of the bundles.
pub(super) fn stores(
    bundles: Option<Bundles>,
    way: TrustMeans,
    link: &mut GatewayLink,
    voice: &mut dyn Voice,
) -> Result<(Option<Stores>, Option<Late>), RunError> {
    let machine = |source| RunError::Machine {
        what: "certificates for the command",
        source,
    };
    let trust = match bundles {
        None => return Ok((None, None)),
        Some(Bundles::Late(made)) => match made.wait().flatten().map_err(machine)? {
            Ok(late) => return Ok((None, Some(late))),
            Err(trust) => trust,
        },
        Some(Bundles::Now(trust)) => trust,
    };
    link.start();
    let authority = link.authority();
    trust.write(&authority).map_err(machine)?;
    if way == TrustMeans::Variables || authority.is_empty() {
        return Ok((None, None));
    }
    if let Some(own) = trust.unmade().filter(|_| way == TrustMeans::Nss) {
        let own = printable(&own.to_string_lossy());
        voice.say(&format!(
            "outgate: warning: Chromium does not trust this run: `{own}` is there and holds no \
             database; remove it, or have one made: certutil -N --empty-password -d sql:{own}"
        ));
    }
    let stores = Stores::make(&authority, way, trust.nss_elsewhere()).map_err(machine)?;
    if way == TrustMeans::Splice && !stores.has_bundles() {
        voice.say(
            "outgate: warning: --trust splice has no effect: no system bundle of certificates \
             can be read",
        );
    }
    Ok((Some(stores), None))
}
