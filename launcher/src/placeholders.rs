//! Secrets that stay outside, seen from the launcher: which of them the gateway
//! is to read, and what the command's environment holds in their place. No
//! value passes through here.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use outgate_policy::{Policy, SecretKind, SecretSource};
use outgate_sys::spawn::Plan;

use crate::environment::Variables;
use crate::gateway_link::Link;
use crate::supervisor::Voice;

/// The variables in which programs look for keys that sign.
const KEYS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
];

/// What the gateway is told to read.
pub(crate) fn arguments(policy: &Policy) -> Vec<String> {
    let secrets = policy.secrets().iter();
    let pair = |secret: &outgate_policy::Secret| {
        let kind = match secret.kind() {
            SecretKind::Value => "",
            SecretKind::Aws => "aws:",
        };
        let text = format!("{}={kind}{}", secret.name(), secret.source());
        ["--secret".to_owned(), text]
    };
    secrets.flat_map(pair).collect()
}

/// Takes out of the environment what secrets are called and come from.
pub(crate) fn withhold(policy: &Policy, variables: &mut Variables) {
    for secret in policy.secrets() {
        variables.remove(OsStr::new(secret.name()));
        if let SecretSource::Variable(name) = secret.source() {
            variables.remove(OsStr::new(name));
        }
        if secret.kind() == SecretKind::Aws {
            for name in KEYS {
                variables.remove(OsStr::new(name));
            }
        }
    }
}

/// Puts into the environment what the gateway says, and tells what is missing
/// there now.
///
/// # Errors
/// The gateway does not serve, with its reason.
pub(crate) fn settle(
    policy: &Policy,
    link: &mut Link,
    plan: &mut Plan,
    voice: &mut dyn Voice,
) -> Result<(), String> {
    if policy.secrets().is_empty() {
        return Ok(());
    }
    for name in apply(&link.variables()?, &mut plan.environment) {
        let line = format!("outgate: {name} is kept from the command: it holds a secret");
        voice.say(&line);
    }
    Ok(())
}

/// Puts what the gateway says into the environment; the names of variables that
/// were taken out because they hold a value.
fn apply(lines: &str, environment: &mut Vec<CString>) -> Vec<String> {
    let mut withheld = Vec::new();
    for line in lines.lines() {
        let name = line.split('=').next().unwrap_or_default();
        let before = environment.len();
        environment.retain(|pair| {
            let own = pair.as_bytes().split(|byte| *byte == b'=').next();
            own != Some(OsStr::new(name).as_bytes())
        });
        if line.contains('=') {
            environment.extend(CString::new(line));
        } else if environment.len() < before {
            withheld.push(name.to_owned());
        }
    }
    withheld
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_take_the_place_of_values() {
        let pair = |text: &str| CString::new(text).unwrap();
        let mut environment = vec![
            pair("A=1"),
            pair("COPY=real"),
            pair("KEY=old"),
            pair("AB=2"),
        ];
        let withheld = apply("COPY\nABSENT\nKEY=placeholder=x\n", &mut environment);
        assert_eq!(withheld, ["COPY"]);
        assert_eq!(
            environment,
            [pair("A=1"), pair("AB=2"), pair("KEY=placeholder=x")]
        );
    }
}
