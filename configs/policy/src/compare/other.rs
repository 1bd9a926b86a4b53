//! What beside rules one policy allows and another does not: files, addresses of names,
//! ports to listen on, secrets, the environment, limits, and the switches. Comparison only.

use crate::grant::{Limits, PathGrant};
use crate::policy::Policy;
use crate::settings::{Inspect, Intercept, Precaution, Settings, Switch, Unscannable};

/// Something beside rules that is wider, in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherWidening {
    /// The key of the document that says it.
    pub key: &'static str,
    /// What is wider.
    pub what: String,
}

/// What `to` allows beside rules that `from` does not.
pub(super) fn between(from: &Policy, to: &Policy) -> Vec<OtherWidening> {
    let mut found = Vec::new();
    let mut add = |key: &'static str, what: String| found.push(OtherWidening { key, what });
    files(from, to, &mut add);
    for grant in to.listen() {
        let is_there = from.listen().iter().any(|own| {
            let same = own.address == grant.address
                || own.address.is_unspecified() && own.address.is_ipv4() == grant.address.is_ipv4();
            same && own.ports.start() <= grant.ports.start() && grant.ports.end() <= own.ports.end()
        });
        if !is_there {
            add("listen", format!("listening on {grant}"));
        }
    }
    let own: Vec<(String, String)> = from.pins().collect();
    for (host, address) in to.pins().filter(|pin| !own.contains(pin)) {
        add("pin", format!("{host} leads to {address}"));
    }
    for (host, address) in own
        .iter()
        .filter(|pin| !to.pins().any(|other| other == **pin))
    {
        add("pin", format!("{host} no longer leads to {address} alone"));
    }
    environment(from, to, &mut add);
    limits(from.limits(), to.limits(), &mut add);
    settings(from.settings(), to.settings(), &mut add);
    lists(from, to, &mut add);
    found.sort();
    found.dedup();
    found
}

/// Keys that the gateway of a running command goes by, and nobody else.
const LOOSE: [&str; 8] = [
    "pin",
    "strict",
    "dns.servers",
    "dns.pin",
    "inspect.mode",
    "inspect.detector",
    "inspect.allow",
    "inspect.unscannable",
];

/// The first difference of either way that is about something else.
pub(super) fn fixed(begun: &Policy, policy: &Policy) -> Option<OtherWidening> {
    let kept = |key, one: Option<&str>, other: Option<&str>| {
        let other = other.unwrap_or("nothing");
        let what = || format!("`{}`, now `{other}`", one.unwrap_or("nothing"));
        (one.unwrap_or("nothing") != other).then(|| OtherWidening { key, what: what() })
    };
    let authority = |policy: &Policy| policy.settings().authority.clone();
    let (one, other) = (authority(begun), authority(policy));
    let authority = kept("tls.authority", one.as_deref(), other.as_deref());
    let record = kept("audit.file", begun.audit_file(), policy.audit_file());
    let both = [between(begun, policy), between(policy, begun)].concat();
    let others = both.into_iter().find(|own| !LOOSE.contains(&own.key));
    authority.or(record).or(others)
}

type Add<'a> = &'a mut dyn FnMut(&'static str, String);

/// Whether a path is another or lies below it.
fn is_at_or_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    path == directory || rest.is_some_and(|rest| rest.starts_with('/'))
}

fn files(from: &Policy, to: &Policy, add: Add<'_>) {
    let (old, new) = (from.filesystem(), to.filesystem());
    let is_in =
        |path: &str, list: &[PathGrant]| list.iter().any(|own| is_at_or_below(path, &own.path));
    // What is hidden in a granted directory and was before.
    let is_hidden_less = |path: &str| {
        old.deny.iter().any(|deny| {
            let meets = is_at_or_below(&deny.path, path) || is_at_or_below(path, &deny.path);
            meets && !is_in(&deny.path, &new.deny)
        })
    };
    for grant in &new.write {
        let path = &grant.path;
        if !is_in(path, &old.write) && !is_in(path, &new.deny) {
            add("filesystem.write", format!("writing below `{path}`"));
        }
    }
    for grant in &new.read {
        let path = &grant.path;
        let is_read = is_in(path, &old.read) || is_in(path, &old.write);
        if !is_read && !is_in(path, &new.deny) {
            add("filesystem.read", format!("reading below `{path}`"));
        }
    }
    for deny in &old.deny {
        let path = &deny.path;
        let is_granted =
            new.read.iter().chain(&new.write).any(|grant| {
                is_at_or_below(path, &grant.path) || is_at_or_below(&grant.path, path)
            });
        if is_granted && is_hidden_less(path) && !is_in(path, &new.deny) {
            add("filesystem.deny", format!("`{path}` is no longer hidden"));
        }
    }
}

fn environment(from: &Policy, to: &Policy, add: Add<'_>) {
    let (old, new) = (from.environment(), to.environment());
    match (&old.pass, &new.pass) {
        (None, _) => {}
        (Some(_), None) => add("environment.pass", "every variable is passed on".to_owned()),
        (Some(old), Some(new)) => {
            for name in new.iter().filter(|name| !old.contains(name)) {
                add(
                    "environment.pass",
                    format!("the variable {name} is passed on"),
                );
            }
        }
    }
    for (name, value) in &new.set {
        if old.set.get(name) != Some(value) {
            add(
                "environment.set",
                format!("the variable {name} is set to `{value}`"),
            );
        }
    }
}

