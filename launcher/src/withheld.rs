//! Variables that hold the user's credentials. They stay outside, where no text of
//! the command can carry them away, unless the user passes them by name or the
//! policy allows a host that they are for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use outgate_policy::{Host, Policy};

use crate::environment::Variables;

/// Names said at the start; of further ones only how many.
const SAID_MAX: usize = 8;

/// Bytes of a value that is looked for in other variables: a shorter one may be a word.
const COPY_BYTES_MIN: usize = 12;

/// How the variables begin that hold settings of git (git-config(1)).
const GIT_CONFIG: &str = "GIT_CONFIG_";

/// Settings of git that are looked at among variables.
const GIT_CONFIG_MAX: usize = 4096;

/// What holds credentials among the caller's variables.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The variables, each with the hosts that its value is for, as `NAME` or
    /// `*.NAME`; none where nobody knows.
    pub hosts: BTreeMap<String, Vec<String>>,
    /// What the user passes by name; `*` is all of them.
    pub passed: Vec<OsString>,
}

impl Credentials {
    fn is_passed(&self, name: &str) -> bool {
        self.passed.iter().any(|own| own == name || own == "*")
    }
}

/// Takes credentials out that this policy has no use for, and says so.
pub(crate) fn withhold(
    policy: &Policy,
    credentials: &Credentials,
    variables: &mut Variables,
) -> Option<String> {
    let listed = |name: &str| {
        let pass = policy.environment().pass.as_ref();
        pass.is_some_and(|pass| pass.iter().any(|own| own == name))
            || policy.environment().set.contains_key(name)
    };
    let needed = |name: &str, hosts: &[String]| {
        let known = policy.settings().known_hosts.iter();
        let mut said = known.filter(|known| known.name == name);
        hosts.iter().any(|host| policy.may_reach(host))
            || said.any(|known| known.hosts.iter().any(|host| reaches(policy, host)))
    };
    let withheld: Vec<&str> = credentials
        .hosts
        .iter()
        .filter(|(name, _)| variables.contains_key(OsStr::new(name)))
        .filter(|(name, hosts)| {
            !credentials.is_passed(name) && !listed(name) && !needed(name, hosts)
        })
        .map(|(name, _)| name.as_str())
        .collect();
    let mut values: Vec<OsString> = withheld
        .iter()
        .filter_map(|name| variables.remove(OsStr::new(name)))
        .collect();
    // What goes in by one name is no secret by another.
    let judged = |name: &str| credentials.hosts.contains_key(name);
    values.retain(|value| {
        !variables
            .iter()
            .any(|(name, own)| own == value && name.to_str().is_some_and(judged))
    });
    let copies = copies(variables, &values);
    let is_kept = |name: &&str| credentials.is_passed(name) || listed(name) || judged(name);
    let copies: Vec<&str> = copies
        .iter()
        .map(String::as_str)
        .filter(|name| !is_kept(name))
        .collect();
    for name in &copies {
        variables.remove(OsStr::new(name));
    }
    let withheld = [withheld, copies].concat();
    if withheld.iter().any(|name| name.starts_with(GIT_CONFIG)) {
        renumber(variables);
    }
    said(&withheld)
}

/// Variables in whose values one of these stands, under whatever name: what was withheld is
/// there once more, in an alias or in a command line.
fn copies(variables: &Variables, values: &[OsString]) -> Vec<String> {
    let values = values.iter().map(|value| value.as_encoded_bytes());
    let values: Vec<&[u8]> = values
        .filter(|value| value.len() >= COPY_BYTES_MIN)
        .collect();
    let holds = |text: &OsStr| {
        let text = text.as_encoded_bytes();
        let is_in = |value: &&[u8]| text.windows(value.len()).any(|part| part == *value);
        values.iter().any(is_in)
    };
    let held = variables.iter().filter(|(_, value)| holds(value));
    held.filter_map(|(name, _)| Some(name.to_str()?.to_owned()))
        .collect()
}

/// Numbers the settings of git that are left among variables anew: where the name or the value
/// of one is missing, no command of git does anything (git-config(1)).
fn renumber(variables: &mut Variables) {
    let counter = OsStr::new("GIT_CONFIG_COUNT");
    let count = variables.get(counter).and_then(|count| count.to_str());
    let count = count.and_then(|count| count.trim().parse::<usize>().ok());
    let named = |kind: &str, number: usize| OsString::from(format!("{GIT_CONFIG}{kind}_{number}"));
    let mut kept: usize = 0;
    for number in 0..count.unwrap_or(0).min(GIT_CONFIG_MAX) {
        let key = variables.remove(&named("KEY", number));
        let value = variables.remove(&named("VALUE", number));
        if let (Some(key), Some(value)) = (key, value) {
            variables.insert(named("KEY", kept), key);
            variables.insert(named("VALUE", kept), value);
            kept = kept.saturating_add(1);
        }
    }
    variables.insert(counter.to_owned(), kept.to_string().into());
}

fn reaches(policy: &Policy, host: &Host) -> bool {
    match host {
        Host::Name(name) => policy.may_reach(name.as_str()),
        // Whoever names an address knows the machine behind it.
        Host::Address(_) => true,
    }
}

fn said(withheld: &[&str]) -> Option<String> {
    let (first, more) = withheld.split_at(withheld.len().min(SAID_MAX));
    let example = first.first()?;
    let names = first.join(", ");
    let more = match more.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "outgate: kept from the command: {names}{more} (no rule needs it; `--pass-env {example}` passes it)"
    ))
}
