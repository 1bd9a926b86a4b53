//! The compiled policy: what a launcher and a gateway ask it.

use std::net::SocketAddr;

use crate::error::PolicyError;
use crate::grant::{Environment, Filesystem, Limits, ListenGrant};
use crate::host::HostName;
use crate::settings::Settings;
use crate::verdict::RuleRef;

/// A policy that was compiled without fault.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    filesystem: Filesystem,
    environment: Environment,
    limits: Limits,
    settings: Settings,
    listen: Vec<ListenGrant>,
    audit_file: Option<String>,
    unix: Vec<String>,
    rules: Vec<RuleRef>,
    warnings: Vec<PolicyError>,
}

impl Policy {
    /// What the command may read and write.
    pub fn filesystem(&self) -> &Filesystem {
        &self.filesystem
    }

    /// The environment of the command.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The limits of the sandbox.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where the command may bind and listen.
    pub fn listen(&self) -> &[ListenGrant] {
        &self.listen
    }

    /// The file for the audit records, as written.
    pub fn audit_file(&self) -> Option<&str> {
        self.audit_file.as_deref()
    }

    /// The paths of Unix sockets that rules allow; may hold `*` and `**`.
    pub fn unix_grants(&self) -> impl Iterator<Item = &str> {
        self.unix.iter().map(String::as_str)
    }

    /// The address the operator pinned a host and port to.
    pub fn pin(&self, _host: &HostName, _port: u16) -> Option<SocketAddr> {
        todo!()
    }

    /// The switches.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All rules, in the order of the sources.
    pub fn rules(&self) -> impl Iterator<Item = RuleRef> {
        self.rules.iter().cloned()
    }

    /// What is legal in the policy and yet deserves a second look.
    pub fn warnings(&self) -> &[PolicyError] {
        &self.warnings
    }

    /// Whether clients of this port may be expected to speak HTTP, so that a
    /// denial can be said to them.
    pub fn speaks_http(&self, _port: u16) -> bool {
        todo!()
    }

    /// Whether any rule lets anything out over the network.
    pub fn has_network_rules(&self) -> bool {
        todo!()
    }
}
