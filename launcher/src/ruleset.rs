//! The Landlock ruleset of a run (landlock(7)): filesystem grants, no right to
//! connect at all, none to bind any port but 0, and scopes. Hard requirement of
//! ABI 6: a kernel that enforces less is refused, never used.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag, fstat};
use outgate_policy::{PathGrant, Policy};
use outgate_sys::descriptor::Standard;

use crate::git::is_looked_at;
use crate::limits::LINKS_MAX;
use crate::links::{LinkStep, step};
use crate::visible::Visible;
use crate::writable::Granted;

mod laid;
mod streams;

use laid::{GrantedPath, Ways, real, without_links};

/// The ABI a run needs. KERNEL: 6.12 (scopes for abstract sockets and signals).
pub const ABI_REQUIRED: i32 = 6;
/// How the places of shipped policies are named.
const SHIPPED: &str = "preset `";
/// Entries looked at when a grant is split around a denied path.
const ENTRIES_MAX: usize = 65536;

/// Why there is no ruleset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandlockError {
    /// The kernel enforces less than needed: the operator's machine.
    #[error("this kernel's Landlock has ABI {found}, outgate needs {ABI_REQUIRED} (Linux 6.12)")]
    Abi {
        /// What the kernel has; 0 = none.
        found: i32,
    },
    /// A granted path cannot be opened: the policy's author.
    #[error("{place}: `{path}` cannot be granted")]
    Path {
        /// Where the policy says so.
        place: String,
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A link leads elsewhere that a command may have laid: the policy's author, who is to
    /// name what is meant.
    #[error(
        "{place}: `{path}` leads to `{target}`, by a link where a command may lay some: `{link}`"
    )]
    Laid {
        /// Where the policy says so.
        place: String,
        /// The granted path.
        path: String,
        /// The link.
        link: String,
        /// Where it leads.
        target: String,
    },
    /// Too many entries lie around a denied path: the policy's author.
    #[error("{place}: more than {ENTRIES_MAX} entries lie beside what is denied below `{path}`")]
    Wide {
        /// Where the policy says so.
        place: String,
        /// The granted path.
        path: String,
    },
    /// The kernel refused the ruleset.
    #[error("the kernel refused the Landlock ruleset")]
    Kernel(#[from] landlock::RulesetError),
    /// The kernel refused a rule.
    #[error("the kernel refused to grant `{path}`")]
    Rule {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a grant gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Read,
    Write,
}

impl Right {
    /// All accesses of this right; some make sense for directories alone.
    fn accesses(self) -> BitFlags<AccessFs> {
        match self {
            Self::Read => AccessFs::from_read(ABI::V6),
            Self::Write => AccessFs::from_all(ABI::V6),
        }
    }
}

/// The ruleset of a run, and what it lets the command reach.
#[derive(Debug)]
pub struct LandlockRules {
    /// What the child enforces.
    pub ruleset: OwnedFd,
    /// What it may reach.
    pub reach: Reach,
}

/// What a command may reach.
#[derive(Debug, Default)]
pub struct Reach {
    /// What it may write.
    pub writable: Granted,
    /// What it may read; noted where something is denied.
    pub readable: Granted,
    /// Where it may know links and extended attributes.
    pub visible: Visible,
    /// Directories and files that it may write, by paths without links.
    pub ground: Vec<PathBuf>,
    /// Those of them that runs of other projects write too.
    pub shared: Vec<PathBuf>,
}

impl Reach {
    fn add_ground(&mut self, object: &FileStat, path: Option<PathBuf>) {
        let kind = object.st_mode & SFlag::S_IFMT.bits();
        if kind == SFlag::S_IFDIR.bits() || kind == SFlag::S_IFREG.bits() {
            self.ground.extend(path);
        }
    }
}

/// Builds the ruleset of a policy. Opens every granted path now, so that the
/// child between clone and exec has nothing left to do but enforce it.
///
/// # Errors
/// See [`LandlockError`].
///
/// The working directory is the one this process is in, whatever lies at its name by now.
pub fn build(
    policy: &Policy,
    directory: &str,
    private: &Path,
) -> Result<LandlockRules, LandlockError> {
    let found = outgate_sys::process::landlock_abi();
    if found < ABI_REQUIRED {
        return Err(LandlockError::Abi { found });
    }
    let mut created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    // Whatever else is bound, the supervisor binds (`supervisor/bind.rs`).
    (&mut created).add_rule(NetPort::new(0, AccessNet::BindTcp))?;
    let descriptor: Option<OwnedFd> = created.into();
    let mut rules = LandlockRules {
        ruleset: descriptor.ok_or(LandlockError::Abi { found })?,
        reach: Reach::default(),
    };
    let filesystem = policy.filesystem();
    let denied = denied_places(&filesystem.deny);
    let around = Around {
        denied: &denied,
        ways: Ways::new(filesystem, Path::new(directory)),
        own: [Path::new(directory), private],
    };
    for grant in &filesystem.read {
        add(&mut rules, grant, Right::Read, &around)?;
    }
    for grant in &filesystem.write {
        add(&mut rules, grant, Right::Write, &around)?;
    }
    for device in devices(&filesystem.write) {
        add(&mut rules, &device, Right::Write, &around)?;
    }
    Ok(rules)
}

/// Each denied path as it is written, and by every way that the links on it lead.
fn denied_places(denied: &[PathGrant]) -> Vec<PathBuf> {
    let places = denied
        .iter()
        .flat_map(|grant| places(Path::new(&grant.path)));
    // What climbs is told by text where it leads only once the links before it are known.
    let climbs = |place: &PathBuf| place.components().any(|part| part == Component::ParentDir);
    let mut places: Vec<PathBuf> = places.filter(|place| !climbs(place)).collect();
    places.sort();
    places.dedup();
    places
}

/// A path as it is written, the links on its way, and last where they lead, also where nothing
/// lies yet: what is made there later is what was named.
pub(crate) fn places(path: &Path) -> Vec<PathBuf> {
    let mut path = path.to_owned();
    let mut places = vec![path.clone()];
    // Where links lead in a circle, or through more, the kernel goes no further, either.
    for _ in 0..=LINKS_MAX {
        match step(&path) {
            // Who may not change the link cannot have it lead elsewhere.
            LinkStep::Link { link, target } => {
                places.push(link);
                path = target;
            }
            LinkStep::Plain(place) => {
                places.push(place);
                break;
            }
        }
    }
    places
}

/// Devices that carry nothing anywhere and that every program expects.
pub(crate) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The terminal behind a standard descriptor: the run's own, no other.
fn terminal(stream: Standard) -> Option<String> {
    if !stream.as_fd().is_terminal() {
        return None;
    }
    let number = stream.as_fd().as_raw_fd();
    let path = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    let path = path.to_str()?.to_owned();
    path.starts_with("/dev/pts/").then_some(path)
}

/// What every run may write beside `granted`.
fn devices(granted: &[PathGrant]) -> Vec<PathGrant> {
    let place: std::sync::Arc<str> = "every run".into();
    let terminals = [Standard::Input, Standard::Output, Standard::Error].map(terminal);
    let mut paths: Vec<&str> = DEVICES.to_vec();
    paths.extend(terminals.iter().flatten().map(String::as_str));
    paths.retain(|path| !granted.iter().any(|grant| grant.path == *path));
    paths
        .into_iter()
        .map(|path| PathGrant {
            path: path.to_owned(),
            place: std::sync::Arc::clone(&place),
            optional: true,
        })
        .collect()
}

/// What grants are split around, and the ways to them.
struct Around<'a> {
    denied: &'a [PathBuf],
    ways: Ways<'a>,
    /// What is this run's alone: its working directory, and its private one.
    own: [&'a Path; 2],
}

impl Around<'_> {
    /// Whether later runs, of other projects, write there too: a shipped policy says so of
    /// caches and of the files of agents.
    fn is_shared(&self, grant: &PathGrant) -> bool {
        let path = Path::new(&grant.path);
        let is_shipped = grant.optional && grant.place.starts_with(SHIPPED);
        is_shipped && !self.own.contains(&path) && !path.starts_with("/dev")
    }

    /// All accesses of a grant. Where one is shared, files lack one that means nothing there
    /// and that what is this run's own has: so the kernel links and renames none of them into a
    /// project (`EXDEV`, as between file systems), where what a later run writes in the cache
    /// would run outside. KERNEL: 5.19 (a file gains no access by being linked or renamed).
    fn accesses(&self, grant: &PathGrant, right: Right) -> BitFlags<AccessFs> {
        let all = right.accesses();
        if right == Right::Write && self.is_shared(grant) {
            all & !AccessFs::IoctlDev
        } else {
            all
        }
    }
}

