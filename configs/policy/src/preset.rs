//! The policies we ship. Data; whoever collects sources adds them by name.

use crate::author::Author;
use crate::clients::Client;
use crate::edits;
use crate::preset_paths::{BASE, DEV_TOOLS, DEV_TOOLS_VARIABLES, ShippedPath, ShippedVariable};

/// A shipped policy: its document, and what the document extends and grants.
pub(crate) struct Shipped {
    name: &'static str,
    text: &'static str,
    /// The files it is about, as data; `None` if it is about hosts, and read
    /// like any document.
    pub(crate) paths: Option<&'static [ShippedPath]>,
    /// The variables it sets, if it is about files.
    pub(crate) variables: &'static [ShippedVariable],
    /// What it extends, if it is about files.
    pub(crate) extends: &'static [&'static str],
    kind: PresetKind,
    /// The names of the programs it is for, if it is for some.
    programs: &'static [&'static str],
    /// The clients whose configured registries it allows beside what its document says.
    clients: &'static [Client],
}

const fn files(
    name: &'static str,
    text: &'static str,
    paths: &'static [ShippedPath],
    extends: &'static [&'static str],
) -> Shipped {
    let paths = Some(paths);
    let kind = PresetKind::Files;
    Shipped {
        name,
        text,
        paths,
        variables: &[],
        extends,
        kind,
        programs: &[],
        clients: &[],
    }
}

const fn hosts(name: &'static str, text: &'static str) -> Shipped {
    Shipped {
        name,
        text,
        paths: None,
        variables: &[],
        extends: &[],
        kind: PresetKind::Hosts,
        programs: &[],
        clients: &[],
    }
}

/// One for an agent: files, variables and hosts, read like any document.
const fn agent(
    name: &'static str,
    text: &'static str,
    programs: &'static [&'static str],
) -> Shipped {
    Shipped {
        kind: PresetKind::Agent,
        programs,
        ..hosts(name, text)
    }
}

/// One for a tool: files, variables and hosts, read like any document, and the registries
/// that these clients are configured for.
const fn tool(
    name: &'static str,
    text: &'static str,
    programs: &'static [&'static str],
    clients: &'static [Client],
) -> Shipped {
    Shipped {
        kind: PresetKind::Tool,
        programs,
        clients,
        ..hosts(name, text)
    }
}

/// One whose rules come from the configuration of a client: `crate::clients`.
const fn registries(name: &'static str, text: &'static str) -> Shipped {
    Shipped {
        kind: PresetKind::Registries,
        ..hosts(name, text)
    }
}

/// What a shipped policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresetKind {
    /// The files of the machine. It allows no host.
    Files,
    /// Hosts. It says nothing about files.
    Hosts,
    /// An agent: its files, variables and hosts.
    Agent,
    /// A tool that developers run: its files, its variables, and hosts, some of which the
    /// user's configuration of it may name.
    Tool,
    /// Hosts that the user's configuration of a client names. Its document holds
    /// no rules.
    Registries,
}

