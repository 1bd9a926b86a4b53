//! The state of a shared gateway as one JSON object, for `outgate gateway status`: every
//! limit with what is used of it and the option that raises it.

use outgate_handoff::ShareLimit;
use serde_json::{Value, json};

use super::super::SharedGateway;
use super::Readiness;
use super::process::OwnProcess;
use crate::audit::Outcome;
use crate::limits;
use crate::tenant::Share;

fn limited(share: Share, limit: ShareLimit) -> Value {
    json!({ "used": share.used, "limit": share.limit, "option": limit.option() })
}

/// The object, with a line end.
pub(super) fn json(shared: &SharedGateway, readiness: Readiness) -> String {
    format!("{}\n", value(shared, readiness))
}

/// The object.
pub(super) fn value(shared: &SharedGateway, readiness: Readiness) -> Value {
    let tenants = &shared.tenants;
    let capacity = tenants.capacity();
    let accounts = tenants.accounts();
    let shown = accounts.iter().take(limits::ADMIN_USERS_MAX);
    let users: Vec<Value> = shown
        .map(|own| {
            json!({
                "uid": own.uid,
                "sandboxes": limited(own.sessions, ShareLimit::SandboxesPerUser),
                "connections": limited(own.flows, ShareLimit::ConnectionsPerUser),
            })
        })
        .collect();
    let of_sandbox = json!({
        "limit": capacity.flows_of_sandbox,
        "option": ShareLimit::ConnectionsPerSandbox.option(),
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "state": readiness.word(),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "policy": { "generation": shared.generation(), "rules": shared.rules() },
        "sandboxes": limited(tenants.sessions(), ShareLimit::Sandboxes),
        "tokens": tenants.tokens(),
        "sandboxes_total": tenants.taken(),
        "sandboxes_per_user": {
            "limit": capacity.sessions_of_one, "option": ShareLimit::SandboxesPerUser.option(),
        },
        "connections": limited(tenants.flows(), ShareLimit::Connections),
        "connections_per_user": {
            "limit": capacity.flows_of_one, "option": ShareLimit::ConnectionsPerUser.option(),
        },
        "connections_per_sandbox": of_sandbox,
        "users": users,
        "users_total": accounts.len(),
        "under_way": shared.under_way.count(),
        "open_files": {
            "used": shared.process.open_files(), "limit": OwnProcess::open_files_limit(),
            "option": "LimitNOFILE= or ulimit -Hn",
        },
        "resident_bytes": shared.process.resident_bytes(),
        "decisions": decisions(shared),
        "record": record(shared),
    })
}

fn decisions(shared: &SharedGateway) -> Value {
    let of = |wanted| -> u64 {
        let events = shared.audit.counts().events();
        let counts = events.filter(|(_, verdict, _)| *verdict == wanted);
        counts.map(|(_, _, count)| count).sum()
    };
    let (up, down) = shared.audit.counts().bytes();
    json!({
        "allowed": of(Outcome::Allow), "denied": of(Outcome::Deny),
        "bytes_up": up, "bytes_down": down,
    })
}

fn record(shared: &SharedGateway) -> Value {
    let state = shared.audit.state();
    let path = shared
        .audit
        .path()
        .map(|path| path.to_string_lossy().into_owned());
    let word = match (&path, state.is_failing) {
        (None, _) => "none",
        (Some(_), false) => "written",
        (Some(_), true) => "failing",
    };
    let fault = state.is_failing.then(|| shared.audit.fault());
    json!({ "state": word, "path": path, "lost": state.lost, "fault": fault })
}
