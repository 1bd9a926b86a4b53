//! Files that options name, as a gateway finds them that may work elsewhere and for long.

use std::path::PathBuf;

/// The files as the gateway finds them, wherever it works.
pub(crate) fn absolute(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let find = |file: PathBuf| {
        let found = file.canonicalize();
        found.map_err(|error| format!("--upstream-ca {}: {error}", file.display()))
    };
    files.into_iter().map(find).collect()
}

/// A pipe was read to its end: what it gives now is no policy.
pub(crate) fn readable_again(policies: &[PathBuf]) -> Result<(), String> {
    let other = |path: &&PathBuf| path.metadata().is_ok_and(|found| !found.is_file());
    match policies.iter().find(other) {
        None => Ok(()),
        Some(path) => Err(format!(
            "`{}` is no regular file, and cannot be read again",
            path.display()
        )),
    }
}
