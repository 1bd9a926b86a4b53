//! Starts the command: clones a guardian, and from it the command, without
//! copying memory, and runs a prepared list of steps before exec.
//!
//! Three processes share this module:
//! - the *launcher*, which stays and supervises;
//! - the *guardian*, its child: sub-reaper of the command's tree. It reports how
//!   the command fares and keeps its wall time, and when the launcher's first thread dies,
//!   whatever the others wait for, it kills the tree and starts the cleaner. It lives in a
//!   scope for signals of its own (Landlock), of which the tree is all the rest: one call
//!   reaches every process of it and no other. It shares the launcher's memory (`CLONE_VM`), so it costs
//!   no page tables, and uses raw system calls on its own stack only: no
//!   allocation, no lock, no `errno`, no panic;
//! - the *child*, which confines itself and becomes the command (`CLONE_VFORK`).
//!   Between clone and exec the same rules hold for it.
//!
//! The guardian is what makes SIGKILL of the launcher leave nothing behind: no
//! unprivileged kernel mechanism kills a tree when its supervisor dies.

mod child;
mod clock;
mod guardian;
mod scope;

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use crate::raw::{call, int};
use crate::seccomp::SockFilter;
use crate::{SysError, check, last_error};

/// Bytes of stack for the guardian and for the child. Both run straight-line
/// code with small frames.
const STACK_BYTES: usize = 64 * 1024;

/// A resource limit to set in the child (setrlimit(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimit {
    /// `RLIMIT_*`.
    pub resource: u32,
    /// The limit in force, in the resource's unit.
    pub soft: u64,
    /// What the command may raise that to.
    pub hard: u64,
}

/// What the child does, as data: every string allocated, every path chosen.
#[derive(Debug)]
pub struct Plan {
    /// Signal mask of the command.
    pub mask: SignalMask,
    /// Limits, in order.
    pub limits: Vec<ResourceLimit>,
    /// The process group of the command.
    pub group: ProcessGroup,
    /// Empties all capability sets first; for callers that hold any.
    pub drop_capabilities: Capabilities,
    /// The Landlock ruleset to enforce.
    pub ruleset: OwnedFd,
    /// The filter to install with a listener.
    pub filter: Vec<SockFilter>,
    /// Paths to try in order.
    pub programs: Vec<CString>,
    /// `argv`.
    pub arguments: Vec<CString>,
    /// `envp`.
    pub environment: Vec<CString>,
    /// What the guardian executes after the launcher died and the tree is gone:
    /// path first, then its `argv`. Empty: nothing.
    pub cleaner: Vec<CString>,
    /// The directory the guardian removes when the tree is gone, if it is empty
    /// then; what is left is the launcher's or the cleaner's to remove.
    pub directory: Option<CString>,
    /// How long the tree may run before the guardian asks it to end.
    pub wall_time: Option<Duration>,
    /// How long it may take to end when it was asked, before it is killed.
    pub grace: Duration,
}

/// The process group that the command begins in (setpgid(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The caller's: a terminal, which knows groups alone, takes both for one job.
    Callers,
    /// One of its own: the kernel hangs up a group that becomes orphaned with a stopped member,
    /// and of the command's processes none is to bring that upon who started the run.
    Own,
}

/// What happens to the caller's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capabilities {
    /// The caller has none.
    Absent,
    /// All are dropped, from the bounding set too.
    Drop,
}

/// A signal mask as the kernel takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalMask(pub u64);

/// The running command.
#[derive(Debug)]
pub struct Started {
    /// Where held calls arrive.
    pub listener: OwnedFd,
    /// Where [`GuardianReport`]s arrive, [`REPORT_BYTES`] each.
    pub reports: OwnedFd,
    /// Process id of the guardian.
    pub guardian: i32,
    /// Process id of the command.
    pub command: i32,
}

/// Bytes of one report.
pub const REPORT_BYTES: usize = 8;

