//! The effective policy for people and for programs: every rule, path, limit
//! and switch that holds, and the place it comes from.

use std::fmt::Write as _;
use std::path::Path;

use outgate_policy::{
    Arguments, AuditFull, ClientCertificate, DnsPin, DnsServer, HostTenancy, InspectDetector,
    InspectScope, Intercept, KnownHosts, Note, PathGrant, Policy, Precaution, Secret, SecretKind,
    ShownKey, Switch, Unscannable,
};

use crate::policy_options::PRIVATE;

mod as_json;

pub(crate) use as_json::json;

/// What stands for a place where nobody set a value.
const DEFAULT: &str = "default";

/// One line of the text: what kind of thing, what it is, where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) what: String,
    pub(crate) place: String,
}

impl Row {
    fn new(kind: &'static str, what: impl Into<String>, place: &str) -> Self {
        Self {
            kind,
            what: what.into(),
            place: place.to_owned(),
        }
    }
}

/// The policy as text, without a line end.
pub(crate) fn text(policy: &Policy) -> String {
    let mut sections = sections(policy);
    if !policy.has_network_rules() {
        let word = Row::new("", "nothing leaves: no rule allows a host", "");
        sections
            .iter_mut()
            .take(1)
            .for_each(|(_, rules)| rules.push(word.clone()));
    }
    let mut out = String::new();
    for (title, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let separator = if out.is_empty() { "" } else { "\n\n" };
        let _ = write!(out, "{separator}{title}");
        let width = rows.iter().map(|row| row.what.chars().count()).max();
        let width = width.unwrap_or(0).min(WHAT_COLUMNS_MAX);
        for Row { kind, what, place } in rows {
            let line = format!("  {kind:<6} {what:<width$}  {place}");
            let _ = write!(out, "\n{}", line.trim_end());
        }
    }
    for warning in policy.warnings() {
        let _ = write!(out, "\n\nwarning: {warning}");
    }
    out
}

/// All that a policy says, by what it is about.
pub(crate) fn sections(policy: &Policy) -> [(&'static str, Vec<Row>); 12] {
    [
        ("rules", rules(policy)),
        ("pins", pins(policy)),
        ("certificates", certificates(policy)),
        ("secrets", secrets(policy)),
        ("scan", scan(policy)),
        ("listening", listening(policy)),
        ("files", files(policy)),
        ("environment", environment(policy)),
        ("arguments", arguments(policy)),
        ("limits", limits(policy)),
        ("settings", settings(policy)),
        ("notes", notes(policy)),
    ]
}

/// Columns that the longest text may move the places to the right.
const WHAT_COLUMNS_MAX: usize = 60;

fn rules(policy: &Policy) -> Vec<Row> {
    policy
        .rules()
        .map(|rule| {
            let (process, addresses) = policy.limits_of(&rule);
            let mut what = rule.text.to_string();
            if !process.is_empty() {
                let _ = write!(what, "  for {}", process.join(", "));
            }
            if !addresses.is_empty() {
                let _ = write!(what, "  also at {}", addresses.join(", "));
            }
            for said in policy
                .shown_keys(&rule)
                .iter()
                .filter_map(ShownKey::sentence)
            {
                let _ = write!(what, "  {said}");
            }
            Row::new(rule.effect.as_str(), what, &rule.place)
        })
        .collect()
}

fn pins(policy: &Policy) -> Vec<Row> {
    policy
        .pins()
        .map(|(host, address)| {
            let place = policy.place(&format!("pin.{host}")).unwrap_or_default();
            Row::new("pin", format!("{host} = {address}"), place)
        })
        .collect()
}

/// What is presented to which host.
fn certificates(policy: &Policy) -> Vec<Row> {
    let row = |client: &ClientCertificate| {
        let files = if client.key == client.certificate {
            client.certificate.clone()
        } else {
            format!("{} {}", client.certificate, client.key)
        };
        Row::new(
            "client",
            format!("{} = {files}", client.host),
            &client.place,
        )
    };
    policy.settings().clients.iter().map(row).collect()
}

/// What stays outside, and where it may go.
fn secrets(policy: &Policy) -> Vec<Row> {
    let row = |secret: &Secret| {
        let bindings: Vec<&str> = secret.bindings().collect();
        let mut what = format!(
            "{} from {}{} for {}",
            secret.name(),
            kind(secret),
            secret.source(),
            bindings.join(" and ")
        );
        let positions = secret.positions();
        if !positions.is_empty() {
            let _ = write!(what, ", also in {}", positions.join(", "));
        }
        Row::new("secret", what, secret.place())
    };
    policy.secrets().iter().map(row).collect()
}

/// What stands before the source of a secret.
fn kind(secret: &Secret) -> &'static str {
    match secret.kind() {
        SecretKind::Value => "",
        SecretKind::Aws => "aws:",
    }
}

