//! Reads records as a stranger would: what is missing or of another kind is absent, and
//! whatever a text holds may have been chosen by a command, so that nobody prints it as it
//! is. Every text and list is bounded, whoever wrote it.

use crate::limits::NAME_BYTES_MAX;
use crate::members::within;
use crate::record::{Record, Traffic};
use crate::words::Word;

impl Record<'static> {
    /// Reads a line; nothing if it is no record.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(line).ok()?;
        (!record.run.is_empty() && !record.kind.as_str().is_empty()).then_some(record)
    }
}

impl<P: Clone> Record<'_, P> {
    /// Why, as one word; empty where none is given.
    pub fn reason(&self) -> &str {
        self.reason.as_ref().map_or("", Word::as_str)
    }

    /// Why, for people; empty where nothing is said.
    pub fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or_default()
    }

    /// Whether it is a connection that the gateway looks into, by whichever way it came: what
    /// is in it is told by itself.
    pub fn is_looked_into(&self) -> bool {
        let detail = self.detail();
        let rest = detail.strip_prefix("gateway");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("; "))
    }

    /// The addresses that the name was pinned to.
    pub fn pin(&self) -> &str {
        self.pin.as_deref().unwrap_or_default()
    }

    /// The executable that asked; empty where none did.
    pub fn executable(&self) -> &str {
        self.executable.as_deref().unwrap_or_default()
    }

    /// Records right before this one that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.unwrap_or(0)
    }

    /// Milliseconds from 1970 on; 0 where the time cannot be read.
    pub fn at(&self) -> u64 {
        crate::milliseconds(&self.time).unwrap_or(0)
    }

    /// How much went each way; nothing where nothing is said of it.
    pub fn traffic(&self) -> Option<Traffic> {
        let is_said = self.bytes_up.is_some() || self.bytes_down.is_some();
        is_said.then(|| Traffic {
            up: self.bytes_up.unwrap_or(0),
            down: self.bytes_down.unwrap_or(0),
            millis: self.duration_ms.unwrap_or(0),
        })
    }

    /// The host that it is about, without a port; empty where it is about none.
    pub fn host(&self) -> &str {
        within(self.whole_host(), NAME_BYTES_MAX)
    }

    fn whole_host(&self) -> &str {
        match self.kind.as_str() {
            "start" | "finish" | "policy" | "unix" | "listen" | "leftover" => return "",
            _ => {}
        }
        // The target of a flow to a Unix socket is its path.
        if self.target.starts_with('/') {
            return "";
        }
        let target: &str = &self.target;
        let authority = target.split_once("://").map_or(target, |(_, rest)| rest);
        if let Some(rest) = authority.strip_prefix('[') {
            return rest.split_once(']').map_or(rest, |(host, _)| host);
        }
        match authority.rsplit_once(':') {
            // An address with colons and without brackets has no port.
            Some((host, port)) if is_port(port) && !host.contains(':') => host,
            _ => authority,
        }
    }

    /// Whether a run that monitors let it through in spite of its rules.
    pub fn is_monitored(&self) -> bool {
        self.monitor.is_some()
    }

    /// The same of what counts by itself: a connection is told by what is in it.
    pub fn is_let_through(&self) -> bool {
        self.is_monitored() && !self.is_looked_into()
    }

    /// The program that asked, without the way to it.
    pub fn program(&self) -> &str {
        short(self.executable())
    }

    /// What it is about, as a sentence names it.
    pub fn subject(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        let target = &self.target;
        match (self.kind.as_str(), self.method.as_deref()) {
            (_, Some(method)) => format!("{method} {target}{path}"),
            ("canary", None) if target.contains("://") => format!("a response from {target}"),
            ("finding" | "canary" | "dns", None) => format!("the name {target}"),
            ("tunnel", None) => format!("TLS to {target}"),
            ("budget", None) => format!("sending to {target}"),
            ("leftover", None) => format!("left behind: {target}"),
            ("unix", None) => format!("connection to unix://{target}"),
            ("listen", None) => format!("listening on {target}"),
            ("flow", None) if target.starts_with('/') => format!("unix://{target}"),
            ("start" | "finish" | "policy", None) => self.kind.as_str().to_owned(),
            (_, None) => format!("connection to {target}"),
        }
    }
}

/// The last part of a path.
pub fn short(path: &str) -> &str {
    let name = path.rsplit('/').find(|part| !part.is_empty());
    within(name.unwrap_or(""), NAME_BYTES_MAX)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
