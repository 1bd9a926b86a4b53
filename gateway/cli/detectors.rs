//! What `outgate policy check` asks of the program with the engine: whether the
//! detectors exist that policy files name, and whether those they describe can be.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use outgate_gateway::config::DetectorFiles;
use outgate_policy::{Source, SourceKind, of_command};

/// Largest policy file that is read, in bytes: no real one comes near.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// A policy is wrong.
const WRONG: u8 = 2;

/// Judges the files together, in their order.
#[expect(clippy::print_stderr, reason = "this is the program's voice")]
pub(crate) fn check(judged: &DetectorFiles) -> ExitCode {
    let sources: Result<Vec<Source>, String> =
        judged.files.iter().map(|path| source(path)).collect();
    let sources = sources.map(|mut sources| {
        if let Some((last, name)) = sources.last_mut().zip(judged.command.as_deref()) {
            *last = of_command(SourceKind::Manifest, &last.place, (name, &last.text));
        }
        sources
    });
    match sources.and_then(|sources| outgate_gateway::judge_detectors(&sources)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("outgate: {message}");
            ExitCode::from(WRONG)
        }
    }
}

fn source(path: &Path) -> Result<Source, String> {
    let place = path.display().to_string();
    let failed = |error: std::io::Error| format!("{place}: {error}");
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let mut bounded = file.take(FILE_BYTES_MAX.saturating_add(1));
    bounded.read_to_string(&mut text).map_err(failed)?;
    if bounded.limit() == 0 {
        return Err(format!("{place}: larger than {FILE_BYTES_MAX} bytes"));
    }
    let kind = SourceKind::Document;
    Ok(Source { kind, place, text })
}
