//! Where the record of a run goes, and whether the command could alter it.
//! Looks at paths; opens, writes and starts nothing. The gateway gets the path
//! without links: the command may turn those that lie in its grants.

use std::ffi::OsString;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use outgate_handoff::GatewaySetting;
use outgate_policy::{Context, PathGrant, Policy, SecretSource};

use crate::limits::LINKS_MAX;
use crate::options::RunOptions;
use crate::run_error::RunError;
use crate::secrets::{ACCEPTED, SecretError};
use crate::writable::{Granted, PlaceLooks};

/// Names of standard output. What the gateway would open under them is its
/// own, which leads nowhere.
const OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Where records go: the option, the policy, or the state directory.
pub(crate) fn audit_setting(
    options: &RunOptions,
    policy: &Policy,
    context: &Context,
) -> Option<GatewaySetting> {
    let working = Path::new(&context.working_directory);
    let file = options
        .audit
        .clone()
        .or_else(|| policy.audit_file().map(PathBuf::from));
    if let (Some(directory), Some(rotation)) = (&options.audit, options.rotation) {
        let directory = working.join(directory);
        return Some(GatewaySetting::RotatedRecords(directory, rotation));
    }
    if let Some(file) = file {
        return Some(GatewaySetting::RecordFile(working.join(file)));
    }
    let variable = |name: &str| options.variables.get(std::ffi::OsStr::new(name)).cloned();
    let home = Some(context.home.clone().into());
    let directory = records_directory(variable("XDG_STATE_HOME"), home);
    directory.map(GatewaySetting::RecordDirectory)
}

/// Where runs leave their records, by the variables `XDG_STATE_HOME` and `HOME`.
pub fn records_directory(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    state
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".local/state")))
        .map(|state| state.join("outgate/runs"))
}

/// What the command may write: as the policy names it, and by inode.
#[derive(Clone, Copy)]
pub(crate) struct Grants<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) writable: &'a Granted,
    /// What was looked at on the way.
    pub(crate) looks: &'a PlaceLooks,
}

impl<'a> Grants<'a> {
    pub(crate) fn new(policy: &'a Policy, writable: &'a Granted, looks: &'a PlaceLooks) -> Self {
        Self {
            policy,
            writable,
            looks,
        }
    }

    /// The grant that lets the command write at `path`.
    pub(crate) fn writable(self, path: &Path) -> Option<&'a str> {
        self.covering(path).or_else(|| {
            let mut places = path.ancestors();
            let real = places.find_map(|place| self.looks.real(place))?;
            // A place around one that is not covered is not, either.
            (!path.starts_with(&real)).then(|| self.covering(&real))?
        })
    }

    /// The grant around a place.
    fn covering(self, place: &Path) -> Option<&'a str> {
        let mut grants = self.policy.filesystem().write.iter();
        match grants.find(|grant| place.starts_with(&grant.path)) {
            Some(grant) => Some(&grant.path),
            None => self.writable.around_as_seen(place, self.looks),
        }
    }
}

/// A command must not write what the next run allows by, nor what answers for its user.
pub(crate) fn unwritable(
    grants: Grants<'_>,
    options: &RunOptions,
    context: &Context,
) -> Result<(), RunError> {
    let answers = options.ask_with.as_deref();
    let answers = answers.map(|line| ("the program of --ask-with".to_owned(), line));
    let secrets = grants.policy.secrets().iter().filter_map(|secret| {
        let SecretSource::Command(line) = secret.source() else {
            return None;
        };
        let what = format!("what secret {} comes from", secret.name());
        Some((what, line.as_str()))
    });
    for (what, line) in answers.into_iter().chain(secrets) {
        if let Some((file, grant)) = named_by(grants, line, context) {
            return Err(RunError::RunsOutside { what, file, grant });
        }
    }
    for file in &options.consulted {
        if let Some(grant) = grants.writable(file) {
            return Err(RunError::Consulted {
                file: file.display().to_string(),
                grant: grant.to_owned(),
            });
        }
    }
    Ok(())
}