fn add(
    rules: &mut LandlockRules,
    grant: &PathGrant,
    right: Right,
    around_of: &Around<'_>,
) -> Result<(), LandlockError> {
    let top = Path::new(&grant.path);
    let (object, path) = match around_of.ways.open(top, right) {
        Ok(GrantedPath::Object(object, path)) => (object, path),
        Ok(GrantedPath::Named) => return Ok(()),
        // Of a preset.
        Ok(GrantedPath::Laid { .. }) | Err(_) if grant.optional => return Ok(()),
        Ok(GrantedPath::Laid { link, target }) => {
            return Err(LandlockError::Laid {
                place: grant.place.to_string(),
                path: grant.path.clone(),
                link: link.display().to_string(),
                target: target.display().to_string(),
            });
        }
        Err(errno) => {
            return Err(LandlockError::Path {
                place: grant.place.to_string(),
                path: grant.path.clone(),
                source: errno.into(),
            });
        }
    };
    // RACE: looked at before, and somebody has put a link in its place since.
    let path = path.or_else(|| real(&object));
    if is_looked_at(&grant.place) && path.as_deref() != Some(top) {
        return Ok(());
    }
    let denied = around_of.denied;
    let accesses = around_of.accesses(grant, right);
    let Some(accesses) = streams::within(top, &object, accesses) else {
        return Ok(());
    };
    if right == Right::Write && around_of.is_shared(grant) {
        rules.reach.shared.extend(path.clone());
    }
    if denied.is_empty() {
        if let (Right::Read, Some(path)) = (right, &path) {
            around_of.ways.is_read(path.clone());
        }
        let stat = grant_object(rules, (&object, path.clone()), grant, (right, accesses))?;
        if right == Right::Write {
            rules.reach.add_ground(&stat, path);
        }
        return Ok(());
    }
    if right == Right::Write
        && let Ok(stat) = fstat(&object)
    {
        rules.reach.add_ground(&stat, path.clone());
    }
    // A grant by another name is split around what is denied all the same.
    let top = path.unwrap_or_else(|| top.to_owned());
    let mut paths = Vec::new();
    around(&top, denied, &mut paths).map_err(|Wide| LandlockError::Wide {
        place: grant.place.to_string(),
        path: grant.path.clone(),
    })?;
    for path in paths {
        // What is gone while a grant is split, or is a link by now, is not granted.
        let part = (path != top).then(|| without_links(&path));
        let Ok(part) = part.transpose() else {
            continue;
        };
        let object = part.as_ref().unwrap_or(&object);
        if right == Right::Read
            && let Ok(stat) = fstat(object)
        {
            rules.reach.readable.add(&stat, &grant.path);
        }
        grant_object(rules, (object, Some(path)), grant, (right, accesses))?;
    }
    Ok(())
}

