//! Finds the programs under test and builds the C programs that attack them.
//! Built once, kept in the target directory, rebuilt when a source is newer.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Paths the test crate knows at compile time.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// The launcher cargo built for the test.
    pub outgate: &'static str,
    /// The gateway cargo built for the test.
    pub gateway: &'static str,
    /// A directory for files of the tests.
    pub scratch: &'static str,
}

/// The programs, where every account can execute them.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Directory with `outgate`, `outgate-gateway` and `outgate-report`.
    pub programs: PathBuf,
    /// Directory with `probe`, `elf32` and the fixtures.
    pub probes: PathBuf,
}

const TOOLS: [(&str, &str, &[&str]); 6] = [
    ("probe", "tests/adversary/probes", &["-static", "-pthread"]),
    ("refuse", "tests/fixtures/refuse.c", &["-static"]),
    ("nogetfd", "tests/fixtures/nogetfd.c", &["-static"]),
    ("stdio", "tests/fixtures/stdio.c", &["-static"]),
    ("intruder", "tests/fixtures/intruder.c", &["-static"]),
    (
        "elf32",
        "tests/adversary/foreign/elf32.c",
        &["-static", "-m32"],
    ),
];

/// Held while something is built: tests are threads of one process. Two
/// processes at once build twice, and the second rename wins.
static BUILDING: Mutex<()> = Mutex::new(());

/// The root of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(at: &Path) -> Vec<PathBuf> {
    if at.is_file() {
        return vec![at.to_owned()];
    }
    let mut all: Vec<PathBuf> = fs::read_dir(at)
        .expect("a folder of sources")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension() == Some(OsStr::new("c")))
        .collect();
    all.sort();
    all
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

fn newest(at: &Path) -> Option<SystemTime> {
    let folder = if at.is_dir() { at } else { at.parent()? };
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| modified(&entry.ok()?.path()))
        .max()
}

fn build(name: &str, source: &Path, flags: &[&str], into: &Path) {
    let target = into.join(name);
    if modified(&target) > newest(source) {
        return;
    }
    let draft = into.join(format!(".{name}.{}", std::process::id()));
    let made = Command::new("cc")
        .args(["-O1", "-Wall", "-o"])
        .arg(&draft)
        .args(flags)
        .args(sources(source))
        .output();
    match made {
        Ok(output) if output.status.success() => {
            fs::rename(&draft, &target).expect("the built program moved into place");
        }
        Ok(output) => super::skip(&format!(
            "{name} cannot be built: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => super::skip(&format!("no C compiler: {error}")),
    }
}

/// Whether every account may look into `path`.
fn is_reachable(path: &Path) -> bool {
    path.ancestors().all(|part| {
        part.as_os_str().is_empty()
            || fs::metadata(part).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    })
}

/// A copy of the programs under `scratch` if others cannot reach them where
/// they are (a home directory with mode 0700, for example).
fn reachable_copy(from: &Path, names: &[&str], scratch: &Path) -> PathBuf {
    if is_reachable(from) {
        return from.to_owned();
    }
    for name in names {
        let (source, target) = (from.join(name), scratch.join(name));
        if modified(&target) > modified(&source) {
            continue;
        }
        let draft = scratch.join(format!(".{name}.{}", std::process::id()));
        if fs::copy(&source, &draft).is_ok() {
            fs::rename(&draft, &target).expect("the copied program moved into place");
        }
    }
    scratch.to_owned()
}

/// Builds what is missing and says where everything is.
///
/// # Panics
/// When a directory cannot be made or, in continuous integration, when a
/// program cannot be built.
pub fn prepare(built: &Built) -> Tools {
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut scratch = PathBuf::from(built.scratch);
    if !is_reachable(&scratch) {
        let uid = nix::unistd::geteuid();
        scratch = std::env::temp_dir().join(format!("outgate-tests-{uid}"));
    }
    let probes = scratch.join("probes");
    fs::create_dir_all(&probes).expect("a folder for the probes");
    for folder in [&scratch, &probes] {
        if !is_reachable(folder) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("folder mode");
        }
    }
    for (name, source, flags) in TOOLS {
        build(name, &project().join(source), flags, &probes);
    }
    let programs = if let Some(folder) = std::env::var_os("OUTGATE_BIN_DIR") {
        fs::canonicalize(folder).expect("OUTGATE_BIN_DIR is a folder")
    } else {
        let folder = Path::new(built.outgate).parent().map(Path::to_owned);
        debug_assert_eq!(folder.as_deref(), Path::new(built.gateway).parent());
        folder.expect("the launcher lies in a folder")
    };
    let programs = reachable_copy(
        &programs,
        &["outgate", "outgate-gateway", "outgate-report"],
        &scratch,
    );
    Tools { programs, probes }
}