/// What a command line that is run outside of the confinement names, as far as the words of a
/// shell do, and that the command may write: the file, and the grant that covers it.
fn named_by(grants: Grants<'_>, command: &str, context: &Context) -> Option<(String, String)> {
    let command = command.replace("${HOME}", &context.home);
    let command = command.replace("$HOME", &context.home);
    // Whatever quotes and blanks are around it.
    if let Some(grant) = named_in(grants, &command) {
        return Some((grant.to_owned(), grant.to_owned()));
    }
    let ends_word = |sign: char| sign.is_whitespace() || "'\"`;|&()<>$={}".contains(sign);
    for word in command.split(ends_word).filter(|word| word.contains('/')) {
        let path = match word.strip_prefix("~/") {
            Some(below) => Path::new(&context.home).join(below),
            None => Path::new(&context.working_directory).join(word),
        };
        // What looks like a path may be a part of an address.
        let is_address = !word.starts_with(['/', '~']) && path.symlink_metadata().is_err();
        if is_address || is_device(&path) {
            continue;
        }
        let links = PathWay::of(&path).map_or_else(Vec::new, |way| way.links);
        let mut ways = std::iter::once(path.clone()).chain(links);
        if let Some(grant) = ways.find_map(|way| grants.writable(&way).map(str::to_owned)) {
            return Some((path.display().to_string(), grant));
        }
    }
    None
}

/// The place where the command may write that a command line names.
fn named_in<'a>(grants: Grants<'a>, command: &str) -> Option<&'a str> {
    let ends =
        |rest: &str| !rest.starts_with(|sign: char| sign.is_alphanumeric() || "_-.".contains(sign));
    let is_named = |path: &str| {
        let mut places = command.match_indices(path);
        path.len() > 1 && places.any(|(at, _)| command.get(at + path.len()..).is_some_and(ends))
    };
    let mut granted = grants.policy.filesystem().write.iter();
    let named = granted.find(|grant| is_named(&grant.path) && !is_device(Path::new(&grant.path)));
    named.map(|grant| grant.path.as_str())
}

/// Whether something is a device, which no command makes and which is no program.
fn is_device(path: &Path) -> bool {
    let kind = path.metadata().map(|about| about.file_type());
    kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
}

/// A command must not write what says which manifests are accepted, nor which tokens are good,
/// nor make it where there is none yet.
pub(crate) fn unacceptable(grants: Grants<'_>, accepted: Option<&Path>) -> Result<(), RunError> {
    let Some(path) = accepted else {
        return Ok(());
    };
    unbelievable(grants, path, ("outgate trust", ACCEPTED))?;
    let tokens = path.with_file_name(TOKENS_DIRECTORY);
    unbelievable(grants, &tokens, ("outgate token", TOKENS))
}

/// The directory of tokens, beside that of records.
pub(crate) const TOKENS_DIRECTORY: &str = "tokens";

/// What the directory is that says whom an explicit proxy serves.
const TOKENS: &str = "the tokens of your explicit proxy";

fn unbelievable(grants: Grants<'_>, path: &Path, whose: (&str, &str)) -> Result<(), RunError> {
    let mut denied = grants.policy.filesystem().deny.iter();
    if denied.any(|deny| path.starts_with(&deny.path)) {
        return Ok(());
    }
    // A link on its way that the command may turn leads to another one.
    let links = PathWay::of(path).map_or_else(Vec::new, |way| way.links);
    let ways = std::iter::once(path.to_owned()).chain(links);
    let mut around = ways.filter_map(|way| grants.writable(&way).map(str::to_owned));
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_below = |grant: &&PathGrant| {
        let own = Path::new(&grant.path);
        let leads = own.canonicalize().unwrap_or_else(|_| own.to_owned());
        own.starts_with(path) || leads.starts_with(&real)
    };
    let mut granted = grants.policy.filesystem().write.iter();
    let below = || granted.find(is_below).map(|grant| grant.path.clone());
    match around.next().or_else(below) {
        None => Ok(()),
        Some(grant) => Err(SecretError::believed(whose, path, &grant).into()),
    }
}

