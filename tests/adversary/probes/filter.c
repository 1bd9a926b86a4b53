/* Filters of the command's own on top of ours: they may narrow, never widen. */
#include "probe.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

static long install(unsigned flags, unsigned action) {
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_connect},
        {BPF_RET | BPF_K, 0, 0, action},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* filters TARGET: each in a child, then connect. */
static int probe_filters(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    const struct { const char *name; unsigned flags, action; } rows[] = {
        {"allow", 0, SECCOMP_RET_ALLOW},
        {"log", SECCOMP_FILTER_FLAG_LOG, SECCOMP_RET_LOG},
        {"trace", 0, SECCOMP_RET_TRACE},
        {"notify", 0, SECCOMP_RET_USER_NOTIF},
        {"listener", SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_ALLOW},
        {"tsync", SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_ALLOW},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pid_t child = fork();
        if (child == 0) {
            char name[48];
            snprintf(name, sizeof name, "install-%s", rows[i].name);
            report(name, install(rows[i].flags, rows[i].action), 0);
            snprintf(name, sizeof name, "connect-%s", rows[i].name);
            connect_and_leak(name, socket(t.family, SOCK_STREAM, 0), &t);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}

const struct probe filter_probes[] = {{"filters", probe_filters}, {0, 0}};
