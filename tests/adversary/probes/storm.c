/* Trees that multiply without end and as fast as they can, deaf to every signal that
 * can be ignored; and who sets whose turn on processors and disks.
 *
 * `storm` takes a machine down where nothing bounds it: in a laboratory only. */
#include "probe.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* struct sched_attr; the C library has it in newer versions alone. */
struct turn {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* Tries to be before whoever wants to end it. */
static void hurry(void) {
    struct sched_param one = {1};
    struct turn turn = {sizeof turn, 0, 0, -20, 0, 100000, 0, 0};
    sched_setscheduler(0, SCHED_FIFO, &one);
    setpriority(PRIO_PROCESS, 0, -20);
    syscall(SYS_sched_setattr, 0, &turn, 0);
}

static void *fork_for_ever(void *none) {
    for (;;) fork();
    return none;
}

enum { STACK = 4096, STACKS = 1 << 14 };
static char *stacks;
static atomic_uint taken;

/* Every process of it shares all memory: nothing is copied. */
static int share_for_ever(void *none) {
    for (;;) {
        char *stack = stacks + (size_t)STACK * (atomic_fetch_add(&taken, 1) % STACKS + 1);
        while (clone(share_for_ever, stack, CLONE_VM | SIGCHLD, none) < 0) {
        }
    }
    return 0;
}

enum { MAPPINGS = 50000, HEAVY = 20, GROWN = 64 };

/* Processes whose memory takes the kernel long to free, each of which writes the time into
 * a place of its own in the file `stamps` for as long as it runs. */
static void stamp_for_ever(void) {
    int fd = open("stamps", O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, 2 * 4096)) _exit(1);
    int both = PROT_READ | PROT_WRITE;
    volatile int64_t *stamps = mmap(0, 4096, both, MAP_SHARED, fd, 0);
    if (stamps == MAP_FAILED) _exit(1);
    for (int i = 0; i < MAPPINGS; i++)
        if (mmap(0, 4096, i & 1 ? PROT_READ : both, MAP_SHARED, fd, 4096) == MAP_FAILED) break;
    int own = 0;
    for (int i = 1; i < HEAVY && !own; i++)
        if (!fork()) own = i;
    if (!own) {
        stamps[GROWN] = 1;
        dprintf(1, "grown\n");
    }
    // Those that run already would keep the others from being made.
    while (!stamps[GROWN]) usleep(10000);
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        stamps[own] = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
}

/* storm KIND */
static int probe_storm(int n, char **a) {
    if (n < 1) return 64;
    const int deaf[] = {SIGTERM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTSTP};
    for (size_t i = 0; i < sizeof deaf / sizeof *deaf; i++) signal(deaf[i], SIG_IGN);
    hurry();
    if (n == 1) dprintf(1, "ready\n");
    if (!strcmp(a[0], "mappings")) stamp_for_ever();
    if (!strcmp(a[0], "fork")) fork_for_ever(0);
    if (!strcmp(a[0], "memory")) {
        stacks = mmap(0, (size_t)STACK * (STACKS + 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks != MAP_FAILED) share_for_ever(0);
    }
    for (;;) {
        if (!strcmp(a[0], "sibling")) syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (!strcmp(a[0], "session") && !fork()) setsid();
        if (!strcmp(a[0], "daemon") && !fork()) {
            if (fork()) _exit(0);
            setsid();
        }
        if (!strcmp(a[0], "vfork") && !vfork()) {
            execl("/proc/self/exe", "probe", "storm", "vfork", "again", (char *)0);
            _exit(1);
        }
        if (!strcmp(a[0], "threads")) {
            pthread_t thread;
            pthread_create(&thread, 0, fork_for_ever, 0);
            fork();
        }
    }
}

static void named(const char *what, const char *who, long outcome) {
    char name[64];
    snprintf(name, sizeof name, "%s-%s", what, who);
    report(name, outcome, 0);
}

static int wrote(const char *file, pid_t pid, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    int fd = open(path, O_WRONLY);
    if (fd < 0) return -1;
    long r = write(fd, text, strlen(text));
    close(fd);
    return r < 0 ? -1 : 0;
}

enum { IO_PROCESS = 1, IO_GROUP = 2, IO_USER = 3, IO_IDLE = 3 << 13, ADVICE_COLD = 20 };

/* What slows a process down, each by its number, its group's or its user's. */
static void slow(const char *who, pid_t pid) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    struct sched_param none = {0};
    struct turn turn = {sizeof turn, SCHED_IDLE, 0, 0, 0, 0, 0, 0};
    named("setpriority", who, setpriority(PRIO_PROCESS, (id_t)pid, 19));
    named("sched_setaffinity", who, sched_setaffinity(pid, sizeof one, &one));
    named("sched_setscheduler", who, sched_setscheduler(pid, SCHED_IDLE, &none));
    named("sched_setparam", who, sched_setparam(pid, &none));
    named("sched_setattr", who, syscall(SYS_sched_setattr, pid, &turn, 0));
    named("ioprio_set", who, syscall(SYS_ioprio_set, IO_PROCESS, pid, IO_IDLE));
    named("setpriority-high-bits", who, syscall(SYS_setpriority, 1L << 32, (1L << 32) | pid, 19));
    pid_t group = getpgid(pid);
    if (group > 0) {
        named("setpriority-group", who, setpriority(PRIO_PGRP, (id_t)group, 19));
        named("ioprio_set-group", who, syscall(SYS_ioprio_set, IO_GROUP, group, IO_IDLE));
    }
}

