//! The gateway confines itself before it reads a byte from anybody: no file
//! but its record and the random devices, no new program, no other process's
//! memory, no power of root (landlock(7), seccomp(2), capabilities(7)). What the
//! kernel cannot do is an error, not a gap.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

use crate::limits;

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
pub enum Serves {
    /// One launcher.
    One,
    /// Whoever connects.
    Many,
}

/// Confines this process for good; it must have no other thread yet. `records`
/// is the one directory in which it may make, write and remove files.
///
/// # Errors
/// The kernel refuses a step; the process must not serve then.
pub fn confine(records: Option<&Path>, serves: Serves) -> Result<(), ConfineError> {
    prctl::set_dumpable(false)?;
    prctl::set_no_new_privs()?;
    hold_terminal_signals()?;
    raise_open_files(serves)?;
    drop_capabilities()?;
    restrict_files(records)?;
    restrict_calls()
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
    ] {
        signals.add(signal);
    }
    Ok(signals.thread_block()?)
}

/// As many descriptors as the user may have, up to what all flows need.
fn raise_open_files(serves: Serves) -> Result<(), ConfineError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = match serves {
        Serves::One => limits::DESCRIPTORS_WANTED,
        Serves::Many => limits::SHARED_DESCRIPTORS_WANTED,
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

fn restrict_files(records: Option<&Path>) -> Result<(), ConfineError> {
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
        Some(directory) => {
            let directory = PathFd::new(directory).map_err(|error| failed(&error))?;
            let rights =
                AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::RemoveFile;
            created
                .add_rule(PathBeneath::new(directory, rights))
                .map_err(|error| failed(&error))?
        }
    };
    created.restrict_self().map_err(|error| failed(&error))?;
    Ok(())
}

/// Calls that no part of the gateway makes and that an intruder would want.
const REFUSED_CALLS: [libc::c_long; 42] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_memfd_create,
    libc::SYS_kexec_load,
    libc::SYS_acct,
    libc::SYS_personality,
];

fn restrict_calls() -> Result<(), ConfineError> {
    let failed = |error: &dyn std::fmt::Display| ConfineError::Seccomp(error.to_string());
    let rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED_CALLS
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect();
    let arch: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|error| failed(&error))?;
    let denied = u32::try_from(libc::EPERM).unwrap_or(1);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(denied),
        arch,
    )
    .map_err(|error| failed(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}
