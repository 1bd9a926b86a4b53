/* Threads that act on a call while it is held: one that executes another
 * program, and one that takes O_NONBLOCK away. */
#include "probe.h"
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>

static atomic_int go, stop, shared_socket = -1;
static char *binary;
static long wait_us;

/* Executes the program a moment after the call was made. */
static void *execute(void *unused) {
    (void)unused;
    char *words[] = {binary, 0};
    while (!atomic_load_explicit(&go, memory_order_relaxed)) {
    }
    for (long long until = now_us() + wait_us; now_us() < until;) {
    }
    execv(binary, words);
    _exit(1);
}

/* Takes the lock of the shared socket for long, again and again: who asks the
 * kernel about that socket waits meanwhile. */
static void *keep_busy(void *unused) {
    (void)unused;
    static struct sock_filter code[4096];
    for (int i = 0; i < 4095; i++) code[i] = (struct sock_filter){BPF_LD | BPF_IMM, 0, 0, (unsigned)i};
    code[4095] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, 0xffff};
    struct sock_fprog program = {4096, code};
    while (!atomic_load(&stop)) {
        int s = atomic_load(&shared_socket);
        if (s < 0) {
            sched_yield();
            continue;
        }
        setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
        setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof program);
    }
    return 0;
}

/* Whether a socket that nobody asked for is connected: then bytes leave by it. */
static int won(int s, long long limit_us) {
    for (long long until = now_us() + limit_us;;) {
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof peer;
        if (getpeername(s, (void *)&peer, &bytes) == 0 && leak(s) > 0) return 1;
        if (now_us() >= until) return 0;
        sched_yield();
    }
}

/* execrace TARGET BINARY COUNT: a leader connects, its second thread executes
 * BINARY, and a sibling that has the same socket looks whether it is connected. */
static int probe_execrace(int n, char **a) {
    if (n < 3) return 64;
    struct target t = target_of(a[0]);
    binary = a[1];
    enum { KEPT = 32 };
    int kept[KEPT];
    for (int i = 0; i < KEPT; i++) kept[i] = -1;
    long tries = 0, connected = 0, count = atol(a[2]), answered = 0;
    pthread_t busy;
    pthread_create(&busy, 0, keep_busy, 0);
    for (; tries < count; tries++) {
        int *at = &kept[tries % KEPT];
        if (*at >= 0) connected += won(*at, 0), close(*at);
        int s = *at = socket(t.family, SOCK_STREAM, 0);
        wait_us = tries * 37 % 400;
        pid_t leader = fork();
        if (leader == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pthread_t second;
            pthread_create(&second, 0, execute, 0);
            atomic_store(&go, 1);
            connect(s, (void *)&t.address, t.bytes);
            _exit(177);
        }
        if (tries % 4) atomic_store(&shared_socket, s);
        int status = 0;
        waitpid(leader, &status, 0);
        atomic_store(&shared_socket, -1);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 177) answered++;
    }
    for (int i = 0; i < KEPT; i++)
        if (kept[i] >= 0) connected += won(kept[i], 20000);
    atomic_store(&stop, 1);
    pthread_join(busy, 0);
    dprintf(1, "execrace tries=%ld answered=%ld won=%ld\n", tries, answered, connected);
    return 0;
}

/* A server whose queue is full, and that stays so. */
static struct target full_server(const char *where) {
    struct target t = target_of(where);
    int s = socket(t.family, SOCK_STREAM, 0);
    if (bind(s, (void *)&t.address, t.bytes) || listen(s, 0)) exit(65);
    getsockname(s, (void *)&t.address, &t.bytes);
    for (int i = 0; i < 4; i++) {
        int c = socket(t.family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(c, (void *)&t.address, t.bytes);
    }
    return t;
}

static struct target slow;
static char way;

/* A server that never accepts. */
static struct target deaf_server(void) {
    struct target t = target_of("127.0.0.1:0");
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (void *)&t.address, t.bytes) || listen(s, 4096)) exit(65);
    getsockname(s, (void *)&t.address, &t.bytes);
    return t;
}

/* A connection with more on its way than fits, which whoever closes it last
 * waits for. */
static int unread(void) {
    int c = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c, (void *)&slow.address, slow.bytes)) exit(65);
    static char much[1 << 16];
    while (send(c, much, sizeof much, MSG_DONTWAIT) > 0) {
    }
    struct linger wait = {1, 60};
    setsockopt(c, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
    return c;
}

/* Takes O_NONBLOCK away from the shared socket, and gives it back. */
static void *block(void *unused) {
    (void)unused;
    for (unsigned turn = 0;; turn++) {
        int s = atomic_load_explicit(&shared_socket, memory_order_relaxed);
        if (s >= 0) fcntl(s, F_SETFL, turn % 4 ? 0 : O_NONBLOCK);
    }
    return 0;
}

/* Closes the shared socket a moment after it is connected again. */
static void *close_soon(void *unused) {
    (void)unused;
    for (;;) {
        int s = atomic_exchange(&shared_socket, -1);
        if (s < 0) continue;
        for (long long until = now_us() + now_us() % 128; now_us() < until;) {
        }
        close(s);
    }
    return 0;
}

static void *connect_slowly(void *unused) {
    (void)unused;
    for (;;) {
        int s = way == 'l' ? unread() : socket(slow.family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        int many = 127;
        if (way == 't') setsockopt(s, IPPROTO_TCP, TCP_SYNCNT, &many, sizeof many);
        atomic_store(&shared_socket, s);
        connect(s, (void *)&slow.address, slow.bytes);
        if (way != 'l') close(s);
    }
    return 0;
}

/* Attacks until the time is over, from one process after the other, since a
 * thread that does not win waits for ever; then all servers go with it. */
static void attack(const char *where, long long until) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    slow = way == 'l' ? deaf_server() : full_server(where);
    for (long round = 1; now_us() < until; round++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pthread_t one, other;
            pthread_create(&one, 0, way == 'l' ? close_soon : block, 0);
            pthread_create(&other, 0, connect_slowly, 0);
            for (;;) pause();
        }
        nanosleep(&(struct timespec){0, way == 'l' ? 20000000 : 150000000}, 0);
        kill(child, SIGKILL);
        waitpid(child, 0, 0);
        dprintf(1, "round=%ld\n", round);
    }
    _exit(0);
}

/* freeze tcp|unix|linger MILLISECONDS SCRATCH: one process has the supervisor
 * wait, if it can; this one connects to a server of its own all the while, and
 * says its longest wait. */
static int probe_freeze(int n, char **a) {
    if (n < 3) return 64;
    way = a[0][0];
    char where[300];
    snprintf(where, sizeof where, way == 'u' ? "unix:%s/full" : "127.0.0.1:0", a[2]);
    struct target own = target_of("127.0.0.1:0");
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&own.address, own.bytes) || listen(server, 64)) return 65;
    getsockname(server, (void *)&own.address, &own.bytes);
    const long long until = now_us() + 1000LL * atol(a[1]);
    if (fork() == 0) attack(where, until);
    long connects = 0;
    long long longest = 0;
    while (now_us() < until) {
        long long began = now_us();
        int c = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c, (void *)&own.address, own.bytes) == 0) {
            long long took = now_us() - began;
            if (took > longest) longest = took;
            connects++;
            close(accept(server, 0, 0));
        }
        close(c);
    }
    dprintf(1, "freeze connects=%ld longest_us=%lld\n", connects, longest);
    return 0;
}

const struct probe hold_probes[] = {{"execrace", probe_execrace}, {"freeze", probe_freeze}, {0, 0}};
