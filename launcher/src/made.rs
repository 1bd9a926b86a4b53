//! What a policy wants made where it is absent, and where links of the home directory
//! lead that shipped policies grant through. Makes directories and files for this
//! account alone; reads none.
//!
//! A shipped policy names places in the home directory without having seen it. A link
//! there may be the user's own (settings kept in a repository), so it is followed: but
//! never out of the home directory, never to, into or around a place of secrets, and
//! never by a way that the command may write, where it could lay links for its next run.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::O_NOFOLLOW;
use outgate_policy::{Context, Filesystem, MadeContent, MadePath, Moved, PathGrant};

use crate::guarded::{is_guarded, is_named, is_others, names};
use crate::limits::LINKS_MAX;
use crate::links::{LinkStep, step};
use crate::run_error::RunError;

/// Makes what is absent, and refuses links that lead where no shipped policy may.
/// Returns the links that were followed, in words.
///
/// # Errors
/// [`RunError::Link`]: whoever laid the link.
pub(crate) fn settle(files: &Filesystem, context: &Context) -> Result<Vec<String>, RunError> {
    let home = Path::new(&context.home);
    for moved in &files.moved {
        sound(moved, home)?;
    }
    let mut said = Vec::new();
    for grant in files.write.iter().filter(|grant| grant.optional) {
        let path = Path::new(&grant.path);
        if context.home.is_empty() || path == home || !path.starts_with(home) {
            continue;
        }
        let Some(target) = followed(grant, home, files)? else {
            continue;
        };
        said.push(format!(
            "outgate: {}: `{}` is a link; what it leads to may be written: `{}`",
            grant.place,
            grant.path,
            target.display()
        ));
    }
    let writable = writable(files.write.iter());
    for made in &files.made {
        // By a link that a command may have laid nothing is made. One that cannot be made is
        // absent, as if nobody had tried.
        if !is_laid_for(Path::new(&made.path), &writable) {
            drop(make(made));
        }
    }
    Ok(said)
}

/// Where grants for writing lead.
fn writable<'g>(grants: impl Iterator<Item = &'g PathGrant>) -> Vec<PathBuf> {
    grants
        .filter_map(|grant| Path::new(&grant.path).canonicalize().ok())
        .collect()
}

/// Whether a link on the way to a path lies where the command may write, or nobody can tell.
fn is_laid_for(path: &Path, writable: &[PathBuf]) -> bool {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match step(&path) {
            LinkStep::Plain(_) => return false,
            LinkStep::Link { link, .. } if is_laid(&link, writable) => return true,
            LinkStep::Link { target, .. } => path = target,
        }
    }
    true
}

/// Whether a link lies where the command may write.
fn is_laid(link: &Path, writable: &[PathBuf]) -> bool {
    let mut around = link.ancestors().skip(1);
    around.any(|directory| writable.iter().any(|granted| granted == directory))
}

fn make(made: &MadePath) -> io::Result<()> {
    let directory = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
    let path = Path::new(&made.path);
    match &made.content {
        // A link that leads nowhere yet is made where it leads.
        MadeContent::Directory => {
            let place = match std::fs::read_link(path) {
                Ok(said) => path.parent().unwrap_or(path).join(said),
                Err(_) => path.to_owned(),
            };
            directory(&place)
        }
        MadeContent::File(text) => {
            path.parent().map_or(Ok(()), directory)?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            let mut file = options.custom_flags(O_NOFOLLOW).open(path)?;
            file.write_all(text.as_bytes())
        }
    }
}

