//! Kinds of files that run by themselves later, and how a path is recognised as one. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use super::table::KINDS;

/// What of a file runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judge {
    /// All of it.
    Whole,
    /// All of it, if it may be executed and is no sample.
    Program,
    /// All of it, where there was none before.
    Appears,
    /// All of it, where it leads out of the grants.
    Pointer,
    /// What names the linked work tree of a repository.
    WorkTree,
    /// Settings of git that name programs or further files.
    Git,
    /// Lines that hand files to a driver that some repository defines.
    Attributes,
    /// Members of a JSON document in whose path one of these words stands, in small letters.
    Json(&'static [&'static str]),
    /// Members of a JSON document whose path is none of these, in small letters, nor below one
    /// that ends with a full stop; those that went as well.
    AllBut(&'static [&'static str]),
    /// Members of a JSON document whose path begins with none of these, in small letters.
    Editor(&'static [&'static str]),
    /// All of a JSON document that says so.
    Says(&'static str),
    /// All of it, where this stands in it.
    Mentions(&'static str),
    /// All of a Markdown file, where its front matter has keys beside these.
    Matter(&'static [&'static str]),
    /// Steps of a rebase that execute, or that nobody knows.
    Steps,
    /// Scripts that package managers run by themselves.
    Scripts,
    /// Items of a TOML document in whose name one of these words stands.
    Toml(&'static [&'static str]),
    /// Lines of all sections but these of a document in the form of ini.
    Sections(&'static [&'static str]),
    /// Lines that Python executes.
    Imports,
}

/// Whether what such files hold may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Plain,
    /// Values that may be credentials are masked wherever they are shown.
    Secret,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftoverKind {
    /// Its name in records.
    pub(super) token: &'static str,
    /// What it is, for people.
    pub(super) what: &'static str,
    /// Who runs it, and when.
    pub(super) when: &'static str,
    /// Paths by their last parts: `*` is any text within one part, and a first part `@git` is
    /// the directory of a repository, whatever its name.
    pub(super) paths: &'static [&'static str],
    pub(super) judge: Judge,
    pub(super) contents: Contents,
}

/// Number of a row of the table.
pub(super) type Row = usize;

/// Rows and their patterns by a name, in the order of names and then of rows. Every start of
/// a run makes one: a list that is sorted once takes less than a table of hashes.
#[derive(Debug, Default)]
struct RowsByName(Vec<(&'static [u8], Row, &'static str)>);

impl RowsByName {
    fn of(&self, name: &[u8]) -> impl Iterator<Item = (Row, &'static str)> {
        let begin = self.0.partition_point(|(own, ..)| *own < name);
        let rows = self.0.iter().skip(begin);
        let rows = rows.take_while(move |(own, ..)| *own == name);
        rows.map(|(_, row, pattern)| (*row, *pattern))
    }
}

