//! What `outgate run --locked` takes of the file that `outgate lock` writes.

use std::path::{Path, PathBuf};

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

/// A lock as it was when a run that is held to it began.
#[derive(Debug)]
pub(crate) struct LockBefore {
    /// As it was named.
    pub(crate) named: PathBuf,
    place: PathBuf,
    text: Option<String>,
}

impl LockBefore {
    /// To be called when nothing of the command runs yet.
    pub(crate) fn note(named: &Path) -> Self {
        let place = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
        Self {
            named: named.to_owned(),
            text: read(&place).ok(),
            place,
        }
    }

    /// Whether another one is there now, or none, or what nobody can read.
    pub(crate) fn is_another_now(&self) -> bool {
        let now = read(&self.place).ok();
        now.is_none() || now != self.text
    }
}
