//! Places of a home directory that hold credentials, or that programs outside the run start
//! from or are set up by: no shipped policy comes to them because of a variable, a link or a
//! working directory that nobody named. Asks where links lead; reads the list of accounts alone.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use nix::unistd::Uid;

use crate::writable::real;

/// Places with credentials, and files of shells, in which people keep some: not to be read.
#[rustfmt::skip]
const SECRETS: [&str; 84] = [
    ".ssh", ".ssh2", ".putty", ".gnupg", ".gpg", ".local/share/gnupg", ".pki", ".age", ".config/age", ".config/sops",
    ".password-store", ".local/share/password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op",
    ".config/Bitwarden", ".config/keepassxc", ".gnome2/keyrings", ".1password", ".aws", ".azure", ".config/gcloud",
    ".kube", ".docker", ".config/containers", ".config/gh", ".config/hub", ".config/glab-cli", ".config/rclone",
    ".config/doctl", ".config/heroku", ".config/netlify", ".config/configstore", ".config/filezilla", ".config/remmina",
    ".local/share/remmina", ".local/share/com.vercel.cli", ".vercel", ".fly", ".wrangler", ".oci", ".boto", ".s3cfg",
    ".terraform.d", ".terraformrc", ".vault-token", ".ansible", ".chef", ".netrc", ".git-credentials",
    ".config/git", ".gitconfig", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".m2",
    ".gem", ".cargo", ".composer", ".config/composer", ".subversion", ".config/pip", ".mozilla", ".thunderbird",
    ".config/chromium", ".config/google-chrome", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi",
    ".config/opera", ".electrum", ".bitcoin", ".ethereum", ".var/app", "snap", ".config/outgate", ".local/state/outgate",
    ".bash_history", ".zsh_history", ".profile", ".bashrc",
];

/// Places that programs outside the run start from, or are set up by: not to be written.
#[rustfmt::skip]
const PROGRAMS: [&str; 84] = [
    "bin", ".bin", ".local/bin", ".local/lib", ".local/share/applications", ".local/share/systemd", ".local/share/dbus-1",
    ".local/share/nautilus", ".local/share/kio", ".local/share/fish", ".config/autostart", ".config/systemd",
    ".config/environment.d", ".config/fish", ".config/zsh", ".config/nushell", ".config/powershell", ".config/elvish",
    ".config/plasma-workspace", ".config/autostart-scripts", ".config/hypr", ".config/i3", ".config/sway", ".config/nvim",
    ".config/Code", ".config/direnv", ".config/mise", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
    ".bashrc.d", ".bash_completion", ".inputrc", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh",
    ".oh-my-zsh", ".zfunc", ".kshrc", ".cshrc", ".tcshrc", ".xprofile", ".xsession", ".xsessionrc", ".xinitrc",
    ".Xresources", ".pam_environment", ".elvish", ".xonsh", ".xonshrc", ".vim", ".vimrc", ".emacs", ".emacs.d",
    ".tmux", ".tmux.conf", ".byobu", ".screenrc", ".vscode", ".vscode-server", ".cursor", ".ipython", ".jupyter",
    ".gradle", ".bundle", ".rustup", ".nvm", ".volta", ".pyenv", ".rbenv", ".sdkman", ".asdf", ".bun", ".deno",
    ".claude", ".claude.json", ".codex", ".gemini", ".qwen", ".copilot",
];

/// Directories of a home directory in which every tool has one of its own.
const SHARED: [&str; 4] = [".config", ".local/share", ".local/state", ".local"];

/// Places of the system that nothing of a user's is moved to.
#[rustfmt::skip]
const SYSTEM: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin", "/snap",
    "/sys", "/usr", "/var", "/root",
];

/// Variables that say where credentials lie.
#[rustfmt::skip]
const SECRET_VARIABLES: [&str; 16] = [
    "GNUPGHOME", "PASSWORD_STORE_DIR", "DOCKER_CONFIG", "KUBECONFIG", "NETRC", "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CONFIG_DIR", "GH_CONFIG_DIR", "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "PGPASSFILE", "GIT_CONFIG_GLOBAL",
];

/// Entries of a home directory that are looked at: of more, every place is asked for.
const ENTRIES_MAX: usize = 4096;

/// Where the home directories of users are named (passwd(5)).
const ACCOUNTS: &str = "/etc/passwd";

/// Bytes that it mostly has.
const ACCOUNTS_BYTES: usize = 8192;

/// Bytes of it that are read: some thousand accounts.
const ACCOUNTS_BYTES_MAX: u64 = 1 << 20;