/// Detectors that the policy speaks of, and where credentials may go besides.
fn scan(policy: &Policy) -> Vec<Row> {
    let settings = policy.settings();
    let detector = |own: &InspectDetector| {
        let mut what = own.id.clone();
        if let Some(mode) = own.mode {
            let _ = write!(what, " = {}", mode.word());
        }
        if let Some(form) = &own.form {
            let _ = write!(what, "  {}", form.pattern.escape_debug());
            if !form.issuers.is_empty() {
                let _ = write!(what, "  to {}", form.issuers.join(", "));
                if form.tenants == HostTenancy::Many {
                    what.push_str(", not in content");
                }
            }
        }
        Row::new("find", what, &own.place)
    };
    let scope = |own: &InspectScope| {
        let what = format!("{} to {}", own.detector, hosts(own).join(", "));
        Row::new("let", what, &own.place)
    };
    let detectors = settings.inspect_detectors.iter().map(detector);
    detectors
        .chain(settings.inspect_scopes.iter().map(scope))
        .collect()
}

/// The hosts of an allowance.
fn hosts(scope: &InspectScope) -> Vec<String> {
    scope.hosts.iter().map(ToString::to_string).collect()
}

fn listening(policy: &Policy) -> Vec<Row> {
    policy
        .listen()
        .iter()
        .map(|grant| Row::new("listen", grant.to_string(), &grant.place))
        .collect()
}

fn files(policy: &Policy) -> Vec<Row> {
    let files = policy.filesystem();
    let lists = [
        ("read", &files.read),
        ("write", &files.write),
        ("deny", &files.deny),
    ];
    let row = |kind, grant: &PathGrant| {
        let is_made = || files.made.iter().any(|made| made.path == grant.path);
        let absent = match (is_absent(grant), grant.optional) {
            (false, _) => "",
            (true, _) if kind == "write" && is_made() => "  (made when it is missing)",
            (true, true) => "  (not on this machine)",
            (true, false) => "  (missing: a run is refused)",
        };
        Row::new(kind, format!("{}{absent}", path(grant)), &grant.place)
    };
    let granted = lists
        .into_iter()
        .flat_map(|(kind, list)| list.iter().map(move |grant| row(kind, grant)));
    // Of what is shipped, the variables are the programs' own.
    let movable = files.movable.iter();
    let own = movable.filter(|movable| !movable.place.starts_with("preset `"));
    let moves = own.map(|movable| {
        let what = format!("{} to where ${} says", movable.from, movable.to);
        Row::new("moves", what, &movable.place)
    });
    granted.chain(moves).collect()
}

/// A path as the policy means it: only a run has the private directory.
fn path(grant: &PathGrant) -> &str {
    let own = &grant.path;
    match own.strip_prefix('/') {
        Some(shown) if own.starts_with(PRIVATE) => shown,
        Some(_) | None => own,
    }
}

/// Whether a path is not on this machine.
pub(crate) fn is_absent(grant: &PathGrant) -> bool {
    !grant.path.starts_with(PRIVATE) && !Path::new(&grant.path).exists()
}

fn environment(policy: &Policy) -> Vec<Row> {
    let environment = policy.environment();
    let place = |key: &str| policy.place(key).unwrap_or(DEFAULT).to_owned();
    let mut rows = vec![match &environment.pass {
        None => Row::new("pass", "everything", DEFAULT),
        Some(names) => Row::new("pass", names.join(" "), &place("environment.pass")),
    }];
    rows.extend(environment.set.iter().map(|(name, value)| {
        let place = place(&format!("environment.set.{name}"));
        Row::new("set", format!("{name}={}", value.escape_debug()), &place)
    }));
    rows
}