/// All of them, in the order of their names.
#[rustfmt::skip]
pub(crate) const SHIPPED: [Shipped; 41] = [
    agent("aider", include_str!("../../presets/aider.toml"), &["aider"]),
    hosts("anthropic", include_str!("../../presets/anthropic.toml")),
    tool("aws", include_str!("../../presets/aws.toml"), &["aws"], &[]),
    files("base", include_str!("../../presets/base.toml"), BASE, &[]),
    hosts("bitbucket", include_str!("../../presets/bitbucket.toml")),
    tool("bun", include_str!("../../presets/bun.toml"), &["bun", "bunx"], &[Client::Npm]),
    tool("bundler", include_str!("../../presets/bundler.toml"), &["bundle", "bundler", "gem"], &[Client::Gem]),
    registries("cargo", include_str!("../../presets/cargo.toml")),
    tool("chromium", include_str!("../../presets/chromium.toml"), &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"], &[]),
    agent("claude-code", include_str!("../../presets/claude-code.toml"), &["claude"]),
    hosts("codeberg", include_str!("../../presets/codeberg.toml")),
    agent("codex", include_str!("../../presets/codex.toml"), &["codex"]),
    hosts("copilot", include_str!("../../presets/copilot.toml")),
    agent("copilot-cli", include_str!("../../presets/copilot-cli.toml"), &["copilot"]),
    agent("cursor-agent", include_str!("../../presets/cursor-agent.toml"), &["cursor-agent"]),
    tool("deno", include_str!("../../presets/deno.toml"), &["deno"], &[Client::Npm]),
    Shipped {
        variables: DEV_TOOLS_VARIABLES,
        ..files("dev-tools", include_str!("../../presets/dev-tools.toml"), DEV_TOOLS, &["base"])
    },
    tool("docker-cli", include_str!("../../presets/docker-cli.toml"), &["docker", "docker-compose"], &[]),
    tool("gcloud", include_str!("../../presets/gcloud.toml"), &["gcloud", "gsutil", "bq"], &[]),
    hosts("gemini", include_str!("../../presets/gemini.toml")),
    agent("gemini-cli", include_str!("../../presets/gemini-cli.toml"), &["gemini"]),
    hosts("github", include_str!("../../presets/github.toml")),
    hosts("gitlab", include_str!("../../presets/gitlab.toml")),
    tool("go", include_str!("../../presets/go.toml"), &["go"], &[Client::Go]),
    agent("goose", include_str!("../../presets/goose.toml"), &["goose"]),
    tool("gradle", include_str!("../../presets/gradle.toml"), &["gradle", "gradlew"], &[]),
    tool("kubectl", include_str!("../../presets/kubectl.toml"), &["kubectl"], &[Client::Kubectl]),
    tool("maven", include_str!("../../presets/maven.toml"), &["mvn", "mvnw", "mvnd"], &[Client::Maven]),
    hosts("mistral", include_str!("../../presets/mistral.toml")),
    files("none", include_str!("../../presets/none.toml"), &[], &[]),
    registries("npm", include_str!("../../presets/npm.toml")),
    hosts("openai", include_str!("../../presets/openai.toml")),
    agent("opencode", include_str!("../../presets/opencode.toml"), &["opencode"]),
    registries("pip", include_str!("../../presets/pip.toml")),
    tool("playwright", include_str!("../../presets/playwright.toml"), &["playwright"], &[]),
    tool("pnpm", include_str!("../../presets/pnpm.toml"), &["pnpm", "pnpx"], &[Client::Npm]),
    tool("poetry", include_str!("../../presets/poetry.toml"), &["poetry"], &[Client::Pip]),
    agent("qwen-code", include_str!("../../presets/qwen-code.toml"), &["qwen"]),
    tool("terraform", include_str!("../../presets/terraform.toml"), &["terraform", "tofu"], &[]),
    tool("uv", include_str!("../../presets/uv.toml"), &["uv", "uvx"], &[Client::Pip]),
    tool("yarn", include_str!("../../presets/yarn.toml"), &["yarn", "yarnpkg"], &[Client::Npm]),
];

/// The text of a shipped policy.
pub fn preset(name: &str) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|shipped| shipped.name == name)
        .map(|shipped| shipped.text)
}

/// The shipped policy that somebody means who writes another name: a program's, or one that
/// is written nearly so.
pub fn preset_meant(name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', ' '], "-");
    let written = plain(name);
    let for_program = || {
        let mut all = SHIPPED.iter();
        let known = all.find(|shipped| shipped.programs.contains(&written.as_str()));
        known.map(|shipped| shipped.name)
    };
    let begins = |shipped: &&Shipped| written.len() >= 3 && shipped.name.starts_with(&written);
    let beginning = || SHIPPED.iter().find(begins).map(|shipped| shipped.name);
    let nearest = || {
        let distances = SHIPPED
            .iter()
            .map(|shipped| (distance(&written, shipped.name), shipped));
        let (off, shipped) = distances.min_by_key(|(off, _)| *off)?;
        // A letter in three, two at most, may be wrong.
        (off <= (written.len() / 3).min(2)).then_some(shipped.name)
    };
    let exact = SHIPPED.iter().find(|shipped| shipped.name == written);
    let exact = exact.map(|shipped| shipped.name);
    exact
        .or_else(for_program)
        .or_else(beginning)
        .or_else(nearest)
}

/// How many letters differ, are missing or are too many; what is longer than any name is
/// far from all.
fn distance(written: &str, name: &str) -> usize {
    /// No preset has a name as long.
    const NAME_BYTES_MAX: usize = 32;
    if written.len() > NAME_BYTES_MAX {
        return usize::MAX;
    }
    edits::distance(written, name)
}

/// What a shipped policy is for, in one line: the first of its document.
pub fn preset_title(name: &str) -> Option<&'static str> {
    let line = preset(name)?.lines().next()?;
    let title = line.strip_prefix("# ")?.strip_prefix(name)?;
    Some(title.strip_prefix(": ")?.trim_end_matches('.'))
}

/// What a shipped policy is about.
pub fn preset_kind(name: &str) -> Option<PresetKind> {
    let mut all = SHIPPED.iter();
    all.find(|shipped| shipped.name == name)
        .map(|shipped| shipped.kind)
}

