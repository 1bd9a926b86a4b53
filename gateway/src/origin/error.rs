//! Why nothing came back from an origin: of whom it is the fault, and whether that was
//! recorded.

use std::io;

use outgate_record::Reason;

use crate::body::{ContentError, Stopped};
use crate::filter::FilterFault;
use crate::limits;
use crate::refusal::Refusal;
use crate::resolve::ResolveError;

/// Why nothing came back from an origin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OriginError {
    #[error("{}", .0.sentence())]
    Denied(Refusal),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("connecting to {0}: {1}")]
    Connect(String, io::Error),
    #[error("{0} did not answer within {secs} s", secs = limits::DIAL_TIME.as_secs())]
    Timeout(String),
    #[error("{0}: the upstream proxy: {1}")]
    Proxy(String, String),
    #[error("{0}: {1}")]
    Tls(String, String),
    #[error("{0} broke the protocol: {1}")]
    Protocol(String, String),
    /// A filter stopped it, and recorded why.
    #[error("{}", .0.sentence())]
    Stopped(Refusal),
    #[error("the request ended before it was whole: {0}")]
    Content(String),
    /// A fault of the gateway's own, which sends nothing then.
    #[error("{0}: what was allowed is something else")]
    OtherPermit(String),
    #[error("{0} reset the stream: {1}")]
    Reset(String, h2::Reason),
}

impl OriginError {
    /// The same as a refusal, for who has no other way to say it.
    pub(crate) fn into_refusal(self, subject: &str) -> Refusal {
        match self {
            Self::Denied(refusal) | Self::Stopped(refusal) => refusal,
            Self::Resolve(error) => Refusal::own(Reason::Dns, subject, &error.to_string()),
            error @ (Self::Connect(..)
            | Self::Timeout(_)
            | Self::Proxy(..)
            | Self::Tls(..)
            | Self::Protocol(..)
            | Self::Content(_)
            | Self::OtherPermit(_)
            | Self::Reset(..)) => Refusal::own(Reason::Origin, subject, &error.to_string()),
        }
    }
}

impl From<FilterFault> for OriginError {
    fn from(fault: FilterFault) -> Self {
        match fault {
            FilterFault::Denied(refusal) => Self::Denied(refusal),
            FilterFault::Stopped(stopped) => stopped.into(),
        }
    }
}

impl From<Stopped> for OriginError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Refused(refusal) => Self::Stopped(*refusal),
            Stopped::Lost => Self::Content(stopped.to_string()),
        }
    }
}

impl From<ContentError> for OriginError {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::Stopped(stopped) => stopped.into(),
            ContentError::Http1(_) | ContentError::Http2(_) => Self::Content(error.to_string()),
        }
    }
}
