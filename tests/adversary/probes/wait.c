/* Calls that wait for a lock, or for a turn, which the command keeps from everybody
 * else: whoever serves them waits in the kernel, where no signal ends that. */
#include "probe.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* What is mapped again and again, and how much address space that makes: the tables of
 * pages for it are all the memory that it takes. */
enum { FILE_MIB = 256, THREADS_MAX = 512 };
#define FRESH_BYTES ((size_t)4 << 30)

/* The call that somebody is in since then, for others to see; 0: none. */
static _Atomic long long *since;
static char *area;
static size_t area_bytes;
static int connected;
/* Threads begin at once: a lock that is kept keeps new ones from being made. */
static atomic_int go;

static void wait_for_all(void) {
    while (!atomic_load(&go)) usleep(1000);
}

/* One call that the supervisor serves. */
static void ask(void) {
    struct target t = target_of("127.0.0.1:9");
    int s = socket(AF_INET, SOCK_STREAM, 0);
    atomic_store(since, now_us());
    connect(s, (void *)&t.address, t.bytes);
    atomic_store(since, 0);
    close(s);
}

/* Another process of the run, whose own memory nobody locks, and one that says when a call
 * of its has waited for long: then the attack works. */
static void witness(void) {
    since = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (since == MAP_FAILED) exit(65);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ask(), usleep(5000);
    }
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;; usleep(5000)) {
            long long began = atomic_load(since);
            if (!began || now_us() - began < 200000) continue;
            dprintf(1, "others wait\n");
            _exit(0);
        }
    }
}

/* Maps one file so often that it takes long to go through all of it. The first part of it
 * nobody touched yet: whoever is the first waits until all have gone through it. */
static void map(size_t mib) {
    size_t piece = (size_t)FILE_MIB << 20;
    int fd = memfd_create("pages", 0);
    area_bytes = (mib << 20) + FRESH_BYTES;
    area = mmap(0, area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fd < 0 || ftruncate(fd, piece) || area == MAP_FAILED) exit(65);
    for (size_t at = 0; at < area_bytes; at += piece)
        if (mmap(area + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | (at < FRESH_BYTES ? 0 : MAP_POPULATE), fd, 0) ==
            MAP_FAILED)
            exit(65);
}

/* Keeps the lock of this process's memory (mprotect(2)). */
static void *lock_memory(void *unused) {
    (void)unused;
    wait_for_all();
    for (;;) {
        mprotect(area, area_bytes, PROT_READ);
        mprotect(area, area_bytes, PROT_READ | PROT_WRITE);
    }
    return 0;
}

static void start(void *(*run)(void *), long count) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_t thread;
    for (long i = 0; i < count && i < THREADS_MAX; i++) pthread_create(&thread, &small, run, 0);
}

static void *connect_on(void *unused) {
    (void)unused;
    wait_for_all();
    for (;;) {
        struct target t = target_of("127.0.0.1:9");
        int s = socket(AF_INET, SOCK_STREAM, 0);
        connect(s, (void *)&t.address, t.bytes);
        close(s);
    }
    return 0;
}

/* Sends what no page is there for: the socket's lock is kept until there is. */
static void *send_on(void *unused) {
    (void)unused;
    wait_for_all();
    size_t piece = 1 << 20;
    for (size_t at = 0;; at = (at + 2 * piece) % FRESH_BYTES) send(connected, area + at, piece, 0);
    return 0;
}

/* memory-lock MIB THREADS SECONDS: calls of a process whose memory is locked. */
static int probe_memory(int n, char **a) {
    if (n < 3) return 64;
    witness();
    map((size_t)atol(a[0]));
    start(lock_memory, atol(a[1]));
    start(connect_on, 1);
    atomic_store(&go, 1);
    sleep((unsigned)atoi(a[2]));
    return 0;
}

/* socket-lock MIB THREADS SECONDS: calls about a socket that somebody sends on, who waits
 * for memory that is locked. */
static int probe_socket(int n, char **a) {
    if (n < 3) return 64;
    struct target t = target_of("127.0.0.1:0");
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&t.address, t.bytes) || listen(server, 4)) return 65;
    getsockname(server, (void *)&t.address, &t.bytes);
    connected = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connected, (void *)&t.address, t.bytes)) return 65;
    int other = accept(server, 0, 0);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        static char much[1 << 20];
        while (read(other, much, sizeof much) > 0) {
        }
        _exit(0);
    }
    witness();
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) connect(connected, (void *)&t.address, t.bytes), usleep(1000);
    }
    map((size_t)atol(a[0]));
    start(lock_memory, atol(a[1]));
    start(send_on, 1);
    atomic_store(&go, 1);
    sleep((unsigned)atoi(a[2]));
    return 0;
}

static void stay_on_first(void) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
}

/* no-turn HOGS SECONDS: calls that end with a descriptor, of processes that get no turn. They
 * make their calls before the others come, and have less of a right to the processor. */
static int probe_no_turn(int n, char **a) {
    if (n < 2) return 64;
    witness();
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            stay_on_first();
            setpriority(PRIO_PROCESS, 0, 19);
            for (;;) close(socket(AF_INET, SOCK_DGRAM, 0));
        }
    usleep(100000);
    for (long i = 0; i < atol(a[0]) && i < THREADS_MAX; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            stay_on_first();
            for (;;) {
            }
        }
    sleep((unsigned)atoi(a[1]));
    return 0;
}

const struct probe wait_probes[] = {{"memory-lock", probe_memory},
                                    {"socket-lock", probe_socket},
                                    {"no-turn", probe_no_turn},
                                    {0, 0}};