/// Names of toolchains, and of what keeps several of them.
#[rustfmt::skip]
const TOOLCHAINS: [&str; 25] = [
    "asdf", "bun", "cargo", "deno", "fnm", "go", "golang", "java", "jdk", "jdks", "jvm", "mise", "node", "nvm", "pipx",
    "pnpm", "pyenv", "python", "rbenv", "rtx", "rustup", "sdkman", "uv", "volta", "playwright",
];

/// What a place would be granted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// Reading and starting.
    Read,
    /// Writing as well.
    Write,
}

/// One of these places in a home directory.
struct Place {
    /// As the tables above have it.
    name: &'static str,
    path: PathBuf,
    /// Where it lies, if that is elsewhere.
    real: Option<PathBuf>,
}

impl Place {
    /// Whether a path is this place, in it or around it.
    fn is_at(&self, path: &Path) -> bool {
        let real = self.real.as_deref();
        is_near(path, &self.path) || real.is_some_and(|real| is_near(path, real))
    }
}

/// All these places, or those with secrets alone; where one leads is asked of those alone
/// that are links, or lie behind one.
fn places(home: &Path, access: Access) -> impl Iterator<Item = Place> {
    let programs = PROGRAMS.iter().filter(move |_| access == Access::Write);
    let home = home.to_owned();
    let is_plain = real(&home).is_some_and(|real| real == home);
    let mut listings = Listings::default();
    SECRETS.iter().chain(programs).map(move |name| {
        let path = home.join(name);
        let real = match listings.lead(&home, name) {
            Lead::Absent => None,
            Lead::Straight if is_plain => None,
            Lead::Straight | Lead::Unknown => real(&path),
        };
        Place {
            name,
            real: real.filter(|real| *real != path),
            path,
        }
    })
}

/// What the directories on the way to places hold, each read once: whether an entry is a
/// link. `None` of one that cannot be read, or is too large.
#[derive(Default)]
struct Listings(HashMap<PathBuf, Option<HashMap<OsString, bool>>>);

/// How the way to a place goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// Nothing is there.
    Absent,
    /// Over directories alone.
    Straight,
    /// Over a link, or nobody knows.
    Unknown,
}

impl Listings {
    /// How the way goes from a home directory to what is called `name` in it.
    fn lead(&mut self, home: &Path, name: &str) -> Lead {
        let mut directory = home.to_owned();
        for part in name.split('/') {
            let listing = self.0.entry(directory.clone());
            let Some(listing) = listing.or_insert_with(|| list(&directory)) else {
                return Lead::Unknown;
            };
            match listing.get(OsStr::new(part)) {
                None => return Lead::Absent,
                Some(true) => return Lead::Unknown,
                Some(false) => directory.push(part),
            }
        }
        Lead::Straight
    }
}

fn list(directory: &Path) -> Option<HashMap<OsString, bool>> {
    let entries = std::fs::read_dir(directory).ok()?;
    let mut listing = HashMap::new();
    for entry in entries.take(ENTRIES_MAX) {
        let entry = entry.ok()?;
        let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        listing.insert(entry.file_name(), is_link);
    }
    (listing.len() < ENTRIES_MAX).then_some(listing)
}

/// Whether a place is one of secrets or of programs, in one or around one; not counting
/// those that `is_own` says the policy is about.
pub(crate) fn is_guarded(path: &Path, home: &Path, is_own: impl Fn(&str) -> bool) -> bool {
    places(home, Access::Write).any(|place| !is_own(place.name) && place.is_at(path))
}

/// The place of secrets or of programs that a directory is, lies in or holds. What people
/// keep elsewhere as files, such as settings in a repository, does not count there.
pub(crate) fn guarded(path: &Path, home: &Path) -> Option<PathBuf> {
    let mut places = places(home, Access::Write).map(|mut place| {
        place.real = place.real.filter(|real| real.is_dir());
        place
    });
    places
        .find(|place| place.is_at(path))
        .map(|place| place.path)
}

/// Whether a path is a place, or one of both lies in the other.
fn is_near(path: &Path, place: &Path) -> bool {
    path.starts_with(place) || place.starts_with(path)
}