/// A change in the command's state, seen by the guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardianReport {
    /// The status word of wait(2).
    status: i32,
}

/// What a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// The command ended with an exit status.
    Exited(u8),
    /// A signal ended it, real-time ones included.
    Killed(u8),
    /// It stopped.
    Stopped,
    /// It goes on.
    Continued,
}

impl GuardianReport {
    /// Reads a report the guardian wrote.
    pub fn from_bytes(bytes: [u8; REPORT_BYTES]) -> Self {
        let [_, _, _, _, a, b, c, d] = bytes;
        Self {
            status: i32::from_ne_bytes([a, b, c, d]),
        }
    }

    /// What it says. A status word of no known form counts as an end by SIGKILL.
    pub fn change(self) -> StateChange {
        let status = self.status;
        if libc::WIFEXITED(status) {
            StateChange::Exited(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
        } else if libc::WIFSTOPPED(status) {
            StateChange::Stopped
        } else if libc::WIFCONTINUED(status) {
            StateChange::Continued
        } else {
            let signal = u8::try_from(libc::WTERMSIG(status)).ok();
            StateChange::Killed(signal.filter(|signal| *signal > 0).unwrap_or(9))
        }
    }
}

/// What the guardian is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardianOrder {
    /// To ask every process of the tree to end, and to kill them when the grace is
    /// over. Said twice it is as said once.
    Ask,
    /// To kill every process of the tree.
    Kill,
}

/// Tells the guardian of a run something. It must not have been waited for yet.
pub fn order(guardian: i32, order: GuardianOrder) {
    let signal = match order {
        GuardianOrder::Ask => guardian::ASK,
        GuardianOrder::Kill => guardian::KILL,
    };
    if guardian > 1 {
        // SAFETY: plain integers. A child of ours, whose number is its own.
        unsafe { libc::kill(guardian, signal) };
    }
}

/// The step at which the child stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStep {
    /// Nothing went wrong.
    None,
    /// Clone of the guardian or of the child.
    Clone,
    /// Parent-death signal.
    ParentDeath,
    /// A process group of its own.
    Group,
    /// A resource limit.
    Limit,
    /// Capabilities.
    Capabilities,
    /// `no_new_privs`.
    NoNewPrivileges,
    /// `landlock_restrict_self(2)`.
    Landlock,
    /// `seccomp(2)` with a listener.
    Filter,
    /// `execve(2)`.
    Execute,
}

/// Every step at its own number, which is how the child names it.
const STEPS: [ChildStep; 10] = [
    ChildStep::None,
    ChildStep::Clone,
    ChildStep::ParentDeath,
    ChildStep::Group,
    ChildStep::Limit,
    ChildStep::Capabilities,
    ChildStep::NoNewPrivileges,
    ChildStep::Landlock,
    ChildStep::Filter,
    ChildStep::Execute,
];

/// Why the command did not start.
#[derive(Debug)]
pub struct StartError {
    /// Where.
    pub step: ChildStep,
    /// Why.
    pub error: SysError,
}

/// What a write to a closed pipe does to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipeSignal {
    /// It gets SIGPIPE.
    Default,
    /// Nothing: the caller of outgate ignored the signal.
    Ignored,
}

/// Whether SIGPIPE was ignored when the program began; Rust's start-up code
/// overwrites it before `main`.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn remember_pipe_signal() {
    // SAFETY: all-zero bytes are a valid value of this plain struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only reads the old one into a live struct.
    let result = unsafe { libc::sigaction(libc::SIGPIPE, null(), &raw mut action) };
    let ignored = result == 0 && action.sa_sigaction == libc::SIG_IGN;
    PIPE_WAS_IGNORED.store(ignored, Ordering::Relaxed);
}

// SAFETY: the loader calls the functions in this section once, before `main`;
// this one only asks for a signal's action.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_PIPE_SIGNAL: extern "C" fn() = remember_pipe_signal;

