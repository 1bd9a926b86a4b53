//! A project's own policy files: found in the working directory and above it,
//! up to the root of the project, and read as texts that only narrow. Whoever
//! wrote them is not trusted with more.

use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use outgate_policy::{Source, SourceKind};

use crate::source_text::{PolicyTextError, bounded, opened, text};

/// The name of such a file.
pub const PROJECT_FILE: &str = ".outgate.toml";

/// Directories looked into at most.
const DEPTH_MAX: usize = 64;

/// The files for a run in `directory`, the nearest last. Looked for up to the
/// directory that holds `.git`, or up to `home`; where neither lies above, in
/// `directory` alone, since what stands above may be anybody's.
pub fn project_files(directory: &Path, home: &Path) -> Vec<PathBuf> {
    let mut within = Vec::new();
    let mut root = false;
    for above in directory.ancestors().take(DEPTH_MAX) {
        within.push(above);
        root = above == home || above.join(".git").symlink_metadata().is_ok();
        if root {
            break;
        }
    }
    if !root {
        within.truncate(1);
    }
    let file = |directory: &&Path| directory.join(PROJECT_FILE);
    let files = within.iter().map(file).rev();
    files
        .filter(|file| file.symlink_metadata().is_ok())
        .collect()
}

/// Reads such a file: a regular one, never through a link and without waiting.
///
/// # Errors
/// [`PolicyTextError`] names the file. A run then does not start: a project that
/// wants to be narrowed gets that, or nothing.
pub fn project(path: &Path, directory: &Path) -> Result<Source, PolicyTextError> {
    let failed = |source| PolicyTextError::Project {
        path: path.display().to_string(),
        source,
    };
    let file = opened(path, OFlag::O_NOFOLLOW).map_err(failed)?;
    let shown = path.display().to_string();
    let bytes = bounded(file).map_err(failed)?;
    let bytes = bytes.ok_or(PolicyTextError::Large { path: shown })?;
    Ok(Source {
        kind: SourceKind::Project,
        place: place(path, directory),
        text: text(bytes).map_err(failed)?,
    })
}

/// The file as somebody in the working directory would write it.
fn place(path: &Path, directory: &Path) -> String {
    let above = path.parent().unwrap_or(path);
    let steps = directory
        .strip_prefix(above)
        .map(|rest| rest.components().count());
    match steps {
        Ok(steps) => format!("{}{PROJECT_FILE}", "../".repeat(steps)),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(name: &str) -> PathBuf {
        let name = format!("outgate-project-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::remove_dir_all(&root).ok();
        fs::create_dir_all(root.join("home/me/p/src/deep")).unwrap();
        for place in ["", "home", "home/me", "home/me/p", "home/me/p/src"] {
            fs::write(root.join(place).join(PROJECT_FILE), "").unwrap();
        }
        root
    }

    #[test]
    fn files_are_looked_for_up_to_the_root_of_a_project_or_the_home() {
        let root = tree("search");
        let found = |at: &str, home: &str| -> Vec<String> {
            let files = project_files(&root.join(at), &root.join(home));
            let shown = |file: &PathBuf| file.strip_prefix(&root).unwrap().display().to_string();
            files.iter().map(shown).collect()
        };
        let (me, p, src) = (
            "home/me/.outgate.toml",
            "home/me/p/.outgate.toml",
            "home/me/p/src/.outgate.toml",
        );
        assert_eq!(found("home/me/p/src/deep", "home/me"), [me, p, src]);
        assert_eq!(found("home/me", "home/me"), [me]);
        // Nobody's project: what stands above may be anybody's.
        assert_eq!(found("home/me/p/src", "elsewhere"), [src]);
        assert!(found("home/me/p/src/deep", "elsewhere").is_empty());
        fs::create_dir(root.join("home/me/p/.git")).unwrap();
        assert_eq!(found("home/me/p/src/deep", "elsewhere"), [p, src]);
        assert_eq!(found("home/me/p/src/deep", "home/me"), [p, src]);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_a_regular_file_is_read_and_never_through_a_link() {
        let root = tree("kinds");
        let at = root.join("home/me/p");
        let file = at.join(PROJECT_FILE);
        let read = || project(&file, &at.join("src"));
        fs::write(&file, "deny = [\"a.test\"]").unwrap();
        let source = read().unwrap();
        assert_eq!(
            (source.kind, &*source.place),
            (SourceKind::Project, "../.outgate.toml")
        );
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(matches!(read(), Err(PolicyTextError::Project { .. })));
        assert_eq!(project_files(&at, &at), std::slice::from_ref(&file));
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert!(matches!(read(), Err(PolicyTextError::Project { .. })));
        fs::remove_file(&file).unwrap();
        fs::write(&file, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(matches!(read(), Err(PolicyTextError::Large { .. })));
        fs::remove_dir_all(&root).unwrap();
    }
}
