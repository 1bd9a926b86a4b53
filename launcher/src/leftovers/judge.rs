//! What of a file's content runs by itself: content in, parts out. Two contents with the same
//! parts run the same. Pure; what cannot be understood is one part as a whole.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::file::{FileContent, FileState};
use super::kinds::Judge;

pub(super) mod git;
mod json;
mod matter;
pub(super) mod python;
mod toml;

/// Parts of a file that run, each as a text that names it.
pub(super) type Parts = BTreeSet<Vec<u8>>;

/// Where a file lies, for what depends on it.
pub(super) struct Scene<'l> {
    /// A path without links.
    pub(super) directory: &'l Path,
    /// The place below the grants, without links, to which a path leads from a directory.
    pub(super) inside: &'l dyn Fn(&Path, &Path) -> Option<PathBuf>,
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

/// Parts of a package's document, in small letters, that nobody runs by themselves: what the
/// package is, what it needs, and settings of tools that people run by name. All others may be
/// hooks, or settings of what runs those.
#[rustfmt::skip]
const HARMLESS_BLOCKS: &[&str] = &[
    "$schema", "activationevents", "author", "ava", "babel", "bin", "browser", "browserslist", "bugs",
    "bundledependencies", "bundleddependencies", "c8", "categories", "commitlint", "contributes",
    "contributors", "cpu", "dependencies", "dependenciesmeta", "description", "devdependencies",
    "directories", "displayname", "engines", "eslintconfig", "eslintignore", "esm", "exports",
    "files", "funding", "homepage", "icon", "imports", "jest", "jsdelivr", "jsnext:main", "keywords",
    "libc", "license", "licenses", "main", "maintainers", "man", "mocha", "module", "name", "np",
    "nyc", "optionaldependencies", "os", "overrides", "peerdependencies", "peerdependenciesmeta",
    "postcss", "prettier", "private", "publishconfig", "publisher", "readme", "release", "repository",
    "resolutions", "sideeffects", "size-limit", "standard", "stylelint", "tap", "tsd", "type",
    "types", "typesversions", "typings", "unpkg", "version", "vitest", "workspaces", "xo",
];

/// What of it runs.
pub(super) fn parts(
    judge: Judge,
    content: &FileContent,
    state: FileState,
    scene: &Scene<'_>,
) -> Parts {
    let bytes = match content {
        FileContent::Text(bytes) => bytes,
        FileContent::Link(target) => {
            let target = super::file::text(target);
            return one(format!("a link to {target}").as_bytes());
        }
        FileContent::Unknown(why) => return one(why.as_bytes()),
    };
    let whole = || one(bytes);
    let text = || String::from_utf8_lossy(bytes);
    match judge {
        Judge::Program if !state.is_program() => Parts::new(),
        // Nothing in an empty file runs.
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Parts::new(),
        Judge::Pointer if is_ordinary(&text(), scene) => Parts::new(),
        Judge::WorkTree if is_inside(&text(), scene) => Parts::new(),
        Judge::Whole | Judge::Program | Judge::Appears | Judge::Pointer | Judge::WorkTree => {
            whole()
        }
        Judge::Git => git::executing(&text(), scene).map_or_else(whole, texts),
        Judge::Attributes => texts(git::driven(&text(), scene.drivers)),
        Judge::Json(words) => json::members(&text()).map_or_else(whole, |members| {
            // With a full stop behind each name.
            let named =
                |member: &json::Member| holds(&format!("{}.", member.path.join(".")), words);
            texts(
                members
                    .iter()
                    .filter(|member| named(member))
                    .map(json::Member::text),
            )
        }),
        Judge::AllBut(harmless) => json::members(&text()).map_or_else(whole, |members| {
            let is_told = |member: &&json::Member| !is_one_of(&member.path, harmless);
            texts(members.iter().filter(is_told).map(json::Member::text))
        }),
        Judge::Editor(harmless) => json::members(&text()).map_or_else(whole, |members| {
            let executes = |member: &&json::Member| !is_look(&member.path, harmless);
            texts(members.iter().filter(executes).map(json::Member::text))
        }),
        Judge::Says(word) => json::members(&text()).map_or_else(whole, |members| {
            let says = |member: &json::Member| holds(&member.value, &[word]);
            if members.iter().any(says) {
                whole()
            } else {
                Parts::new()
            }
        }),
        Judge::Matter(harmless) if matter::is_harmless(&text(), harmless) => Parts::new(),
        Judge::Matter(_) => whole(),
        Judge::Steps => texts(git::executed_steps(&text())),
        Judge::Mentions(word) if text().contains(word) => whole(),
        Judge::Mentions(_) => Parts::new(),
        Judge::Scripts => json::members(&text()).map_or_else(whole, |members| {
            texts(
                members
                    .iter()
                    .filter(|member| is_script(member))
                    .map(json::Member::text),
            )
        }),
        Judge::Toml(words) => toml::items(&text()).map_or_else(whole, |items| {
            let named = items.into_iter().filter(|item| item.is_named(words));
            texts(named.map(|item| item.text))
        }),
        Judge::Sections(harmless) => texts(outside_sections(&text(), harmless)),
        Judge::Imports => {
            let lines = python::executed(bytes).into_iter();
            lines.filter(|line| !python::is_own(line)).collect()
        }
    }
}

