//! Policy texts in merge order: presets and files are read here, once, with
//! what they extend before them. The compiler and the gateway get the texts.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::unistd::Uid;
use outgate_handoff::{POLICY_BYTES_MAX, SOURCES_MAX};
use outgate_policy::{
    Client, ClientError, Configuration, ConfiguredRegistry, Context, HandedConfiguration,
    NOTE_BYTES_MAX, PolicyOption, Source, SourceKind, compile, extends, preset, preset_clients,
};

use crate::git::{GitSettings, Suspect, WorkTree, of_hosts, of_settings, of_tree, said};
use crate::guarded::Access;
use crate::limits::DOCUMENTS_MAX;
use crate::moved::{Found, MOVED, is_plain, locks, moved};
use crate::project::{project, project_files};
use crate::source_text::{bounded, text};
use crate::text::quoted;

pub use crate::source_text::{PolicyTextError, regular};

/// What presets about clients read: the user's home, and the variables that a
/// user can set.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home directory; may be empty.
    pub home: String,
    /// Names and values, in the order of the names.
    pub variables: Vec<(String, String)>,
}

/// The shipped policy that holds unless somebody takes it away.
const BASE: &str = "base";
/// The shipped policy that takes it away.
const NONE: &str = "none";

/// What becomes of a client that nobody configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unconfigured {
    /// No run: its registries are all that was asked for.
    Refuse,
    /// None is allowed, and that is said.
    Say,
    /// None is allowed: others are.
    Pass,
}

/// Whether something said that a policy begins with nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Beginning {
    /// With what nearly every command needs.
    #[default]
    Base,
    /// With what is named and nothing else.
    Nothing,
}

/// Those whose registries packages are installed from.
const PACKAGE_MANAGERS: [Client; 6] = [
    Client::Npm,
    Client::Pip,
    Client::Cargo,
    Client::Go,
    Client::Gem,
    Client::Maven,
];
/// What is said where none of them is configured.
const UNCONFIGURED: &str = "no package manager is configured for a registry: allow the one that \
    is meant (-a https://registry.example.org)";

/// Collects documents in merge order.
#[derive(Debug, Default)]
pub struct SourceCollector {
    surroundings: Surroundings,
    sources: Vec<Source>,
    seen: HashSet<String>,
    consulted: Vec<PathBuf>,
    /// What is to be said of clients that nobody configured.
    unconfigured: Vec<Source>,
    beginning: Beginning,
    git: Option<GitSettings>,
    repository: Option<String>,
}

