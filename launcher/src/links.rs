//! Symbolic links on the way to a path, one after the other (path_resolution(7)).

use std::path::{Component, Path, PathBuf};

/// What is known of a path after one look along it.
pub(crate) enum LinkStep {
    /// No link is on the way: this is the place, without `..`.
    Plain(PathBuf),
    /// The first link on the way, and the path with what it says in its place.
    Link { link: PathBuf, target: PathBuf },
}

/// Looks along an absolute path. Where something is absent, nothing behind it is a link.
pub(crate) fn step(path: &Path) -> LinkStep {
    let mut at = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            // What was walked so far holds no link, so its name tells what is above.
            at.pop();
            continue;
        }
        at.push(part);
        let Ok(said) = std::fs::read_link(&at) else {
            continue;
        };
        let beside = at.parent().unwrap_or(&at);
        let target = beside.join(said).join(parts.as_path());
        return LinkStep::Link { link: at, target };
    }
    LinkStep::Plain(at)
}
