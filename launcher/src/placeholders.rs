//! Secrets that stay outside, seen from the launcher: which of them the gateway
//! is to read, and what the command's environment holds in their place; and the
//! false ones that are planted. No value passes through here.

use std::ffi::{CString, OsStr};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outgate_handoff::GatewaySetting;
use outgate_handoff::settings::CANARY_SEED_BYTES;
use outgate_policy::{Policy, Precaution, SecretKind, SecretSource};
use outgate_sys::spawn::Plan;

use crate::environment::Variables;
use crate::gateway_link::GatewayLink;
use crate::private::HeldDirectory;
use crate::voice::Voice;

/// The variables in which programs look for keys that sign.
const KEYS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
];

/// Whether anything may leave, and is scanned then.
pub(crate) fn scans(policy: &Policy) -> bool {
    policy.reaches_out() && policy.scans()
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

/// Whether false credentials are planted, by a gateway of the run's own.
pub(crate) fn plants(policy: &Policy) -> bool {
    scans(policy) && policy.settings().canaries == Precaution::On
}

/// False credentials of a run, and what they were made from.
#[derive(Debug)]
pub struct Planted {
    /// The bytes that the gateway makes the same ones from.
    pub seed: [u8; CANARY_SEED_BYTES],
    /// Variables of the command.
    pub variables: Vec<(String, String)>,
    /// Files below the private directory, with their content.
    pub files: Vec<(String, String)>,
}

/// Makes false credentials under names that nothing has yet; the policy's secrets have the
/// names for which it is asked.
pub type Planter = fn(&dyn Fn(&str) -> bool) -> io::Result<Planted>;

/// Makes those of a run, if it has any.
pub(crate) fn planted(policy: &Policy, planter: Planter) -> io::Result<Option<Planted>> {
    if !plants(policy) {
        return Ok(None);
    }
    let is_taken = |name: &str| policy.secrets().iter().any(|secret| secret.name() == name);
    planter(&is_taken).map(Some)
}

impl Planted {
    /// What they are made from, for the gateway alone.
    pub(crate) fn setting(&self) -> GatewaySetting {
        GatewaySetting::Canaries(self.seed)
    }

    /// Puts them into the environment and the private directory.
    ///
    /// # Errors
    /// A file cannot be made, with its path.
    pub(crate) fn plant(&self, private: &HeldDirectory, plan: &mut Plan) -> Result<(), String> {
        for (name, value) in &self.variables {
            let begin = format!("{name}=");
            let mut all = plan.environment.iter();
            if !all.any(|pair| pair.as_bytes().starts_with(begin.as_bytes())) {
                plan.environment.extend(CString::new(begin + value));
            }
        }
        for (path, content) in &self.files {
            let made = private.make(Path::new(path));
            let made = made.and_then(|mut file| file.write_all(content.as_bytes()));
            made.map_err(|error| format!("planting the canary `{path}`: {error}"))?;
        }
        Ok(())
    }
}

/// Puts into the environment what the gateway says of the policy's secrets, and tells what
/// is missing there now.
///
/// # Errors
/// The gateway does not serve, with its reason.
pub(crate) fn settle(
    policy: &Policy,
    link: &mut GatewayLink,
    plan: &mut Plan,
    voice: &mut dyn Voice,
) -> Result<(), String> {
    if policy.secrets().is_empty() {
        return Ok(());
    }
    let lines = link.variables()?;
    for name in apply(&lines, &mut plan.environment) {
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
