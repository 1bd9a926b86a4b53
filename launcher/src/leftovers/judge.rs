//! What of a file's content runs by itself: content in, parts out. Two contents with the same
//! parts run the same. Pure; what cannot be understood is one part as a whole.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::file::{Content, State};
use super::kinds::Judge;

pub(super) mod git;
mod json;
mod toml;

/// Parts of a file that run, each as a text that names it.
pub(super) type Parts = BTreeSet<Vec<u8>>;

/// Where a file lies, for what depends on it.
#[derive(Debug)]
pub(super) struct Scene<'l> {
    pub(super) directory: &'l Path,
    /// What the command may write.
    pub(super) roots: &'l [PathBuf],
    pub(super) drivers: &'l Drivers,
}

/// Drivers that repositories below the grants define: `filter.x`, `diff.x`, `merge.x`.
pub(super) type Drivers = BTreeSet<String>;

/// Scripts of a package that its manager runs by itself, beside those around others.
const LIFE_CYCLE: [&str; 5] = [
    "install",
    "prepare",
    "prepublish",
    "dependencies",
    "uninstall",
];

/// Hook managers that read their hooks from a package's own document.
const HOOK_BLOCKS: [&str; 4] = ["simple-git-hooks", "husky", "githooks", "pre-commit"];

/// Lines that setuptools writes into every environment, and into those with editable packages.
const OWN_IMPORTS: [&str; 2] = [
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack')",
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack').add_shim();",
];

/// What of it runs.
pub(super) fn parts(judge: Judge, content: &Content, state: State, scene: &Scene<'_>) -> Parts {
    let bytes = match content {
        Content::Text(bytes) => bytes,
        Content::Link(target) => {
            let target = super::file::text(target);
            return one(format!("a link to {target}").as_bytes());
        }
        Content::Unknown(why) => return one(why.as_bytes()),
    };
    let whole = || one(bytes);
    let text = || String::from_utf8_lossy(bytes);
    match judge {
        Judge::Program if !state.is_program() => Parts::new(),
        // Nothing in an empty file runs.
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Parts::new(),
        Judge::Pointer if is_inside(&text(), scene) => Parts::new(),
        Judge::Whole | Judge::Program | Judge::Appears | Judge::Pointer => whole(),
        Judge::Git => git::executing(&text()).map_or_else(whole, texts),
        Judge::Attributes => texts(git::driven(&text(), scene.drivers)),
        Judge::Json(words) => json::members(&text()).map_or_else(whole, |members| {
            let named = |member: &json::Member| holds(&member.path.join("."), words);
            texts(
                members
                    .iter()
                    .filter(|member| named(member))
                    .map(json::Member::text),
            )
        }),
        Judge::Says(word) => json::members(&text()).map_or_else(whole, |members| {
            let says = |member: &json::Member| holds(&member.value, &[word]);
            if members.iter().any(says) {
                whole()
            } else {
                Parts::new()
            }
        }),
        Judge::Scripts => json::members(&text()).map_or_else(whole, |members| {
            texts(
                members
                    .iter()
                    .filter(|member| is_script(member))
                    .map(json::Member::text),
            )
        }),
        Judge::Toml(words) => {
            let items = toml::items(&text());
            texts(
                items
                    .into_iter()
                    .filter(|item| item.is_named(words))
                    .map(|item| item.text),
            )
        }
        Judge::Imports => texts(
            text()
                .lines()
                .filter(|line| is_import(line))
                .map(str::to_owned),
        ),
    }
}

/// Whether a pointer to a directory of git leads to where the look for leftovers comes by.
fn is_inside(text: &str, scene: &Scene<'_>) -> bool {
    let named = text.strip_prefix("gitdir:").unwrap_or(text).trim();
    let target = plain(&scene.directory.join(named));
    scene.roots.iter().any(|root| target.starts_with(root))
}

/// A path without `.` and `..`, by text alone.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(part),
        }
    }
    out
}

fn one(bytes: &[u8]) -> Parts {
    Parts::from([bytes.to_vec()])
}

fn texts(list: impl IntoIterator<Item = String>) -> Parts {
    list.into_iter().map(String::into_bytes).collect()
}

