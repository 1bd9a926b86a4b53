/* Reaching into processes that are not part of the sandbox. Process ids come
 * on standard input, one `NAME PID` per line, after `ready` was said, because
 * some of them exist only once the first connection was tried. */
#include "probe.h"
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void named(const char *what, const char *who, long outcome) {
    char name[96];
    snprintf(name, sizeof name, "%s-%s", what, who);
    report(name, outcome, 0);
}

static void reach(const char *who, pid_t pid) {
    long r = ptrace(PTRACE_SEIZE, pid, 0, 0);
    named("ptrace-seize", who, r);
    if (r == 0) ptrace(PTRACE_DETACH, pid, 0, 0);
    r = ptrace(PTRACE_ATTACH, pid, 0, 0);
    named("ptrace-attach", who, r);
    if (r == 0) waitpid(pid, 0, __WALL), ptrace(PTRACE_DETACH, pid, 0, 0);
    char buffer[8];
    struct iovec here = {buffer, sizeof buffer}, there = {(void *)0x400000, sizeof buffer};
    errno = 0;
    r = process_vm_readv(pid, &here, 1, &there, 1, 0);
    named("vm-readv", who, r < 0 && errno == EFAULT ? 0 : r);
    r = process_vm_writev(pid, &here, 1, &there, 1, 0);
    named("vm-writev", who, r < 0 && errno == EFAULT ? 0 : r);
    long fd = syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) {
        for (int number = 0; number < 12; number++) {
            r = syscall(SYS_pidfd_getfd, fd, number, 0);
            if (r >= 0 || errno != EBADF) break;
        }
        named("pidfd-getfd", who, r);
        named("process-madvise", who, syscall(SYS_process_madvise, fd, &there, 1, 4, 0));
        close((int)fd);
    } else named("pidfd-open", who, fd);
    named("kcmp", who, syscall(SYS_kcmp, getpid(), pid, KCMP_FILES, 0, 0));
}

static void proc_files(const char *who, pid_t pid) {
    const char *const files[] = {"mem", "environ", "maps", "auxv", "stack", "syscall", "pagemap", "clear_refs"};
    char path[128], name[64], text[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        int fd = open(path, i == 7 ? O_WRONLY : i == 0 ? O_RDWR : O_RDONLY);
        long r = fd;
        if (fd >= 0 && i && i != 7) r = read(fd, text, sizeof text);
        snprintf(name, sizeof name, "proc-%s", files[i]);
        named(name, who, r);
        if (fd >= 0) close(fd);
        snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, pid, files[i]);
        fd = open(path, i == 7 ? O_WRONLY : O_RDONLY);
        r = fd;
        if (fd >= 0 && i && i != 7) r = read(fd, text, sizeof text);
        snprintf(name, sizeof name, "task-%s", files[i]);
        named(name, who, r);
        if (fd >= 0) close(fd);
    }
    const char *const links[] = {"root", "cwd", "exe", "fd/0", "fd/3", "fd/4", "fd/5", "fd/6"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, links[i]);
        snprintf(name, sizeof name, "open-%s", links[i]);
        int fd = open(path, i < 3 ? O_PATH : O_RDWR);
        if (fd < 0 && errno == ENOENT) continue;
        named(name, who, fd);
        if (fd >= 0) close(fd);
    }
}

static void signals(const char *who, pid_t pid) {
    named("kill", who, kill(pid, SIGUSR1));
    named("kill-null", who, kill(pid, 0));
    named("tgkill", who, syscall(SYS_tgkill, pid, pid, SIGUSR1));
    named("tkill", who, syscall(SYS_tkill, pid, SIGUSR1));
    siginfo_t info = {.si_code = SI_QUEUE};
    named("sigqueue", who, syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &info));
    long fd = syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) {
        named("pidfd-signal", who, syscall(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0));
        close((int)fd);
    }
    int ends[2];
    if (pipe(ends) == 0) {
        fcntl(ends[0], F_SETSIG, SIGUSR1);
        fcntl(ends[0], F_SETOWN, pid);
        fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
        if (write(ends[1], "x", 1) < 0) report("sigio-write", -1, 0);
        close(ends[0]), close(ends[1]);
    }
}

static void limits(const char *who, pid_t pid) {
    struct rlimit old, none = {0, 0};
    named("prlimit-read", who, prlimit(pid, RLIMIT_FSIZE, 0, &old));
    named("prlimit-fsize", who, prlimit(pid, RLIMIT_FSIZE, &none, 0));
    named("prlimit-nofile", who, prlimit(pid, RLIMIT_NOFILE, &none, 0));
    named("prlimit-cpu", who, prlimit(pid, RLIMIT_CPU, &none, 0));
}

