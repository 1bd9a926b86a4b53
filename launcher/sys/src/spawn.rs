//! Starts the command: clones a guardian, and from it the command, without
//! copying memory, and runs a prepared list of steps before exec.
//!
//! Three processes share this module:
//! - the *launcher*, which stays and supervises;
//! - the *guardian*, its child: sub-reaper of the command's tree. It reports how
//!   the command fares, and when the launcher dies it kills the tree and starts
//!   the cleaner. It shares the launcher's memory (`CLONE_VM`), so it costs no
//!   page tables, and uses raw system calls on its own stack only: no allocation,
//!   no lock, no `errno`, no panic;
//! - the *child*, which confines itself and becomes the command (`CLONE_VFORK`).
//!   Between clone and exec the same rules hold for it.
//!
//! The guardian is what makes SIGKILL of the launcher leave nothing behind: no
//! unprivileged kernel mechanism kills a tree when its supervisor dies.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::raw::{call, int};
use crate::seccomp::SockFilter;
use crate::{SysError, check, last_error};

/// Bytes of stack for the guardian and for the child. Both run straight-line
/// code with small frames.
const STACK_BYTES: usize = 64 * 1024;

/// Signal the guardian gets when the launcher dies.
const LAUNCHER_DIED: i32 = libc::SIGUSR2;

/// Last capability number tried when the bounding set is emptied; the kernel
/// refuses numbers it does not know.
const CAPABILITIES_MAX: usize = 63;

/// A resource limit to set in the child (setrlimit(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimit {
    /// `RLIMIT_*`.
    pub resource: u32,
    /// Soft and hard limit, in the resource's unit.
    pub value: u64,
}

