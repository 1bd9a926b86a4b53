//! The gateway confines itself before it reads a byte from anybody: no file
//! but its record and the random devices, no system call but those it needs
//! (`calls`), no power of root (landlock(7), seccomp(2), capabilities(7)). What the
//! kernel cannot do is an error, not a gap.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::config::RecordDirectory;
use crate::limits;

mod calls;

/// The step that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// prctl(2) or sigprocmask(2).
    #[error("process settings")]
    Process(#[from] nix::Error),
    /// landlock(7).
    #[error("landlock: {0}")]
    Landlock(String),
    /// seccomp(2).
    #[error("seccomp: {0}")]
    Seccomp(String),
}

/// How many a gateway serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedRuns {
    /// One launcher.
    One,
    /// Whoever connects.
    Many,
}

/// Confines this process for good; it must have no other thread yet. `records`
/// is the one directory in which it may make, write and remove files; what is there it
/// reads only where it has to.
///
/// # Errors
/// The kernel refuses a step; the process must not serve then.
pub fn confine(records: Option<&RecordDirectory>, serves: ServedRuns) -> Result<(), ConfineError> {
    prctl::set_dumpable(false)?;
    prctl::set_no_new_privs()?;
    hold_terminal_signals()?;
    raise_open_files(serves)?;
    drop_capabilities()?;
    restrict_files(records)?;
    calls::restrict()
}

/// Gives up what root may do more than others, but for opening files by their
/// names: records and granted sockets may be another user's, on whose behalf
/// root runs a command.
fn drop_capabilities() -> Result<(), ConfineError> {
    let errno = |error: rustix::io::Errno| nix::Error::from_raw(error.raw_os_error());
    let own = capabilities(None).map_err(errno)?;
    let kept = CapabilitySets {
        effective: own.effective & CapabilitySet::DAC_OVERRIDE,
        permitted: own.permitted & CapabilitySet::DAC_OVERRIDE,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, kept).map_err(errno)?)
}

/// Keeps other processes of the user from this one's memory, for good, and
/// terminal signals of the command's from ending it.
pub(crate) fn hide() -> Result<(), ConfineError> {
    prctl::set_dumpable(false)?;
    hold_terminal_signals()
}

/// Ends with the launcher, even if the launcher cannot say so anymore.
///
/// # Errors
/// The kernel refuses it.
pub fn end_with_parent() -> Result<(), ConfineError> {
    Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
}

/// A key press that stops the command must not stop the gateway before it:
/// the end of the control connection ends it.
fn hold_terminal_signals() -> Result<(), ConfineError> {
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGHUP,
        Signal::SIGTERM,
        Signal::SIGTSTP,
        Signal::SIGTTIN,
        Signal::SIGTTOU,
        Signal::SIGPIPE,
        // A record over the limit of files is an error like a full disk.
        Signal::SIGXFSZ,
    ] {
        signals.add(signal);
    }
    Ok(signals.thread_block()?)
}

/// As many descriptors as the user may have, up to what all flows need.
fn raise_open_files(serves: ServedRuns) -> Result<(), ConfineError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = match serves {
        ServedRuns::One => limits::DESCRIPTORS_WANTED,
        ServedRuns::Many => limits::SHARED_DESCRIPTORS_WANTED,
    };
    let wanted = wanted.min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    }
    Ok(())
}

/// How many files this process may have open.
pub(crate) fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft)
}

/// How many flows this process has descriptors for.
pub(crate) fn flows_possible() -> usize {
    let soft = open_files();
    let spare = soft.saturating_sub(limits::DESCRIPTORS_RESERVED) / limits::DESCRIPTORS_PER_FLOW;
    usize::try_from(spare)
        .unwrap_or(limits::FLOWS_MAX)
        .clamp(1, limits::FLOWS_MAX)
}

fn restrict_files(records: Option<&RecordDirectory>) -> Result<(), ConfineError> {
    let failed = |error: &dyn std::fmt::Display| ConfineError::Landlock(error.to_string());
    // KERNEL: ABI 6 is Linux 6.12. No right to connect is handled: connecting
    // is what this process is for.
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::BindTcp))
        .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    // Statically linked, the random numbers of DNS queries come from a file.
    let created = ["/dev/random", "/dev/urandom"]
        .into_iter()
        .filter_map(|device| PathFd::new(device).ok())
        .try_fold(created, |created, device| {
            created.add_rule(PathBeneath::new(device, AccessFs::ReadFile))
        })
        .map_err(|error| failed(&error))?;
    let created = match records {
        None => created,
        Some(records) => {
            let written =
                AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::RemoveFile;
            let (path, rights) = match records {
                RecordDirectory::Written(path) => (path, written),
                RecordDirectory::ReadBack(path) => (path, written | AccessFs::ReadFile),
            };
            let directory = PathFd::new(path).map_err(|error| failed(&error))?;
            created
                .add_rule(PathBeneath::new(directory, rights))
                .map_err(|error| failed(&error))?
        }
    };
    created.restrict_self().map_err(|error| failed(&error))?;
    Ok(())
}