/// Whether a pointer to a directory of git is one that git makes: from a linked work tree, or
/// a submodule, to its own in the repository around it, and from there back to that.
fn is_ordinary(text: &str, scene: &Scene<'_>) -> bool {
    let named = git::pointed(text);
    let Some(target) = (scene.inside)(scene.directory, Path::new(named)) else {
        return false;
    };
    if !text.starts_with("gitdir: ") {
        let above = scene
            .directory
            .parent()
            .filter(|above| above.ends_with("worktrees"));
        return above.and_then(Path::parent) == Some(target.as_path());
    }
    let is_own = |around: &Path| {
        let repository = around.join(".git");
        let Ok(below) = target.strip_prefix(&repository) else {
            return false;
        };
        let mut parts = below.components().map(Component::as_os_str);
        match parts.next() {
            Some(first) if first == "worktrees" => parts.count() == 1,
            Some(first) => first == "modules" && parts.count() > 0,
            None => false,
        }
    };
    scene.directory.ancestors().any(is_own)
}

/// Whether a linked work tree that a repository names lies below the grants, as one does that
/// the command made with git.
fn is_inside(text: &str, scene: &Scene<'_>) -> bool {
    let target = (scene.inside)(scene.directory, Path::new(text.trim()));
    target.is_some_and(|target| target.ends_with(".git"))
}

/// Lines of a document in the form of ini, each behind the name of its section, but those of
/// sections that are named so. What stands before the first, and what includes, is of none.
fn outside_sections(text: &str, harmless: &[&str]) -> Vec<String> {
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or(rest);
            name.trim().clone_into(&mut section);
        } else if line.starts_with('%') || !harmless.contains(&section.as_str()) {
            lines.push(format!("[{section}] {line}"));
        }
    }
    lines
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

/// Whether a setting of an editor says how something looks. Settings for one language, and
/// those of a workspace, stand a level deeper.
fn is_look(path: &[String], harmless: &[&str]) -> bool {
    let mut path = path;
    while let Some((first, rest)) = path.split_first()
        && (first == "settings" || first.starts_with('['))
    {
        path = rest;
    }
    let name = path.join(".").to_lowercase();
    harmless.iter().any(|begin| name.starts_with(begin))
}

/// Whether a member is one of these, or below one of them that has members; a number in a list
/// is no name.
fn is_one_of(path: &[String], names: &[&str]) -> bool {
    let is_number = |part: &&String| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = path
        .iter()
        .filter(|part| !is_number(part))
        .map(String::as_str)
        .collect();
    let name = format!("{}.", parts.join(".").to_lowercase());
    let is_it = |own: &&str| {
        name.starts_with(own) && (own.ends_with('.') || name.len() == own.len().saturating_add(1))
    };
    names.iter().any(is_it)
}

