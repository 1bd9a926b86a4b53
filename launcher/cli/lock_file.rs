//! What `outgate run --locked` takes of the file that `outgate lock` writes.

use std::path::Path;

use outgate_launcher::sources::SourceCollector;
use outgate_policy::{Lock, SourceKind};

use crate::failure::Failure;
use crate::report;
use crate::targets::read;

/// The name of the file.
pub(crate) const FILE: &str = "outgate.lock";

/// Adds the lock that a run is held to, or one step of it.
///
/// # Errors
/// A sentence: there is none, or it is none.
pub(crate) fn hold(
    collector: &mut SourceCollector,
    lock: Option<&Path>,
    step: Option<&str>,
) -> Result<(), String> {
    let Some(path) = lock else {
        return Ok(());
    };
    let shown = path.display();
    if !path.exists() {
        return Err(format!(
            "--locked: `{shown}` is not there; `outgate lock -- COMMAND` writes it"
        ));
    }
    let text = read(path).map_err(|failure| match failure {
        Failure::Words(message, _) => message,
        Failure::Policy(error) => report::chain(&error),
    })?;
    let held = match step {
        Some(step) => Lock::of_step(&text, step),
        None => Lock::parse(&text).map(|_| text),
    };
    let held = held.map_err(|error| format!("--locked: `{shown}`: {error}"))?;
    collector.text(SourceKind::Lock, &shown.to_string(), &held);
    Ok(())
}
