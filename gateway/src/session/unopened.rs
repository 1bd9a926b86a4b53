//! TLS that went to a host with nobody looking into it: counted by host, within
//! a bound, and told at the end in one line.

use std::collections::BTreeMap;

use outgate_policy::Host;

use crate::limits;

/// TLS that passed and that nobody looked into.
#[derive(Debug, Default)]
pub(super) struct Unopened {
    count: u64,
    /// Of each host, within a bound.
    hosts: BTreeMap<String, u64>,
}

impl Unopened {
    /// In words, or nothing: how many, and where most of them went.
    pub(super) fn words(&self) -> Option<String> {
        let connections = match self.count {
            0 => return None,
            1 => "1 connection".to_owned(),
            count => format!("{count} connections"),
        };
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        // A stable order: by number, then by name.
        hosts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named = hosts.iter().take(limits::SUMMARY_HOSTS_MAX);
        let mut named: Vec<&str> = named.map(|(host, _)| host.as_str()).collect();
        if hosts.len() > named.len() {
            named.push("…");
        }
        Some(format!(
            "{connections} passed unopened ({})",
            named.join(", ")
        ))
    }

    /// Counts one connection.
    pub(super) fn add(&mut self, host: &Host) {
        self.count = self.count.saturating_add(1);
        let host = host.to_string();
        if self.hosts.len() < limits::RESOLVED_MAX || self.hosts.contains_key(&host) {
            let count = self.hosts.entry(host).or_default();
            *count = count.saturating_add(1);
        }
    }
}
