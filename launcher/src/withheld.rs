//! Variables that hold the user's credentials. They stay outside, where no text of
//! the command can carry them away, unless the user passes them by name or the
//! policy allows a host that they are for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use outgate_policy::{Host, Policy};

use crate::environment::Variables;

/// Names said at the start; of further ones only how many.
const SAID_MAX: usize = 8;

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
    for name in &withheld {
        variables.remove(OsStr::new(name));
    }
    if withheld.iter().any(|name| name.starts_with(GIT_CONFIG)) {
        renumber(variables);
    }
    said(&withheld)
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
