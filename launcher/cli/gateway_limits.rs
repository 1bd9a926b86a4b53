//! What `outgate gateway` bounds: options become settings of the gateway.

use std::time::Duration;

use clap::Args;
use outgate_launcher::{GatewaySetting, ShareLimit};

use crate::duration;

/// Seconds that running requests have where nobody says.
const DRAIN_SECONDS: u32 = 10;

/// Options that bound a shared gateway.
#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// Serve at most N sandboxes at once
    #[arg(long, value_name = "N", value_parser = count)]
    sandboxes: Option<u32>,
    /// Of them at most N of one user [default: half]
    #[arg(long, value_name = "N", value_parser = count)]
    sandboxes_per_user: Option<u32>,
    /// Serve at most N connections at once
    #[arg(long, value_name = "N", value_parser = count)]
    connections: Option<u32>,
    /// Of them at most N of one user [default: half]
    #[arg(long, value_name = "N", value_parser = count)]
    connections_per_user: Option<u32>,
    /// Of them at most N of one sandbox [default: half of that]
    #[arg(long, value_name = "N", value_parser = count)]
    connections_per_sandbox: Option<u32>,
    /// At the end, give running requests this time to finish, as 30s; 0s: none
    /// [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = drain)]
    drain: Option<u32>,
}

/// A limit that lets nothing be served is a mistake.
fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "write a number from 1 on".to_owned())
}

fn drain(text: &str) -> Result<u32, String> {
    match text {
        "0" | "0s" => Ok(0),
        text => duration::seconds(text),
    }
}

impl LimitOptions {
    /// Those that were given.
    pub(crate) fn settings(&self) -> Vec<GatewaySetting> {
        let given = [
            (ShareLimit::Sandboxes, self.sandboxes),
            (ShareLimit::SandboxesPerUser, self.sandboxes_per_user),
            (ShareLimit::Connections, self.connections),
            (ShareLimit::ConnectionsPerUser, self.connections_per_user),
            (
                ShareLimit::ConnectionsPerSandbox,
                self.connections_per_sandbox,
            ),
            (
                ShareLimit::DrainSeconds,
                Some(self.drain.unwrap_or(DRAIN_SECONDS)),
            ),
        ];
        let given = given.into_iter();
        let given = given.filter_map(|(limit, value)| Some(GatewaySetting::Limit(limit, value?)));
        given.collect()
    }

    /// Time that running requests have at the end.
    pub(crate) fn ending_time(&self) -> Duration {
        Duration::from_secs(self.drain.unwrap_or(DRAIN_SECONDS).into())
    }
}
