//! Whether a command may read or write a file, told from outside a run: by the grants of
//! the policy as Landlock applies them, each with everything below it, and by the account's
//! own rights. Asks the file system; changes nothing and decides nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use outgate_policy::{Context, PathGrant, Policy, Source, compile};

use crate::enforced::refuse_unenforced;
use crate::ruleset::{DEVICES, places};
use crate::run_error::RunError;
use crate::secrets::GuardedSecrets;

/// Words of a command that are looked at: more are a list that something made.
const WORDS_MAX: usize = 256;

/// What a policy says of a file.
#[derive(Debug)]
pub struct Reachable<'p> {
    /// The file, without links as far as it is there.
    pub place: PathBuf,
    /// Whether something is there.
    pub presence: PathPresence,
    /// What hides it, or something inside it so that only its entries are granted.
    pub hidden: Option<&'p PathGrant>,
    /// Who grants reading it.
    pub read: Option<Granting<'p>>,
    /// Who grants writing it.
    pub write: Option<Granting<'p>>,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPresence {
    /// Something is.
    There,
    /// Nothing is.
    Absent,
}

/// Who grants something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granting<'p> {
    /// A grant of the policy.
    Policy(&'p PathGrant),
    /// Every run does.
    EveryRun,
}

impl<'p> Reachable<'p> {
    /// What a policy says of `path`, which is absolute.
    pub fn of(policy: &'p Policy, path: &Path) -> Self {
        let (place, presence) = place_of(path);
        let files = policy.filesystem();
        // A new entry is one of the directory around it.
        let whole = match presence {
            PathPresence::There => place.as_path(),
            PathPresence::Absent => place.parent().unwrap_or(&place),
        };
        let hides = |grant: &&PathGrant| {
            let is_around = |denied: &Path| place.starts_with(denied) || denied.starts_with(whole);
            places(Path::new(&grant.path))
                .iter()
                .any(|denied| is_around(denied))
        };
        let hidden = files.deny.iter().find(hides);
        let around = |grant: &&PathGrant| place.starts_with(place_of(Path::new(&grant.path)).0);
        let every = DEVICES.iter().any(|device| place == Path::new(device));
        let every = every.then_some(Granting::EveryRun);
        let grants = |list: &'p [PathGrant]| match hidden {
            Some(_) => None,
            None => nearest(list.iter().filter(around)).map(Granting::Policy),
        };
        let write = every.or_else(|| grants(&files.write));
        Self {
            read: every.or_else(|| grants(&files.read)).or(write),
            write,
            hidden,
            place,
            presence,
        }
    }
}

/// The policy as a run would have it, with the files that no command may reach hidden.
///
/// # Errors
/// Those with which a run would be refused.
pub fn policy(
    sources: &[Source],
    context: &Context,
    authority: Option<&Path>,
) -> Result<Policy, RunError> {
    let policy = compile(sources, context)?;
    refuse_unenforced(&policy).map_err(|key| RunError::NotEnforced { key })?;
    crate::home::check(&policy, context)?;
    let secrets = GuardedSecrets::of(&policy)?.hiding(authority);
    Ok(secrets.hide(policy, sources, context)?)
}

/// The longest of the grants.
fn nearest<'p>(grants: impl Iterator<Item = &'p PathGrant>) -> Option<&'p PathGrant> {
    grants.max_by_key(|grant| grant.path.len())
}

/// A path without links, also where nothing is there yet.
fn place_of(path: &Path) -> (PathBuf, PathPresence) {
    let place = places(path).pop().unwrap_or_else(|| path.to_owned());
    let presence = if place.symlink_metadata().is_ok() {
        PathPresence::There
    } else {
        PathPresence::Absent
    };
    (place, presence)
}

/// Whether the account of this process may read it, whatever a policy says (access(2)).
pub fn account_reads(path: &Path) -> bool {
    access(path, AccessFlags::R_OK).is_ok()
}

/// Whether the account of this process may write it, whatever a policy says (access(2)).
pub fn account_writes(path: &Path) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