/// Replaces the record's path by the place it leads to.
///
/// # Errors
/// A record that the command can alter proves nothing, and one on whose way
/// lies a link that the command can turn is written wherever it then leads. A
/// file with further names may have one in a grant.
pub(crate) fn settle(grants: Grants<'_>, settings: &mut [GatewaySetting]) -> Result<(), RunError> {
    let record = settings.iter_mut().find_map(|setting| match setting {
        GatewaySetting::RecordFile(path)
        | GatewaySetting::RecordDirectory(path)
        | GatewaySetting::RotatedRecords(path, _) => Some(path),
        _ => None,
    });
    let Some(path) = record else {
        return Ok(());
    };
    let record = path.display().to_string();
    if OUTPUT.contains(&record.as_str()) {
        return Err(RunError::RecordOutput { record });
    }
    let Some(way) = PathWay::of(path) else {
        return Err(RunError::RecordLost { record });
    };
    // What a terminal or a pipe was told cannot be altered; only its name can.
    // What the path is counts, not where it lies: /dev/shm and /proc/self/cwd
    // lead to files.
    let found = way.end.metadata().ok();
    let passing = found.as_ref();
    let passing = passing.is_some_and(|found| !found.is_file() && !found.is_dir());
    let held = if passing {
        way.end.parent()
    } else {
        Some(way.end.as_path())
    };
    let places = way.links.iter().map(PathBuf::as_path).chain(held);
    let mut covering = places.filter_map(|place| grants.covering(place));
    if let Some(grant) = covering.next() {
        return Err(RunError::Record {
            record,
            grant: grant.to_owned(),
        });
    }
    // Which of its names lie in grants nobody can tell without a look at all of them.
    let is_file = |found: &&std::fs::Metadata| found.is_file();
    if let Some(found) = found.as_ref().filter(is_file).filter(|it| it.nlink() > 1) {
        return Err(RunError::RecordNames {
            record,
            names: found.nlink(),
        });
    }
    // A pipe has no path, only names that each process has for itself.
    let nameless = found.is_some() && grants.looks.real(&way.end).is_none();
    if !nameless {
        *path = way.end;
    }
    Ok(())
}

/// Where a path leads now, and the links on the way.
#[derive(Debug, PartialEq, Eq)]
struct PathWay {
    end: PathBuf,
    links: Vec<PathBuf>,
}

/// A part of a path that is still to be gone.
struct PathPart {
    name: OsString,
    named_by: NamedBy,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    Path,
    Link,
}

impl PathWay {
    /// Goes along `path`, which is absolute. `None` where a link leads to what
    /// does not exist, or in circles: nobody can tell what will be there.
    fn of(path: &Path) -> Option<Self> {
        let mut steps = Vec::new();
        let mut way = Self {
            end: PathBuf::from("/"),
            links: Vec::new(),
        };
        push(&mut steps, path, NamedBy::Path);
        while let Some(step) = steps.pop() {
            if step.name == ".." {
                way.end.pop();
                continue;
            }
            let place = way.end.join(&step.name);
            match place.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    let target = place.read_link().ok()?;
                    if place.metadata().is_ok() && place.canonicalize().is_err() {
                        way.end = place;
                        continue;
                    }
                    if target.is_absolute() {
                        way.end = PathBuf::from("/");
                    }
                    push(&mut steps, &target, NamedBy::Link);
                    way.links.push(place);
                    if way.links.len() > LINKS_MAX {
                        return None;
                    }
                }
                Err(_) if step.named_by == NamedBy::Link => return None,
                Ok(_) | Err(_) => way.end = place,
            }
        }
        Some(way)
    }
}

/// Puts the parts of a path on top of the steps, the first one uppermost.
fn push(steps: &mut Vec<PathPart>, path: &Path, named_by: NamedBy) {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    steps.extend(parts.map(|name| PathPart { name, named_by }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_names_its_links_and_its_end() {
        let base = nix::unistd::mkdtemp("/tmp/outgate-way-XXXXXX").unwrap();
        let base = base.canonicalize().unwrap();
        std::fs::create_dir(base.join("a")).unwrap();
        std::fs::write(base.join("a/file"), "").unwrap();
        symlink("a", base.join("to-a")).unwrap();
        symlink(base.join("to-a/file"), base.join("to-file")).unwrap();
        symlink("nothing", base.join("a/broken")).unwrap();
        symlink("circle", base.join("circle")).unwrap();
        for (path, end, links) in [
            ("a/file", Some("a/file"), &[][..]),
            ("a/new", Some("a/new"), &[]),
            ("new/er", Some("new/er"), &[]),
            ("a/../a/file", Some("a/file"), &[]),
            ("to-a/file", Some("a/file"), &["to-a"]),
            ("to-a/../a/new", Some("a/new"), &["to-a"]),
            ("to-file", Some("a/file"), &["to-file", "to-a"]),
            ("a/broken", None, &[]),
            ("circle", None, &[]),
        ] {
            let way = PathWay::of(&base.join(path));
            let links = links.iter().map(|link| base.join(link)).collect();
            let expected = end.map(|end| PathWay {
                end: base.join(end),
                links,
            });
            assert_eq!(way, expected, "{path}");
        }
        std::fs::remove_dir_all(base).unwrap();
    }
}