fn caller_pipe_signal() -> PipeSignal {
    if PIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        PipeSignal::Ignored
    } else {
        PipeSignal::Default
    }
}

/// Everything guardian and child need, in shared memory that is never freed.
struct SharedMemory {
    launcher: i32,
    guardian: AtomicI32,
    mask: u64,
    pipe: PipeSignal,
    group: ProcessGroup,
    drop_capabilities: bool,
    scope: RawFd,
    ruleset: RawFd,
    reports: RawFd,
    limits: Vec<ResourceLimit>,
    filter: Vec<SockFilter>,
    programs: Vec<*const libc::c_char>,
    arguments: Vec<*const libc::c_char>,
    shell_arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    cleaner: Vec<*const libc::c_char>,
    directory: *const libc::c_char,
    wall_time: Option<Duration>,
    grace: Duration,
    child_stack: *mut libc::c_void,
    listener: AtomicI32,
    command: AtomicI32,
    step: AtomicI32,
    errno: AtomicI32,
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let mut list: Vec<_> = strings.iter().map(|s| s.as_ptr()).collect();
    list.push(null());
    list
}

/// A new stack; returns its top. Never unmapped: its user may outlive us.
fn stack() -> Result<*mut libc::c_void, SysError> {
    // SAFETY: an anonymous private mapping at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(
            null_mut(),
            STACK_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(last_error());
    }
    Ok(base.wrapping_byte_add(STACK_BYTES))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SysError> {
    let mut ends: [RawFd; 2] = [-1, -1];
    // SAFETY: the array is live and holds two descriptors.
    let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    check(result.into())?;
    let [read, write] = ends;
    // SAFETY: the kernel just gave us this descriptor.
    let read = unsafe { OwnedFd::from_raw_fd(read) };
    // SAFETY: the kernel just gave us this descriptor.
    let write = unsafe { OwnedFd::from_raw_fd(write) };
    Ok((read, write))
}

