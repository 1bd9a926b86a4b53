//! The laboratory: each test runs again in a process of its own, with its own
//! network (every address is local: AnyIP), its own process table and its own
//! mounts. So a witness can stand at any address, and what a run leaves behind
//! is everything there is.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Gid, Pid, Uid, chown};

pub use crate::identity::is_mapped;
use crate::identity::{Identity, MAPPED};
use crate::run::{Outcome, Running};
use crate::tools::{Built, Tools, prepare};

const INSIDE: &str = "OUTGATE_LAB";

/// Longest time of a run without outgate.
const BARE_SECONDS_MAX: u64 = 60;

/// Longest time for a whole test.
const TEST_SECONDS_MAX: u64 = 240;

/// Makes the network. `-I` of ping and friends need nothing of this.
const SETUP: &str = r#"
ip link set lo up &&
ip route add local 0.0.0.0/0 dev lo &&
ip -6 route add local ::/0 dev lo || exit 93
{ echo '0 2147483647' || echo '0 0'; } > /proc/sys/net/ipv4/ping_group_range 2>/dev/null
mount -t tmpfs -o mode=755 none /run || exit 94
"$@"
exit $?
"#;

/// Where a test runs.
#[derive(Debug)]
pub struct Lab {
    /// The programs.
    pub tools: Tools,
    /// A directory of this test alone, mode 0755, removed afterwards.
    pub directory: PathBuf,
}

/// Declares tests that run in a laboratory.
#[macro_export]
macro_rules! lab_tests {
    ($($(#[$meta:meta])* fn $name:ident($lab:ident) $body:block)*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            fn body($lab: &$crate::Lab) $body
            $crate::lab::enter(
                concat!(module_path!(), "::", stringify!($name)),
                &$crate::tools::Built {
                    outgate: env!("CARGO_BIN_EXE_outgate"),
                    gateway: env!("CARGO_BIN_EXE_outgate-gateway"),
                    scratch: env!("CARGO_TARGET_TMPDIR"),
                },
                body,
            );
        }
    )*};
}

/// Declares tests that run in a laboratory twice: over plain HTTP, and over TLS
/// that the gateway opens, for which a function is called first.
#[macro_export]
macro_rules! carried_tests {
    ($open:path; $(fn $name:ident($lab:ident) $body:block)*) => {
        $(fn $name($lab: &$crate::Lab) $body)*

        mod plain {
            $crate::lab_tests! {$(
                fn $name(lab) { super::$name(lab); }
            )*}
        }

        mod opened {
            $crate::lab_tests! {$(
                fn $name(lab) {
                    $open();
                    super::$name(lab);
                }
            )*}
        }
    };
}

/// Runs `body` in a laboratory: in this process if it is one, otherwise in a
/// copy of this test program that runs only this test.
///
/// # Panics
/// When the test fails there, or takes longer than it may.
pub fn enter(test: &str, built: &Built, body: fn(&Lab)) {
    if let Some(directory) = std::env::var_os(INSIDE) {
        let tools = prepare(built);
        body(&Lab {
            tools,
            directory: directory.into(),
        });
        return;
    }
    prepare(built);
    let directory = nix::unistd::mkdtemp(&std::env::temp_dir().join("outgate-lab-XXXXXX"))
        .expect("a temporary directory");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("mode 0755");
    let outcome = inside(test, &directory);
    fs::remove_dir_all(&directory).ok();
    match outcome.code {
        Some(0) => eprint!("{}", outcome.stderr),
        Some(93 | 94) => super::skip(&format!("no network of its own: {}", outcome.stderr)),
        Some(1) if outcome.stderr.contains("unshare:") => {
            super::skip(&format!("no namespace of its own: {}", outcome.stderr));
        }
        _ => panic!("{test} in its laboratory: {outcome}"),
    }
}

fn inside(test: &str, directory: &Path) -> Outcome {
    // The name without the crate, as the test program knows it.
    let name = test.split_once("::").map_or(test, |(_, name)| name);
    // A shell without job control starts its background jobs with some of these
    // ignored, `nohup` with another, and whatever is ignored stays ignored in every
    // program below.
    let mut unshare = Command::new("env");
    unshare.args([
        "--default-signal=HUP,INT,QUIT,TERM",
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    if !nix::unistd::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]).env(MAPPED, "1");
    }
    unshare
        .args(["sh", "-c", SETUP, "lab"])
        .arg(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            name,
            "--nocapture",
            "--test-threads=1",
            "--include-ignored",
        ])
        .env(INSIDE, directory)
        .stdin(Stdio::null())
        .process_group(0);
    let running = Running::start(&mut unshare, Duration::from_secs(TEST_SECONDS_MAX));
    let group = Pid::from_raw(running.pid());
    let outcome = running.finish();
    killpg(group, Signal::SIGKILL).ok();
    outcome
}

impl Lab {
    /// A fresh directory that `identity` owns.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn folder(&self, name: &str, identity: Identity) -> PathBuf {
        let path = self.directory.join(format!("{name}-{}", identity.uid()));
        fs::create_dir_all(&path).expect("a folder");
        if identity == Identity::Nobody {
            let id = identity.uid();
            chown(&path, Some(Uid::from_raw(id)), Some(Gid::from_raw(id))).expect("chown");
        }
        path
    }

    /// The path of a built probe or fixture.
    pub fn tool(&self, name: &str) -> String {
        self.tools.probes.join(name).to_string_lossy().into_owned()
    }

    /// `probe NAME ARGUMENTS` as a command line.
    pub fn probe(&self, arguments: &[&str]) -> Vec<String> {
        std::iter::once(self.tool("probe"))
            .chain(arguments.iter().map(|&argument| argument.to_owned()))
            .collect()
    }

    /// Runs a probe without outgate, to show that it can leak.
    pub fn bare(&self, identity: Identity, arguments: &[&str]) -> Outcome {
        self.start_bare(identity, &self.probe(arguments)).finish()
    }

    /// Starts a command without outgate.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_bare(&self, identity: Identity, command: &[String]) -> Running {
        let mut words = identity.prefix();
        words.extend_from_slice(command);
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let (program, arguments) = words.split_first().expect("a command");
        let mut bare = Command::new(program);
        bare.args(arguments)
            .current_dir(self.folder("work", identity))
            .stdin(Stdio::piped())
            .process_group(0);
        Running::start(&mut bare, Duration::from_secs(BARE_SECONDS_MAX))
    }
}
