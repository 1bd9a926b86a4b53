//! The user's settings of git for a command that may not read them: a copy
//! without what holds a credential or asks for a key. Reads the files that git
//! would read (git-config(1), "Files"), writes into the private directory of a
//! run, and runs nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::harmless::{SettingJudgement, Suspect, judge};
use super::limits::{FILES_MAX, INCLUDE_DEPTH_MAX};
use super::read_file;
use super::syntax::{ConfigEntry, parse, write};
use crate::environment::Variables;
use crate::private::HeldDirectory;

/// The variable that names the user's file (git(1)).
const VARIABLE: &str = "GIT_CONFIG_GLOBAL";

/// Names of settings that are said; of further ones only how many.
const SAID_MAX: usize = 6;

/// Settings that name a file which git reads, and fails or warns without, with words of which
/// the file's name has one: a setting may have been planted, and then names anything.
const FILES: [(&str, &[&str]); 5] = [
    ("core.excludesfile", &["ignore", "exclude"]),
    ("core.attributesfile", &["attributes"]),
    ("commit.template", &["message", "template", "commit"]),
    ("mailmap.file", &["mailmap"]),
    (
        "gpg.allowedsignersfile",
        &["allowed_signers", "allowed-signers"],
    ),
];

/// Settings that ask for a key, which stays outside, and are true or false.
const SIGNING: [&str; 4] = [
    "commit.gpgsign",
    "tag.gpgsign",
    "tag.forcesignannotated",
    "push.gpgsign",
];

/// What git is told in a run.
#[derive(Debug, Default)]
pub struct GitSettings {
    /// The first is the user's file; the others are included by those before them. None
    /// where the user has none.
    files: Vec<File>,
    /// What was left out, by its name.
    left_out: Vec<String>,
    /// Files and directories that settings name.
    readable: Vec<PathBuf>,
}

/// One file of the copy.
#[derive(Debug, Default)]
struct File {
    entries: Vec<ConfigEntry>,
    /// Which of them name which other file.
    includes: Vec<(usize, usize)>,
}

impl GitSettings {
    /// Reads what the user's git would read, without the machine's and a repository's own
    /// files. Nothing where there is none.
    pub fn of(variables: &Variables, suspect: Suspect<'_>) -> Option<Self> {
        let absolute = |name: &str| {
            let value = variables.get(OsStr::new(name)).map(PathBuf::from);
            value.filter(|path| path.is_absolute())
        };
        let home = absolute("HOME");
        let shared = absolute("XDG_CONFIG_HOME")
            .or_else(|| Some(home.as_ref()?.join(".config")))
            .map(|config| config.join("git"));
        let mut reader = ConfigReader {
            settings: Self::default(),
            home: home.clone(),
            suspect,
        };
        reader.settings.files.push(File::default());
        let (shared_file, own) = if let Some(own) = variables.get(OsStr::new(VARIABLE)) {
            (None, Some(PathBuf::from(own)))
        } else {
            let shared = shared.as_ref().map(|shared| shared.join("config"));
            (shared, home.map(|home| home.join(".gitconfig")))
        };
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let shared_file = shared_file.filter(is_there);
        let own = own.filter(is_there);
        if shared_file.is_none() && own.is_none() {
            reader.settings.files.clear();
        }
        // Read before, and apart: what is set anew replaces the user's own alone.
        if let Some(shared) = shared_file {
            reader.include(inclusion(), (&shared, 0), 0);
        }
        if let Some(own) = own {
            reader.file(&own, 0, 0);
        }
        // git reads these unless it is told others.
        for name in ["ignore", "attributes"] {
            let path = shared.as_ref().map(|shared| shared.join(name));
            let is_file = |path: &PathBuf| path.is_file();
            reader.settings.readable.extend(path.filter(is_file));
        }
        let settings = reader.settings;
        (!settings.files.is_empty() || !settings.readable.is_empty()).then_some(settings)
    }

    /// Files and directories that the settings name and git reads: ignore lists,
    /// templates, hooks.
    pub fn readable(&self) -> &[PathBuf] {
        &self.readable
    }

    /// What was left out, in one line.
    pub(crate) fn said(&self) -> Option<String> {
        let (first, more) = self.left_out.split_at(self.left_out.len().min(SAID_MAX));
        if first.is_empty() {
            return None;
        }
        let names = first.join(", ");
        let more = match more.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        Some(format!(
            "outgate: kept from git in the run: {names}{more} (they hold credentials or ask for \
             keys)"
        ))
    }

    /// Writes the copy into the private directory of a run, and has git read it, unless
    /// `set` says what git reads.
    ///
    /// # Errors
    /// The private directory cannot be written: the operator's machine.
    pub(crate) fn write(
        &self,
        private: &HeldDirectory,
        variables: &mut Variables,
        set: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        if self.files.is_empty() || set(VARIABLE) {
            return Ok(());
        }
        let name = |number: usize| PathBuf::from(format!("git/config-{number}"));
        let path = |number: usize| private.path().join(name(number));
        for (number, file) in self.files.iter().enumerate() {
            let mut entries = file.entries.clone();
            for (entry, other) in &file.includes {
                if let Some(entry) = entries.get_mut(*entry) {
                    entry.value = path(*other).to_str().map(str::to_owned);
                }
            }
            let mut made = private.make(&name(number))?;
            made.write_all(write(&entries).as_bytes())?;
        }
        variables.insert(VARIABLE.into(), OsString::from(path(0)));
        Ok(())
    }
}