/// The place that keeps a variable from moving a grant there: one with credentials, or, for
/// writing, one that programs outside start from or are set up by, or one of the system; and
/// a directory among those of all tools (`~/.config/…`) that has not the name of this one.
pub(crate) fn closed(
    path: &Path,
    home: &str,
    access: Access,
    (variable, variables): (&str, &[(String, String)]),
) -> Option<PathBuf> {
    let found = real(path)?;
    let names = names(variable);
    let mut homes = Vec::new();
    for home in [Some(home.to_owned()), home_by_account()]
        .into_iter()
        .flatten()
    {
        let home = PathBuf::from(home);
        let all = [real(&home), Some(home)];
        let new = all.into_iter().flatten().filter(|home| home.is_absolute());
        homes.extend(new);
    }
    homes.sort();
    homes.dedup();
    let closed = |home: &PathBuf| {
        let mut both = [path, &found].into_iter();
        both.find_map(|path| others(path, home, &names, access))
            .or_else(|| closed_in([path, &found], home, access, &names))
    };
    if let Some(place) = homes.iter().find_map(closed) {
        return Some(place);
    }
    let is_own = |name: &str| names.iter().any(|own| is_named(name, own));
    let is_secret = |part: Component<'_>| {
        let name = part.as_os_str().to_str().unwrap_or_default();
        name.starts_with('.') && SECRETS.contains(&name) && !is_own(name)
    };
    let is_system = access == Access::Write
        && SYSTEM.iter().any(|system| found.starts_with(system))
        && !homes.iter().any(|home| found.starts_with(home));
    if is_system || found.components().any(is_secret) {
        return Some(found);
    }
    let mut elsewhere = variables.iter().filter(|(name, value)| {
        let is_other = !names.contains(&word(name));
        is_other && SECRET_VARIABLES.contains(&name.as_str()) && value.starts_with('/')
    });
    let places = |value: &str| [Some(PathBuf::from(value)), real(Path::new(value))];
    let is_there = |value: &str| {
        places(value)
            .iter()
            .flatten()
            .any(|place| is_near(&found, place))
    };
    let other = elsewhere.find(|(_, value)| is_there(value));
    other.map(|(_, value)| PathBuf::from(value))
}

/// The place in a home directory that a path is, lies in or holds.
fn closed_in(paths: [&Path; 2], home: &Path, access: Access, names: &[String]) -> Option<PathBuf> {
    if paths.iter().any(|path| home.starts_with(path)) {
        return Some(home.to_owned());
    }
    let is_own = |place: &Place| names.iter().any(|own| is_named(place.name, own));
    let mut places = places(home, access);
    let place = places.find(|place| !is_own(place) && paths.iter().any(|path| place.is_at(path)));
    place.map(|place| place.path)
}

/// The directory of another tool, among those of all tools, that a path is or lies in.
fn others(path: &Path, home: &Path, names: &[String], access: Access) -> Option<PathBuf> {
    let shared = SHARED
        .iter()
        .map(|name| home.join(name))
        .find(|shared| path.starts_with(shared))?;
    let below = path.strip_prefix(&shared).ok()?;
    let Some(tool) = below.components().next() else {
        return Some(shared);
    };
    let toolchains = TOOLCHAINS.iter().filter(|_| access == Access::Read);
    let shown = tool.as_os_str().to_str().unwrap_or_default();
    let toolchains = toolchains.map(ToString::to_string);
    let mut known = names.iter().cloned().chain(toolchains);
    let is_program =
        access == Access::Read && shared.ends_with(".local") && matches!(shown, "bin" | "lib");
    let is_own = is_program || known.any(|name| is_named(shown, &name));
    (!is_own).then(|| shared.join(shown))
}

/// Whether a place belongs to another tool than the one whose variable moves a grant there.
/// Where the variable is about all tools, the policy says which directory is this one's.
pub(crate) fn is_others(path: &Path, home: &Path, variable: &str) -> bool {
    let names = names(variable);
    !variable.starts_with("XDG_") && others(path, home, &names, Access::Write).is_some()
}

/// What tells a tool's own places: the first word of its variable.
pub(crate) fn names(variable: &str) -> Vec<String> {
    let mut names = vec![word(variable)];
    names.extend((variable == "CLOUDSDK_CONFIG").then(|| "gcloud".to_owned()));
    names
}

fn word(variable: &str) -> String {
    let first = variable.split('_').next().unwrap_or_default();
    first.to_ascii_lowercase()
}

/// Whether one of the words in a path is a name.
pub(crate) fn is_named(path: &str, name: &str) -> bool {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let mut words = words.map(str::to_ascii_lowercase);
    words.any(|word| word == name)
}

/// The home directory of the account that runs this.
pub(crate) fn home_by_account() -> Option<String> {
    use std::io::Read as _;
    let file = std::fs::File::open(ACCOUNTS).ok()?;
    let mut text = Vec::with_capacity(ACCOUNTS_BYTES);
    file.take(ACCOUNTS_BYTES_MAX).read_to_end(&mut text).ok()?;
    let user = Uid::current().as_raw().to_string();
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.nth(2)? == user).then_some(())?;
        let home = fields.nth(2)?;
        home.starts_with('/').then(|| home.to_owned())
    })
}
