//! What this kernel and machine offer: read once, passed on as a value. Decides
//! nothing.

use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, openat2};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::SignalFd;
use nix::unistd::{AccessFlags, access};
use outgate_sys::alarm::CallAlarm;
use outgate_sys::memory::Memory;
use outgate_sys::process::landlock_abi;

/// `SECCOMP_RET_USER_NOTIF` (seccomp(2)).
const USER_NOTIFICATION: u32 = 0x7fc0_0000;

/// One row of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRow {
    /// What was looked for.
    pub name: &'static str,
    /// Whether it is there.
    pub state: ProbeState,
    /// What follows from it, for people.
    pub detail: String,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeState {
    /// It is.
    Present,
    /// It is not; something else is used instead.
    Replaced,
    /// It is not, and outgate refuses to run.
    Missing,
}

/// Whether user namespaces can be made, as far as settings tell.
///
/// # Errors
/// The setting that forbids them, for people.
pub fn user_namespaces() -> Result<(), String> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let number = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let settings = [
        (
            "/proc/sys/user/max_user_namespaces",
            0,
            "user.max_user_namespaces is 0",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            0,
            "kernel.unprivileged_userns_clone is 0",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            1,
            "kernel.apparmor_restrict_unprivileged_userns is 1",
        ),
    ];
    for (path, forbidding, reason) in settings {
        if number(path) == Some(forbidding) {
            return Err(reason.to_owned());
        }
    }
    if Path::new("/proc/self/ns/user").exists() {
        Ok(())
    } else {
        Err("the kernel has no user namespaces".to_owned())
    }
}

/// Whether datagram sockets can live in a network of their own. Where settings and
/// capabilities do not tell, as to root without the one for it, and below a filter of somebody
/// else's, which may refuse it, one is made and let go: that takes as long as all else that a
/// start does.
///
/// # Errors
/// What forbids it, for people.
pub fn sealed_network() -> Result<(), String> {
    user_namespaces()?;
    let is_root = nix::unistd::geteuid().is_root();
    let may = is_root && outgate_sys::process::may_make_networks().unwrap_or(false);
    if may && networks_max() == Some(0) {
        return Err("user.max_net_namespaces is 0".to_owned());
    }
    if is_root && !may || is_filtered() {
        crate::sealed::attempt()?;
    }
    Ok(())
}

/// How many network namespaces there may be (namespaces(7)).
fn networks_max() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/user/max_net_namespaces").ok()?;
    text.trim().parse().ok()
}

/// Whether a seccomp filter holds for this process already (proc_pid_status(5)).
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mode = lines.find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() != "0")
}

/// Whether records of runs can be written there: tried as far as it changes nothing.
pub fn record(directory: Option<&Path>) -> ProbeRow {
    let fault = match directory {
        None => Some("neither HOME nor XDG_STATE_HOME is set".to_owned()),
        Some(path) => unwritable(path),
    };
    let (state, detail) = match (fault, directory) {
        (None, Some(path)) => (
            ProbeState::Present,
            format!("records go to `{}`", path.display()),
        ),
        (fault, _) => (
            ProbeState::Replaced,
            format!(
                "{}: nothing leaves a run that cannot be recorded; `--audit FILE` names another \
                 place",
                fault.unwrap_or_default()
            ),
        ),
    };
    ProbeRow {
        name: "record",
        state,
        detail,
    }
}

