/* What the kernel itself answers to odd arguments: a run inside must show the
 * same lines as a bare run. */
#include "probe.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>

static void one(const char *name, int s, const void *address, long bytes) {
    report(name, syscall(SYS_connect, s, address, bytes), 0);
}

/* shapes TARGET: lengths, pointers and descriptors that are wrong. */
static int probe_shapes(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    static char large[256];
    memcpy(large, &t.address, t.bytes);
    const long lengths[] = {0, 1, 2, 7, 8, 15, 129, 256, 0x7fffffff, 0x80000000L, 0xffffffffL};
    char name[32];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int s = socket(t.family, SOCK_STREAM, 0);
        snprintf(name, sizeof name, "length-%ld", lengths[i]);
        one(name, s, large, lengths[i]);
        close(s);
    }
    int s = socket(t.family, SOCK_STREAM, 0);
    one("null", s, 0, 16);
    one("null-empty", s, 0, 0);
    one("unmapped", s, (void *)0x10, 16);
    one("kernel", s, (void *)-4096L, 16);
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    one("page-end", s, page + 4096 - 8, 16);
    one("no-descriptor", 900, &t.address, t.bytes);
    one("negative", -1, &t.address, t.bytes);
    int ends[2];
    if (pipe(ends) == 0) one("pipe", ends[0], &t.address, t.bytes);
    one("path-only", open("/", O_PATH), &t.address, t.bytes);
    struct sockaddr_storage odd = t.address;
    odd.ss_family = 77;
    one("family-77", s, &odd, t.bytes);
    odd.ss_family = AF_UNIX;
    one("family-unix", s, &odd, t.bytes);
    struct target local = target_of("unix:/nonexistent/outgate");
    int u = socket(AF_UNIX, SOCK_STREAM, 0);
    one("unix-missing", u, &local.address, local.bytes);
    one("unix-inet", u, &t.address, t.bytes);
    one("unix-empty", u, &local.address, 2);
    one("unix-long", u, &local.address, 111);
    local = target_of("unix:/dev/null");
    one("unix-not-socket", u, &local.address, local.bytes);
    return 0;
}

static volatile sig_atomic_t ticks;
static void tick(int signal) {
    (void)signal;
    ticks++;
}

/* ticking TARGET COUNT FLAGS: connects under a signal every millisecond. */
static int probe_ticking(int n, char **a) {
    if (n < 3) return 64;
    struct target t = target_of(a[0]);
    struct sigaction action = {.sa_handler = tick, .sa_flags = strcmp(a[2], "restart") ? 0 : SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, 0);
    long made = 0, refused = 0, interrupted = 0, other = 0;
    for (long i = 0, count = atol(a[1]); i < count; i++) {
        int s = socket(t.family, SOCK_STREAM, 0);
        if (connect(s, (void *)&t.address, t.bytes) == 0) made++;
        else if (errno == ECONNREFUSED) refused++;
        else if (errno == EINTR) interrupted++;
        else other++, report("ticking-other", -1, 0);
        close(s);
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, 0);
    dprintf(1, "ticking made=%ld refused=%ld interrupted=%ld other=%ld ticks=%ld\n", made, refused, interrupted,
            other, (long)ticks);
    return 0;
}

static struct target thread_target;
static void *in_thread(void *unused) {
    (void)unused;
    connect_and_leak("thread", socket(thread_target.family, SOCK_STREAM, 0), &thread_target);
    return 0;
}

/* callers TARGET: a thread that is not the leader, a fork, a vfork child. */
static int probe_callers(int n, char **a) {
    thread_target = target_of(a[n - 1]);
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    pid_t child = fork();
    if (child == 0) {
        connect_and_leak("fork", socket(thread_target.family, SOCK_STREAM, 0), &thread_target);
        _exit(0);
    }
    waitpid(child, 0, 0);
    child = vfork();
    if (child == 0) {
        connect_and_leak("vfork", socket(thread_target.family, SOCK_STREAM, 0), &thread_target);
        _exit(0);
    }
    waitpid(child, 0, 0);
    return 0;
}

/* nonsense COUNT TARGET: random arguments to the held calls, then a real one. */
static int probe_nonsense(int n, char **a) {
    if (n < 2) return 64;
    unsigned seed = 7;
    static unsigned char bytes[512];
    int sockets[4] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET6, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_STREAM, 0),
                      open("/dev/null", O_RDWR)};
    for (int i = 0; i < 4; i++) fcntl(sockets[i], F_SETFL, O_NONBLOCK);
    for (long i = 0, count = atol(a[0]); i < count; i++) {
        for (size_t j = 0; j < sizeof bytes; j++) bytes[j] = (unsigned char)rand_r(&seed);
        bytes[0] = (unsigned char[]){0, 1, 2, 10, 16, 255}[rand_r(&seed) % 6];
        bytes[1] = rand_r(&seed) % 8 ? 0 : bytes[1];
        if (bytes[0] == 2) bytes[4] = 127;
        long length = (long[]){0, 2, 3, 16, 28, 110, 128, 200, -1}[rand_r(&seed) % 9];
        int s = sockets[rand_r(&seed) % 4];
        switch (rand_r(&seed) % 4) {
        case 0: syscall(SYS_listen, s, rand_r(&seed)); break;
        case 1: syscall(SYS_socket, (long)rand_r(&seed) % 12, 2 | (rand_r(&seed) & 0x800), rand_r(&seed) % 20); break;
        default: syscall(SYS_connect, s, bytes, length); break;
        }
        if (i % 64 == 0)
            for (int fd = 20; fd < 200; fd++) close(fd);
    }
    struct target t = target_of(a[1]);
    connect_and_leak("after-nonsense", socket(t.family, SOCK_STREAM, 0), &t);
    return 0;
}

const struct probe shape_probes[] = {{"shapes", probe_shapes},     {"ticking", probe_ticking},
                                     {"callers", probe_callers},   {"nonsense", probe_nonsense},
                                     {0, 0}};
