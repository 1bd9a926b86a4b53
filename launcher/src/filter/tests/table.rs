//! The table itself: complete, without contradiction, and nothing superfluous.

use std::collections::BTreeSet;

use super::{ARCHES, OPTIONS, call, number, run};
use crate::filter::limits::INSTRUCTIONS_MAX;
use crate::filter::rule::{ALLOW, FilterRule, Test};
use crate::filter::spans::{Span, Spans};
use crate::filter::{
    Arch, FilterAction, FilterError, FilterOptions, Opens, evaluate, program, table,
};

const ALL: FilterOptions = FilterOptions { opens: Opens::Trap };

/// Instructions that an allowed call without arguments to look at may take.
const ALLOW_STEPS_MAX: usize = 14;

#[test]
fn every_row_has_a_reason_and_a_title() {
    for group in table::groups(ALL).into_iter().flatten() {
        assert!(!group.title.is_empty() && !group.rows.is_empty());
        for row in group.rows {
            assert!(row.reason.len() > 8, "{} has no reason", row.name);
            assert!(!row.reason.ends_with('.'), "{}", row.name);
        }
    }
}

#[test]
fn names_and_numbers_are_unique() {
    let names: Vec<_> = table::rows(ALL).map(|row| row.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for arch in ARCHES {
        let numbers: Vec<_> = table::rows(ALL)
            .filter_map(|row| row.numbers.on(arch))
            .collect();
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len());
        assert!(numbers.iter().all(|number| *number <= table::NEWEST));
    }
}

/// Arguments for which a rule says something else than "allowed".
fn probe(rule: &FilterRule, args: [u64; 6]) -> Option<[u64; 6]> {
    match rule {
        FilterRule::Do(FilterAction::Allow) => None,
        FilterRule::Do(_) => Some(args),
        FilterRule::Ask { question, yes, no } => {
            let at = question.argument as usize;
            let (values, mask) = match &question.test {
                Test::Is { any_of, mask } => (any_of, u64::from(*mask)),
                Test::Has(flags) => (flags, u64::from(flags[0].bits)),
            };
            // What earlier questions asked of the same argument stays as it is.
            let mut agreeing = args;
            agreeing[at] = args[at] & !mask | u64::from(values[0].bits);
            let mut differing = args;
            if args[at] & mask == u64::from(values[0].bits) || args[at] == 0 {
                differing[at] = 0xf;
            }
            probe(yes, agreeing).or_else(|| probe(no, differing))
        }
    }
}

#[test]
fn every_row_is_needed() {
    for arch in ARCHES {
        for row in table::rows(ALL) {
            let Some(number) = row.numbers.on(arch) else {
                continue;
            };
            let args =
                probe(row.rule, [0; 6]).unwrap_or_else(|| panic!("{} allows everything", row.name));
            let data = call(arch, number, args);
            // Without the row the call would be allowed.
            assert_ne!(
                evaluate(arch, &ALL, &data),
                FilterAction::Allow,
                "{}",
                row.name
            );
        }
    }
}

/// Whether every question makes a difference.
fn every_question_matters(rule: &FilterRule) -> bool {
    match rule {
        FilterRule::Do(_) => true,
        FilterRule::Ask { yes, no, .. } => {
            yes != no && every_question_matters(yes) && every_question_matters(no)
        }
    }
}

#[test]
fn every_question_is_needed() {
    for row in table::rows(ALL) {
        assert!(every_question_matters(row.rule), "{}", row.name);
    }
}

#[test]
fn programs_are_short_and_shallow() {
    for arch in ARCHES {
        for options in OPTIONS {
            let length = program(arch, &options).expect("program").len();
            assert!(length <= INSTRUCTIONS_MAX, "{length} instructions");
            let mut deepest = 0;
            for nr in 0..=table::NEWEST {
                if table::rows(options).any(|row| row.numbers.on(arch) == Some(nr)) {
                    continue;
                }
                let outcome = run(arch, options, &call(arch, nr, [0; 6]));
                if outcome.returned == FilterAction::Allow.returned() {
                    deepest = deepest.max(outcome.steps);
                }
            }
            println!(
                "{} {:?}: {length} instructions, at most {deepest} for an allowed call",
                arch.name(),
                options.opens
            );
            assert!(deepest <= ALLOW_STEPS_MAX, "{deepest} steps");
        }
    }
}