impl SourceCollector {
    /// One that finds the configuration of clients here.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            ..Self::default()
        }
    }

    /// Files beside policies that say what is allowed: a command that may write
    /// one would say it.
    pub fn consulted(&self) -> &[PathBuf] {
        &self.consulted
    }

    /// Adds a shipped preset and what it extends.
    ///
    /// # Errors
    /// [`PolicyTextError::Preset`] when there is none of that name.
    pub fn preset(&mut self, name: &str) -> Result<(), PolicyTextError> {
        let text = preset(name).ok_or_else(|| PolicyTextError::Preset {
            name: name.to_owned(),
        })?;
        let place = format!("preset `{name}`");
        if name == NONE {
            self.beginning = Beginning::Nothing;
        }
        if let Some(client) = Client::named(name) {
            return self.registries(client, &place, Unconfigured::Refuse);
        }
        self.document(document_of(place.clone(), text.to_owned()), Path::new("/"))?;
        for client in preset_clients(name) {
            self.registries(*client, &place, Unconfigured::Say)?;
        }
        self.moved(name, &place);
        if let Some(text) = locks(name) {
            self.text(SourceKind::Document, &place, &text);
        }
        Ok(())
    }

    /// Puts the shipped policy `base` before everything else, unless the preset `none` or
    /// `extends = []` in a file took it away, or it is there.
    ///
    /// # Errors
    /// [`PolicyTextError::Preset`] if it is not shipped, which a test excludes.
    pub fn base(&mut self) -> Result<(), PolicyTextError> {
        if self.beginning == Beginning::Nothing {
            return Ok(());
        }
        let others = std::mem::take(&mut self.sources);
        self.preset(BASE)?;
        self.sources.extend(others);
        Ok(())
    }

    /// Adds the registries that the user configured for a client.
    fn registries(
        &mut self,
        client: Client,
        place: &str,
        unconfigured: Unconfigured,
    ) -> Result<(), PolicyTextError> {
        if !self.seen.insert(format!("{place} of {client:?}")) {
            return Ok(());
        }
        let Surroundings { home, variables } = &self.surroundings;
        let variable = |name: &str| {
            let mut all = variables.iter();
            all.find(|(own, _)| own == name)
                .map(|(_, value)| value.clone())
        };
        let (mut files, mut shown_to) = (Vec::new(), Vec::new());
        for path in client.files(home, &variable) {
            let path = PathBuf::from(path);
            if let Some(text) = configuration(&path)? {
                let is_told = unconfigured == Unconfigured::Say && is_plain(&text);
                if client.is_shown() || is_told {
                    shown_to.push(path.display().to_string());
                }
                let shown = path.display().to_string();
                let below = shown
                    .strip_prefix(home.as_str())
                    .filter(|_| !home.is_empty());
                let place = below.map(|below| format!("~{below}")).unwrap_or(shown);
                files.push(Configuration { place, text });
            }
            // One that is not there yet counts as well.
            self.consulted.push(path);
        }
        let handed = client.handed(&files, variables);
        let registries = match client.registries(&files, variables) {
            Err(ClientError::Unconfigured(_)) if unconfigured == Unconfigured::Pass => Vec::new(),
            Err(ClientError::Unconfigured(_)) if unconfigured == Unconfigured::Say => {
                let note = note(&client.note());
                self.unconfigured.push(document_of(place.to_owned(), note));
                Vec::new()
            }
            Err(error) => {
                return Err(PolicyTextError::Client {
                    place: place.to_owned(),
                    error,
                });
            }
            Ok(registries) => registries,
        };
        for registry in registries {
            self.registry(place, &registry);
        }
        for path in shown_to {
            self.text(SourceKind::Read, place, &path);
        }
        self.hand(place, &handed);
        Ok(())
    }

    /// Adds the registries of all package managers that the user configured: `pkg:install`.
    ///
    /// # Errors
    /// [`PolicyTextError`]: what a package manager is configured for cannot be read.
    pub fn installs(&mut self, place: &str) -> Result<(), PolicyTextError> {
        let before = self.sources.len();
        for client in PACKAGE_MANAGERS {
            self.registries(client, place, Unconfigured::Pass)?;
        }
        if self.sources.len() == before {
            self.note(place, UNCONFIGURED);
        }
        Ok(())
    }

    fn registry(&mut self, place: &str, registry: &ConfiguredRegistry) {
        let place = format!("{place}: {}", registry.place);
        if registry.addresses.is_empty() {
            return self.text(SourceKind::Allow, &place, &registry.rule);
        }
        let addresses: Vec<String> = registry.addresses.iter().map(|one| quoted(one)).collect();
        let rule = quoted(&registry.rule);
        let addresses = addresses.join(", ");
        let text = format!("[[allow]]\nrule = {rule}\naddresses = [{addresses}]\n");
        self.text(SourceKind::Document, &place, &text);
    }

    /// Has a run say something of a shipped policy.
    fn note(&mut self, place: &str, text: &str) {
        self.text(SourceKind::Document, place, &note(text));
    }

    /// Shows what a shipped policy is about where variables say that it lies elsewhere.
    fn moved(&mut self, preset: &str, place: &str) {
        let Surroundings { home, variables } = &self.surroundings;
        let mut tables = MOVED.iter();
        let Some((_, kind, table)) = tables.find(|(own, _, _)| *own == preset) else {
            return;
        };
        let access = match kind {
            SourceKind::Write => Access::Write,
            _ => Access::Read,
        };
        for (name, found) in moved(home, variables, (access, table)) {
            match found {
                Found::At(path) => self.text(*kind, &format!("{place}: ${name}"), &path),
                Found::Closed(path, closed) => {
                    let text = format!(
                        "the variable {name} moves what {place} grants to `{path}`: left out, as that \
                         is, holds or is in a place of secrets or of other programs (`{closed}`)"
                    );
                    let is_line =
                        text.len() <= NOTE_BYTES_MAX && !text.chars().any(char::is_control);
                    let text = if is_line {
                        text
                    } else {
                        format!(
                            "the variable {name} moves what {place} grants to a place of secrets or of other programs: left out"
                        )
                    };
                    self.note(place, &text);
                }
            }
        }
    }

    /// Hands over what a command cannot read: the files of a client hold tokens, and
    /// without them it would ask another registry.
    fn hand(&mut self, place: &str, handed: &HandedConfiguration) {
        let line = |(name, value): (&str, &str)| format!("{} = {}\n", quoted(name), quoted(value));
        let variables = handed.variables.iter();
        let variables: Vec<String> = variables.map(|(name, value)| line((name, value))).collect();
        if !variables.is_empty() {
            let text = format!("[environment.set]\n{}", variables.concat());
            self.text(SourceKind::Document, place, &text);
        }
        let files = handed.files.iter();
        let files: Vec<String> = files
            .map(|(name, text)| line((&format!("$TMPDIR/{name}"), text)))
            .collect();
        if !files.is_empty() {
            let text = format!("[filesystem.new]\n{}", files.concat());
            self.text(SourceKind::Document, place, &text);
        }
    }

    /// Adds what git needs beside the user's grants, unless `base` was taken away: files
    /// that the user's settings name, the project's root to read, and the repository where
    /// that lies elsewhere. To be called when all else is there.
    pub fn git(&mut self, context: &Context, suspect: Suspect<'_>) {
        if self.beginning == Beginning::Nothing {
            return;
        }
        let variables = self.surroundings.variables.iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        self.git = GitSettings::of(&variables.collect(), suspect);
        self.sources
            .extend(self.git.as_ref().map(of_settings).unwrap_or_default());
        self.sources.extend(of_hosts(Path::new(&context.home)));
        let directory = Path::new(&context.working_directory);
        let user = Uid::effective().as_raw();
        let Some(tree) = WorkTree::of(directory, Path::new(&context.home), user) else {
            return;
        };
        if tree.places().is_empty() {
            return;
        }
        // Faults are told when all of it is compiled.
        if let Ok(policy) = compile(&self.sources, context) {
            let granted = of_tree(&tree, &policy);
            let is_written = granted
                .iter()
                .any(|source| source.kind == SourceKind::Write);
            self.repository = is_written.then(|| said(&tree)).flatten();
            self.sources.extend(granted);
        }
    }

    /// One line about a repository elsewhere that is granted with the work tree.
    pub fn take_repository(&mut self) -> Option<String> {
        self.repository.take()
    }

    /// What git is told in the run.
    pub fn take_git(&mut self) -> Option<GitSettings> {
        self.git.take()
    }

    /// Adds a policy file and what it extends.
    ///
    /// # Errors
    /// [`PolicyTextError`] names the file.
    pub fn file(&mut self, path: &Path) -> Result<(), PolicyTextError> {
        let source = document(path)?;
        if extends(&source)?.is_some_and(|names| names.is_empty()) {
            self.beginning = Beginning::Nothing;
        }
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        self.document(source, &base)
    }

    /// Adds what `extends` would mean by this name: a preset, or a file whose
    /// path has a slash or a dot and begins in `base`.
    ///
    /// # Errors
    /// [`PolicyTextError`] names the preset or the file.
    pub fn named(&mut self, name: &str, base: &Path) -> Result<(), PolicyTextError> {
        if preset(name).is_some() {
            self.preset(name)
        } else if name.contains(['/', '.']) {
            self.file(&base.join(PathBuf::from(name)))
        } else {
            Err(PolicyTextError::Preset {
                name: name.to_owned(),
            })
        }
    }

    fn document(&mut self, source: Source, base: &Path) -> Result<(), PolicyTextError> {
        if !self.seen.insert(source.place.clone()) {
            return Ok(());
        }
        if self.seen.len() > DOCUMENTS_MAX {
            return Err(PolicyTextError::Many);
        }
        for name in extends(&source)?.unwrap_or_default() {
            self.named(&name, base)?;
        }
        self.sources.push(source);
        Ok(())
    }

    /// Has the policy begin with nothing.
    pub(crate) fn begin_with_nothing(&mut self) {
        self.beginning = Beginning::Nothing;
    }

    /// Adds a text that was read.
    pub(crate) fn add(&mut self, source: Source) {
        self.sources.push(source);
    }

    /// Adds the files of the project that `directory` belongs to.
    ///
    /// # Errors
    /// [`PolicyTextError`] names the file.
    pub fn project(&mut self, directory: &Path, home: &Path) -> Result<(), PolicyTextError> {
        for path in project_files(directory, home) {
            self.sources.push(project(&path, directory)?);
        }
        Ok(())
    }

    /// Adds a text from the command line.
    pub fn text(&mut self, kind: SourceKind, place: &str, text: &str) {
        self.sources.push(Source {
            kind,
            place: place.to_owned(),
            text: text.to_owned(),
        });
    }

    /// Adds what an option says that is neither rule nor path.
    pub fn option(&mut self, option: PolicyOption, place: &str, text: &str) {
        self.text(SourceKind::Option(option), place, text);
    }

    /// All texts, in merge order. That a client is not configured is said where no rule
    /// was named in its place.
    pub fn finish(mut self) -> Vec<Source> {
        let is_rule = |source: &Source| source.kind == SourceKind::Allow;
        if !self.sources.iter().any(is_rule) {
            self.sources.append(&mut self.unconfigured);
        }
        self.sources
    }
}

