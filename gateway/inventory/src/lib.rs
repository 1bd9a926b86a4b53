//! The user's own secrets, read where the user keeps them: variables, well-known
//! files of the home directory, private keys, and settings of the project.
//!
//! Called before the process confines itself, in the process that scans: the
//! launcher never sees a value. Reads a bounded number of small regular files
//! and tells what it left out; what the texts mean, [`outgate_dlp::inventory`]
//! knows. Files of the project may be anybody's work: they name values to look
//! for, and never a host where a secret may go.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outgate_dlp::inventory::{self, FILES, Format, Inventory, PROJECT_FILES};
use outgate_dlp::{Detectors, KnownBuilder, Registry, SecretBytes, Unfit};

/// Bytes of a file that are read: one more than count, to know whether there are more.
const FILE_BYTES_MAX: u64 = inventory::TEXT_BYTES_MAX as u64 + 1;
/// Most files below `~/.ssh` that are looked at.
const KEYS_MAX: usize = 64;

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct SecretPlaces {
    /// The home directory; nothing below it is read without one.
    pub home: Option<PathBuf>,
    /// The working directory of the command.
    pub directory: Option<PathBuf>,
    /// A file of the user's that lists secrets.
    pub list: Option<PathBuf>,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Values and where they may go, each from one source.
    pub inventory: Vec<Inventory>,
    /// What could not be read, as sentences. Files that are not there are none.
    pub left_out: Vec<String>,
    /// The list that the user names, as sentences about it begin.
    pub list: Option<String>,
}

impl Gathered {
    /// Whether nothing was found, and nothing was left out.
    pub fn is_empty(&self) -> bool {
        let is_empty = |held: &Inventory| held.values.is_empty() && held.registries.is_empty();
        self.left_out.is_empty() && self.inventory.iter().all(is_empty)
    }

    /// Hosts of registries of packages that the user's files name.
    pub fn registries(&self) -> Vec<(Registry, String)> {
        let all = self
            .inventory
            .iter()
            .flat_map(|held| held.registries.iter());
        all.cloned().collect()
    }

    /// Adds every value to what is looked for. Returns what is left out, as
    /// sentences.
    ///
    /// # Errors
    /// A sentence: what the user lists is looked for, all of it or nothing.
    pub fn hold(
        &self,
        known: &mut KnownBuilder,
        detectors: &Detectors,
    ) -> Result<Vec<String>, String> {
        let is_listed = |text: &str| {
            let list = self.list.as_ref();
            list.is_some_and(|list| text.starts_with(list.as_str()))
        };
        if let Some(line) = self.left_out.iter().find(|line| is_listed(line)) {
            return Err(line.clone());
        }
        let mut left_out = self.left_out.clone();
        for held in &self.inventory {
            for (label, why) in known.hold(held, detectors) {
                if is_listed(&label) {
                    return Err(format!("{label}: its value is {why}; take it out"));
                }
                // What is short or plain elsewhere is no secret.
                if why == Unfit::Many {
                    left_out.push(format!("{label}: its value is {why}"));
                }
            }
        }
        Ok(left_out)
    }

    fn file(&mut self, path: &Path, label: &str, format: Format) -> Option<&mut Inventory> {
        match small(path) {
            Ok(Some(text)) => {
                let held = inventory::read(format, label, text.expose());
                // Beside keys, anything may lie.
                if let Some(left_out) = &held.left_out
                    && format != Format::PrivateKey
                {
                    self.left_out.push(format!("{label}: {left_out}"));
                }
                self.inventory.push(held);
                self.inventory.last_mut()
            }
            Ok(None) => None,
            Err(error) => {
                self.left_out.push(format!("{label}: {error}"));
                None
            }
        }
    }
}