#[test]
fn sends_and_options_take_few_steps() {
    for arch in ARCHES {
        for name in ["sendto", "sendmsg", "sendmmsg", "setsockopt", "ioctl"] {
            let arguments = match name {
                "setsockopt" => [3, 6, 1, 0, 0, 0],
                _ => [0xff; 6],
            };
            let data = call(arch, number(arch, name), arguments);
            let outcome = run(arch, ALL, &data);
            assert_eq!(outcome.returned, FilterAction::Allow.returned(), "{name}");
            assert!(outcome.steps <= 28, "{name}: {} steps", outcome.steps);
        }
    }
}

#[test]
fn two_rows_for_one_number_are_an_error() {
    let span = |first, last, name| Span {
        first,
        last,
        rule: ALLOW,
        name,
    };
    let mut spans = Spans::new();
    spans.add(span(7, u32::MAX, "second"));
    spans.add(span(3, 7, "first"));
    let error = spans.fill().expect_err("overlap");
    let (name, number) = ("second", 7);
    assert_eq!(error, FilterError::Overlap { name, number });
    assert_eq!(
        error.to_string(),
        "system call 7 has two rows in the filter table, the second is `second`"
    );
}

#[test]
fn spans_cover_every_number_once() {
    for arch in ARCHES {
        for options in OPTIONS {
            let spans = crate::filter::spans::spans(arch, options).expect("spans");
            let mut next = Some(0);
            for span in spans.as_slice() {
                assert_eq!(next, Some(span.first));
                assert!(span.first <= span.last);
                next = span.last.checked_add(1);
            }
            assert_eq!(next, None);
        }
    }
}

/// Compares numbers with the C library's, of the architecture tests run on.
macro_rules! check_numbers {
    ($($name:ident = $constant:ident),* $(,)?) => {
        [$((stringify!($name), libc::$constant)),*]
    };
}