/// The text of a client's configuration; nothing where it is not there.
fn configuration(path: &Path) -> Result<Option<String>, PolicyTextError> {
    let shown = || path.display().to_string();
    let failed = |source| PolicyTextError::File {
        path: shown(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(None);
    }
    let bytes = bounded(file).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| PolicyTextError::Large { path: shown() })?;
    text(bytes).map(Some).map_err(failed)
}

/// A document with a line that the start of a command says.
fn note(text: &str) -> String {
    let text = quoted(text);
    format!("[[note]]\ntext = {text}\nunless = [\"--version\"]\n")
}

/// Reads a policy file, without what it extends.
///
/// # Errors
/// [`PolicyTextError`] names the file.
pub fn document(path: &Path) -> Result<Source, PolicyTextError> {
    let shown = path.display().to_string();
    let failed = |source| PolicyTextError::File {
        path: shown.clone(),
        source,
    };
    let bytes = File::open(path).and_then(bounded).map_err(failed)?;
    let Some(bytes) = bytes else {
        return Err(PolicyTextError::Large { path: shown });
    };
    let text = text(bytes).map_err(failed)?;
    Ok(document_of(shown, text))
}

fn document_of(place: String, text: String) -> Source {
    Source {
        kind: SourceKind::Document,
        place,
        text,
    }
}