/// Where a granted place of the home directory leads, if a link is on its way there.
fn followed(
    grant: &PathGrant,
    home: &Path,
    files: &Filesystem,
) -> Result<Option<PathBuf>, RunError> {
    let refused = |target: &Path, why| RunError::Link {
        place: grant.place.to_string(),
        path: grant.path.clone(),
        target: target.display().to_string(),
        why,
    };
    let path = PathBuf::from(&grant.path);
    let below = path.strip_prefix(home).unwrap_or(&path).to_owned();
    let Ok(home) = home.canonicalize() else {
        return Ok(None);
    };
    let own = home.join(below);
    let (mut path, mut links) = (own.clone(), Vec::new());
    loop {
        match step(&path) {
            LinkStep::Plain(real) => {
                path = real;
                break;
            }
            LinkStep::Link { link, target } if links.len() < LINKS_MAX => {
                links.push(link);
                path = target;
            }
            LinkStep::Link { .. } => {
                return Err(refused(&path, "through more links than the kernel follows"));
            }
        }
    }
    if links.is_empty() {
        return Ok(None);
    }
    if path == home || !path.starts_with(&home) {
        return Err(refused(&path, "outside the home directory"));
    }
    // What the policy grants by its own name it may.
    if is_guarded(&path, &home, |place| own.starts_with(home.join(place))) {
        return Err(refused(
            &path,
            "to, into or around a place of secrets or of programs",
        ));
    }
    links.push(path.clone());
    let others = files.write.iter().filter(|other| other.path != grant.path);
    let writable = writable(others);
    if links.iter().any(|link| is_laid(link, &writable)) {
        return Err(refused(&path, "by a way that the command may write"));
    }
    Ok(Some(path))
}