/// A file that the words of a command name, or that its program keeps in the home
/// directory, and that it may not read: what a run that failed in silence may have missed.
pub fn missed(
    policy: &Policy,
    command: &[OsString],
    (home, directory): (&Path, &Path),
) -> Option<PathBuf> {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let kept = program.into_iter().flat_map(|name| {
        [
            format!(".{name}"),
            format!(".{name}rc"),
            format!(".config/{name}"),
        ]
    });
    let kept = kept.map(|name| home.join(name));
    let words = command.iter().skip(1).take(WORDS_MAX);
    let named = words.filter_map(|word| {
        let bytes = word.as_bytes();
        let value = bytes.rsplit(|byte| *byte == b'=').next()?;
        let path = Path::new(std::ffi::OsStr::from_bytes(value));
        // Any word might be a name; one that leads somewhere is a path.
        let is_path = path.is_absolute() || path.components().count() > 1;
        is_path.then(|| directory.join(path))
    });
    named
        .chain(kept)
        .find(|path| account_reads(path) && Reachable::of(policy, path).read.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::SourceKind;
    use std::fs;

    #[test]
    fn grants_reach_everything_below_and_nothing_beside() {
        let base = nix::unistd::mkdtemp("/tmp/outgate-reach-XXXXXX").unwrap();
        let base = base.canonicalize().unwrap();
        for name in ["open/in", "ro/x", "open/hidden/deep"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("open/in/file"), "").unwrap();
        fs::write(base.join("closed"), "").unwrap();
        std::os::unix::fs::symlink(base.join("closed"), base.join("open/link")).unwrap();
        let text = |path: &str| base.join(path).to_string_lossy().into_owned();
        let source = |kind, text: String| Source {
            kind,
            place: "-o".to_owned(),
            text,
        };
        let deny = format!("[filesystem]\ndeny = [{:?}]\n", text("open/hidden"));
        let sources = [
            source(SourceKind::Write, text("open")),
            source(SourceKind::Read, text("ro")),
            source(SourceKind::Document, deny),
        ];
        let context = Context {
            home: "/nonexistent".to_owned(),
            working_directory: "/nonexistent".to_owned(),
            private_directory: "/nonexistent".to_owned(),
            ..Context::default()
        };
        let policy = compile(&sources, &context).unwrap();
        for (path, read, write) in [
            ("open/in/file", true, true),
            ("open/in/new", true, true),
            ("ro/x", true, false),
            ("ro/new", true, false),
            ("ro", true, false),
            ("rother", false, false),
            ("closed", false, false),
            ("open/link", false, false),
            ("open/hidden", false, false),
            ("open/hidden/deep", false, false),
            // Split around what is hidden: neither the directory nor new entries of it.
            ("open", false, false),
            ("open/new", false, false),
        ] {
            let found = Reachable::of(&policy, &base.join(path));
            let rights = (found.read.is_some(), found.write.is_some());
            assert_eq!(rights, (read, write), "{path}: {found:?}");
        }
        let null = Reachable::of(&policy, Path::new("/dev/null"));
        assert_eq!(null.write, Some(Granting::EveryRun));
        let words =
            |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
        let missed = |command: &[&str]| missed(&policy, &words(command), (&base, &base));
        assert_eq!(missed(&["cat", "./closed"]), Some(base.join("./closed")));
        assert_eq!(
            missed(&["cat", "--from=./closed"]),
            Some(base.join("./closed"))
        );
        assert_eq!(
            missed(&["cat", "./open/in/file", "./nothing", "closed"]),
            None
        );
        fs::write(base.join(".toolrc"), "").unwrap();
        assert_eq!(missed(&["/usr/bin/tool"]), Some(base.join(".toolrc")));
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn what_a_denied_link_will_lead_to_is_hidden_before_it_is_there() {
        let base = nix::unistd::mkdtemp("/tmp/outgate-denied-XXXXXX").unwrap();
        let base = base.canonicalize().unwrap();
        for name in ["w/real", "w/store", "w/free"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("w/real/other"), "").unwrap();
        for (name, target) in [
            ("w/link", "real"),
            ("w/dangling", "store/token"),
            ("w/a", "a"),
        ] {
            std::os::unix::fs::symlink(target, base.join(name)).unwrap();
        }
        let text = |path: &str| base.join(path).to_string_lossy().into_owned();
        let denied = [text("w/link/secret"), text("w/dangling"), text("w/a/x")];
        let source = |kind, text: String| Source {
            kind,
            place: "-o".to_owned(),
            text,
        };
        let sources = [
            source(SourceKind::Write, text("w")),
            source(
                SourceKind::Document,
                format!("[filesystem]\ndeny = {denied:?}\n"),
            ),
        ];
        let context = Context {
            home: "/nonexistent".to_owned(),
            working_directory: "/nonexistent".to_owned(),
            private_directory: "/nonexistent".to_owned(),
            ..Context::default()
        };
        let policy = compile(&sources, &context).unwrap();
        for (path, is_written) in [
            ("w/real/secret", false),
            ("w/link/secret", false),
            ("w/store/token", false),
            ("w/dangling", false),
            ("w/store/../store/token", false),
            // Split around what is hidden: no new entries beside it.
            ("w/store/other", false),
            ("w/real/other", true),
            ("w/link/other", true),
            ("w/free/new", true),
        ] {
            let found = Reachable::of(&policy, &base.join(path));
            assert_eq!(found.write.is_some(), is_written, "{path}: {found:?}");
        }
        fs::remove_dir_all(base).unwrap();
    }
}
