/* Calls that would change the view of the machine, or leave the sandbox by
 * another door: namespaces, mounts, keys, foreign architectures, terminals. */
#include "probe.h"
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>

static const struct { const char *name; unsigned long flag; } spaces[] = {
    {"user", 0x10000000}, {"net", 0x40000000}, {"mount", 0x00020000}, {"pid", 0x20000000},
    {"ipc", 0x08000000},  {"uts", 0x04000000}, {"cgroup", 0x02000000}, {"time", 0x00000080},
    {"user-net", 0x50000000}, {"user-mount", 0x10020000},
};
#define SPACES (sizeof spaces / sizeof *spaces)

struct clone3_args { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; };

/* namespaces: each flag by unshare, clone, clone3 and setns; each in a child. */
static int probe_namespaces(int n, char **a) {
    (void)n, (void)a;
    char name[48];
    for (size_t i = 0; i < SPACES; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            snprintf(name, sizeof name, "unshare-%s", spaces[i].name);
            report(name, syscall(SYS_unshare, spaces[i].flag), 0);
            _exit(0);
        }
        waitpid(child, 0, 0);
        if (spaces[i].flag & ~0xffUL) {
            long r = syscall(SYS_clone, spaces[i].flag | SIGCHLD, 0, 0, 0, 0);
            if (r == 0) _exit(0);
            snprintf(name, sizeof name, "clone-%s", spaces[i].name);
            report(name, r, 0);
            if (r > 0) waitpid((pid_t)r, 0, 0);
        }
        struct clone3_args args = {.flags = spaces[i].flag, .exit_signal = SIGCHLD};
        long r = syscall(SYS_clone3, &args, sizeof args);
        if (r == 0) _exit(0);
        snprintf(name, sizeof name, "clone3-%s", spaces[i].name);
        report(name, r, 0);
        if (r > 0) waitpid((pid_t)r, 0, 0);
    }
    int fd = open("/proc/self/ns/net", O_RDONLY);
    report("setns-net", syscall(SYS_setns, fd, 0), 0);
    fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    report("setns-pidfd", syscall(SYS_setns, fd, 0x40000000), 0);
    return 0;
}

/* forbidden: calls no command needs. A bare run answers something else than
 * EPERM or ENOSYS for most of them, because the arguments make no sense. */
static int probe_forbidden(int n, char **a) {
    (void)n, (void)a;
    union bpf_attr bpf;
    memset(&bpf, 0, sizeof bpf);
    report("bpf", syscall(SYS_bpf, 0, &bpf, sizeof bpf), 0);
    struct perf_event_attr perf = {.type = 1, .size = sizeof perf, .config = 0, .exclude_kernel = 1};
    report("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0), 0);
    report("userfaultfd", syscall(SYS_userfaultfd, 1), 0);
    report("keyctl", syscall(SYS_keyctl, 0, -3, 0), 0);
    report("add_key", syscall(SYS_add_key, "user", "probe", "x", 1, -3), 0);
    report("request_key", syscall(SYS_request_key, "user", "probe", 0, -3), 0);
    report("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, 0, 0), 0);
    report("mount", syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, 0), 0);
    report("umount2", syscall(SYS_umount2, "/nowhere", 0), 0);
    report("pivot_root", syscall(SYS_pivot_root, "/nowhere", "/nowhere"), 0);
    report("chroot", syscall(SYS_chroot, "/nowhere"), 0);
    report("fsopen", syscall(SYS_fsopen, "tmpfs", 0), 0);
    report("fsconfig", syscall(SYS_fsconfig, -1, 0, 0, 0, 0), 0);
    report("fsmount", syscall(SYS_fsmount, -1, 0, 0), 0);
    report("fspick", syscall(SYS_fspick, -1, "/nowhere", 0), 0);
    report("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0), 0);
    report("open_tree", syscall(SYS_open_tree, -1, "/nowhere", 0), 0);
    report("mount_setattr", syscall(442, -1, "", 0, 0, 0), 0);
    report("init_module", syscall(SYS_init_module, 0, 0, ""), 0);
    report("finit_module", syscall(SYS_finit_module, -1, "", 0), 0);
    report("delete_module", syscall(SYS_delete_module, "nothing", 0), 0);
    report("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, ~0UL), 0);
    report("reboot", syscall(SYS_reboot, 0, 0, 0, 0), 0);
    report("swapon", syscall(SYS_swapon, "/nowhere", 0), 0);
    report("sethostname", syscall(SYS_sethostname, 0, -1L), 0);
    report("personality", syscall(SYS_personality, 0x0008 /* PER_LINUX32 */), 0);
    report("fanotify_init", syscall(SYS_fanotify_init, ~0U, 0), 0);
    report("ptrace-traceme", syscall(SYS_ptrace, 0, 0, 0, 0), 0);
    report("prctl-mm", prctl(PR_SET_MM, 0, 0, 0, 0), 0);
    return 0;
}

/* terminal: typing for somebody else. A bare run answers ENOTTY. */
static int probe_terminal(int n, char **a) {
    (void)n, (void)a;
    char c = 'x';
    report("tiocsti", ioctl(0, 0x5412, &c), 0);
    report("tioclinux", ioctl(0, 0x541C, &c), 0);
    return 0;
}

/* capabilities: what is held. */
static int probe_capabilities(int n, char **a) {
    (void)n, (void)a;
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Seccomp:", 8))
            dprintf(1, "status %s", line);
    return 0;
}

#ifdef __x86_64__
/* int80 TARGET: socket, connect and write by the 32-bit gate. The memory must
 * lie low, so it is mapped there. */
#include <sys/mman.h>
static long gate(long number, long b, long c, long d) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(number), "b"(b), "c"(c), "d"(d) : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}
static long gated(const char *name, long r, long sent) {
    errno = r < 0 ? (int)-r : 0;
    report(name, r < 0 ? -1 : r, sent);
    return r;
}
static int probe_int80(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    char *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (low == MAP_FAILED) return 65;
    memcpy(low, &t.address, t.bytes);
    memcpy(low + 256, LEAK, LEAK_BYTES);
    long s = gated("int80-socket", gate(359, t.family, SOCK_STREAM, 0), 0);
    if (s < 0) return 0;
    if (gated("int80-connect", gate(362, s, (long)low, t.bytes), 0) < 0) return 0;
    long r = gate(4, s, (long)(low + 256), LEAK_BYTES);
    gated("int80-write", r, r);
    return 0;
}

/* x32 TARGET: the same numbers with the x32 bit. */
static int probe_x32(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    long s = syscall(0x40000000 | SYS_socket, t.family, SOCK_STREAM, 0);
    report("x32-socket", s, 0);
    if (s < 0) s = socket(t.family, SOCK_STREAM, 0);
    long r = syscall(0x40000000 | SYS_connect, s, &t.address, t.bytes);
    report("x32-connect", r, r == 0 ? leak((int)s) : 0);
    return 0;
}
#endif

const struct probe privilege_probes[] = {
    {"namespaces", probe_namespaces}, {"forbidden", probe_forbidden}, {"terminal", probe_terminal},
    {"capabilities", probe_capabilities},
#ifdef __x86_64__
    {"int80", probe_int80},           {"x32", probe_x32},
#endif
    {0, 0},
};