fn limits(old: &Limits, new: &Limits, add: Add<'_>) {
    let mut number = |key: &'static str, old: Option<u64>, new: Option<u64>| {
        let is_more = match (old, new) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(old), Some(new)) => new > old,
        };
        if is_more {
            let shown = |limit: Option<u64>| {
                limit.map_or_else(|| "the default".to_owned(), |limit| limit.to_string())
            };
            add(key, format!("{}, before {}", shown(new), shown(old)));
        }
    };
    number("limits.processes", old.processes, new.processes);
    number("limits.memory", old.memory_bytes, new.memory_bytes);
    number("limits.open_files", old.open_files, new.open_files);
    number("limits.file_size", old.file_size_bytes, new.file_size_bytes);
    let seconds = |limits: &Limits| limits.wall_time.map(|time| time.as_secs());
    number("limits.wall_time", seconds(old), seconds(new));
}

fn settings(old: &Settings, new: &Settings, add: Add<'_>) {
    if old.inspect.stricter(new.inspect) != new.inspect {
        let word = new.inspect.word();
        add(
            "inspect.mode",
            format!(
                "findings are met with `{word}`, before `{}`",
                old.inspect.word()
            ),
        );
    }
    if new.inspect == Inspect::Off && old.inspect != Inspect::Off {
        add(
            "inspect.mode",
            "TLS to whole hosts passes unopened".to_owned(),
        );
    }
    let opens = |intercept: Intercept| match intercept {
        Intercept::Always => 2,
        Intercept::WhenNeeded => 1,
        Intercept::Never => 0,
    };
    if opens(new.intercept) < opens(old.intercept) {
        add(
            "tls.intercept",
            "TLS passes unopened that was opened to look inside".to_owned(),
        );
    }
    if old.intercept == Intercept::Never && new.intercept != old.intercept {
        add(
            "tls.intercept",
            "requests inside TLS that nobody could judge, and were denied".to_owned(),
        );
    }
    let refuses = |unscannable: Unscannable| match unscannable {
        Unscannable::Refuse => 2,
        Unscannable::RefuseBombs => 1,
        Unscannable::Record => 0,
    };
    if refuses(new.unscannable) < refuses(old.unscannable) {
        add(
            "inspect.unscannable",
            "content passes that nobody can look into".to_owned(),
        );
    }
    if old.strict == Switch::On && new.strict == Switch::Off {
        add(
            "strict",
            "what may be a credential passes, and what cannot be looked into".to_owned(),
        );
    }
    if new.monitor == Switch::On && old.monitor == Switch::Off {
        add("monitor", "what is denied passes".to_owned());
    }
    precautions(old, new, add);
}

fn precautions(old: &Settings, new: &Settings, add: Add<'_>) {
    let mut precaution = |key: &'static str, old: Precaution, new: Precaution, what: &str| {
        if old == Precaution::On && new == Precaution::Off {
            add(key, what.to_owned());
        }
    };
    precaution(
        "inspect.known",
        old.known,
        new.known,
        "your own secrets are not looked for",
    );
    precaution(
        "inspect.canaries",
        old.canaries,
        new.canaries,
        "no canaries are planted",
    );
    if old.known_file.is_some() && old.known_file != new.known_file {
        add(
            "inspect.known_file",
            "other values are looked for".to_owned(),
        );
    }
    if old.dns_servers != new.dns_servers {
        add("dns.servers", "names are asked of other servers".to_owned());
    }
    if old.dns_pin != new.dns_pin {
        add(
            "dns.pin",
            "names keep their addresses for another time".to_owned(),
        );
    }
    if old.audit_full != new.audit_full {
        add("audit.full", "a full disk is answered otherwise".to_owned());
    }
}

/// Lists of settings as texts, without the places that they come from.
struct Lists {
    /// A difference of either way may be wider.
    either: Vec<(&'static str, String)>,
    /// Each item lets more pass.
    more: Vec<(&'static str, String)>,
}

impl Lists {
    fn of(policy: &Policy) -> Self {
        let settings = policy.settings();
        let detectors = settings.inspect_detectors.iter().map(|own| {
            let mode = own.mode.map_or("", Inspect::word);
            let form = own.form.as_ref().map(|form| {
                let list = (
                    &form.pattern,
                    &form.literals,
                    &form.issuers,
                    form.tenants.word(),
                );
                format!(" {list:?}")
            });
            let text = format!("{} {mode}{}", own.id, form.unwrap_or_default());
            ("inspect.detector", text)
        });
        let clients = settings.clients.iter().map(|own| {
            let text = format!("{} is shown {}", own.host, own.certificate);
            ("tls.client", text)
        });
        let secrets = policy.secrets().iter().map(|own| {
            let text = format!(
                "{} of {}, bound to {:?}",
                own.name, own.source, own.bindings
            );
            ("secret", text)
        });
        let scopes = settings.inspect_scopes.iter().flat_map(|own| {
            let hosts = own.hosts.iter();
            hosts.map(|host| {
                (
                    "inspect.allow",
                    format!("what {} finds may go to {host}", own.detector),
                )
            })
        });
        let known = settings.known_hosts.iter().flat_map(|own| {
            let hosts = own.hosts.iter();
            hosts.map(|host| ("inspect.value", format!("{} may go to {host}", own.name)))
        });
        Self {
            either: detectors.chain(clients).chain(secrets).collect(),
            more: scopes.chain(known).collect(),
        }
    }
}

fn lists(from: &Policy, to: &Policy, add: Add<'_>) {
    let (old, new) = (Lists::of(from), Lists::of(to));
    for (key, text) in new.either.iter().filter(|own| !old.either.contains(own)) {
        add(key, text.clone());
    }
    for (key, text) in old.either.iter().filter(|own| !new.either.contains(own)) {
        add(key, format!("no longer: {text}"));
    }
    for (key, text) in new.more.iter().filter(|own| !old.more.contains(own)) {
        add(key, text.clone());
    }
}