/// What the child does, as data: every string allocated, every path chosen.
#[derive(Debug)]
pub struct Plan {
    /// Signal mask of the command.
    pub mask: SignalMask,
    /// Limits, in order.
    pub limits: Vec<ResourceLimit>,
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
    /// Where [`Report`]s arrive, [`REPORT_BYTES`] each.
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
pub struct Report {
    /// The status word of wait(2).
    pub status: i32,
}

impl Report {
    /// Reads a report the guardian wrote.
    pub fn from_bytes(bytes: [u8; REPORT_BYTES]) -> Self {
        let [_, _, _, _, a, b, c, d] = bytes;
        Self {
            status: i32::from_ne_bytes([a, b, c, d]),
        }
    }
}

/// The step at which the child stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing went wrong.
    None,
    /// Clone of the guardian or of the child.
    Clone,
    /// Parent-death signal.
    ParentDeath,
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

const STEPS: [Step; 9] = [
    Step::None,
    Step::Clone,
    Step::ParentDeath,
    Step::Limit,
    Step::Capabilities,
    Step::NoNewPrivileges,
    Step::Landlock,
    Step::Filter,
    Step::Execute,
];

/// Why the command did not start.
#[derive(Debug)]
pub struct StartError {
    /// Where.
    pub step: Step,
    /// Why.
    pub error: SysError,
}

/// Everything guardian and child need, in shared memory that is never freed.
struct Shared {
    launcher: i32,
    guardian: AtomicI32,
    mask: u64,
    drop_capabilities: bool,
    ruleset: RawFd,
    reports: RawFd,
    limits: Vec<ResourceLimit>,
    filter: Vec<SockFilter>,
    programs: Vec<*const libc::c_char>,
    arguments: Vec<*const libc::c_char>,
    shell_arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    cleaner: Vec<*const libc::c_char>,
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
/// Must be called while the process has one thread.
///
/// # Errors
/// [`StartError`] names the step and its errno; nothing runs then.
pub fn start(plan: Plan) -> Result<Started, StartError> {
    let failed = |error| StartError {
        step: Step::Clone,
        error,
    };
    let (reports, reports_write) = pipe().map_err(failed)?;
    let guardian_stack = stack().map_err(failed)?;
    let child_stack = stack().map_err(failed)?;
    let mut shell_arguments = vec![c"sh".as_ptr()];
    shell_arguments.push(plan.programs.first().map_or(null(), |p| p.as_ptr()));
    shell_arguments.extend(plan.arguments.iter().skip(1).map(|a| a.as_ptr()));
    shell_arguments.push(null());
    let shared = Shared {
        launcher: i32::try_from(std::process::id()).unwrap_or(-1),
        guardian: AtomicI32::new(-1),
        mask: plan.mask.0,
        drop_capabilities: plan.drop_capabilities == Capabilities::Drop,
        ruleset: plan.ruleset.as_raw_fd(),
        reports: reports_write.as_raw_fd(),
        programs: pointers(&plan.programs),
        arguments: pointers(&plan.arguments),
        shell_arguments,
        environment: pointers(&plan.environment),
        cleaner: pointers(&plan.cleaner),
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
    let shared: &'static Shared = Box::leak(Box::new(shared));
    let plan: &'static Plan = Box::leak(Box::new(plan));
    // SAFETY: the stack is fresh and large enough, `shared` lives for ever, and
    // `guardian` keeps the rules of this module.
    let guardian = unsafe {
        libc::clone(
            guardian,
            guardian_stack,
            libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD,
            std::ptr::from_ref(shared).cast_mut().cast(),
        )
    };
    check(guardian.into()).map_err(failed)?;
    let started = wait_for_start(&reports, shared);
    drop(reports_write);
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

fn start_error(shared: &Shared) -> StartError {
    let step = usize::try_from(shared.step.load(Ordering::Acquire)).unwrap_or(0);
    let listener = shared.listener.load(Ordering::Acquire);
    if listener >= 0 {
        // SAFETY: the child that made it is gone and nobody else owns it.
        unsafe { libc::close(listener) };
    }
    StartError {
        step: STEPS.get(step).copied().unwrap_or(Step::Clone),
        error: SysError::from_raw_os_error(shared.errno.load(Ordering::Acquire)),
    }
}

/// Waits for the guardian's first report: status 0 after exec, 1 before.
fn wait_for_start(reports: &OwnedFd, shared: &Shared) -> bool {
    let mut bytes = [0_u8; REPORT_BYTES];
    loop {
        // SAFETY: the buffer is live and as long as said.
        let count =
            unsafe { libc::read(reports.as_raw_fd(), bytes.as_mut_ptr().cast(), REPORT_BYTES) };
        if count == 8 {
            return Report::from_bytes(bytes).status == 0
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

fn report(shared: &Shared, pid: isize, status: i32) {
    let record = [i32::try_from(pid).unwrap_or(0), status];
    let descriptor = int(shared.reports);
    sys(
        libc::SYS_write,
        [descriptor, address(&record), REPORT_BYTES, 0, 0, 0],
    );
}

/// The signals the guardian waits for, as a mask.
const fn signal_bit(signal: i32) -> u64 {
    1_u64 << (signal.wrapping_sub(1) & 63)
}

extern "C" fn guardian(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that lives for ever.
    let shared = unsafe { &*argument.cast::<Shared>() };
    let all = u64::MAX;
    sys(
        libc::SYS_rt_sigprocmask,
        [int(libc::SIG_SETMASK), address(&all), 0, 8, 0, 0],
    );
    let own = i32::try_from(sys(libc::SYS_getpid, [0; 6])).unwrap_or(-1);
    shared.guardian.store(own, Ordering::Release);
    prctl(libc::PR_SET_PDEATHSIG, int(LAUNCHER_DIED));
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    prctl(
        libc::PR_SET_NAME,
        c"outgate-guard".as_ptr().expose_provenance(),
    );
    // SAFETY: the stack is fresh, `shared` lives for ever, `child` keeps the
    // rules of this module; with CLONE_VFORK we do not run until it is done.
    let command = unsafe {
        libc::clone(
            child,
            shared.child_stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD,
            argument,
        )
    };
    if command < 0 {
        shared.step.store(1, Ordering::Release);
        shared.errno.store(libc::EAGAIN, Ordering::Release);
    }
    shared.command.store(command, Ordering::Release);
    let failed = shared.errno.load(Ordering::Acquire) != 0;
    keep_only_reports(shared);
    report(shared, 0, i32::from(failed));
    if failed {
        return 1;
    }
    // A session of our own: jobs that the command leaves stopped become
    // orphaned process groups, as they would without us, and the kernel ends
    // them (setpgid(2)); and a terminal's signals do not reach us.
    sys(libc::SYS_setsid, [0; 6]);
    guard(shared);
    0
}

fn prctl(option: i32, value: usize) -> isize {
    sys(libc::SYS_prctl, [int(option), value, 0, 0, 0, 0])
}

/// Leaves the shared descriptor table with nothing but the report pipe.
fn keep_only_reports(shared: &Shared) {
    let keep = int(shared.reports);
    let unshare = usize::try_from(libc::CLOSE_RANGE_UNSHARE).unwrap_or(0);
    let last = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
    sys(
        libc::SYS_close_range,
        [keep.wrapping_add(1), last, unshare, 0, 0, 0],
    );
    sys(libc::SYS_close_range, [0, keep.wrapping_sub(1), 0, 0, 0, 0]);
}

/// Waits for children and for the launcher's death.
fn guard(shared: &Shared) {
    let wanted = signal_bit(libc::SIGCHLD) | signal_bit(LAUNCHER_DIED);
    loop {
        reap(shared);
        if sys(libc::SYS_getppid, [0; 6]) != isize::try_from(shared.launcher).unwrap_or(-1) {
            return end_tree(shared);
        }
        sys(libc::SYS_rt_sigtimedwait, [address(&wanted), 0, 0, 8, 0, 0]);
    }
}

/// Takes every state change that is there; reports those of the command.
fn reap(shared: &Shared) {
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    let command = isize::try_from(shared.command.load(Ordering::Acquire)).unwrap_or(-1);
    loop {
        let mut status = 0_i32;
        let slot = std::ptr::from_mut(&mut status).expose_provenance();
        let pid = sys(libc::SYS_wait4, [int(-1), slot, int(options), 0, 0, 0]);
        if pid <= 0 {
            return;
        }
        if pid == command {
            report(shared, pid, status);
        }
    }
}

/// Kills every descendant, as each becomes our child, then runs the cleaner.
fn end_tree(shared: &Shared) {
    loop {
        kill_children();
        let mut status = 0_i32;
        let slot = std::ptr::from_mut(&mut status).expose_provenance();
        let wall = i32::from_ne_bytes(0x4000_0000_u32.to_ne_bytes());
        if sys(libc::SYS_wait4, [int(-1), slot, int(wall), 0, 0, 0]) < 0 {
            break;
        }
    }
    if let Some(program) = shared.cleaner.first().filter(|p| !p.is_null()) {
        let arguments = shared.cleaner.as_ptr().wrapping_add(1).expose_provenance();
        let environment = [0_usize; 1];
        sys(
            libc::SYS_execve,
            [
                program.expose_provenance(),
                arguments,
                address(&environment),
                0,
                0,
                0,
            ],
        );
    }
}

/// Sends SIGKILL to every child listed in `/proc/thread-self/children`.
fn kill_children() {
    let path = c"/proc/thread-self/children".as_ptr().expose_provenance();
    let flags = int(libc::O_RDONLY | libc::O_CLOEXEC);
    let file = sys(
        libc::SYS_openat,
        [int(libc::AT_FDCWD), path, flags, 0, 0, 0],
    );
    if file < 0 {
        return;
    }
    let mut pid = 0_usize;
    loop {
        let mut byte = 0_u8;
        let slot = std::ptr::from_mut(&mut byte).expose_provenance();
        let count = sys(libc::SYS_read, [file.cast_unsigned(), slot, 1, 0, 0, 0]);
        if count == 1 && byte.is_ascii_digit() {
            pid = pid
                .wrapping_mul(10)
                .wrapping_add(usize::from(byte.wrapping_sub(b'0')));
            continue;
        }
        if pid > 1 {
            sys(libc::SYS_kill, [pid, int(libc::SIGKILL), 0, 0, 0, 0]);
        }
        pid = 0;
        if count <= 0 {
            break;
        }
    }
    sys(libc::SYS_close, [file.cast_unsigned(), 0, 0, 0, 0, 0]);
}

extern "C" fn child(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that lives for ever.
    let shared = unsafe { &*argument.cast::<Shared>() };
    let (step, errno) = match confine(shared) {
        Err((step, errno)) => (step, errno),
        Ok(()) => (8, execute(shared)),
    };
    shared.step.store(step, Ordering::Release);
    shared.errno.store(errno, Ordering::Release);
    127
}

fn outcome(step: i32, result: isize) -> Result<(), (i32, i32)> {
    if result < 0 {
        let errno = i32::try_from(result.wrapping_neg()).unwrap_or(libc::EINVAL);
        return Err((step, errno));
    }
    Ok(())
}

/// The prepared steps, in the order in which each is still possible.
fn confine(shared: &Shared) -> Result<(), (i32, i32)> {
    outcome(2, prctl(libc::PR_SET_PDEATHSIG, int(libc::SIGKILL)))?;
    // RACE: a guardian that died before the line above sends no signal.
    let parent = i32::try_from(sys(libc::SYS_getppid, [0; 6])).unwrap_or(-1);
    if parent != shared.guardian.load(Ordering::Acquire) {
        return Err((2, libc::ESRCH));
    }
    for limit in &shared.limits {
        let value = [limit.value, limit.value];
        let resource = usize::try_from(limit.resource).unwrap_or(usize::MAX);
        outcome(
            3,
            sys(libc::SYS_prlimit64, [0, resource, address(&value), 0, 0, 0]),
        )?;
    }
    if shared.drop_capabilities {
        drop_capabilities()?;
    }
    outcome(5, prctl(libc::PR_SET_NO_NEW_PRIVS, 1))?;
    let ruleset = int(shared.ruleset);
    outcome(
        6,
        sys(libc::SYS_landlock_restrict_self, [ruleset, 0, 0, 0, 0, 0]),
    )?;
    reset_signals(shared);
    let program = libc::sock_fprog {
        len: u16::try_from(shared.filter.len()).unwrap_or(0),
        filter: shared.filter.as_ptr().cast_mut().cast(),
    };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listener = sys(
        libc::SYS_seccomp,
        [
            usize::try_from(libc::SECCOMP_SET_MODE_FILTER).unwrap_or(0),
            usize::try_from(flags).unwrap_or(0),
            address(&program),
            0,
            0,
            0,
        ],
    );
    outcome(7, listener)?;
    let listener = i32::try_from(listener).unwrap_or(-1);
    shared.listener.store(listener, Ordering::Release);
    Ok(())
}

/// Empties the bounding, ambient, inheritable, permitted and effective sets
/// (capabilities(7)), so that exec gives none back, not even to root.
fn drop_capabilities() -> Result<(), (i32, i32)> {
    for capability in 0..=CAPABILITIES_MAX {
        let result = prctl(libc::PR_CAPBSET_DROP, capability);
        if result == int(libc::EINVAL).cast_signed().wrapping_neg() && capability > 0 {
            break;
        }
        // Without CAP_SETPCAP the bounding set stays; no_new_privs keeps exec
        // from giving anything back all the same.
        if result == int(libc::EPERM).cast_signed().wrapping_neg() {
            break;
        }
        outcome(4, result)?;
    }
    let ambient = usize::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).unwrap_or(0);
    outcome(4, prctl(libc::PR_CAP_AMBIENT, ambient))?;
    // Version 3 header for ourselves, then two empty triples (capset(2)).
    let header = [0x2008_0522_u32, 0];
    let data = [0_u32; 6];
    outcome(
        4,
        sys(
            libc::SYS_capset,
            [address(&header), address(&data), 0, 0, 0, 0],
        ),
    )
}

/// The command starts with the mask and the SIGPIPE action a program expects.
fn reset_signals(shared: &Shared) {
    // struct kernel_sigaction: handler SIG_DFL, no flags, no restorer, no mask.
    let action = [0_u64; 4];
    let pipe = int(libc::SIGPIPE);
    sys(libc::SYS_rt_sigaction, [pipe, address(&action), 0, 8, 0, 0]);
    let mask = address(&shared.mask);
    sys(
        libc::SYS_rt_sigprocmask,
        [int(libc::SIG_SETMASK), mask, 0, 8, 0, 0],
    );
}

/// Tries each path as execvp(3) does; returns the errno that says most.
fn execute(shared: &Shared) -> i32 {
    let environment = shared.environment.as_ptr().expose_provenance();
    let arguments = shared.arguments.as_ptr().expose_provenance();
    let mut best = libc::ENOENT;
    for program in shared.programs.iter().filter(|p| !p.is_null()) {
        let mut result = sys(
            libc::SYS_execve,
            [program.expose_provenance(), arguments, environment, 0, 0, 0],
        );
        if result == int(libc::ENOEXEC).cast_signed().wrapping_neg() {
            let shell = shared.shell_arguments.as_ptr().expose_provenance();
            let path = c"/bin/sh".as_ptr().expose_provenance();
            result = sys(libc::SYS_execve, [path, shell, environment, 0, 0, 0]);
        }
        let errno = i32::try_from(result.wrapping_neg()).unwrap_or(libc::EINVAL);
        match errno {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => best = errno,
            _ => return errno,
        }
    }
    best
}
