//! The filters that requests of a session pass, in the order in which they look: a new one
//! is a line here.

use crate::filter::FilterChain;
use crate::session::Session;
use crate::{broker, budget, overrides, scan};

/// Those of one request, judged by the rules in force.
pub(crate) fn of(session: &Session) -> FilterChain {
    FilterChain::new([
        Some(scan::filter(session.scans())),
        Some(overrides::filter()),
        // Placeholders become secrets behind what looks for secrets.
        broker::filter(session.secrets()),
        scan::canaries(session.canaries()),
        Some(budget::once(session.used_grants(), session.control())),
        // Counts what is sent, as it is sent.
        Some(budget::filter(session.budgets())),
    ])
}