/// Reads files into settings.
struct ConfigReader<'s> {
    settings: GitSettings,
    home: Option<PathBuf>,
    suspect: Suspect<'s>,
}

impl ConfigReader<'_> {
    /// Adds the entries of a file to that of this number; nothing where it cannot be read,
    /// as git passes over files that are not there.
    fn file(&mut self, path: &Path, number: usize, depth: usize) -> Option<()> {
        let text = read_file(path)?;
        let Ok(entries) = parse(&text) else {
            self.leave_out(&format!(
                "`{}`, which git cannot read either",
                path.display()
            ));
            return None;
        };
        for entry in entries {
            self.entry(entry, (path, number), depth);
        }
        Some(())
    }

    fn entry(&mut self, mut entry: ConfigEntry, (path, number): (&Path, usize), depth: usize) {
        let name = entry.name();
        match judge(&entry, self.suspect) {
            SettingJudgement::Plain => {}
            SettingJudgement::Unknown => return,
            SettingJudgement::Secret => return self.leave_out(&name),
        }
        if SIGNING.contains(&name.as_str()) {
            if entry.value.as_deref().is_none_or(is_true) {
                self.leave_out(&name);
            }
            return;
        }
        let place = self.place(&entry, path);
        if matches!(entry.section.as_str(), "include" | "includeif") && entry.key == "path" {
            let Some(place) = place.filter(|place| is_gits(place)) else {
                return self.leave_out(&name);
            };
            anchor(&mut entry, path);
            self.include(entry, (&place, number), depth);
            return;
        }
        if let Some(place) = place
            && Self::may_be_read(&name, &place)
        {
            self.settings.readable.push(place);
        }
        if let Some(file) = self.settings.files.get_mut(number) {
            file.entries.push(entry);
        }
    }

    fn include(&mut self, entry: ConfigEntry, (path, number): (&Path, usize), depth: usize) {
        let other = self.settings.files.len();
        if depth >= INCLUDE_DEPTH_MAX || other >= FILES_MAX {
            self.leave_out(&entry.name());
            return;
        }
        self.settings.files.push(File::default());
        if self.file(path, other, depth.saturating_add(1)).is_none() {
            // A later one may have taken the next number.
            return;
        }
        if let Some(file) = self.settings.files.get_mut(number) {
            file.includes.push((file.entries.len(), other));
            file.entries.push(entry);
        }
    }

    /// The path that a value is, as git expands it.
    fn place(&self, entry: &ConfigEntry, path: &Path) -> Option<PathBuf> {
        let value = entry.value.as_deref().filter(|value| !value.is_empty())?;
        if let Some(rest) = value.strip_prefix("~/") {
            return Some(self.home.as_ref()?.join(rest));
        }
        if value.starts_with('~') {
            return None;
        }
        Some(path.parent()?.join(value))
    }

    /// Whether git reads what this setting names, and it is what its name says.
    fn may_be_read(name: &str, place: &Path) -> bool {
        let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let has = |words: &[&str]| {
            let file = real.file_name().unwrap_or_default().to_string_lossy();
            let file = file.to_ascii_lowercase();
            words.iter().any(|word| file.contains(word))
        };
        let mut named = FILES.iter().filter(|(own, _)| *own == name);
        named.any(|(_, words)| has(words))
            && read_file(&real).is_some_and(|text| !text.contains("PRIVATE KEY"))
    }

    fn leave_out(&mut self, name: &str) {
        if !self.settings.left_out.iter().any(|known| known == name) {
            self.settings.left_out.push(name.to_owned());
        }
    }
}

/// Whether a file is one of git's by its name or that of a directory, also where links lead
/// to it: what a planted line names anywhere else is not read.
fn is_gits(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut parts = real.components().rev().take(3);
    parts.any(|part| {
        let part = part.as_os_str().to_string_lossy();
        part.to_ascii_lowercase().contains("git")
    })
}

/// An entry that includes another file.
fn inclusion() -> ConfigEntry {
    ConfigEntry {
        section: "include".to_owned(),
        subsection: None,
        key: "path".to_owned(),
        value: None,
    }
}

fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on" | "1")
}

/// A condition that begins in the file's own directory, wherever its copy lies.
fn anchor(entry: &mut ConfigEntry, path: &Path) {
    let Some(condition) = &entry.subsection else {
        return;
    };
    let parts = condition.split_once(":./");
    if let Some((kind, rest)) = parts
        && let Some(directory) = path.parent().and_then(Path::to_str)
    {
        entry.subsection = Some(format!("{kind}:{directory}/{rest}"));
    }
}