/// The table by the last part of its paths.
#[derive(Debug, Default)]
pub(super) struct KindIndex {
    exact: RowsByName,
    /// Those that end with a pattern, by the part before it.
    below: RowsByName,
    /// Those that end with two patterns.
    deep: Vec<(Row, &'static str)>,
    /// Ends of names.
    ends: Vec<(Row, &'static str)>,
    /// Names of directories on the way to files of the table.
    between: Vec<&'static [u8]>,
}

impl KindIndex {
    pub(super) fn shared() -> &'static Self {
        static INDEX: OnceLock<KindIndex> = OnceLock::new();
        INDEX.get_or_init(Self::build)
    }

    fn build() -> Self {
        let mut index = Self::default();
        for (row, kind) in KINDS.iter().enumerate() {
            for pattern in kind.paths {
                index.add(row, pattern);
            }
        }
        index.exact.0.sort_by_key(|(name, ..)| *name);
        index.below.0.sort_by_key(|(name, ..)| *name);
        index.between.sort_unstable();
        index.between.dedup();
        index
    }

    fn add(&mut self, row: Row, pattern: &'static str) {
        let mut parts = pattern.rsplit('/');
        let last = parts.next().unwrap_or_default();
        let before = parts.next();
        for part in pattern.split('/').rev().skip(1) {
            if part.starts_with('.') && !part.contains('*') {
                self.between.push(part.as_bytes());
            }
        }
        if !last.contains('*') {
            self.exact.0.push((last.as_bytes(), row, pattern));
            return;
        }
        match before {
            None => self.ends.push((row, last.trim_start_matches('*'))),
            Some(before) if before.contains('*') => self.deep.push((row, pattern)),
            Some(before) => self.below.0.push((before.as_bytes(), row, pattern)),
        }
    }

    /// Whether a directory of this name lies on the way to files of the table.
    pub(super) fn is_between(&self, name: &OsStr) -> bool {
        self.between.binary_search(&name.as_bytes()).is_ok()
    }

    /// The rows that may hold for files of a directory by patterns for their names.
    pub(super) fn patterns(&self, directory: &Path) -> Vec<(Row, &'static str)> {
        let name = directory.file_name().unwrap_or_default().as_bytes();
        let rows = self.below.of(name);
        let is_above = |(_, pattern): &(Row, &'static str)| {
            let above = pattern.rsplit_once('/').map(|(above, _)| above);
            above.is_some_and(|above| matches_end(directory, above))
        };
        let deep = self.deep.iter().copied();
        rows.chain(deep).filter(is_above).collect()
    }

    /// The row of a file in a directory, whose patterns are given.
    pub(super) fn row(
        &self,
        directory: &Path,
        name: &OsStr,
        patterns: &[(Row, &'static str)],
    ) -> Option<Row> {
        let bytes = name.as_bytes();
        let mut rows = self.exact.of(bytes).peekable();
        if rows.peek().is_some() {
            let path = directory.join(name);
            if let Some((row, _)) = rows.find(|(_, pattern)| matches_end(&path, pattern)) {
                return Some(row);
            }
        }
        let fits = |(_, pattern): &&(Row, &'static str)| {
            let last = pattern.rsplit('/').next().unwrap_or_default();
            matches(bytes, last.as_bytes())
        };
        let ends = self.ends.iter();
        patterns
            .iter()
            .find(fits)
            .or_else(|| {
                ends.into_iter()
                    .find(|(_, end)| bytes.ends_with(end.as_bytes()))
            })
            .map(|(row, _)| *row)
    }
}

/// Whether the last parts of a path are those of a pattern.
fn matches_end(path: &Path, pattern: &str) -> bool {
    let mut parts = path.components().rev();
    pattern.rsplit('/').all(|wanted| {
        let part = parts.next();
        part.is_some_and(|part| matches(part.as_os_str().as_bytes(), wanted.as_bytes()))
    })
}

/// Whether a name fits a pattern with at most one `*`.
fn matches(name: &[u8], pattern: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return name == pattern;
    };
    let (begin, end) = pattern.split_at(star);
    let end = end.get(1..).unwrap_or_default();
    name.strip_prefix(begin)
        .is_some_and(|rest| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(path: &str) -> Option<&'static str> {
        let path = Path::new(path);
        let directory = path.parent()?;
        let index = KindIndex::shared();
        let row = index.row(directory, path.file_name()?, &index.patterns(directory))?;
        Some(KINDS[row].token)
    }

    #[test]
    fn paths_are_known_by_their_ends_wherever_they_lie() {
        for (path, expected) in [
            ("/w/.envrc", Some("direnv")),
            ("/w/.envrc.local", None),
            ("/w/a/b/.vscode/tasks.json", Some("vscode-tasks")),
            ("/w/vscode/tasks.json", None),
            ("/w/tasks.json", None),
            ("/w/.claude/settings.local.json", Some("agent-settings")),
            ("/w/.claude/settings.local.toml", None),
            ("/w/claude/settings.json", None),
            ("/w/.devcontainer/x/devcontainer.json", Some("devcontainer")),
            ("/w/.devcontainer/x/setup.sh", Some("devcontainer")),
            ("/w/.github/workflows/ci.yml", Some("workflow")),
            ("/w/github/workflows/ci.yml", None),
            ("/w/x.code-workspace", Some("vscode-settings")),
            ("/w/lib/site-packages/x.pth", Some("python-start")),
            ("/w/x.pth", None),
            ("/w/rust-toolchain.toml", Some("toolchain")),
            ("/w/.ghci", Some("tool-settings")),
            ("/@git/rebase-merge/git-rebase-todo", Some("git-steps")),
            ("/home/u/.config/fish/conf.d/x.fish", Some("shell-start")),
        ] {
            assert_eq!(token(path), expected, "{path}");
        }
    }

    #[test]
    fn what_runs_in_the_directories_of_agents_and_tools_is_told_and_their_state_is_not() {
        for (path, expected) in [
            (
                "/h/.cursor/extensions/a.b-1/out/main.js",
                Some("agent-code"),
            ),
            (
                "/h/.claude/plugins/cache/x/y/1.0/hooks/hooks.json",
                Some("agent-code"),
            ),
            (
                "/h/.claude/plugins/installed_plugins.json",
                Some("agent-plugins"),
            ),
            ("/h/.claude/projects/x/1.jsonl", None),
            ("/h/.claude/todos/1.json", None),
            ("/h/.claude/history.jsonl", None),
            ("/h/.copilot/pkg/universal/1.0/index.js", Some("agent-code")),
            ("/h/.copilot/logs/1.log", None),
            ("/h/.config/opencode/tools/x.ts", Some("agent-code")),
            ("/h/.local/share/opencode/storage/session/x.json", None),
            ("/h/.local/share/opencode/log/x.log", None),
            ("/h/.codex/bin/rg", Some("agent-code")),
            ("/h/.codex/sessions/2026/x.jsonl", None),
            ("/h/.gemini/x/bin/rg", Some("agent-code")),
            ("/h/.gemini/tmp/abc/logs.json", None),
            (
                "/h/.config/gcloud/configurations/config_default",
                Some("cloud-settings"),
            ),
            ("/h/.config/gcloud/virtenv/enabled", Some("cloud-settings")),
            ("/h/.config/gcloud/logs/x.log", None),
            ("/h/.config/gcloud/access_tokens.db", None),
            (
                "/h/.cache/outgate/cargo/config.toml",
                Some("package-settings"),
            ),
            ("/h/.cache/outgate/cargo/registry/index/x/config.json", None),
            (
                "/h/.cache/outgate/gradle/init.d/x.gradle",
                Some("package-settings"),
            ),
            ("/w/.windsurf/mcp_config.json", Some("mcp")),
            ("/w/.kiro/agents/x.json", Some("mcp")),
        ] {
            assert_eq!(token(path), expected, "{path}");
        }
    }

    #[test]
    fn every_row_has_a_name_of_its_own_and_patterns_that_can_match() {
        for (row, kind) in KINDS.iter().enumerate() {
            let others = KINDS.get(row + 1..).unwrap();
            assert!(others.iter().all(|other| other.token != kind.token));
            for pattern in kind.paths {
                let is_plain = |part: &str| part.matches('*').count() <= 1 && !part.is_empty();
                assert!(pattern.split('/').all(is_plain), "{pattern}");
            }
        }
    }
}