/* What Landlock refuses to who may not trace. */
static void meddle(const char *who, pid_t pid) {
    unsigned long from = 1, to = 1;
    void *page = 0;
    int status = 0, node = 0;
    named("migrate_pages", who, syscall(SYS_migrate_pages, pid, 8, &from, &to));
    named("move_pages", who, syscall(SYS_move_pages, pid, 1L, &page, &node, &status, 2));
    struct {
        void *base;
        size_t bytes;
    } all = {(void *)0x10000, 4096};
    long fd = syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) {
        named("process_madvise", who, syscall(440, fd, &all, 1L, ADVICE_COLD, 0));
        close((int)fd);
    }
    named("core-cookie", who, prctl(62, 2, pid, 0, 0));
    named("autogroup", who, wrote("autogroup", pid, "19"));
    named("oom", who, wrote("oom_score_adj", pid, "1000"));
    named("slack", who, wrote("timerslack_ns", pid, "1000000000"));
}

/* turns [TARGET]: reads `WHO PID` and tries to slow each down. TARGET is connected
 * to first, to make the gateway exist. */
static int probe_turns(int n, char **a) {
    if (n > 0) {
        struct target t = target_of(a[0]);
        int s = socket(t.family, SOCK_STREAM, 0);
        report("first-connect", connect(s, (void *)&t.address, t.bytes), 0);
        close(s);
    }
    dprintf(1, "ready parent=%d\n", getppid());
    char who[32];
    int pid;
    while (scanf("%31s %d", who, &pid) == 2) {
        slow(who, pid);
        if (strcmp(who, "sibling") || n > 0) meddle(who, pid);
    }
    // Bare, these would slow down whoever measures.
    if (n == 0) return 0;
    named("setpriority", "own-group", setpriority(PRIO_PGRP, 0, 19));
    named("setpriority", "user", setpriority(PRIO_USER, 0, 19));
    named("setpriority", "user-by-number", setpriority(PRIO_USER, getuid(), 19));
    named("ioprio_set", "own-group", syscall(SYS_ioprio_set, IO_GROUP, 0, IO_IDLE));
    named("ioprio_set", "user", syscall(SYS_ioprio_set, IO_USER, getuid(), IO_IDLE));
    return 0;
}

static atomic_int other;

static void *wait_for_ever(void *none) {
    other = (int)syscall(SYS_gettid);
    for (;;) pause();
    return none;
}

