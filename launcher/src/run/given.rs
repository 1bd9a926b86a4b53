//! What the command of a run is given: its environment, and git's settings.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use outgate_policy::Policy;

use super::Options;
use crate::environment::{self, Variables};
use crate::placeholders;
use crate::supervisor::Voice;
use crate::trust::java::keep_temporary;
use crate::trust::{Presence, presence};
use crate::withheld::withhold;

/// The command's environment, without what stays outside, and whether it finds a Java.
pub(super) fn variables(
    options: &Options,
    policy: &Policy,
    private: &Path,
    voice: &mut dyn Voice,
) -> (Variables, Presence) {
    let mut variables = environment::build(
        options.variables.clone(),
        policy.environment(),
        &options.set,
        private.as_os_str(),
    );
    let java = presence(&variables);
    keep_temporary(private, java, &mut variables);
    placeholders::withhold(policy, &mut variables);
    if let Some(said) = withhold(policy, &options.credentials, &mut variables) {
        voice.say(&said);
    }
    (variables, java)
}

/// Has git read a copy of the user's settings, without what holds credentials.
pub(super) fn git(
    options: &Options,
    policy: &Policy,
    (private, variables): (&Path, &mut Variables),
    voice: &mut dyn Voice,
) -> io::Result<()> {
    let Some(settings) = &options.git else {
        return Ok(());
    };
    let set = |name: &str| {
        let by_policy = policy.environment().set.contains_key(name);
        by_policy || options.set.contains_key(OsStr::new(name))
    };
    settings.write(private, variables, set)?;
    if let Some(said) = settings.said() {
        voice.say(&said);
    }
    Ok(())
}
