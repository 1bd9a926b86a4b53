//! What the command of a run is given: its environment, and git's settings.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use outgate_policy::Policy;

use super::RunOptions;
use crate::environment::{self, Variables};
use crate::placeholders;
use crate::private::HeldDirectory;
use crate::trust::java::keep_temporary;
use crate::trust::{JavaPresence, presence};
use crate::voice::Voice;
use crate::withheld::withhold;

/// Variables that lead to the server of a terminal, which would start programs outside: where
/// they are, programs try to reach it, and each attempt would be a denial.
const TERMINAL_SERVERS: [&str; 4] = ["TMUX", "TMUX_PANE", "STY", "KITTY_LISTEN_ON"];

/// The command's environment, without what stays outside, and whether it finds a Java.
pub(super) fn variables(
    options: &RunOptions,
    policy: &Policy,
    private: &Path,
    voice: &mut dyn Voice,
) -> (Variables, JavaPresence) {
    let mut variables = environment::build(
        options.variables.clone(),
        policy.environment(),
        &options.set,
        private.as_os_str(),
    );
    let is_meant = |name: &str| {
        let pass = policy.environment().pass.as_deref().unwrap_or_default();
        options.set.contains_key(OsStr::new(name))
            || options
                .credentials
                .passed
                .iter()
                .any(|passed| passed == name)
            || pass.iter().any(|passed| passed == name)
    };
    for name in TERMINAL_SERVERS.iter().filter(|name| !is_meant(name)) {
        variables.remove(OsStr::new(name));
    }
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
    options: &RunOptions,
    policy: &Policy,
    (private, variables): (&HeldDirectory, &mut Variables),
    voice: &mut dyn Voice,
) -> io::Result<()> {
    if let Some(said) = &options.repository {
        voice.say(said);
    }
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