/* Reads a limit of a process, sets it to the same, and finds it set. */
static void limit(const char *who, pid_t pid) {
    struct rlimit old = {0, 0}, lower, now = {0, 0};
    named("prlimit-read", who, prlimit(pid, RLIMIT_NOFILE, 0, &old));
    lower.rlim_cur = old.rlim_cur - 1, lower.rlim_max = old.rlim_max;
    named("prlimit-set", who, prlimit(pid, RLIMIT_NOFILE, &lower, 0));
    prlimit(pid, RLIMIT_NOFILE, &old, &now);
    errno = ERANGE;
    named("prlimit-held", who, now.rlim_cur == lower.rlim_cur ? 0 : -1);
}

/* own-turns: the same for a thread, a child, an orphan and a group of its own. */
static int probe_own_turns(int n, char **a) {
    (void)n, (void)a;
    cpu_set_t now;
    sched_getaffinity(0, sizeof now, &now);
    struct sched_param none = {0};
    pthread_t thread;
    pthread_create(&thread, 0, wait_for_ever, 0);
    while (!other) sched_yield();
    errno = pthread_setaffinity_np(thread, sizeof now, &now);
    named("pthread_setaffinity_np", "thread", errno ? -1 : 0);
    errno = pthread_setaffinity_np(pthread_self(), sizeof now, &now);
    named("pthread_setaffinity_np", "self", errno ? -1 : 0);
    errno = pthread_setschedparam(thread, SCHED_BATCH, &none);
    named("pthread_setschedparam", "thread", errno ? -1 : 0);
    named("setpriority", "thread", setpriority(PRIO_PROCESS, (id_t)other, 16));
    named("setpriority", "self", setpriority(PRIO_PROCESS, 0, 16));
    named("setpriority", "self-by-number", setpriority(PRIO_PROCESS, (id_t)getpid(), 17));
    named("ioprio_set", "self", syscall(SYS_ioprio_set, IO_PROCESS, 0, IO_IDLE));
    named("sched_setparam", "self", sched_setparam(0, &none));
    limit("self", 0), limit("self-by-number", getpid()), limit("thread", other);
    int ends[2];
    pid_t orphan = 0;
    if (pipe(ends)) return 1;
    pid_t child = fork();
    if (!child) {
        setpgid(0, 0);
        pid_t grandchild = fork();
        if (!grandchild) {
            if (write(ends[1], &(pid_t){getpid()}, sizeof orphan) < 0) _exit(1);
            for (;;) pause();
        }
        for (;;) pause();
    }
    if (read(ends[0], &orphan, sizeof orphan) != sizeof orphan) return 1;
    const struct {
        const char *who;
        pid_t pid;
    } all[] = {{"child", child}, {"grandchild", orphan}};
    for (size_t i = 0; i < 2; i++) {
        named("setpriority", all[i].who, setpriority(PRIO_PROCESS, (id_t)all[i].pid, 17));
        named("sched_setaffinity", all[i].who, sched_setaffinity(all[i].pid, sizeof now, &now));
        named("sched_setscheduler", all[i].who, sched_setscheduler(all[i].pid, SCHED_BATCH, &none));
        named("sched_setparam", all[i].who, sched_setparam(all[i].pid, &none));
        named("ioprio_set", all[i].who, syscall(SYS_ioprio_set, IO_PROCESS, all[i].pid, IO_IDLE));
        limit(all[i].who, all[i].pid);
    }
    named("setpriority", "group", setpriority(PRIO_PGRP, (id_t)child, 18));
    named("ioprio_set", "group", syscall(SYS_ioprio_set, IO_GROUP, child, IO_IDLE));
    errno = 0;
    int reached = getpriority(PRIO_PROCESS, (id_t)orphan);
    dprintf(1, "nice=%d\n", reached);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    named("setpriority", "orphan", setpriority(PRIO_PROCESS, (id_t)orphan, 19));
    kill(orphan, SIGKILL);
    long gone = setpriority(PRIO_PROCESS, 1 << 22, 7);
    dprintf(1, "gone=%d\n", gone < 0 ? errno : 0);
    return 0;
}

const struct probe storm_probes[] = {
    {"storm", probe_storm}, {"turns", probe_turns}, {"own-turns", probe_own_turns}, {0, 0},
};