/// Starts the command as `plan` says.
///
/// The guardian learns when the calling thread dies: it must be the one that serves the end
/// of the run. Others must do nothing but wait meanwhile, since the descriptors are the
/// child's too until it executes.
///
/// # Errors
/// [`StartError`] names the step and its errno; nothing runs then.
pub fn start(plan: Plan) -> Result<Started, StartError> {
    let failed = |error| StartError {
        step: ChildStep::Clone,
        error,
    };
    let (reports, reports_write) = pipe().map_err(failed)?;
    // A command that changes its state faster than we read must not make the
    // guardian wait.
    // SAFETY: sets a status flag of our own end of the pipe.
    unsafe { libc::fcntl(reports_write.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    let scope = crate::landlock::signal_scope().map_err(|error| StartError {
        step: ChildStep::Landlock,
        error,
    })?;
    let guardian_stack = stack().map_err(failed)?;
    let child_stack = stack().map_err(failed)?;
    let mut shell_arguments = vec![c"sh".as_ptr()];
    shell_arguments.push(plan.programs.first().map_or(null(), |p| p.as_ptr()));
    shell_arguments.extend(plan.arguments.iter().skip(1).map(|a| a.as_ptr()));
    shell_arguments.push(null());
    let shared = SharedMemory {
        launcher: i32::try_from(std::process::id()).unwrap_or(-1),
        guardian: AtomicI32::new(-1),
        mask: plan.mask.0,
        pipe: caller_pipe_signal(),
        group: plan.group,
        drop_capabilities: plan.drop_capabilities == Capabilities::Drop,
        scope: scope.as_raw_fd(),
        ruleset: plan.ruleset.as_raw_fd(),
        reports: reports_write.as_raw_fd(),
        programs: pointers(&plan.programs),
        arguments: pointers(&plan.arguments),
        shell_arguments,
        environment: pointers(&plan.environment),
        cleaner: pointers(&plan.cleaner),
        directory: plan.directory.as_ref().map_or(null(), |path| path.as_ptr()),
        wall_time: plan.wall_time,
        grace: plan.grace,
        limits: plan.limits.clone(),
        filter: plan.filter.clone(),
        child_stack,
        listener: AtomicI32::new(-1),
        command: AtomicI32::new(-1),
        step: AtomicI32::new(0),
        errno: AtomicI32::new(0),
    };
    // The guardian reads both for as long as it lives, which may be longer than
    // we do: they are never freed.
    let shared: &'static SharedMemory = Box::leak(Box::new(shared));
    let plan: &'static Plan = Box::leak(Box::new(plan));
    // SAFETY: the stack is fresh and large enough, `shared` lives for ever, and
    // `guardian` keeps the rules of this module.
    let guardian = unsafe {
        libc::clone(
            guardian::guardian,
            guardian_stack,
            libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD,
            std::ptr::from_ref(shared).cast_mut().cast(),
        )
    };
    check(guardian.into()).map_err(failed)?;
    let started = wait_for_start(&reports, shared);
    drop((reports_write, scope));
    // Ours alone again: the guardian has its own table by now or is gone.
    // SAFETY: nothing uses the ruleset after the child enforced it; the plan is
    // leaked, so its `OwnedFd` never closes this number a second time.
    unsafe { libc::close(plan.ruleset.as_raw_fd()) };
    if !started {
        // SAFETY: waits for a child of ours; no memory is passed.
        unsafe { libc::waitpid(guardian, null_mut(), 0) };
        return Err(start_error(shared));
    }
    // The supervisor polls from here on and must never wait in a read.
    // SAFETY: sets a status flag of our own end of the pipe.
    unsafe { libc::fcntl(reports.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    // SAFETY: seccomp(2) put this descriptor into the table we share with the
    // child; the child closed its copy on exec and the guardian its own.
    let listener = unsafe { OwnedFd::from_raw_fd(shared.listener.load(Ordering::Acquire)) };
    Ok(Started {
        listener,
        reports,
        guardian,
        command: shared.command.load(Ordering::Acquire),
    })
}

fn start_error(shared: &SharedMemory) -> StartError {
    let step = usize::try_from(shared.step.load(Ordering::Acquire)).unwrap_or(0);
    let listener = shared.listener.load(Ordering::Acquire);
    if listener >= 0 {
        // SAFETY: the child that made it is gone and nobody else owns it.
        unsafe { libc::close(listener) };
    }
    StartError {
        step: STEPS.get(step).copied().unwrap_or(ChildStep::Clone),
        error: SysError::from_raw_os_error(shared.errno.load(Ordering::Acquire)),
    }
}

/// Waits for the guardian's first report: status 0 after exec, 1 before.
fn wait_for_start(reports: &OwnedFd, shared: &SharedMemory) -> bool {
    let mut bytes = [0_u8; REPORT_BYTES];
    loop {
        // SAFETY: the buffer is live and as long as said.
        let count =
            unsafe { libc::read(reports.as_raw_fd(), bytes.as_mut_ptr().cast(), REPORT_BYTES) };
        if count == 8 {
            return GuardianReport::from_bytes(bytes).status == 0
                && shared.listener.load(Ordering::Acquire) >= 0;
        }
        if count >= 0 || last_error().raw_os_error() != Some(libc::EINTR) {
            return false;
        }
    }
}

/// A raw call in guardian or child.
fn sys(number: libc::c_long, arguments: [usize; 6]) -> isize {
    // SAFETY: every caller below passes integers, or pointers into `Shared` or
    // its own stack frame, of the shape the call takes.
    unsafe { call(number, arguments) }
}

/// The address of a value, exposed: the kernel reads or writes through it.
fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value).expose_provenance()
}

fn prctl(option: i32, value: usize) -> isize {
    sys(libc::SYS_prctl, [int(option), value, 0, 0, 0, 0])
}