/// Why no file can be made in a directory, or in the one in which it would be made.
fn unwritable(directory: &Path) -> Option<String> {
    let mut above = directory.ancestors();
    let Some(there) = above.find(|path| path.symlink_metadata().is_ok()) else {
        return Some(format!("nothing is there around `{}`", directory.display()));
    };
    let rights = AccessFlags::W_OK | AccessFlags::X_OK;
    let fault = match there.metadata() {
        Ok(found) if found.is_dir() => access(there, rights)
            .err()
            .map(|errno| errno.desc().to_owned()),
        Ok(_) => Some("it is no directory".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    fault.map(|fault| {
        let (directory, there) = (directory.display(), there.display());
        format!("no record can be made in `{directory}` (`{there}`: {fault})")
    })
}

/// Everything `outgate check` shows, from hard requirements to conveniences.
pub fn findings() -> Vec<ProbeRow> {
    vec![
        landlock(),
        notifications(),
        calls(),
        proc(),
        duplicates(),
        unix_paths(),
        namespaces(),
        yama(),
        shared_memory(),
    ]
}

/// What is no run's own: Landlock knows a directory that everybody shares, or none.
fn shared_memory() -> ProbeRow {
    ProbeRow {
        name: "memory",
        state: ProbeState::Present,
        detail:
            "named memory and semaphores lie in /dev/shm, where all programs of this user share \
                 them: a run has none, unless `-w /dev/shm` or `-P dev-tools` grants that"
                .to_owned(),
    }
}

/// What every run needs, beside what refuses a run in its own words: tried, since
/// kernels lack it and container profiles take it away.
///
/// # Errors
/// What is missing, for people: the machine.
pub fn required() -> Result<(), String> {
    for finding in [proc(), calls()] {
        if finding.state == ProbeState::Missing {
            return Err(finding.detail);
        }
    }
    Ok(())
}

/// What this machine does without, with what follows for the command; said at the
/// start of a run.
pub fn replaced() -> Option<String> {
    let finding = unix_paths();
    (finding.state != ProbeState::Present).then_some(finding.detail)
}

/// Calls that nothing replaces, made on ourselves.
fn calls() -> ProbeRow {
    let value = [0x6f_u8, 0x67];
    let mut copy = [0_u8; 2];
    let address = value.as_ptr().expose_provenance() as u64;
    let tried = [
        (
            "process_vm_readv",
            "what the command asks for cannot be read",
            outgate_sys::memory::copy(std::process::id(), address, &mut copy).map(drop),
        ),
        (
            "writing to /proc/self/mem",
            "the command cannot be told what links say",
            own_memory(),
        ),
        (
            "close_range",
            "descriptors of others cannot be kept from the command (Linux 5.11)",
            outgate_sys::descriptor::close_on_exec_from(u32::MAX),
        ),
        (
            "timer_create",
            "the command could make the launcher wait",
            CallAlarm::new(crate::limits::WAIT_MAX).map(drop),
        ),
        (
            "signalfd4",
            "signals cannot be passed on to the command",
            SignalFd::new(&SigSet::empty())
                .map(drop)
                .map_err(Into::into),
        ),
        (
            "prlimit64",
            "the gateway cannot be confined",
            own_limit().map_err(Into::into),
        ),
    ];
    let lacking = tried
        .into_iter()
        .find_map(|(name, effect, result)| Some((name, effect, result.err()?)));
    let (state, detail) = match lacking {
        None => (
            ProbeState::Present,
            "every call that a run cannot do without is there".to_owned(),
        ),
        Some((name, effect, error)) => (
            ProbeState::Missing,
            format!(
                "{name} is refused ({error}), by the kernel or by a container's profile: {effect}"
            ),
        ),
    };
    ProbeRow {
        name: "system calls",
        state,
        detail,
    }
}

/// Writes a byte of ours as it is written to the command's memory.
fn own_memory() -> std::io::Result<()> {
    let mut byte = [0_u8];
    let address = byte.as_mut_ptr().expose_provenance() as u64;
    Memory::of(std::process::id())?.write(address, &[1])
}

/// Sets a limit of ours to what it is.
fn own_limit() -> nix::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, soft, hard)
}

fn proc() -> ProbeRow {
    let (state, detail) = match std::fs::read_link("/proc/self/exe") {
        Ok(_) => (
            ProbeState::Present,
            "mounted, as the launcher needs it".to_owned(),
        ),
        Err(error) => (
            ProbeState::Missing,
            format!("/proc is not mounted here ({error}): mount it, as `mount -t proc proc /proc`"),
        ),
    };
    ProbeRow {
        name: "/proc",
        state,
        detail,
    }
}

