//! The user's settings of git for a command that may not read them: a copy
//! without what holds a credential or asks for a key. Reads the files that git
//! would read (git-config(1), "Files"), writes into the private directory of a
//! run, and runs nothing.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::limits::{FILES_MAX, INCLUDE_DEPTH_MAX};
use super::read_file;
use super::syntax::{Entry, parse, write};
use crate::environment::Variables;

/// The variable that names the user's file (git(1)).
const VARIABLE: &str = "GIT_CONFIG_GLOBAL";

/// Names of settings that are said; of further ones only how many.
const SAID_MAX: usize = 6;

/// Shortest name of a user in a URL that is taken for a token.
const TOKEN_BYTES_MIN: usize = 20;

/// Directories that hold keys: what settings name there is not granted.
const KEYS: [&str; 6] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".docker",
    ".kube",
    ".password-store",
];

/// Settings that name a file which git reads, and fails without.
const FILES: [&str; 5] = [
    "core.excludesfile",
    "core.attributesfile",
    "commit.template",
    "mailmap.file",
    "gpg.allowedsignersfile",
];

/// Settings that name a directory whose programs or templates git uses.
const DIRECTORIES: [&str; 2] = ["core.hookspath", "init.templatedir"];

/// Settings that ask for a key, which stays outside, and are true or false.
const SIGNING: [&str; 4] = [
    "commit.gpgsign",
    "tag.gpgsign",
    "tag.forcesignannotated",
    "push.gpgsign",
];

/// Whether a setting of this name with this value holds a credential, by what the scan
/// takes for one.
pub type Suspect<'s> = &'s dyn Fn(&str, &str) -> bool;

/// What git is told in a run.
#[derive(Debug, Default)]
pub struct Settings {
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
    entries: Vec<Entry>,
    /// Which of them name which other file.
    includes: Vec<(usize, usize)>,
}

impl Settings {
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
        let mut reader = Reader {
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
        private: &Path,
        variables: &mut Variables,
        set: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        if self.files.is_empty() || set(VARIABLE) {
            return Ok(());
        }
        let directory = private.join("git");
        DirBuilder::new().mode(0o700).create(&directory)?;
        let path = |number: usize| directory.join(format!("config-{number}"));
        for (number, file) in self.files.iter().enumerate() {
            let mut entries = file.entries.clone();
            for (entry, other) in &file.includes {
                if let Some(entry) = entries.get_mut(*entry) {
                    entry.value = path(*other).to_str().map(str::to_owned);
                }
            }
            let mut made = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path(number))?;
            made.write_all(write(&entries).as_bytes())?;
        }
        variables.insert(VARIABLE.into(), OsString::from(path(0)));
        Ok(())
    }
}

/// Reads files into settings.
struct Reader<'s> {
    settings: Settings,
    home: Option<PathBuf>,
    suspect: Suspect<'s>,
}

impl Reader<'_> {
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

    fn entry(&mut self, mut entry: Entry, (path, number): (&Path, usize), depth: usize) {
        let name = entry.name();
        if is_credential(&entry, self.suspect) {
            self.leave_out(&name);
            return;
        }
        if SIGNING.contains(&name.as_str()) {
            if entry.value.as_deref().is_none_or(is_true) {
                self.leave_out(&name);
            }
            return;
        }
        // A server of its own would outlive every command that starts it.
        if name == "core.fsmonitor" {
            return;
        }
        let place = self.place(&entry, path);
        if matches!(entry.section.as_str(), "include" | "includeif") && entry.key == "path" {
            let Some(place) = place else { return };
            anchor(&mut entry, path);
            self.include(entry, (&place, number), depth);
            return;
        }
        if let Some(place) = place
            && self.may_be_read(&name, &place)
        {
            self.settings.readable.push(place);
        }
        if let Some(file) = self.settings.files.get_mut(number) {
            file.entries.push(entry);
        }
    }

    fn include(&mut self, entry: Entry, (path, number): (&Path, usize), depth: usize) {
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
    fn place(&self, entry: &Entry, path: &Path) -> Option<PathBuf> {
        let value = entry.value.as_deref().filter(|value| !value.is_empty())?;
        if let Some(rest) = value.strip_prefix("~/") {
            return Some(self.home.as_ref()?.join(rest));
        }
        if value.starts_with('~') {
            return None;
        }
        Some(path.parent()?.join(value))
    }

    /// Whether git reads what this setting names, and nothing in it is a key.
    fn may_be_read(&self, name: &str, place: &Path) -> bool {
        let is_key = |part: Component<'_>| KEYS.iter().any(|key| part.as_os_str() == *key);
        let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        if FILES.contains(&name) {
            let is_list = name == "gpg.allowedsignersfile";
            let text = read_file(&real);
            let is_text = text.is_some_and(|text| !text.contains("PRIVATE KEY"));
            return is_text && (is_list || !real.components().any(is_key));
        }
        let holds_home = self
            .home
            .as_ref()
            .is_some_and(|home| home.starts_with(&real));
        DIRECTORIES.contains(&name)
            && real.is_dir()
            && !holds_home
            && !real.components().any(is_key)
    }

    fn leave_out(&mut self, name: &str) {
        if !self.settings.left_out.iter().any(|known| known == name) {
            self.settings.left_out.push(name.to_owned());
        }
    }
}

/// An entry that includes another file.
fn inclusion() -> Entry {
    Entry {
        section: "include".to_owned(),
        subsection: None,
        key: "path".to_owned(),
        value: None,
    }
}

/// Whether an entry holds a credential.
fn is_credential(entry: &Entry, suspect: Suspect<'_>) -> bool {
    let value = entry.value.as_deref().unwrap_or_default();
    let is_switch = is_true(value) || matches!(value, "false" | "no" | "off" | "0");
    let says_so = |word: &str| entry.key.contains(word);
    let named = ["token", "secret", "passw", "smtppass", "apikey", "api-key"];
    let is_named = named.into_iter().any(says_so) || entry.name() == "imap.pass";
    let is_helper = entry.key == "helper"
        && (value
            .split(['/', ' '])
            .any(|word| word == "store" || word == "git-credential-store")
            || value.contains("password="));
    entry.key == "extraheader"
        || is_helper
        || (is_named && !is_switch)
        || holds_userinfo(value)
        || entry.subsection.as_deref().is_some_and(holds_userinfo)
        || (entry.section != "user" && suspect(&entry.key, value))
}

/// Whether there is a URL with a password, or with a token in the place of a user.
fn holds_userinfo(text: &str) -> bool {
    let mut behind = text.split("://");
    let before = behind.next().unwrap_or_default();
    let is_web = before.ends_with("http") || before.ends_with("https");
    behind.any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next();
        let user = authority.and_then(|authority| authority.rsplit_once('@'));
        user.is_some_and(|(user, _)| {
            let password = user.split_once(':').map(|(_, password)| password);
            password.is_some_and(|password| !password.is_empty())
                || (is_web && user.len() >= TOKEN_BYTES_MIN)
        })
    })
}

fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on" | "1")
}

/// A condition that begins in the file's own directory, wherever its copy lies.
fn anchor(entry: &mut Entry, path: &Path) {
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
