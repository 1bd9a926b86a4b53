//! What `outgate policy check` asks of the program with the engine: whether the
//! detectors exist that policy files name, and whether those they describe can be.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_policy::{Source, SourceKind};

use crate::scan::setup::small;

/// A policy is wrong.
const WRONG: u8 = 2;

/// Judges the files together, in their order.
#[expect(clippy::print_stderr, reason = "this is the program's voice")]
pub(crate) fn check(files: &[PathBuf]) -> ExitCode {
    let sources: Result<Vec<Source>, String> = files.iter().map(|path| source(path)).collect();
    match sources.and_then(|sources| outgate_gateway::judge_detectors(&sources)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("outgate: {message}");
            ExitCode::from(WRONG)
        }
    }
}

fn source(path: &Path) -> Result<Source, String> {
    Ok(Source {
        kind: SourceKind::Document,
        place: path.display().to_string(),
        text: small(path)?,
    })
}