/// openat2(2), with which paths of the command are resolved as it would.
fn unix_paths() -> ProbeRow {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    let (state, detail) = match openat2(AT_FDCWD, "/", how) {
        Ok(_) => (
            ProbeState::Present,
            "Unix sockets by path are judged and connected to, links and attributes are read"
                .to_owned(),
        ),
        Err(error) => (
            ProbeState::Replaced,
            format!(
                "openat2 is refused ({error}), by the kernel or by a container's profile: Unix \
                 sockets by path are refused, those of the command's own too, and so are \
                 changed attributes and what links say"
            ),
        ),
    };
    ProbeRow {
        name: "Unix sockets",
        state,
        detail,
    }
}

fn landlock() -> ProbeRow {
    let abi = landlock_abi();
    let required = crate::ruleset::ABI_REQUIRED;
    let (state, detail) = if abi >= required {
        (
            ProbeState::Present,
            format!(
                "ABI {abi}: files, TCP, abstract sockets and signals; other Unix sockets are held \
                 by the filter"
            ),
        )
    } else if abi == 0 {
        (
            ProbeState::Missing,
            format!(
                "not enabled: boot with `lsm=landlock,...` on Linux 6.12 or newer (ABI {required})"
            ),
        )
    } else {
        (
            ProbeState::Missing,
            format!(
                "ABI {abi} lacks scopes for sockets and signals: ABI {required} (Linux 6.12) is needed"
            ),
        )
    };
    ProbeRow {
        name: "Landlock",
        state,
        detail,
    }
}

fn notifications() -> ProbeRow {
    let (state, detail) = match outgate_sys::seccomp::action_is_available(USER_NOTIFICATION) {
        Ok(()) if seccomp_mode() == Some(2) => (
            ProbeState::Present,
            "calls can be held; another filter is active here, and one that holds calls itself \
             makes outgate refuse (nested supervisors)"
                .to_owned(),
        ),
        Ok(()) => (
            ProbeState::Present,
            "calls are held and answered in place of the kernel".to_owned(),
        ),
        Err(error) => (
            ProbeState::Missing,
            format!("seccomp user notification: {error}"),
        ),
    };
    ProbeRow {
        name: "seccomp",
        state,
        detail,
    }
}

fn seccomp_mode() -> Option<u8> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"))?;
    line.trim().parse().ok()
}

fn duplicates() -> ProbeRow {
    let copied = match outgate_sys::pidfd::open(std::process::id()) {
        Ok(pidfd) => outgate_sys::pidfd::duplicate(pidfd.as_fd(), 0)
            .map(drop)
            .map_err(|error| format!("pidfd_getfd is refused ({error})")),
        Err(error) => Err(format!("pidfd_open is refused ({error})")),
    };
    let (state, detail) = match copied {
        Ok(()) => (
            ProbeState::Present,
            "sockets of the command are connected as they are".to_owned(),
        ),
        Err(reason) => (
            ProbeState::Replaced,
            format!(
                "{reason}: sockets are replaced at connect; programs that poll first, servers and \
                 Unix sockets will not work"
            ),
        ),
    };
    ProbeRow {
        name: "sockets",
        state,
        detail,
    }
}

fn namespaces() -> ProbeRow {
    // Settings do not tell everything: whether it works is tried.
    let (state, detail) = match user_namespaces().and_then(|()| crate::sealed::attempt()) {
        Ok(()) => (
            ProbeState::Present,
            "datagram sockets live sealed in a namespace of their own; every resolver works"
                .to_owned(),
        ),
        Err(reason) => (
            ProbeState::Replaced,
            format!(
                "{reason}: datagram sockets are refused; resolv.conf and hosts are substituted, \
                 and names resolve over TCP"
            ),
        ),
    };
    ProbeRow {
        name: "namespaces",
        state,
        detail,
    }
}

fn yama() -> ProbeRow {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .ok()
        .and_then(|text| text.trim().parse::<u8>().ok())
        .unwrap_or(0);
    let (state, detail) = match scope {
        0 => (
            ProbeState::Present,
            "no further limit on tracing".to_owned(),
        ),
        1 => (
            ProbeState::Present,
            "ptrace_scope 1: the launcher is the command's ancestor, which is enough".to_owned(),
        ),
        _ => (
            ProbeState::Missing,
            format!(
                "ptrace_scope {scope} forbids reading a held call: set kernel.yama.ptrace_scope to 1"
            ),
        ),
    };
    ProbeRow {
        name: "Yama",
        state,
        detail,
    }
}
