//! Tokens of the explicit proxy: for each sandbox a file in a directory of its user alone, with
//! the hash of its token, how long that is good, and its policy. The token itself is shown once
//! and kept nowhere. Written and read here only.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::libc::{O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::Uid;
use outgate_handoff::TOKEN_DIGEST_BYTES;
use sha2::{Digest as _, Sha256};

use crate::record::{TOKENS_DIRECTORY, records_directory};

/// What such a file begins with.
const MAGIC: &str = "outgate token 1";
/// What a token begins with, by which people and scanners know one.
const PREFIX: &str = "ogt_";
/// Random bytes of a token: nobody guesses 160 bits.
const TOKEN_BYTES: usize = 20;
/// Bytes of such a file that are read: a path and some numbers.
const FILE_BYTES_MAX: u64 = 8 * 1024;
/// Files of a directory that are looked at.
const FILES_MAX: usize = 4096;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;
/// What of a mode says who may do what.
const MODE_BITS: u32 = 0o777;

/// Where tokens are kept, by the variables `XDG_STATE_HOME` and `HOME`.
pub fn tokens_directory(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let records = records_directory(state, home)?;
    Some(records.parent()?.join(TOKENS_DIRECTORY))
}

/// What is known of one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// The name of its sandbox.
    pub name: String,
    /// SHA-256 of the token.
    pub digest: [u8; TOKEN_DIGEST_BYTES],
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// When it ends, in the same; `None`: when it is revoked.
    pub ends: Option<u64>,
    /// The policy file of its sandbox, absolute; `None`: that of the gateway.
    pub policy: Option<PathBuf>,
}

/// The tokens in a directory.
#[derive(Debug, Clone)]
pub struct TokenDirectory(PathBuf);

impl StoredToken {
    /// Makes a token that is good for this long, and what is kept of it.
    ///
    /// # Errors
    /// A sentence: the name cannot be one, or there are no random numbers.
    pub fn make(
        name: &str,
        time: Option<Duration>,
        policy: Option<PathBuf>,
    ) -> Result<(Self, String), String> {
        check_name(name)?;
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut bytes))
            .map_err(|error| format!("random numbers: {error}"))?;
        let token = format!("{PREFIX}{}", hexadecimal(&bytes));
        let created = now();
        let stored = Self {
            name: name.to_owned(),
            digest: Sha256::digest(&token).into(),
            created,
            ends: time.map(|time| created.saturating_add(time.as_secs())),
            policy,
        };
        Ok((stored, token))
    }

    /// How long it is still good; `None`: until it is revoked.
    pub fn left(&self) -> Option<Duration> {
        let ends = self.ends?;
        Some(Duration::from_secs(ends.saturating_sub(now())))
    }

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    fn encoded(&self) -> Result<String, String> {
        let ends = self.ends.map(|ends| ends.to_string());
        let mut text = format!(
            "{MAGIC}\nsha256 {}\ncreated {}\nends {}\n",
            hexadecimal(&self.digest),
            self.created,
            ends.as_deref().unwrap_or("never")
        );
        if let Some(policy) = &self.policy {
            let path = policy.to_str().filter(|path| !path.contains('\n'));
            let path = path.ok_or("the path of the policy is not plain text")?;
            // Writing to a text cannot fail.
            let _ = writeln!(text, "policy {path}");
        }
        Ok(text)
    }

    /// Reads what was written whole; nothing else is one.
    fn decoded(name: &str, text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        (lines.next()? == MAGIC).then_some(())?;
        let digest = lines.next()?.strip_prefix("sha256 ")?;
        let created = lines.next()?.strip_prefix("created ")?.parse().ok()?;
        let ends = match lines.next()?.strip_prefix("ends ")? {
            "never" => None,
            seconds => Some(seconds.parse().ok()?),
        };
        let policy = match lines.next() {
            None => None,
            Some(line) => Some(PathBuf::from(line.strip_prefix("policy ")?)),
        };
        lines.next().is_none().then_some(())?;
        check_name(name).ok()?;
        Some(Self {
            name: name.to_owned(),
            digest: of_hexadecimal(digest)?,
            created,
            ends,
            policy,
        })
    }
}

/// Whether something can be the name of a sandbox: of a file, and of a user in credentials.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.chars().all(plain) && !name.starts_with('.') && !name.is_empty() {
        if name.len() <= NAME_BYTES_MAX {
            return Ok(());
        }
        return Err(format!("the name is longer than {NAME_BYTES_MAX} bytes"));
    }
    Err(format!(
        "`{}` cannot be a name: letters, digits, `-`, `_` and `.` can, the last not in front",
        outgate_policy::printable(name)
    ))
}

impl TokenDirectory {
    /// Those in this directory, which need not be there.
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Which directory it is by now, by device and inode.
    pub(crate) fn inode(&self) -> Option<(u64, u64)> {
        let found = std::fs::symlink_metadata(&self.0).ok()?;
        found.is_dir().then(|| (found.dev(), found.ino()))
    }

