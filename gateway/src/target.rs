//! The one target of a request (RFC 9110 7.2): what is judged, scanned, sent and shown.
//! Values only.

use http::Method;
use outgate_policy::{Host, Inspect, RequestTarget, Scheme};

use crate::carrier::Upgrade;

/// How much of a target people and records get to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetVisibility {
    /// All but the values of its query.
    Path,
    /// Scheme and authority alone: the rest holds a value of the user's.
    Origin,
}

/// The target of one request: immutable once it is known how much of it may be
/// shown and how closely it is looked at, and everything that follows uses it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) scheme: Scheme,
    pub(crate) method: Method,
    pub(crate) resource: RequestTarget,
    pub(crate) shown: TargetVisibility,
    /// By which mode the scan inspects what goes there: the strictest, unless a
    /// permit said otherwise.
    pub(crate) mode: Inspect,
}

impl Target {
    /// Scheme and authority, for people and records.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }

    /// What stands behind it, if that may be shown.
    pub(crate) fn path(&self) -> Option<&RequestTarget> {
        match self.shown {
            TargetVisibility::Path => Some(&self.resource),
            TargetVisibility::Origin => None,
        }
    }

    /// The authority as it is sent: no port where it is the scheme's own.
    pub(crate) fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub(crate) fn upgrade(&self) -> Upgrade {
        match self.scheme {
            Scheme::Http | Scheme::Https => Upgrade::None,
            Scheme::Ws | Scheme::Wss => Upgrade::WebSocket,
        }
    }
}
