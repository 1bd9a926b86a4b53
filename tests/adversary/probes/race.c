/* Threads that change what a held call points at while it is judged. */
#include "probe.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int stop;
static struct target allowed, denied;
static struct target moving;
static int mode;

/* Flips bytes of the shared address: 0 = port and host, 1 = family, 2 = both. */
static void *flip(void *unused) {
    (void)unused;
    struct target nowhere = denied;
    nowhere.address.ss_family = AF_UNSPEC;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        memcpy(&moving.address, mode == 1 ? &nowhere.address : &allowed.address, sizeof(struct sockaddr_in6));
        __asm__ volatile("" ::: "memory");
        memcpy(&moving.address, &denied.address, sizeof(struct sockaddr_in6));
        __asm__ volatile("" ::: "memory");
    }
    return 0;
}

static void *connector(void *count) {
    long *tries = count;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        int s = socket(allowed.family, SOCK_STREAM, 0);
        struct timeval limit = {.tv_sec = 2};
        setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(s, (void *)&moving.address, moving.bytes) == 0) {
            tries[1]++;
            struct sockaddr_in peer;
            socklen_t bytes = sizeof peer;
            if (getpeername(s, (void *)&peer, &bytes) == 0 &&
                peer.sin_port == ((struct sockaddr_in *)&denied.address)->sin_port)
                leak(s), tries[2]++;
        }
        tries[0]++;
        close(s);
    }
    return 0;
}

/* flip ALLOWED DENIED MILLISECONDS MODE */
static int probe_flip(int n, char **a) {
    if (n < 4) return 64;
    allowed = target_of(a[0]);
    denied = target_of(a[1]);
    mode = atoi(a[3]);
    moving = allowed;
    moving.bytes = denied.bytes > allowed.bytes ? denied.bytes : allowed.bytes;
    pthread_t threads[3];
    long counts[2][3] = {{0}};
    pthread_create(&threads[0], 0, flip, 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[1 + i], 0, connector, counts[i]);
    struct timespec t = {atol(a[2]) / 1000, atol(a[2]) % 1000 * 1000000};
    nanosleep(&t, 0);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    dprintf(1, "race tries=%ld made=%ld own=%ld\n", counts[0][0] + counts[1][0], counts[0][1] + counts[1][1],
            counts[0][2] + counts[1][2]);
    return 0;
}

static int slot = 400;
static char scratch[256];

/* Puts one descriptor after the other under the number that is being connected. */
static void *swap(void *unused) {
    (void)unused;
    int pipes[2];
    if (pipe(pipes)) return 0;
    unsigned turn = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        int fresh;
        switch (turn++ % 4) {
        case 0: fresh = socket(AF_INET, SOCK_STREAM, 0); break;
        case 1: fresh = socket(AF_UNIX, SOCK_STREAM, 0); break;
        case 2: fresh = socket(AF_INET6, SOCK_STREAM, 0); break;
        default: fresh = dup(pipes[1]); break;
        }
        if (fresh < 0) continue;
        dup2(fresh, slot);
        close(fresh);
    }
    return 0;
}

/* swap ALLOWED DENIED UNIX MILLISECONDS: the descriptor changes, not the address. */
static int probe_swap(int n, char **a) {
    if (n < 4) return 64;
    allowed = target_of(a[0]);
    denied = target_of(a[1]);
    struct target local = target_of(a[2]);
    snprintf(scratch, sizeof scratch, "%s", a[2]);
    pthread_t thread;
    pthread_create(&thread, 0, swap, 0);
    const struct target *const turns[] = {&allowed, &denied, &local};
    long tries = 0, made = 0;
    for (long long end = now_us() + atoll(a[3]) * 1000; now_us() < end; tries++) {
        const struct target *t = turns[tries % 3];
        if (connect(slot, (void *)&t->address, t->bytes) != 0) continue;
        made++;
        if (t != &allowed) leak(slot);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, 0);
    dprintf(1, "race tries=%ld made=%ld own=0\n", tries, made);
    return 0;
}

/* vanish TARGET COUNT: children that die while their call is held. */
static int probe_vanish(int n, char **a) {
    if (n < 2) return 64;
    struct target t = target_of(a[0]);
    unsigned seed = 1;
    for (long i = 0, count = atol(a[1]); i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (;;) {
                int s = socket(t.family, SOCK_STREAM, 0);
                connect(s, (void *)&t.address, t.bytes);
                close(s);
            }
        }
        struct timespec wait = {0, (long)(rand_r(&seed) % 800) * 1000};
        nanosleep(&wait, 0);
        kill(child, SIGKILL);
        waitpid(child, 0, 0);
    }
    dprintf(1, "vanished\n");
    return 0;
}

const struct probe race_probes[] = {
    {"flip", probe_flip}, {"swap", probe_swap}, {"vanish", probe_vanish}, {0, 0}};
