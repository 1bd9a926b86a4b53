//! The files of the project, as the tests read them: everything below its root
//! but version control and build results.

use std::fs;
use std::path::{Path, PathBuf};

/// One file: its path below the root, with `/`, and its text.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Whether the file lies below `folder`, given without a slash at its end.
    pub(crate) fn is_below(&self, folder: &str) -> bool {
        self.path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether the name ends with a dot and `ending`.
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        let own = Path::new(&self.path).extension();
        own.is_some_and(|own| own == ending)
    }

    /// Whether the file belongs to tests, benches or the demonstration.
    pub(crate) fn is_test(&self) -> bool {
        let parts = || self.path.split('/');
        parts().any(|part| part == "tests" || part == "bench") || self.path.ends_with("/tests.rs")
    }
}

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file that has to be there.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// Every file with text, in order.
pub(crate) fn all() -> Vec<File> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let below = path.strip_prefix(root()).expect("a path below the root");
        if let Ok(text) = fs::read_to_string(&path) {
            let path = below.to_string_lossy().into_owned();
            files.push(File { path, text });
        }
    }
    files
}

/// Every Rust source.
pub(crate) fn sources() -> Vec<File> {
    let mut files = all();
    files.retain(|file| file.has_ending("rs"));
    files
}

/// Names in the root, without version control and build results.
pub(crate) fn top() -> Vec<String> {
    let entries = fs::read_dir(root()).expect("the root of the project");
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            (!is_left_out(&path)).then(|| path.file_name().map(|n| n.to_string_lossy().into()))?
        })
        .collect();
    names.sort();
    names
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the project");
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if is_left_out(&path) {
            continue;
        }
        if path.is_dir() {
            walk(&path, into);
        } else {
            into.push(path);
        }
    }
}

fn is_left_out(path: &Path) -> bool {
    let is_named = |name| path.file_name().is_some_and(|own| own == name);
    is_named(".git") || is_named("target") || path.join("CACHEDIR.TAG").is_file()
}

/// Fails with every fault on a line of its own.
#[track_caller]
pub(crate) fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}