fn is_script(member: &json::Member) -> bool {
    let mut path = member.path.iter().map(String::as_str);
    match (path.next(), path.next()) {
        (Some("scripts"), Some(name)) => {
            let is_around = name.starts_with("pre") || name.starts_with("post");
            is_around || LIFE_CYCLE.contains(&name)
        }
        (Some("scripts"), None) => true,
        (Some("packageManager"), _) => !is_version(&member.value),
        (Some(block), _) => !HARMLESS_BLOCKS.contains(&block.to_lowercase().as_str()),
        (None, _) => false,
    }
}

/// Whether a package manager is named with its version, and not by where it is to be had.
fn is_version(value: &str) -> bool {
    value.split_once('@').is_some_and(|(name, version)| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
        ["npm", "pnpm", "yarn", "bun"].contains(&name) && version.bytes().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::JJ;
    use super::super::way::plain;
    use super::*;

    fn judged(judge: Judge, text: &str) -> usize {
        let state = FileState {
            device: 0,
            inode: 0,
            changed: (0, 0),
            size: 0,
            mode: 0o100_644,
        };
        let content = FileContent::Text(text.as_bytes().to_vec());
        let drivers = Drivers::from(["filter.x".to_owned()]);
        parts(judge, &content, state, &scene(&drivers)).len()
    }

    /// A repository's directory in a work tree at `/w/a`, in a grant of `/w`.
    pub(in crate::leftovers::judge) fn scene(drivers: &Drivers) -> Scene<'_> {
        Scene {
            directory: Path::new("/w/a"),
            inside: &|directory, target| {
                let target = plain(&directory.join(target));
                target.starts_with("/w").then_some(target)
            },
            drivers,
        }
    }

    /// A kind, a file's content, and how much of it runs.
    const ROWS: &[(Judge, &str, usize)] = &[
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
        (Judge::Scripts, r#"{"lint-staged":{"*":"x"}}"#, 1),
        (Judge::Scripts, r#"{"unheard":{"of":"x"}}"#, 1),
        (
            Judge::Scripts,
            r#"{"jest":{"a":"x"},"name":"x","files":["a"]}"#,
            0,
        ),
        (
            Judge::Scripts,
            r#"{"packageManager":"yarn@4.1.0+sha224.0a"}"#,
            0,
        ),
        (
            Judge::Scripts,
            r#"{"packageManager":"yarn@https://e.test/y.js"}"#,
            1,
        ),
        (Judge::Editor(&["editor."]), r#"{"editor.tabSize":2}"#, 0),
        (
            Judge::Editor(&["editor."]),
            r#"{"[go]":{"editor.tabSize":2},"go.goroot":"x"}"#,
            1,
        ),
        (
            Judge::Editor(&["editor."]),
            r#"{"settings":{"a.editor.b":2}}"#,
            1,
        ),
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
        (
            Judge::Json(&["permission."]),
            r#"{"permission":"allow","permissions":{"deny":["b"]}}"#,
            1,
        ),
        (Judge::Json(&["hook"]), r#"{"Hooks":{"a":[{"b":"c"}]},}"#, 1),
        (
            Judge::AllBut(&["model", "ui."]),
            r#"{"model":"x","UI":{"theme":["a"]}}"#,
            0,
        ),
        (Judge::AllBut(&["model"]), r#"{"model":{"command":"x"}}"#, 1),
        (
            Judge::AllBut(&["model", "ui."]),
            r#"{"modelProvider":1,"uix":{"a":1}}"#,
            2,
        ),
        (
            Judge::AllBut(&["ui."]),
            r#"{"ui":{"a":1},"permissions":{"deny":["x"]}}"#,
            1,
        ),
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
        (
            Judge::Sections(&["paths"]),
            "# x\n[paths]\ndefault = https://h.test/r\n",
            0,
        ),
        (
            Judge::Sections(&["paths"]),
            "[paths]\na = b\n%include ../x\n[hooks]\nupdate = x\n y\n",
            3,
        ),
        (
            Judge::Toml(JJ),
            "[revset-aliases]\n\"trunk()\" = \"main@origin\"\n",
            0,
        ),
        (Judge::Toml(JJ), "[aliases]\nx = [\"util\", \"exec\"]\n", 1),
        (Judge::Toml(JJ), "[ui]\neditor = \"x\"\n", 1),
        (Judge::Toml(JJ), "a = 1\n  [ui]\neditor = \"x\"\n", 1),
        (
            Judge::Toml(JJ),
            "a = 1\n\tui . \"\\u0065ditor\" = \"x\"\n",
            1,
        ),
        (Judge::Toml(JJ), "ui = {\n editor = \"x\" }\n", 1),
        (
            Judge::Toml(&["mcp_servers"]),
            "x = 1\nmcp_servers.\"a!\".command = \"e\"\n",
            1,
        ),
        (
            Judge::Toml(&["mcp_servers"]),
            "[[mcp_servers]]\nx = 1\n[[mcp_servers]]\nx = 2\n",
            2,
        ),
        // What is no TOML here may be some elsewhere.
        (Judge::Toml(&["mcp_servers"]), "x = 1\nx = 2\n", 1),
        (Judge::Toml(&["path"]), "nightly-2026-01-01\n", 0),
        (
            Judge::Steps,
            "pick 1234 words exec\n# x y\n\nfixup -C 12 a\nbreak\n",
            0,
        ),
        (Judge::Steps, "pick 1\nx ./a\n\texec b\nx\tc\n", 3),
        (Judge::Steps, "frob 1\n", 1),
        (
            Judge::Matter(&["description"]),
            "no --- here\nhooks: x\n",
            0,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription: a b\n---\nhooks: x\n",
            0,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription: |\n  allowed-tools: is text\n---\n",
            0,
        ),
        (
            Judge::Matter(&["description", "tags"]),
            "---\ndescription: a\n  goes on\ntags:\n  - b\n---\n",
            0,
        ),
        (
            Judge::Matter(&["description"]),
            "\u{feff}---\nallowed-tools: x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\n\"allowed\\x2dtools\": x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\n? allowed-tools\n: x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\n{allowed-tools: x}\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "--- {allowed-tools: x}\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription:\n  hooks: x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription: &a x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription: a\rhooks: x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\ndescription: a\u{2028}hooks: x\n---\n",
            1,
        ),
        (
            Judge::Matter(&["description"]),
            "---\r\ndescription: a\r\n---\r\n",
            0,
        ),
        (Judge::Matter(&["description"]), "---\ndescription: a\n", 1),
        (Judge::Imports, "/some/path\n", 0),
        (Judge::Imports, "import os; os.system('x')\n", 1),
        (
            Judge::Imports,
            "import __editable___x_0_finder; __editable___x_0_finder.install()",
            1,
        ),
        (
            Judge::Imports,
            "import __editable___x; import os; os.system('x').install()",
            1,
        ),
        (Judge::Attributes, "*.a filter=x\n*.b text\n", 1),
        (Judge::Attributes, "*.a filter=y\n", 0),
        (Judge::Pointer, "gitdir: ../.git/worktrees/a\n", 0),
        (Judge::Pointer, "gitdir: ../.git/modules/a/modules/b\n", 0),
        (Judge::Pointer, "gitdir: ../.git/worktrees/a/b\n", 1),
        (Judge::Pointer, "gitdir: ../.git\n", 1),
        (Judge::Pointer, "gitdir: b/.git/worktrees/a\n", 1),
        (Judge::Pointer, "gitdir: ../c\n", 1),
        (Judge::Pointer, "../c\n", 1),
        (Judge::Pointer, "gitdir: ../../else/.git\n", 1),
        (Judge::WorkTree, "b/.git\n", 0),
        (Judge::WorkTree, "../../else/.git\n", 1),
        (Judge::WorkTree, "b/config\n", 1),
        (Judge::Git, "[core]\n\teditor = x\n\tbare = false\n", 1),
    ];

    #[test]
    fn what_runs_is_a_part_and_its_neighbour_is_none() {
        for (judge, text, count) in ROWS {
            assert_eq!(judged(*judge, text), *count, "{judge:?} {text}");
        }
    }
}