/// Whether one of the words stands in a text, whatever its case.
fn holds(text: &str, words: &[&str]) -> bool {
    let small = text.to_lowercase();
    words.iter().any(|word| small.contains(word))
}

fn is_script(member: &json::Member) -> bool {
    let mut path = member.path.iter().map(String::as_str);
    match (path.next(), path.next()) {
        (Some("scripts"), Some(name)) => {
            let is_around = name.starts_with("pre") || name.starts_with("post");
            is_around || LIFE_CYCLE.contains(&name)
        }
        (Some(block), _) => HOOK_BLOCKS.contains(&block.to_lowercase().as_str()),
        (None, _) => false,
    }
}

/// Whether Python executes a line of a `.pth` file (site.py), and not setuptools' own.
fn is_import(line: &str) -> bool {
    let is_executed = line.starts_with("import ") || line.starts_with("import\t");
    let line = line.trim_end();
    let is_editable = line
        .strip_prefix("import __editable___")
        .and_then(|rest| rest.strip_suffix(".install()"))
        .is_some_and(|rest| {
            rest.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_; ".contains(&byte))
        });
    is_executed && !is_editable && !OWN_IMPORTS.contains(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(judge: Judge, text: &str) -> usize {
        let state = State {
            device: 0,
            inode: 0,
            changed: (0, 0),
            size: 0,
            mode: 0o100_644,
        };
        let content = Content::Text(text.as_bytes().to_vec());
        let scene = Scene {
            directory: Path::new("/w/a"),
            roots: &[PathBuf::from("/w")],
            drivers: &Drivers::from(["filter.x".to_owned()]),
        };
        parts(judge, &content, state, &scene).len()
    }

    #[test]
    fn what_runs_is_a_part_and_its_neighbour_is_none() {
        for (judge, text, count) in [
            (Judge::Whole, "x", 1),
            (Judge::Whole, " \n", 0),
            (Judge::Program, "x", 0),
            (Judge::Scripts, r#"{"scripts":{"test":"x","build":"y"}}"#, 0),
            (Judge::Scripts, r#"{"scripts":{"postinstall":"x"}}"#, 1),
            (Judge::Scripts, r#"{"scripts":{"post\u0069nstall":"x"}}"#, 1),
            (
                Judge::Scripts,
                r#"{"scripts":{"pretest":"x","prepare":"y"}}"#,
                2,
            ),
            (Judge::Scripts, r#"{"dependencies":{"postinstall":"1"}}"#, 0),
            (Judge::Scripts, r#"{"scripts":{"#, 1),
            (Judge::Says("folderopen"), r#"{"tasks":[{"label":"x"}]}"#, 0),
            (
                Judge::Says("folderopen"),
                r#"{"a":[{"runOn":"folder\u004fpen"}]} // c"#,
                1,
            ),
            (
                Judge::Json(&["hook"]),
                r#"{"permissions":{"allow":["a"]}}"#,
                0,
            ),
            (Judge::Json(&["hook"]), r#"{"Hooks":{"a":[{"b":"c"}]},}"#, 1),
            (
                Judge::Toml(&["notify"]),
                "[projects.\"/a\"]\ntrust_level = \"x\"\n",
                0,
            ),
            (
                Judge::Toml(&["notify"]),
                "notify = [\n \"sh\",\n]\nb = 1\n",
                1,
            ),
            (Judge::Imports, "/some/path\n", 0),
            (Judge::Imports, "import os; os.system('x')\n", 1),
            (
                Judge::Imports,
                "import __editable___x_0_finder; __editable___x_0_finder.install()",
                0,
            ),
            (
                Judge::Imports,
                "import __editable___x; import os; os.system('x').install()",
                1,
            ),
            (Judge::Attributes, "*.a filter=x\n*.b text\n", 1),
            (Judge::Attributes, "*.a filter=y\n", 0),
            (Judge::Pointer, "gitdir: ../.git/worktrees/a\n", 0),
            (Judge::Pointer, "gitdir: ../../else/.git\n", 1),
            (Judge::Git, "[core]\n\teditor = x\n\tbare = false\n", 1),
        ] {
            assert_eq!(judged(judge, text), count, "{judge:?} {text}");
        }
    }
}