/// Checks that the texts together are what one session takes, so that too
/// many are refused at the start and not at the first connection.
///
/// # Errors
/// [`PolicyTextError::Total`] names the limit.
pub fn check_total(sources: &[Source]) -> Result<(), PolicyTextError> {
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let within = |count: usize, unit: &str, max: usize| {
        if count <= max {
            return Ok(());
        }
        Err(PolicyTextError::Total {
            what: format!("{count} {unit}"),
            max,
        })
    };
    within(
        sources.len(),
        "documents, rules, paths and pins",
        SOURCES_MAX,
    )?;
    within(bytes, "bytes", POLICY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_file_is_read_within_its_bound_whatever_it_is() {
        for path in ["/dev/zero", "/dev/urandom"] {
            let error = SourceCollector::default()
                .file(Path::new(path))
                .unwrap_err();
            assert!(matches!(error, PolicyTextError::Large { .. }), "{error}");
        }
        let error = SourceCollector::default()
            .file(Path::new("/proc/self/exe"))
            .unwrap_err();
        assert!(matches!(error, PolicyTextError::Large { .. }), "{error}");
        assert!(
            SourceCollector::default()
                .file(Path::new("/dev/null"))
                .is_ok()
        );
    }

    /// The shipped policies in what these presets and files come to, in order.
    fn shipped(presets: &[&str], files: &[&str]) -> Vec<String> {
        let mut collector = SourceCollector::default();
        for name in presets {
            collector.preset(name).unwrap();
        }
        let name = format!(
            "outgate-base-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        for (number, text) in files.iter().enumerate() {
            std::fs::write(directory.join(format!("{number}.toml")), text).unwrap();
        }
        // The later ones are there for the first to extend.
        if !files.is_empty() {
            collector.file(&directory.join("0.toml")).unwrap();
        }
        collector.base().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let sources = collector.finish();
        let places = sources.iter().map(|source| source.place.clone());
        places.filter(|place| place.starts_with("preset")).collect()
    }

    #[test]
    fn base_stays_unless_somebody_takes_it_away() {
        let base = "preset `base`";
        assert_eq!(shipped(&[], &[]), [base]);
        assert_eq!(shipped(&["github"], &[]), [base, "preset `github`"]);
        assert_eq!(shipped(&["dev-tools"], &[]), [base, "preset `dev-tools`"]);
        assert_eq!(shipped(&[], &["strict = true"]), [base]);
        let github = "extends = [\"github\"]";
        assert_eq!(shipped(&[], &[github]), [base, "preset `github`"]);
        assert_eq!(shipped(&[], &["extends = [\"./1.toml\"]", ""]), [base]);
        // Taken away, wherever that is said.
        assert_eq!(shipped(&["none"], &[]), ["preset `none`"]);
        assert_eq!(
            shipped(&["none", "github"], &[]),
            ["preset `none`", "preset `github`"]
        );
        assert_eq!(shipped(&[], &["extends = [\"none\"]"]), ["preset `none`"]);
        assert!(shipped(&[], &["extends = []"]).is_empty());
        assert_eq!(shipped(&["github"], &["extends = []"]), ["preset `github`"]);
        assert!(shipped(&[], &["extends = [\"./1.toml\"]", "extends = []"]).is_empty());
        // Named, it is there all the same.
        let both = ["preset `none`", base, "preset `dev-tools`"];
        assert_eq!(shipped(&["none", "dev-tools"], &[]), both);
    }

    #[test]
    fn more_than_a_session_takes_is_refused_before_it_starts() {
        let source = |text: &str| Source {
            kind: SourceKind::Allow,
            place: "-a".to_owned(),
            text: text.to_owned(),
        };
        let many = vec![source("a.test"); SOURCES_MAX];
        assert!(check_total(&many).is_ok());
        assert!(check_total(&[many, vec![source("b.test")]].concat()).is_err());
        let long = source(&"x".repeat(POLICY_BYTES_MAX));
        assert!(check_total(std::slice::from_ref(&long)).is_ok());
        assert!(check_total(&[long, source("x")]).is_err());
    }
}
