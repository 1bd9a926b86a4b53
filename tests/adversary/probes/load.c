/* Many connections, for long: what happens to them while the launcher or the
 * gateway is stopped, killed or flooded. */
#include "probe.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* loop TARGET...: connects to each in turn and says every change of outcome with
 * its time, until standard input ends or a signal comes. */
static int probe_loop(int n, char **a) {
    int last[16];
    for (int i = 0; i < 16; i++) last[i] = -2;
    const struct timespec pause_between = {0, 500000};
    for (;; nanosleep(&pause_between, 0))
        for (int i = 0; i < n && i < 16; i++) {
            struct target t = target_of(a[i]);
            int s = socket(t.family, SOCK_STREAM, 0);
            long long start = now_us();
            int e = connect(s, (void *)&t.address, t.bytes) ? errno : 0;
            if (e == 0) leak(s);
            close(s);
            long long took = now_us() - start;
            if (e != last[i] || took > 100000)
                dprintf(1, "loop %s errno=%d took_us=%lld\n", a[i], e, took);
            last[i] = e;
            if (e == ENOSYS) return 0;
        }
}

/* latency TARGET COUNT: the slowest and the median of COUNT connects. */
static int compare(const void *x, const void *y) {
    long long a = *(const long long *)x, b = *(const long long *)y;
    return a < b ? -1 : a > b;
}
static int probe_latency(int n, char **a) {
    if (n < 2) return 64;
    struct target t = target_of(a[0]);
    long count = atol(a[1]);
    long long *took = calloc((size_t)count, sizeof *took);
    int e = 0;
    for (long i = 0; i < count; i++) {
        int s = socket(t.family, SOCK_STREAM, 0);
        long long start = now_us();
        if (connect(s, (void *)&t.address, t.bytes)) e = errno;
        took[i] = now_us() - start;
        close(s);
    }
    qsort(took, (size_t)count, sizeof *took, compare);
    dprintf(1, "latency median_us=%lld max_us=%lld answer=%d\n", took[count / 2], took[count - 1], e);
    return 0;
}

/* stall SLOW FAST COUNT: one child blocks on SLOW while this one measures FAST. */
static int probe_stall(int n, char **a) {
    if (n < 3) return 64;
    struct target slow = target_of(a[0]);
    int ends[2];
    if (pipe(ends)) return 65;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 64; i++) { /* fill what can be filled, without waiting */
            int s = socket(slow.family, SOCK_STREAM | SOCK_NONBLOCK, 0);
            connect(s, (void *)&slow.address, slow.bytes);
        }
        if (write(ends[1], "x", 1) < 0) _exit(1);
        int s = socket(slow.family, SOCK_STREAM, 0);
        long r = connect(s, (void *)&slow.address, slow.bytes);
        report("slow-returned", r, 0);
        for (;;) pause();
    }
    char c;
    if (read(ends[0], &c, 1) < 0) return 65;
    struct timespec settle = {0, 50000000};
    nanosleep(&settle, 0);
    probe_latency(2, a + 1);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    return 0;
}

static struct target crowd_target;
static void *waiter(void *unused) {
    (void)unused;
    int s = socket(crowd_target.family, SOCK_STREAM, 0);
    connect(s, (void *)&crowd_target.address, crowd_target.bytes);
    return 0;
}

/* crowd SLOW FAST COUNT: COUNT threads wait for SLOW, then FAST is connected to,
 * and a datagram socket is made. */
static int probe_crowd(int n, char **a) {
    if (n < 3) return 64;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 8192 ? files.rlim_max : 8192;
    setrlimit(RLIMIT_NOFILE, &files);
    crowd_target = target_of(a[0]);
    for (int i = 0; i < 64; i++) { /* fill what can be filled, without waiting */
        int s = socket(crowd_target.family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(s, (void *)&crowd_target.address, crowd_target.bytes);
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    int made = 0;
    for (pthread_t one; made < atoi(a[2]) && pthread_create(&one, &small, waiter, 0) == 0; made++) {
    }
    struct timespec settle = {1, 0};
    nanosleep(&settle, 0);
    dprintf(1, "crowd made=%d\n", made);
    struct target fast = target_of(a[1]);
    connect_and_leak("beside", socket(fast.family, SOCK_STREAM, 0), &fast);
    report("datagram", socket(AF_INET, SOCK_DGRAM, 0), 0);
    _exit(0);
}

static struct target flood_target;
static atomic_int flood_stop;
static atomic_long flood_made;
static void *flooder(void *unused) {
    (void)unused;
    while (!atomic_load_explicit(&flood_stop, memory_order_relaxed)) {
        int s = socket(flood_target.family, SOCK_STREAM, 0);
        connect(s, (void *)&flood_target.address, flood_target.bytes);
        close(s);
        atomic_fetch_add(&flood_made, 1);
    }
    return 0;
}

/* flood TARGET THREADS MILLISECONDS: all at once; a second process measures. */
static int probe_flood(int n, char **a) {
    if (n < 3) return 64;
    flood_target = target_of(a[0]);
    int threads = atoi(a[1]);
    pid_t child = fork();
    if (child == 0) {
        struct timespec settle = {0, 100000000};
        nanosleep(&settle, 0);
        char *arguments[] = {a[0], "200"};
        _exit(probe_latency(2, arguments));
    }
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, flooder, 0);
    struct timespec t = {atol(a[2]) / 1000, atol(a[2]) % 1000 * 1000000};
    nanosleep(&t, 0);
    waitpid(child, 0, 0);
    atomic_store(&flood_stop, 1);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    dprintf(1, "flood made=%ld\n", (long)atomic_load(&flood_made));
    return 0;
}

/* stdin-connect TARGET...: for each line read, one attempt at each, at once. */
static int probe_on_demand(int n, char **a) {
    dprintf(1, "ready\n");
    char c;
    while (read(0, &c, 1) == 1) {
        if (c != '\n') continue;
        for (int i = 0; i < n; i++) {
            struct target t = target_of(a[i]);
            connect_and_leak(a[i], socket(t.family, SOCK_STREAM, 0), &t);
        }
        dprintf(1, "done\n");
    }
    return 0;
}

const struct probe load_probes[] = {{"loop", probe_loop},   {"latency", probe_latency}, {"stall", probe_stall},
                                    {"flood", probe_flood}, {"crowd", probe_crowd}, {"on-demand", probe_on_demand},
                                    {0, 0}};