/// The calls that every architecture has.
const LIBRARY: &[(&str, i64)] = &check_numbers![
    openat = SYS_openat,
    openat2 = SYS_openat2,
    connect = SYS_connect,
    bind = SYS_bind,
    listen = SYS_listen,
    shutdown = SYS_shutdown,
    getsockopt = SYS_getsockopt,
    fcntl = SYS_fcntl,
    socket = SYS_socket,
    socketpair = SYS_socketpair,
    sendto = SYS_sendto,
    sendmsg = SYS_sendmsg,
    sendmmsg = SYS_sendmmsg,
    setsockopt = SYS_setsockopt,
    io_uring_setup = SYS_io_uring_setup,
    io_uring_enter = SYS_io_uring_enter,
    io_uring_register = SYS_io_uring_register,
    ptrace = SYS_ptrace,
    process_vm_readv = SYS_process_vm_readv,
    process_vm_writev = SYS_process_vm_writev,
    pidfd_getfd = SYS_pidfd_getfd,
    kcmp = SYS_kcmp,
    prlimit64 = SYS_prlimit64,
    prctl = SYS_prctl,
    perf_event_open = SYS_perf_event_open,
    bpf = SYS_bpf,
    userfaultfd = SYS_userfaultfd,
    shmget = SYS_shmget,
    shmat = SYS_shmat,
    shmctl = SYS_shmctl,
    shmdt = SYS_shmdt,
    semget = SYS_semget,
    semop = SYS_semop,
    semctl = SYS_semctl,
    semtimedop = SYS_semtimedop,
    msgget = SYS_msgget,
    msgsnd = SYS_msgsnd,
    msgrcv = SYS_msgrcv,
    msgctl = SYS_msgctl,
    mq_open = SYS_mq_open,
    mq_unlink = SYS_mq_unlink,
    clone = SYS_clone,
    clone3 = SYS_clone3,
    unshare = SYS_unshare,
    setns = SYS_setns,
    add_key = SYS_add_key,
    request_key = SYS_request_key,
    keyctl = SYS_keyctl,
    personality = SYS_personality,
    mount = SYS_mount,
    umount2 = SYS_umount2,
    pivot_root = SYS_pivot_root,
    chroot = SYS_chroot,
    open_tree = SYS_open_tree,
    move_mount = SYS_move_mount,
    fsopen = SYS_fsopen,
    fsconfig = SYS_fsconfig,
    fsmount = SYS_fsmount,
    fspick = SYS_fspick,
    mount_setattr = SYS_mount_setattr,
    name_to_handle_at = SYS_name_to_handle_at,
    open_by_handle_at = SYS_open_by_handle_at,
    fanotify_init = SYS_fanotify_init,
    quotactl = SYS_quotactl,
    quotactl_fd = SYS_quotactl_fd,
    init_module = SYS_init_module,
    finit_module = SYS_finit_module,
    delete_module = SYS_delete_module,
    kexec_load = SYS_kexec_load,
    kexec_file_load = SYS_kexec_file_load,
    reboot = SYS_reboot,
    swapon = SYS_swapon,
    swapoff = SYS_swapoff,
    sethostname = SYS_sethostname,
    setdomainname = SYS_setdomainname,
    settimeofday = SYS_settimeofday,
    clock_settime = SYS_clock_settime,
    adjtimex = SYS_adjtimex,
    clock_adjtime = SYS_clock_adjtime,
    acct = SYS_acct,
    syslog = SYS_syslog,
    vhangup = SYS_vhangup,
    ioctl = SYS_ioctl,
    mknodat = SYS_mknodat,
    fchmod = SYS_fchmod,
    fchmodat = SYS_fchmodat,
    fchmodat2 = SYS_fchmodat2,
    fchown = SYS_fchown,
    fchownat = SYS_fchownat,
    utimensat = SYS_utimensat,
    setxattr = SYS_setxattr,
    lsetxattr = SYS_lsetxattr,
    fsetxattr = SYS_fsetxattr,
    removexattr = SYS_removexattr,
    lremovexattr = SYS_lremovexattr,
    fremovexattr = SYS_fremovexattr,
    readlinkat = SYS_readlinkat,
    getxattr = SYS_getxattr,
    lgetxattr = SYS_lgetxattr,
    listxattr = SYS_listxattr,
    llistxattr = SYS_llistxattr,
    setpgid = SYS_setpgid,
    setpriority = SYS_setpriority,
    ioprio_set = SYS_ioprio_set,
    sched_setaffinity = SYS_sched_setaffinity,
    sched_setscheduler = SYS_sched_setscheduler,
    sched_setparam = SYS_sched_setparam,
    sched_setattr = SYS_sched_setattr,
];

#[test]
fn numbers_are_the_c_librarys() {
    let arch = Arch::native();
    for (name, constant) in LIBRARY {
        assert_eq!(i64::from(number(arch, name)), *constant, "{name}");
    }
    // Calls of one architecture only, and some newer than the C library's list.
    let rest = [
        "open",
        "creat",
        "mknod",
        "chmod",
        "chown",
        "lchown",
        "utime",
        "utimes",
        "futimesat",
        "setxattrat",
        "removexattrat",
        "file_setattr",
        "readlink",
        "getxattrat",
        "listxattrat",
        "file_getattr",
        "iopl",
        "ioperm",
        "modify_ldt",
        "uselib",
        "open_tree_attr",
    ];
    assert_eq!(table::rows(ALL).count(), LIBRARY.len() + rest.len());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn numbers_of_x86_64_alone_are_the_c_librarys() {
    let known = check_numbers![
        open = SYS_open,
        creat = SYS_creat,
        mknod = SYS_mknod,
        chmod = SYS_chmod,
        chown = SYS_chown,
        lchown = SYS_lchown,
        utime = SYS_utime,
        utimes = SYS_utimes,
        futimesat = SYS_futimesat,
        readlink = SYS_readlink,
        iopl = SYS_iopl,
        ioperm = SYS_ioperm,
        modify_ldt = SYS_modify_ldt,
        uselib = SYS_uselib,
    ];
    for (name, constant) in known {
        assert_eq!(i64::from(number(Arch::X86_64, name)), constant, "{name}");
    }
}