    /// Makes it where it is not there.
    ///
    /// # Errors
    /// It cannot be made, or is not its user's alone.
    pub fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.0)?;
        self.is_there().map(drop)
    }

    /// Keeps a new token.
    ///
    /// # Errors
    /// There is one of its name, or a file cannot be made.
    pub fn add(&self, token: &StoredToken) -> io::Result<()> {
        self.make()?;
        let to = self.0.join(&token.name);
        if to.try_exists()? && !self.read(&token.name)?.is_some_and(|old| old.is_over()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!(
                    "there is a token `{0}`: `outgate token revoke {0}` ends it",
                    token.name
                ),
            ));
        }
        let text = token.encoded().map_err(io::Error::other)?;
        let draft = self
            .0
            .join(format!(".{}.{}", token.name, std::process::id()));
        let mut options = OpenOptions::new();
        let made = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft);
        let written = made.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &to)
        });
        if written.is_err() {
            std::fs::remove_file(&draft).ok();
        }
        written
    }

    /// Ends a token; whether there was one.
    ///
    /// # Errors
    /// Those of unlink(2), and a name that is none.
    pub fn revoke(&self, name: &str) -> io::Result<bool> {
        check_name(name).map_err(io::Error::other)?;
        match std::fs::remove_file(self.0.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All of them, by their names. What is no such file is left out.
    ///
    /// # Errors
    /// The directory is not its user's alone, or cannot be read.
    pub fn list(&self) -> io::Result<Vec<StoredToken>> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&self.0)?.take(FILES_MAX);
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut all: Vec<StoredToken> = names.filter_map(|name| self.read(&name).ok()?).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Whether the directory is there.
    fn is_there(&self) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW);
        let found = match options.open(&self.0) {
            Ok(directory) => directory.metadata()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if found.uid() != Uid::effective().as_raw() || found.mode() & MODE_BITS != 0o700 {
            let path = self.0.display();
            return Err(odd(&format!("`{path}` is not yours alone: `chmod 700` it")));
        }
        Ok(true)
    }

    fn read(&self, name: &str) -> io::Result<Option<StoredToken>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let file: File = match options.open(self.0.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        let is_own = found.uid() == Uid::effective().as_raw() && found.mode() & MODE_BITS == 0o600;
        if !found.is_file() || !is_own {
            return Err(odd("a file in it is not yours alone"));
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(StoredToken::decoded(name, &text))
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn of_hexadecimal(text: &str) -> Option<[u8; TOKEN_DIGEST_BYTES]> {
    let mut digits = text.chars().map(|digit| digit.to_digit(16));
    let mut digest = [0; TOKEN_DIGEST_BYTES];
    for byte in &mut digest {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    digits.next().is_none().then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn made(name: &str, seconds: Option<u64>) -> (StoredToken, String) {
        let time = seconds.map(Duration::from_secs);
        StoredToken::make(name, time, Some("/p/a.toml".into())).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_and_holds_no_token() {
        for seconds in [None, Some(60)] {
            let (stored, token) = made("ci", seconds);
            let text = stored.encoded().unwrap();
            assert!(!text.contains(token.trim_start_matches(PREFIX)), "{text}");
            assert_eq!(StoredToken::decoded("ci", &text), Some(stored.clone()));
            for cut in 0..text.len() {
                let found = StoredToken::decoded("ci", text.get(..cut).unwrap_or_default());
                // Its policy may be cut off as a whole line; nobody writes half of a file.
                assert!(found.is_none_or(|found| found.policy.is_none()), "{cut}");
            }
            assert_eq!(StoredToken::decoded("ci", &format!("{text}x\n")), None);
        }
        let (one, other) = (made("a", None).1, made("a", None).1);
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 2 * TOKEN_BYTES);
    }

    #[test]
    fn names_are_those_of_files_and_users() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "", ".", "..", ".a", "a/b", "a:b", "a b", "a\n", "\u{e9}", &long,
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "CI-1_b.c", long.get(1..).unwrap_or_default()] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_directory_holds_each_name_once_and_for_its_user_alone() {
        let root = std::env::temp_dir().join(format!("outgate-tokens-{}", std::process::id()));
        let tokens = TokenDirectory::at(root.join("tokens"));
        assert_eq!(tokens.list().unwrap(), []);
        let (stored, _) = made("ci", None);
        tokens.add(&stored).unwrap();
        assert!(tokens.add(&made("ci", None).0).is_err());
        assert_eq!(tokens.list().unwrap(), [stored]);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(tokens.path()), mode(&tokens.path().join("ci"))),
            (0o700, 0o600)
        );
        // One that is over makes room.
        tokens.add(&made("brief", Some(0)).0).unwrap();
        tokens.add(&made("brief", None).0).unwrap();
        assert!(tokens.revoke("ci").unwrap());
        assert!(!tokens.revoke("ci").unwrap());
        assert!(tokens.revoke("../tokens").is_err());
        std::fs::set_permissions(tokens.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(tokens.list().is_err());
        std::fs::remove_dir_all(root).unwrap();
    }
}