/// The limits that somebody set: name, value, key.
fn limit_values(policy: &Policy) -> Vec<(&'static str, String)> {
    let limits = policy.limits();
    let time = limits.wall_time.map(|time| format!("{}s", time.as_secs()));
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    [
        ("processes", number(limits.processes)),
        ("memory", number(limits.memory_bytes)),
        ("open_files", number(limits.open_files)),
        ("file_size", number(limits.file_size_bytes)),
        ("wall_time", time),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

fn limits(policy: &Policy) -> Vec<Row> {
    limit_values(policy)
        .into_iter()
        .map(|(name, value)| {
            let place = policy.place(&format!("limits.{name}")).unwrap_or(DEFAULT);
            Row::new("limit", format!("{name} = {value}"), place)
        })
        .collect()
}

/// Every switch, as the document writes it.
fn setting_values(policy: &Policy) -> Vec<(&'static str, String)> {
    let settings = policy.settings();
    let switch = |switch| match switch {
        Switch::On => "true".to_owned(),
        Switch::Off => "false".to_owned(),
    };
    let intercept = match settings.intercept {
        Intercept::WhenNeeded => "when-needed",
        Intercept::Always => "always",
        Intercept::Never => "never",
    };
    let unscannable = match settings.unscannable {
        Unscannable::Refuse => "refuse",
        Unscannable::RefuseBombs => "refuse-bombs",
        Unscannable::Record => "record",
    };
    let precaution = |precaution| match precaution {
        Precaution::On => "on".to_owned(),
        Precaution::Off => "off".to_owned(),
    };
    let pin = match settings.dns_pin {
        DnsPin::Run => "run",
        DnsPin::Ttl => "ttl",
    };
    let mut servers: Vec<String> = settings.dns_servers.iter().map(server).collect();
    if servers.is_empty() {
        servers.push(server(&DnsServer::System));
    }
    let mut values = vec![
        ("tls.intercept", intercept.to_owned()),
        ("inspect.mode", settings.inspect.word().to_owned()),
        ("inspect.unscannable", unscannable.to_owned()),
        ("inspect.known", precaution(settings.known)),
        ("inspect.canaries", precaution(settings.canaries)),
        ("dns.servers", servers.join(" ")),
        ("dns.pin", pin.to_owned()),
        ("strict", switch(settings.strict)),
        ("monitor", switch(settings.monitor)),
    ];
    let authority = settings.authority.clone();
    values.extend(authority.map(|directory| ("tls.authority", directory)));
    let list = settings.known_file.clone();
    values.extend(list.map(|file| ("inspect.known_file", file)));
    if !settings.known_hosts.is_empty() {
        let one = |bound: &KnownHosts| {
            let hosts: Vec<String> = bound.hosts.iter().map(ToString::to_string).collect();
            format!("{}@{}", bound.name, hosts.join(","))
        };
        let all: Vec<String> = settings.known_hosts.iter().map(one).collect();
        values.push(("inspect.value", all.join(" ")));
    }
    let note = settings.denial_note.as_deref().map(str::to_owned);
    values.extend(note.map(|note| ("denial_note", note)));
    let file = policy.audit_file().map(str::to_owned);
    values.extend(file.map(|file| ("audit.file", file)));
    if settings.audit_full == AuditFull::Drop {
        values.push(("audit.full", "drop".to_owned()));
    }
    let bytes = settings.audit_file_bytes;
    values.extend(bytes.map(|bytes| ("audit.rotate", format!("{bytes} bytes"))));
    values
}

fn server(server: &DnsServer) -> String {
    match server {
        DnsServer::System => "system".to_owned(),
        DnsServer::Address(address) => address.to_string(),
    }
}

/// What programs are started with besides.
fn arguments(policy: &Policy) -> Vec<Row> {
    let row = |table: &Arguments| {
        let mut what = format!("{} {} …", table.program, table.first.join(" "));
        if !table.unless.is_empty() {
            let _ = write!(what, " (unless it has {})", table.unless.join(", "));
        }
        Row::new("start", what, &table.place)
    };
    policy.arguments().iter().map(row).collect()
}

/// What the policy tells people.
fn notes(policy: &Policy) -> Vec<Row> {
    let row = |note: &Note| Row::new("note", note.text.clone(), &note.place);
    policy.notes().iter().map(row).collect()
}

fn settings(policy: &Policy) -> Vec<Row> {
    setting_values(policy)
        .into_iter()
        .map(|(key, value)| {
            let place = policy.place(key).unwrap_or(DEFAULT);
            Row::new("set", format!("{key} = {value}"), place)
        })
        .collect()
}
