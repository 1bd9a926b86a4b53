//! Where ordinary content is: in packages that are fetched by version and sum, and nowhere else
//! on a machine; files by folder and name, and packs that git makes of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something to scan: a file, or bytes that a test made.
pub(crate) enum Content {
    File(PathBuf),
    Made(String, Vec<u8>),
}

impl Content {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Made(name, _) => name.clone(),
        }
    }

    /// Its bytes, if it has some and not more than so many.
    pub(crate) fn read(&self, most: u64) -> Option<Vec<u8>> {
        match self {
            Self::File(path) => {
                let length = fs::metadata(path).ok()?.len();
                (1..=most).contains(&length).then(|| fs::read(path).ok())?
            }
            Self::Made(_, bytes) => Some(bytes.clone()),
        }
    }
}

/// Contents that a test makes.
pub(crate) fn made(name: &str, contents: Vec<Vec<u8>>) -> Vec<Content> {
    let contents = contents.into_iter().enumerate();
    contents
        .map(|(number, bytes)| Content::Made(format!("{name} {number}"), bytes))
        .collect()
}

/// Files below the folders, in order, so many bytes of them at most: those of all
/// folders and subfolders alike, by leaving out every so many.
pub(crate) fn files(folders: &[PathBuf], most: u64, is_wanted: fn(&Path) -> bool) -> Vec<Content> {
    let mut all = Vec::new();
    for folder in folders {
        walk(folder, is_wanted, &mut all);
    }
    let bytes: u64 = all.iter().map(|(_, length)| length).sum();
    let step = usize::try_from(bytes / most.max(1) + 1).unwrap_or(usize::MAX);
    let some = all.into_iter().step_by(step);
    some.map(|(path, _)| Content::File(path)).collect()
}

fn walk(path: &Path, is_wanted: fn(&Path) -> bool, files: &mut Vec<(PathBuf, u64)>) {
    let Ok(about) = fs::symlink_metadata(path) else {
        return;
    };
    if about.is_dir() {
        for entry in entries(path) {
            walk(&entry, is_wanted, files);
        }
    } else if about.is_file() && is_wanted(path) {
        files.push((path.to_owned(), about.len()));
    }
}

/// What is in a folder, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The fetched packages of this name, whatever their version; without a name all of them.
pub(crate) fn packages(names: &[&str]) -> Vec<PathBuf> {
    let corpora = outgate_harness::servers::corpora(env!("CARGO_TARGET_TMPDIR"));
    let all = corpora.iter().flat_map(|folder| entries(folder));
    let is_named = |folder: &PathBuf| {
        let own = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_one = |name: &&str| own.rsplit_once('-').is_some_and(|(own, _)| own == *name);
        folder.is_dir() && names.iter().any(is_one)
    };
    all.filter(is_named).collect()
}

/// The sources of the crates that the lock file names, each in its version.
pub(crate) fn crates() -> Vec<PathBuf> {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = fs::read_to_string(lock).expect("the lock file");
    let quoted = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        value.strip_suffix('"').map(str::to_owned)
    };
    let mut locked = Vec::new();
    let mut name = String::new();
    for line in lock.lines() {
        if let Some(own) = quoted(line, "name") {
            name = own;
        } else if let Some(version) = quoted(line, "version") {
            locked.push(format!("{name}-{version}"));
        }
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    let registries = entries(&Path::new(&cargo).join("registry/src"));
    let mut found = Vec::new();
    for own in locked {
        // Of several registries one is enough: the sums of the lock file hold for all.
        let mut places = registries.iter().map(|folder| folder.join(&own));
        found.extend(places.find(|folder| folder.is_dir()));
    }
    found
}

/// Packs as `git push` sends them, of files: the first half, and all of them.
pub(crate) fn packs(files: &[Content]) -> Vec<Content> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ordinary-packs");
    // What an earlier run left.
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).expect("a folder");
    git(&folder, &["init", "-q", "."]);
    let (mut made, mut before) = (Vec::new(), "");
    let half = files.len() / 2;
    for part in [files.get(..half), files.get(half..)] {
        for (number, content) in part.unwrap_or_default().iter().enumerate() {
            let bytes = content.read(u64::MAX).unwrap_or_default();
            // In the second commit the same names, which git compares.
            let name = format!("{:02x}/{number}", number % 97);
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        }
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-q", "-m", "Some files"]);
        let name = format!("pack{}", made.len());
        let revisions = format!("HEAD\\n{before}");
        let line =
            format!("printf '{revisions}' | git pack-objects -q --revs --thin --stdout > {name}");
        run(&folder, "sh", &["-c", &line]);
        let pack = fs::read(folder.join(&name)).expect("a pack");
        fs::remove_file(folder.join(&name)).expect("a pack");
        made.push(Content::Made(name, pack));
        before = "^HEAD~1\\n";
    }
    fs::remove_dir_all(&folder).ok();
    made
}

fn git(folder: &Path, words: &[&str]) {
    run(folder, "git", words);
}

fn run(folder: &Path, program: &str, words: &[&str]) {
    let settings = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_DATE", "1700000000 +0000"),
        ("GIT_COMMITTER_DATE", "1700000000 +0000"),
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_0", "pack.threads"),
        ("GIT_CONFIG_VALUE_0", "1"),
        ("GIT_CONFIG_KEY_1", "user.name"),
        ("GIT_CONFIG_VALUE_1", "me"),
        ("GIT_CONFIG_KEY_2", "user.email"),
        ("GIT_CONFIG_VALUE_2", "me@example.org"),
    ];
    let mut child = Command::new(program);
    let said = child
        .args(words)
        .current_dir(folder)
        .envs(settings)
        .output();
    let said = said.expect("it runs");
    let told = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{program} {words:?}: {told}");
}
