//! A request that cannot be taken for one request to one target. Values only.

use http::StatusCode;
use outgate_record::Reason;

/// A request that has no target, and the answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
    pub(crate) because: String,
}

impl Malformed {
    /// A request whose bytes are wrong.
    pub(crate) fn bad(because: &str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            reason: Reason::Malformed,
            because: because.to_owned(),
        }
    }
}
