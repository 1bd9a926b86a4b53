/* Unix sockets: paths in every disguise, names that are not paths, pairs,
 * descriptors that travel. */
#include "probe.h"
#include <sys/resource.h>
#include <sys/mman.h>
#include <pthread.h>
#include <stdatomic.h>

static int unix_stream(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }

static void to_path(const char *name, const char *path) {
    char text[300];
    snprintf(text, sizeof text, "unix:%s", path);
    struct target t = target_of(text);
    connect_and_leak(name, unix_stream(), &t);
}

/* unix-paths PATH SCRATCH PID: one socket, many spellings. PID lives outside. */
static int probe_paths(int n, char **a) {
    if (n < 3) return 64;
    const char *path = a[0], *scratch = a[1], *pid = a[2];
    char text[600], directory[300];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    *slash = 0;
    const char *file = slash + 1;
    to_path("absolute", path);
    snprintf(text, sizeof text, "%s/link", scratch);
    unlink(text);
    if (symlink(path, text) == 0) to_path("symlink", text);
    unlink(text);
    snprintf(text, sizeof text, "/proc/self/root%s", path);
    to_path("proc-root", text);
    snprintf(text, sizeof text, "/proc/%s/root%s", pid, path);
    to_path("proc-other-root", text);
    snprintf(text, sizeof text, "/proc/%s/cwd/%s", pid, file);
    to_path("proc-other-cwd", text);
    snprintf(text, sizeof text, "%s/../%s/%s", directory, strrchr(directory, '/') + 1, file);
    to_path("dots", text);
    int fd = open(directory, O_PATH | O_DIRECTORY);
    if (fd >= 0) {
        snprintf(text, sizeof text, "/proc/self/fd/%d/%s", fd, file);
        to_path("proc-fd-directory", text);
    }
    fd = open(path, O_PATH);
    if (fd >= 0) {
        snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
        to_path("proc-fd", text);
        snprintf(text, sizeof text, "/proc/thread-self/fd/%d", fd);
        to_path("proc-thread-fd", text);
    }
    if (chdir(directory) == 0) {
        to_path("relative", file);
        snprintf(text, sizeof text, "./%s", file);
        to_path("relative-dot", text);
        to_path("proc-self-cwd", (snprintf(text, sizeof text, "/proc/self/cwd/%s", file), text));
    }
    snprintf(text, sizeof text, "%s/hard", scratch);
    unlink(text);
    if (link(path, text) == 0) to_path("hard-link", text);
    unlink(text);
    return 0;
}

/* unix-to TARGET...: stream and seqpacket to each. */
static int probe_unix_to(int n, char **a) {
    for (int i = 0; i < n; i++) {
        struct target t = target_of(a[i]);
        connect_and_leak(a[i], unix_stream(), &t);
        connect_and_leak("seqpacket", socket(AF_UNIX, SOCK_SEQPACKET, 0), &t);
    }
    return 0;
}

/* unix-datagram TARGET: SOCK_DGRAM and its alias SOCK_RAW. */
static int probe_unix_datagram(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    const int types[] = {SOCK_DGRAM, SOCK_RAW};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "unix-raw" : "unix-dgram";
        int s = socket(AF_UNIX, types[i], 0);
        long r = s < 0 ? -1 : sendto(s, LEAK, LEAK_BYTES, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
        report(name, r, r);
    }
    return 0;
}

/* pair-named TARGET: a connected pair, then a message with another name. */
static int probe_pair(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    const int types[] = {SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM};
    const char *const names[] = {"pair-dgram", "pair-raw", "pair-seqpacket", "pair-stream"};
    for (int i = 0; i < 4; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, types[i], 0, pair) < 0) {
            report(names[i], -1, 0);
            continue;
        }
        struct iovec v = {(void *)LEAK, LEAK_BYTES};
        struct msghdr m = {.msg_name = &t.address, .msg_namelen = t.bytes, .msg_iov = &v, .msg_iovlen = 1};
        long r = sendmsg(pair[0], &m, MSG_NOSIGNAL);
        report(names[i], r, r);
        char buffer[64];
        r = recv(pair[1], buffer, sizeof buffer, MSG_DONTWAIT);
        dprintf(1, "peer %s got=%ld\n", names[i], r);
    }
    return 0;
}