/* outsiders WHAT [TARGET]: WHAT is reach, proc, signal or limit. TARGET is
 * connected to first, to make the gateway exist. */
static int probe_outsiders(int n, char **a) {
    if (n < 1) return 64;
    if (n > 1) {
        struct target t = target_of(a[1]);
        int s = socket(t.family, SOCK_STREAM, 0);
        report("first-connect", connect(s, (void *)&t.address, t.bytes), 0);
        close(s);
    }
    dprintf(1, "ready parent=%d\n", getppid());
    char who[32];
    int pid;
    while (scanf("%31s %d", who, &pid) == 2) {
        if (!strcmp(a[0], "reach")) reach(who, pid);
        if (!strcmp(a[0], "proc")) proc_files(who, pid);
        if (!strcmp(a[0], "signal")) signals(who, pid);
        if (!strcmp(a[0], "limit")) limits(who, pid);
    }
    return 0;
}

/* victim: says so and waits to be hit. */
static int probe_victim(int n, char **a) {
    (void)n, (void)a;
    dprintf(1, "ready\n");
    char c;
    while (read(0, &c, 1) > 0) {
    }
    return 0;
}

/* descriptors: what is open. */
static int probe_descriptors(int n, char **a) {
    (void)n, (void)a;
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) < 0) continue;
        char path[64], to[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t r = readlink(path, to, sizeof to - 1);
        to[r > 0 ? r : 0] = 0;
        dprintf(1, "descriptor %d %s\n", fd, to);
    }
    return 0;
}

/* daemon MILLISECONDS TARGET...: twice forked, then tries after its parents left. */
static int probe_daemon(int n, char **a) {
    if (n < 2) return 64;
    if (fork()) return 0;
    setsid();
    if (fork()) _exit(0);
    struct timespec t = {atol(a[0]) / 1000, atol(a[0]) % 1000 * 1000000};
    nanosleep(&t, 0);
    for (int i = 1; i < n; i++) {
        struct target to = target_of(a[i]);
        connect_and_leak(a[i], socket(to.family, SOCK_STREAM, 0), &to);
    }
    return 0;
}

/* again HOW TARGET: becomes itself by memfd, or hides, then connects. */
static int probe_again(int n, char **a) {
    if (n < 2) return 64;
    struct target t = target_of(a[1]);
    if (!strcmp(a[0], "memfd")) {
        int from = open("/proc/self/exe", O_RDONLY);
        int to = (int)syscall(SYS_memfd_create, "copy", 0);
        char buffer[65536];
        ssize_t r;
        while ((r = read(from, buffer, sizeof buffer)) > 0)
            if (write(to, buffer, (size_t)r) != r) return 65;
        char *const arguments[] = {"probe", "connect", a[1], 0};
        char *const environment[] = {0};
        syscall(SYS_execveat, to, "", arguments, environment, AT_EMPTY_PATH);
        report("execveat", -1, 0);
        return 0;
    }
    if (!strcmp(a[0], "undumpable")) {
        report("dumpable", prctl(PR_SET_DUMPABLE, 0), 0);
        dprintf(1, "dumpable now=%d\n", prctl(PR_GET_DUMPABLE));
    }
    dprintf(1, "uid real=%d effective=%d\n", getuid(), geteuid());
    connect_and_leak("again", socket(t.family, SOCK_STREAM, 0), &t);
    return 0;
}

/* breed LINES GENERATIONS: lines of processes, each of which makes the next and
 * ends, so that whoever lists them is always late. Bounded, for the machine. */
static int probe_breed(int n, char **a) {
    if (n < 2) return 64;
    for (int line = 0; line < atoi(a[0]); line++) {
        if (fork()) continue;
        setsid();
        for (int left = atoi(a[1]); left > 0; left--) {
            pid_t next = fork();
            if (next) _exit(0);
            const struct timespec breath = {0, 200000};
            nanosleep(&breath, 0);
        }
        for (;;) pause();
    }
    dprintf(1, "ready\n");
    for (;;) pause();
}

/* sleep SECONDS: says so and stays. */
static int probe_sleep(int n, char **a) {
    dprintf(1, "sleeping pid=%d\n", getpid());
    struct timespec t = {n ? atol(a[0]) : 60, 0};
    nanosleep(&t, 0);
    return 0;
}

const struct probe process_probes[] = {
    {"outsiders", probe_outsiders}, {"victim", probe_victim}, {"descriptors", probe_descriptors},
    {"daemon", probe_daemon},       {"again", probe_again},   {"sleep", probe_sleep},
    {"breed", probe_breed},
    {0, 0},
};