/// The clients whose configured registries a shipped policy allows, beside what its
/// document says.
pub fn preset_clients(name: &str) -> &'static [Client] {
    static ALL: [Shipped; SHIPPED.len()] = SHIPPED;
    let mut all = ALL.iter();
    all.find(|shipped| shipped.name == name)
        .map_or(&[], |shipped| shipped.clients)
}

/// The shipped policy for a program, by the name it is started with.
pub fn preset_for(program: &str) -> Option<&'static str> {
    let mut all = SHIPPED.iter();
    all.find(|shipped| shipped.programs.contains(&program))
        .map(|shipped| shipped.name)
}

/// The names of the shipped policies, in order.
pub fn preset_names() -> &'static [&'static str] {
    const COUNT: usize = SHIPPED.len();
    #[expect(
        clippy::indexing_slicing,
        reason = "made while compiling: beyond the end it would not compile"
    )]
    const NAMES: [&str; COUNT] = {
        let mut names = [""; COUNT];
        let mut index = 0;
        while index < COUNT {
            names[index] = SHIPPED[index].name;
            index += 1;
        }
        names
    };
    &NAMES
}

/// The shipped policy with this text, wherever the text came from.
pub(crate) fn shipped(text: &str) -> Option<&'static Shipped> {
    static ALL: [Shipped; SHIPPED.len()] = SHIPPED;
    ALL.iter().find(|shipped| shipped.text == text)
}

/// Who wrote a document with this text.
pub(crate) fn author(text: &str) -> Author {
    match shipped(text) {
        Some(_) => Author::Preset,
        None => Author::User,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_one_means_it() {
        for (name, meant) in [
            ("claude", Some("claude-code")),
            ("Claude_Code", Some("claude-code")),
            ("gemini", Some("gemini")),
            ("qwen", Some("qwen-code")),
            ("dev", Some("dev-tools")),
            ("dev-tool", Some("dev-tools")),
            ("gihtub", Some("github")),
            ("gitlba", Some("gitlab")),
            ("codx", Some("codex")),
            ("x", None),
            ("", None),
            ("something", None),
            ("kubernetes", None),
        ] {
            assert_eq!(preset_meant(name), meant, "{name}");
        }
        assert_eq!(preset_meant(&"a".repeat(100_000)), None);
    }

    use crate::author::Access;
    use crate::compile::tests::context;
    use crate::document;
    use crate::draft::Draft;
    use crate::location::Location;
    use crate::policy::Policy;
    use crate::source::{Source, SourceKind};
    use std::fmt::Write as _;

    /// What the document itself grants, in the form of the table.
    fn read(shipped: &Shipped) -> String {
        let source = Source {
            kind: SourceKind::Document,
            place: "p".to_owned(),
            text: shipped.text.to_owned(),
        };
        let context = context();
        let mut draft = Draft::new(&context);
        let location = Location::of(&source);
        document::read(&mut draft, &location, Author::Preset);
        let policy = draft.finish().expect("a sound document");
        assert_eq!(policy.rules().count(), 0, "the table holds no rules");
        listed(&policy)
    }

    fn listed(policy: &Policy) -> String {
        let mut out = String::new();
        let files = policy.filesystem();
        for (access, list) in [
            (Access::Read, &files.read),
            (Access::Write, &files.write),
            (Access::Deny, &files.deny),
        ] {
            for grant in list {
                let _ = writeln!(out, "{access:?} {} {}", grant.place, grant.path);
            }
        }
        for made in &files.made {
            let _ = writeln!(out, "made {} {:?}", made.path, made.content);
        }
        for (name, value) in &policy.environment.set {
            let place = policy
                .place(&format!("environment.set.{name}"))
                .expect(name);
            let _ = writeln!(out, "{place} {name}={value}");
        }
        out
    }

    fn tabled(shipped: &Shipped) -> String {
        let context = context();
        let mut draft = Draft::new(&context);
        draft.shipped("p", shipped);
        listed(&draft.finish().expect("a sound table"))
    }

    #[test]
    fn the_tables_say_what_the_documents_say() {
        for shipped in &SHIPPED {
            if shipped.paths.is_some() {
                assert_eq!(tabled(shipped), read(shipped), "{}", shipped.name);
            }
        }
    }

    #[test]
    fn the_table_extends_what_the_documents_extend() {
        for shipped in SHIPPED.iter().filter(|shipped| shipped.paths.is_some()) {
            let source = Source {
                kind: SourceKind::Document,
                place: "p".to_owned(),
                text: shipped.text.to_owned(),
            };
            let context = context();
            let mut draft = Draft::new(&context);
            let extended = document::extends(&mut draft, &Location::of(&source));
            let extended = extended.unwrap_or_default();
            assert_eq!(shipped.extends, extended, "{}", shipped.name);
        }
    }
}