/* How many descriptors below 512 are open. */
static int opened(void) {
    int count = 0;
    for (int i = 0; i < 512; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static long pair_at(void *numbers, int flags) {
    return syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM | flags, 0, numbers);
}

static void *make_pairs(void *numbers) {
    for (;;) {
        int *at = numbers;
        if (pair_at(at, 0) == 0) close(at[0]), close(at[1]);
    }
    return 0;
}

static void *unmap(void *page) {
    for (;;) {
        munmap(page, 4096);
        mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    return 0;
}

/* pairs: datagram pairs that cannot be given, and ones whose maker is killed meanwhile. */
static int probe_pairs(int n, char **a) {
    (void)n, (void)a;
    int pair[2] = {-7, -7};
    const int before = opened();
    report("pair-nowhere", pair_at((void *)8, 0), 0);
    report("pair-edge", pair_at((char *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4092, 0), 0);
    report("pair-flags", pair_at(pair, 0x40), 0);
    report("pair-protocol", syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 7, pair), 0);
    dprintf(1, "left=%d\n", opened() - before);
    report("pair", pair_at(pair, SOCK_CLOEXEC | SOCK_NONBLOCK), 0);
    dprintf(1, "close-on-exec=%d non-blocking=%d\n", fcntl(pair[0], F_GETFD) & fcntl(pair[1], F_GETFD) & FD_CLOEXEC,
            !!(fcntl(pair[0], F_GETFL) & fcntl(pair[1], F_GETFL) & O_NONBLOCK));
    struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = "pair"};
    report("pair-bind", bind(pair[0], (void *)&here, sizeof here), 0);
    report("pair-listen", listen(pair[0], 8), 0);
    close(pair[0]), close(pair[1]);
    report("pair-kept", pair_at(pair, 0), 0);
    dprintf(1, "kept-on-exec=%d\n", !(fcntl(pair[0], F_GETFD) | fcntl(pair[1], F_GETFD)));
    close(pair[0]), close(pair[1]);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (!child) {
            void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            pthread_t maker, other;
            pthread_create(&maker, 0, make_pairs, page);
            pthread_create(&other, 0, unmap, page);
            usleep(1000 + i * 37 % 2000);
            if (i % 2) execl("/proc/self/exe", "probe", "nothing", (char *)0);
            kill(getpid(), SIGKILL);
        }
        waitpid(child, 0, 0);
    }
    dprintf(1, "after=%d\n", opened() - before);
    const struct rlimit few = {(rlim_t)opened() + 1, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    report("pair-limit", pair_at(pair, 0), 0);
    report("pair-limit-again", pair_at(pair, 0), 0);
    dprintf(1, "limit=%d\n", opened() - before);
    return 0;
}

/* spoof PATH SCRATCH: a listener of our own whose path is then another's. */
static int probe_spoof(int n, char **a) {
    if (n < 2) return 64;
    char own[300], moved[300], text[310];
    const char *const names[] = {"spoof-before-listen", "spoof-after-listen"};
    for (int after = 0; after < 2; after++) {
        snprintf(own, sizeof own, "%s/own-%d", a[1], after);
        snprintf(moved, sizeof moved, "%s/moved-%d", a[1], after);
        unlink(own), unlink(moved);
        snprintf(text, sizeof text, "unix:%s", own);
        struct target t = target_of(text);
        int s = unix_stream();
        report("spoof-bind", bind(s, (void *)&t.address, t.bytes), 0);
        if (after) report("spoof-listen", listen(s, 4), 0);
        if (rename(own, moved) || symlink(a[0], own)) report("spoof-swap", -1, 0);
        if (!after) report("spoof-listen", listen(s, 4), 0);
        to_path(names[after], own);
        snprintf(text, sizeof text, "unix:%s", moved);
        t = target_of(text);
        connect_and_leak("spoof-moved", unix_stream(), &t);
        unlink(own), unlink(moved);
        close(s);
    }
    return 0;
}

static atomic_int stop;
static char swap_a[300], swap_b[300], swap_at[300];

static void *swapper(void *unused) {
    (void)unused;
    char temporary[310];
    snprintf(temporary, sizeof temporary, "%s.new", swap_at);
    while (!atomic_load(&stop)) {
        if (symlink(swap_a, temporary) == 0) rename(temporary, swap_at);
        if (symlink(swap_b, temporary) == 0) rename(temporary, swap_at);
    }
    return 0;
}

/* unix-race PATH SCRATCH MILLISECONDS: a name that flips between a listener of
 * our own and somebody else's. */
static int probe_unix_race(int n, char **a) {
    if (n < 3) return 64;
    snprintf(swap_a, sizeof swap_a, "%s/race-own", a[1]);
    snprintf(swap_b, sizeof swap_b, "%s", a[0]);
    snprintf(swap_at, sizeof swap_at, "%s/race-at", a[1]);
    unlink(swap_a), unlink(swap_at);
    char text[310];
    snprintf(text, sizeof text, "unix:%s", swap_a);
    struct target own = target_of(text);
    int s = unix_stream();
    report("race-bind", bind(s, (void *)&own.address, own.bytes), 0);
    report("race-listen", listen(s, 64), 0);
    fcntl(s, F_SETFL, O_NONBLOCK);
    snprintf(text, sizeof text, "unix:%s", swap_at);
    struct target at = target_of(text);
    pthread_t thread;
    pthread_create(&thread, 0, swapper, 0);
    long tries = 0, made = 0, own_seen = 0;
    for (long long end = now_us() + atoll(a[2]) * 1000; now_us() < end; tries++) {
        int c = unix_stream();
        if (connect(c, (void *)&at.address, at.bytes) == 0) made++, leak(c);
        close(c);
        int got;
        while ((got = accept(s, 0, 0)) >= 0) own_seen++, close(got);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, 0);
    dprintf(1, "race tries=%ld made=%ld own=%ld\n", tries, made, own_seen);
    return 0;
}

/* receive TARGET: takes whatever descriptor the peer offers and uses it. */
static int probe_receive(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int s = unix_stream();
    long r = connect(s, (void *)&t.address, t.bytes);
    report("receive-connect", r, 0);
    if (r < 0) return 0;
    if (send(s, "ready\n", 6, MSG_NOSIGNAL) < 0) report("receive-send", -1, 0);
    struct timeval limit = {.tv_sec = 5};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char buffer[64], control[CMSG_SPACE(sizeof(int) * 8)];
    struct iovec v = {buffer, sizeof buffer};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    r = recvmsg(s, &m, 0);
    report("receive-message", r, 0);
    int got = 0;
    for (struct cmsghdr *c = r < 0 ? 0 : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int fd;
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        got++;
        r = leak(fd);
        report("receive-use", r, r);
    }
    dprintf(1, "received descriptors=%d bytes=%ld\n", got, (long)(got ? 0 : r));
    return 0;
}

/* unix-bind PATH: makes a socket inode there. */
static int probe_unix_bind(int n, char **a) {
    for (int i = 0; i < n; i++) {
        struct target t = target_of(a[i]);
        int s = unix_stream();
        report(a[i], bind(s, (void *)&t.address, t.bytes), 0);
    }
    return 0;
}

const struct probe local_probes[] = {
    {"unix-paths", probe_paths},       {"unix-to", probe_unix_to}, {"unix-datagram", probe_unix_datagram},
    {"pairs", probe_pairs},
    {"pair-named", probe_pair},        {"spoof", probe_spoof},     {"unix-race", probe_unix_race},
    {"receive", probe_receive},        {"unix-bind", probe_unix_bind},
    {0, 0},
};