/// Whether a variable of the user's moves something to where a program may keep its files.
fn sound(moved: &Moved, home: &Path) -> Result<(), RunError> {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let names = names(&moved.variable);
    let is_own = |place: &str| names.iter().any(|own| is_named(place, own));
    let mut path = PathBuf::from(&moved.path);
    for _ in 0..LINKS_MAX {
        match step(&path) {
            LinkStep::Plain(real) => {
                if home.starts_with(&real)
                    || is_guarded(&real, &home, is_own)
                    || is_others(&real, &home, &moved.variable)
                {
                    break;
                }
                return Ok(());
            }
            LinkStep::Link { target, .. } => path = target,
        }
    }
    Err(RunError::Moved {
        variable: moved.variable.clone(),
        place: moved.place.to_string(),
        path: path.display().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    struct Home(PathBuf);

    impl Drop for Home {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    impl Home {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir();
            let root = root.join(format!("outgate-made-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("home/.ssh")).unwrap();
            Self(root.canonicalize().unwrap())
        }

        fn path(&self, name: &str) -> String {
            self.0.join("home").join(name).display().to_string()
        }

        /// Settles a grant of a shipped policy for `granted`, where the command may write
        /// `work` too.
        fn settle(&self, granted: &str) -> Result<Vec<String>, RunError> {
            let grant = |name: &str| PathGrant {
                path: self.path(name),
                place: "preset `p`".into(),
                optional: true,
            };
            let files = Filesystem {
                write: vec![grant(granted), grant("work")],
                made: vec![MadePath {
                    path: self.path(granted),
                    content: MadeContent::Directory,
                }],
                ..Filesystem::default()
            };
            let context = Context {
                home: self.0.join("home").display().to_string(),
                ..Context::default()
            };
            settle(&files, &context)
        }
    }

    #[test]
    fn what_is_absent_is_made_for_this_account_alone_and_what_is_there_stays() {
        let home = Home::new("absent");
        assert_eq!(home.settle(".agent/state").unwrap(), [""; 0]);
        let state = fs::metadata(home.path(".agent/state")).unwrap();
        assert_eq!(state.mode() & 0o7777, 0o700);
        let file = |text: &str| MadePath {
            path: home.path(".agent.json"),
            content: MadeContent::File(text.to_owned()),
        };
        make(&file("{}")).unwrap();
        assert_eq!(
            fs::metadata(home.path(".agent.json")).unwrap().mode() & 0o7777,
            0o600
        );
        assert!(make(&file("[]")).is_err());
        assert_eq!(fs::read(home.path(".agent.json")).unwrap(), b"{}");
        fs::remove_file(home.path(".agent.json")).unwrap();
        symlink(home.path(".ssh/authorized_keys"), home.path(".agent.json")).unwrap();
        assert!(make(&file("{}")).is_err(), "through a link");
        assert!(!Path::new(&home.path(".ssh/authorized_keys")).exists());
    }

    #[test]
    fn a_link_of_the_user_is_followed_inside_the_home_directory_and_said() {
        let home = Home::new("inside");
        fs::create_dir_all(home.path("dotfiles/agent")).unwrap();
        symlink("dotfiles/agent", home.path(".agent")).unwrap();
        let said = home.settle(".agent").unwrap();
        assert!(said.concat().contains("dotfiles/agent"), "{said:?}");
        // One that leads to what is not there yet is made there.
        for (name, target) in [
            ("new", home.path("dotfiles/new")),
            ("beside", "dotfiles/beside".to_owned()),
        ] {
            let link = home.path(".fresh");
            fs::remove_file(&link).ok();
            symlink(target, &link).unwrap();
            home.settle(".fresh").unwrap();
            assert!(
                Path::new(&home.path("dotfiles")).join(name).is_dir(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_link_that_leads_to_secrets_or_outside_or_was_laid_by_the_command_is_refused() {
        let home = Home::new("refused");
        for name in ["work", "work/agent", "other", ".config/gh", ".local/bin"] {
            fs::create_dir_all(home.path(name)).unwrap();
        }
        symlink(home.path(".ssh"), home.path("other/deep")).unwrap();
        symlink(home.path("work/agent"), home.path("other/way")).unwrap();
        symlink(home.path("other"), home.path("work/laid")).unwrap();
        for (target, why) in [
            (".ssh", "secrets"),
            (".ssh/agent", "secrets"),
            (".config", "secrets"),
            (".local", "secrets"),
            ("other/deep", "secrets"),
            ("other/deep/agent", "secrets"),
            ("other/../.ssh", "secrets"),
            ("other/../../elsewhere", "outside"),
            ("other/../work/agent", "command may write"),
            ("other/way/../agent", "command may write"),
            (".", "outside"),
            ("..", "outside"),
            ("../elsewhere", "outside"),
            ("/etc", "outside"),
            ("work/agent", "command may write"),
            ("other/way", "command may write"),
            ("work/laid", "command may write"),
            (".agent", "more links"),
        ] {
            let link = home.path(".agent");
            fs::remove_file(&link).ok();
            symlink(target, &link).unwrap();
            let error = home.settle(".agent").unwrap_err().to_string();
            assert!(error.contains(why), "{target}: {error}");
        }
        fs::remove_file(home.path(".agent")).unwrap();
        symlink(".ssh", home.path(".parent")).unwrap();
        let error = home.settle(".parent/agent").unwrap_err().to_string();
        assert!(error.contains("secrets"), "{error}");
        assert!(
            !Path::new(&home.path(".ssh/agent")).exists(),
            "nothing is made there"
        );
    }

    #[test]
    fn a_variable_moves_nothing_to_secrets_or_around_the_home() {
        let home = Home::new("moved");
        fs::create_dir_all(home.path("own")).unwrap();
        symlink(".ssh", home.path("link")).unwrap();
        symlink("loop", home.path("loop")).unwrap();
        let outside = home.0.join("outside").display().to_string();
        let around = home.0.display().to_string();
        for (path, is_sound) in [
            (home.path("own"), true),
            (home.path("own/absent"), true),
            (home.path(".tool"), true),
            (outside, true),
            (home.path(""), false),
            (around, false),
            ("/".to_owned(), false),
            (home.path(".ssh"), false),
            (home.path(".ssh/deep"), false),
            (home.path(".config"), false),
            (home.path(".config/it"), true),
            (home.path("link"), false),
            (home.path("link/deep"), false),
            (home.path("loop"), false),
        ] {
            let moved = Moved {
                variable: "IT_HOME".to_owned(),
                path: path.clone(),
                place: "here".into(),
            };
            let files = Filesystem {
                moved: vec![moved],
                ..Filesystem::default()
            };
            let context = Context {
                home: home.0.join("home").display().to_string(),
                ..Context::default()
            };
            assert_eq!(settle(&files, &context).is_ok(), is_sound, "{path}");
        }
    }
}