/// Grants a right to what was opened, as far as it makes sense for it, and notes it.
fn grant_object(
    rules: &mut LandlockRules,
    (object, path): (&OwnedFd, Option<PathBuf>),
    grant: &PathGrant,
    (right, mut all): (Right, BitFlags<AccessFs>),
) -> Result<FileStat, LandlockError> {
    let refused = |source| LandlockError::Rule {
        path: grant.path.clone(),
        source,
    };
    let stat = fstat(object).map_err(|errno| refused(errno.into()))?;
    rules.reach.visible.add(object.as_fd(), &stat, path);
    let is_directory = stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits();
    if !is_directory {
        all &= AccessFs::from_file(ABI::V6);
    }
    if right == Right::Write {
        rules.reach.writable.add(&stat, &grant.path);
    }
    let give = |accesses: BitFlags<AccessFs>| {
        let ruleset = rules.ruleset.as_fd();
        outgate_sys::landlock::grant_path(ruleset, object.as_fd(), accesses.bits())
    };
    let is = |error: &io::Error, errno: Errno| error.raw_os_error() == Some(errno as i32);
    match give(all) {
        // A link such as /dev/stdout that leads to a pipe or a socket:
        // inherited, so no grant is needed or possible.
        Err(error) if is(&error, Errno::EBADFD) => Ok(stat),
        given => given.map(|()| stat).map_err(refused),
    }
}

/// More entries than [`ENTRIES_MAX`].
struct Wide;

/// The paths that together cover `path` without what is denied. Landlock rights
/// always reach everything below, so a denied path is left out by granting its
/// siblings one by one, and those of its ancestors up to the grant.
fn around(path: &Path, denied: &[PathBuf], found: &mut Vec<PathBuf>) -> Result<(), Wide> {
    if denied.iter().any(|deny| path.starts_with(deny)) {
        return Ok(());
    }
    if !denied.iter().any(|deny| deny.starts_with(path)) {
        found.push(path.to_owned());
        return if found.len() > ENTRIES_MAX {
            Err(Wide)
        } else {
            Ok(())
        };
    }
    let Ok(entries) = fs::read_dir(path) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        // A symbolic link would be granted by what it points to.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(&entry.path(), denied, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_split_around_what_is_denied() {
        let root = std::env::temp_dir().join(format!("outgate-around-{}", std::process::id()));
        for name in ["a/x", "a/y", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/x"), root.join("link")).unwrap();
        let denied = root.join("a/x");
        let mut found = Vec::new();
        let denied = [denied];
        assert!(around(&root, &denied, &mut found).is_ok());
        found.sort();
        assert_eq!(found, [root.join("a/y"), root.join("b")]);
        found.clear();
        let [inner] = &denied;
        assert!(around(&inner.join("below"), &denied, &mut found).is_ok());
        assert!(found.is_empty());
        fs::remove_dir_all(root).unwrap();
    }
}