/// Reads everything.
pub fn gather(
    places: &SecretPlaces,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Gathered {
    let mut gathered = Gathered::default();
    // What the user names comes first: there is room for so many values, and a
    // project could fill it.
    if let Some(list) = &places.list {
        let label = list.display().to_string();
        gathered.list = Some(label.clone());
        if !list.is_file() {
            gathered
                .left_out
                .push(format!("{label}: there is no such file"));
        }
        gathered.file(list, &label, Format::List);
    }
    let pairs: Vec<(String, SecretBytes)> = environment
        .filter_map(|(name, value)| {
            let value = SecretBytes::new(value.into_encoded_bytes());
            Some((name.into_string().ok()?, value))
        })
        .collect();
    let texts = pairs.iter().filter_map(|(name, value)| {
        Some((name.as_str(), std::str::from_utf8(value.expose()).ok()?))
    });
    gathered.inventory.push(inventory::environment(texts));
    if let Some(home) = &places.home {
        for (name, format) in FILES {
            gathered.file(&home.join(name), &format!("~/{name}"), format);
        }
        keys(home, &mut gathered);
        packages(&mut gathered);
    }
    if let Some(directory) = &places.directory {
        for (name, format) in PROJECT_FILES {
            if let Some(held) = gathered.file(&directory.join(name), name, format) {
                // The project's word does not widen where a secret may go.
                held.registries.clear();
                for holding in &mut held.values {
                    holding.hosts.clear();
                }
            }
        }
    }
    gathered
}

/// cargo says in one file where its registries are, and in another what their tokens are.
fn packages(gathered: &mut Gathered) {
    let all = gathered.registries().into_iter();
    let own = all.filter(|(registry, _)| *registry == Registry::Cargo);
    let hosts: Vec<String> = own.map(|(_, host)| host).collect();
    for holding in gathered
        .inventory
        .iter_mut()
        .flat_map(|held| &mut held.values)
    {
        if holding.hosts.is_empty() && holding.label.starts_with("~/.cargo/credentials") {
            holding.hosts.clone_from(&hosts);
        }
    }
}

/// Private keys of other names than the usual.
fn keys(home: &Path, gathered: &mut Gathered) {
    let Ok(entries) = fs::read_dir(home.join(".ssh")) else {
        return;
    };
    let mut names: Vec<String> = entries
        .take(KEYS_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    for name in names {
        let known = FILES
            .iter()
            .any(|(path, _)| path.strip_prefix(".ssh/") == Some(name.as_str()));
        let public = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "pub");
        let other = matches!(name.as_str(), "known_hosts" | "config" | "authorized_keys");
        if !known && !public && !other {
            let path = home.join(".ssh").join(&name);
            gathered.file(&path, &format!("~/.ssh/{name}"), Format::PrivateKey);
        }
    }
}

/// A small regular file; nothing where there is none.
fn small(path: &Path) -> std::io::Result<Option<SecretBytes>> {
    // Opening a pipe must not wait for somebody who writes.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    // Room from the start: a buffer that moves leaves a copy behind.
    let size = metadata.len().saturating_add(1).min(FILE_BYTES_MAX);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().max(64));
    file.take(size).read_to_end(&mut bytes)?;
    Ok(Some(SecretBytes::new(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home and a project of one test, removed at its end.
    struct TestHome(PathBuf);

    impl TestHome {
        fn new(name: &str) -> Self {
            let place = format!("outgate-secrets-{}-{name}", std::process::id());
            let place = std::env::temp_dir().join(place);
            fs::create_dir_all(place.join("home/.ssh")).expect("a directory");
            fs::create_dir_all(place.join("project")).expect("a directory");
            Self(place)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.join(name), text).expect("a file");
        }

        fn places(&self) -> SecretPlaces {
            SecretPlaces {
                home: Some(self.0.join("home")),
                directory: Some(self.0.join("project")),
                list: None,
            }
        }
    }

    impl Drop for TestHome {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn labels(gathered: &Gathered) -> Vec<(&str, usize)> {
        let held = gathered
            .inventory
            .iter()
            .flat_map(|held| held.values.iter());
        held.map(|holding| (holding.label.as_str(), holding.hosts.len()))
            .collect()
    }

    #[test]
    fn values_come_from_variables_home_and_project() {
        let stage = TestHome::new("all");
        stage.write(
            "home/.netrc",
            "machine a.example.org login x password kV8pq2Lm-z\n",
        );
        stage.write("project/.env", "API_TOKEN=zz99-zz88-zz77\n");
        stage.write("home/.ssh/deploy", "-----BEGIN PRIVATE KEY-----\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo\n-----END PRIVATE KEY-----\n");
        stage.write("home/.ssh/deploy.pub", "ssh-ed25519 AAAA\n");
        let variables = [("MY_SECRET", "w0rd-77-x"), ("PATH", "/bin")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let gathered = gather(&stage.places(), variables.into_iter());
        assert_eq!(
            labels(&gathered),
            [
                ("$MY_SECRET", 0),
                ("~/.netrc", 1),
                ("~/.ssh/deploy", 0),
                ("~/.ssh/deploy", 0),
                (".env:API_TOKEN", 0)
            ]
        );
        assert!(gathered.left_out.is_empty());
    }

    #[test]
    fn a_project_names_no_host_for_a_secret() {
        let stage = TestHome::new("project");
        let text = "registry=https://evil.test/\n//evil.test/:_authToken=kV8pq2Lm-zzR41x\n";
        stage.write("project/.npmrc", text);
        let gathered = gather(&stage.places(), std::iter::empty());
        assert_eq!(labels(&gathered), [(".npmrc", 0)]);
        assert!(gathered.registries().is_empty());
        // The same text in the home directory is the user's own word.
        stage.write("home/.npmrc", text);
        let gathered = gather(&stage.places(), std::iter::empty());
        assert_eq!(
            gathered.registries(),
            [(Registry::Npm, "evil.test".to_owned())]
        );
    }

    #[test]
    fn what_is_no_small_file_neither_hangs_nor_fails() {
        let stage = TestHome::new("odd");
        let pipe = stage.0.join("home/.netrc");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        fs::create_dir(stage.0.join("home/.npmrc")).expect("a directory");
        std::os::unix::fs::symlink("/dev/zero", stage.0.join("home/.pypirc")).expect("a link");
        let long = format!(
            "machine a.example.org password kV8pq2Lm-z\n{}",
            "#\n".repeat(2 << 20)
        );
        stage.write("home/_netrc", &long);
        let mut places = stage.places();
        places.list = Some(stage.0.join("missing"));
        let gathered = gather(&places, std::iter::empty());
        assert_eq!(labels(&gathered), [("~/_netrc", 1)]);
        assert_eq!(gathered.left_out.len(), 2, "{:?}", gathered.left_out);
        assert!(gathered.left_out[0].ends_with("missing: there is no such file"));
        assert!(gathered.left_out[1].starts_with("~/_netrc: only its first"));
    }
}
