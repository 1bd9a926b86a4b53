//! Policy and options become what the child does: everything allocated, every
//! path chosen and opened, before the clone.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use outgate_policy::{Limits, Policy};
use outgate_sys::seccomp::SockFilter;
use outgate_sys::spawn::{Capabilities, Plan, ProcessGroup, ResourceLimit, SignalMask};

use crate::environment::Variables;
use crate::filter::{Arch, FilterError, FilterOptions, Opens, program};
use crate::lifetime::GRACE;
use crate::ruleset::{self, LandlockError, LandlockRules, Reach};

/// Why no plan can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The ruleset cannot be built.
    #[error(transparent)]
    Ruleset(#[from] LandlockError),
    /// The filter cannot be built.
    #[error("the filter cannot be built for this machine")]
    Filter(#[from] FilterError),
    /// A string holds a NUL byte: the caller's fault.
    #[error("{what} holds a NUL byte")]
    Nul {
        /// Which string.
        what: &'static str,
    },
}

/// What to run and where.
#[derive(Debug)]
pub struct Command {
    /// Program and arguments.
    pub arguments: Vec<OsString>,
    /// The environment it gets.
    pub variables: Variables,
    /// The mask it starts with.
    pub mask: SignalMask,
    /// The working directory, as the policy names it.
    pub directory: String,
    /// The run's private directory, for the cleaner.
    pub private_directory: PathBuf,
    /// What tells it from another at its place.
    pub private_identity: String,
    /// Whether opens are held for substitution.
    pub opens: Opens,
}

/// Builds the plan, and says what the command may reach.
///
/// # Errors
/// See [`PlanError`].
pub fn build(policy: &Policy, command: &Command) -> Result<(Plan, Reach), PlanError> {
    let LandlockRules { ruleset, reach } =
        ruleset::build(policy, &command.directory, &command.private_directory)?;
    let options = FilterOptions {
        opens: command.opens,
    };
    let filter = program(Arch::native(), &options)?
        .iter()
        .map(|instruction| SockFilter {
            code: instruction.code,
            jt: instruction.jt,
            jf: instruction.jf,
            k: instruction.k,
        })
        .collect();
    let strings = |what, list: &[OsString]| {
        list.iter()
            .map(|text| CString::new(text.as_bytes()).map_err(|_| PlanError::Nul { what }))
            .collect::<Result<Vec<_>, _>>()
    };
    let environment: Vec<OsString> = command
        .variables
        .iter()
        .map(|(name, value)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            pair
        })
        .collect();
    let plan = Plan {
        mask: command.mask,
        limits: limits(policy.limits()),
        group: process_group(),
        drop_capabilities: capabilities(),
        ruleset,
        filter,
        programs: strings("the command", &candidates(command))?,
        arguments: strings("an argument", &command.arguments)?,
        environment: strings("a variable", &environment)?,
        cleaner: cleaner(&command.private_directory, &command.private_identity),
        directory: CString::new(command.private_directory.as_os_str().as_bytes()).ok(),
        wall_time: policy.limits().wall_time,
        grace: GRACE,
    };
    Ok((plan, reach))
}

/// A group of its own where no terminal has groups for jobs: there nobody moves a command
/// between foreground and background.
fn process_group() -> ProcessGroup {
    match std::fs::File::open("/dev/tty") {
        Ok(_) => ProcessGroup::Callers,
        Err(_) => ProcessGroup::Own,
    }
}

/// Paths to try, as execvp(3) does: an empty name is nowhere.
fn candidates(command: &Command) -> Vec<OsString> {
    let Some(program) = command.arguments.first() else {
        return Vec::new();
    };
    if program.is_empty() || program.as_bytes().contains(&b'/') {
        return vec![program.clone()];
    }
    let path = command.variables.get(OsStr::new("PATH"));
    let path = path.map_or(
        OsStr::new("/usr/local/bin:/usr/bin:/bin"),
        OsString::as_os_str,
    );
    std::env::split_paths(path)
        .map(|directory| {
            let directory = if directory.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                directory
            };
            directory.join(program).into_os_string()
        })
        .collect()
}

/// What removes the private directory when the launcher was killed: outgate
/// itself, by its own inode.
fn cleaner(private_directory: &Path, identity: &str) -> Vec<CString> {
    if private_directory.as_os_str().is_empty() {
        return Vec::new();
    }
    let parts = [
        // The inode that runs, whatever its name leads to by then.
        OsString::from("/proc/self/exe"),
        OsString::from("outgate"),
        OsString::from(crate::private::SWEEP),
        private_directory.as_os_str().to_owned(),
        OsString::from(identity),
    ];
    parts
        .into_iter()
        .filter_map(|part| CString::new(part.into_vec()).ok())
        .collect()
}

fn capabilities() -> Capabilities {
    match outgate_sys::process::has_capabilities() {
        Ok(false) => Capabilities::Absent,
        _ => Capabilities::Drop,
    }
}

/// Limits that hold by default and those the policy sets; never above what the
/// caller itself may have.
fn limits(limits: &Limits) -> Vec<ResourceLimit> {
    let wanted = [
        (
            Resource::RLIMIT_NPROC,
            Some(limits.processes.unwrap_or(Limits::PROCESSES_DEFAULT)),
        ),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (
            Resource::RLIMIT_FSIZE,
            Some(limits.file_size_bytes.unwrap_or(Limits::FILE_SIZE_DEFAULT)),
        ),
        (Resource::RLIMIT_CORE, Some(0)),
        (Resource::RLIMIT_DATA, limits.memory_bytes),
        // Who supervises the command goes before it.
        (Resource::RLIMIT_RTPRIO, Some(0)),
        (Resource::RLIMIT_NICE, Some(0)),
    ];
    let fixed = wanted.into_iter().filter_map(|(resource, value)| {
        let value = value?;
        let (_, hard) = getrlimit(resource).ok()?;
        let value = value.min(hard);
        Some(limit(resource, value, value))
    });
    let half = |(resource, least)| {
        if resource == Resource::RLIMIT_NOFILE && limits.open_files.is_some() {
            return None;
        }
        let (soft, hard) = getrlimit(resource).ok()?;
        let hard = half(hard, least);
        Some(limit(resource, soft.min(hard), hard))
    };
    COUNTED.into_iter().filter_map(half).chain(fixed).collect()
}

/// What the kernel counts for all processes of a user together, against the limit of
/// the one that wants more: timers and queued signals, and descriptors on their way
/// through Unix sockets. Of each the command gets half, so that the user's other
/// programs, outgate among them, find the rest; but not less than programs need,
/// where there is so much at all.
const COUNTED: [(Resource, u64); 2] = [
    (Resource::RLIMIT_SIGPENDING, 1024),
    (Resource::RLIMIT_NOFILE, 4096),
];

/// Half of a limit, or what is needed `least`, but not more than the limit.
fn half(limit: u64, least: u64) -> u64 {
    (limit / 2).max(limit.min(least))
}

fn limit(resource: Resource, soft: u64, hard: u64) -> ResourceLimit {
    ResourceLimit {
        resource: resource as u32,
        soft,
        hard,
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_stays_for_others_where_there_is_enough() {
        for (limit, least, given) in [
            (1 << 20, 4096, 1 << 19),
            (9000, 4096, 4500),
            (8000, 4096, 4096),
            (1024, 4096, 1024),
            (0, 4096, 0),
            (u64::MAX, 1024, u64::MAX / 2),
        ] {
            assert_eq!(half(limit, least), given, "{limit}");
        }
    }
}
