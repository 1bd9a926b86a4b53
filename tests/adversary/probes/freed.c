/* Ports and names that a server lets go of while somebody connects to it. */
#include "probe.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* What the command and the stranger both see: the port that may become free. */
struct shared {
    atomic_int port, turn, strangers;
};

static struct shared *shared_at(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof(struct shared))) exit(66);
    fchmod(file, 0666);
    void *at = mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) exit(66);
    return at;
}

static void pause_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, 0);
}

/* Abstract, as the command chose it. */
static socklen_t name_of(struct sockaddr_un *at, int number) {
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    int bytes = snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "freed-%d", number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
}

static int bound(int unix_name, int number) {
    int one = 1;
    if (unix_name) {
        struct sockaddr_un at;
        socklen_t bytes = name_of(&at, number);
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (bind(s, (void *)&at, bytes) == 0 && listen(s, 64) == 0) return s;
        close(s);
        return -1;
    }
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (bind(s, (void *)&at, sizeof at) == 0 && listen(s, 64) == 0) return s;
    close(s);
    return -1;
}

/* wants FILE MILLISECONDS tcp|unix: takes what becomes free, and says who came. */
static int probe_wants(int n, char **a) {
    if (n < 3) return 64;
    struct shared *shared = shared_at(a[0]);
    int unix_name = !strcmp(a[2], "unix");
    long long end = now_us() + atoll(a[1]) * 1000;
    long taken = 0, came = 0;
    dprintf(1, "wants\n");
    while (now_us() < end) {
        int number = atomic_load(&shared->port), turn = atomic_load(&shared->turn);
        int s = number ? bound(unix_name, number) : -1;
        if (s < 0) continue;
        taken++;
        atomic_fetch_add(&shared->strangers, 1);
        /* Until the command goes on to another one. */
        while (now_us() < end && atomic_load(&shared->turn) == turn) {
            int c = accept(s, 0, 0);
            if (c < 0) continue;
            came++;
            close(c);
        }
        for (int c; (c = accept(s, 0, 0)) >= 0; close(c)) came++;
        close(s);
    }
    dprintf(1, "wanted taken=%ld came=%ld\n", taken, came);
    return 0;
}

static atomic_int server = -1, delay, stop, by_shutdown;

/* Ends the listener some time after the connection was asked for. */
static void *ender(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        int s = atomic_exchange(&server, -1);
        if (s < 0) {
            sched_yield();
            continue;
        }
        for (volatile int i = 0, last = atomic_load(&delay); i < last; i++) {
        }
        if (atomic_load(&by_shutdown)) shutdown(s, SHUT_RDWR);
        else close(s);
    }
    return 0;
}

/* freed FILE MILLISECONDS close|shutdown|unix: connects to its own server while
 * another thread ends that. */
static int probe_freed(int n, char **a) {
    if (n < 3) return 64;
    struct shared *shared = shared_at(a[0]);
    int unix_name = !strcmp(a[2], "unix");
    atomic_store(&by_shutdown, !strcmp(a[2], "shutdown"));
    pthread_t thread;
    pthread_create(&thread, 0, ender, 0);
    long long end = now_us() + atoll(a[1]) * 1000;
    long tries = 0, made = 0;
    for (int turn = 1; now_us() < end; turn++, tries++) {
        struct sockaddr_storage at = {0};
        socklen_t bytes = sizeof(struct sockaddr_in);
        int s = socket(unix_name ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
        int number = turn;
        if (unix_name) {
            bytes = name_of((void *)&at, number = (int)getpid() * 1000 + turn % 1000);
        } else {
            struct sockaddr_in *in = (void *)&at;
            in->sin_family = AF_INET;
            in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }
        if (bind(s, (void *)&at, bytes) || listen(s, 8)) {
            close(s);
            continue;
        }
        if (!unix_name) {
            getsockname(s, (void *)&at, &bytes);
            number = ntohs(((struct sockaddr_in *)&at)->sin_port);
        }
        atomic_store(&shared->port, number);
        atomic_store(&delay, (int)(tries * 7919 % 60000));
        atomic_store(&server, s);
        /* While it is there, as it goes, and when the stranger has its place. */
        int before = atomic_load(&shared->strangers), after = 0;
        for (long long begun = now_us(); after < 3 && now_us() < begun + 20000;) {
            after += atomic_load(&shared->strangers) != before && now_us() > begun + 400;
            int c = socket(unix_name ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (connect(c, (void *)&at, bytes) == 0 || errno == EINPROGRESS) {
                made++;
                leak(c);
            }
            close(c);
        }
        while (atomic_load(&server) >= 0) sched_yield();
        atomic_store(&shared->port, 0);
        if (atomic_load(&by_shutdown)) close(s);
        atomic_fetch_add(&shared->turn, 1);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, 0);
    dprintf(1, "freed tries=%ld made=%ld\n", tries, made);
    return 0;
}

/* Ends the server of `s` in one of these ways: an unreadable program is one that nobody
 * may look into (prctl(2), PR_SET_DUMPABLE). */
static void end_server(const char *way, int s) {
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    if (!strcmp(way, "close")) close(s);
    if (!strcmp(way, "shutdown")) shutdown(s, SHUT_RDWR);
    if (!strcmp(way, "disconnect")) connect(s, &none, sizeof none);
    if (!strcmp(way, "unreadable")) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_DUMPABLE, 0);
            shutdown(s, SHUT_RDWR);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

/* late FILE close|shutdown|disconnect|unreadable: connections whose first packet a full
 * server dropped; it ends, and the packet is sent again a second later. */
static int probe_late(int n, char **a) {
    if (n < 2) return 64;
    struct shared *shared = shared_at(a[0]);
    struct sockaddr_in at = {.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    report("bind", bind(s, (void *)&at, bytes), 0);
    report("listen", listen(s, 0), 0);
    getsockname(s, (void *)&at, &bytes);
    int sockets[6], under_way = 0;
    for (int i = 0; i < 6; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        under_way += connect(sockets[i], (void *)&at, bytes) == 0 || errno == EINPROGRESS;
    }
    atomic_store(&shared->port, ntohs(at.sin_port));
    end_server(a[1], s);
    pause_us(2500000);
    long made = 0;
    for (int i = 0; i < 6; i++) made += leak(sockets[i]) > 0;
    dprintf(1, "late under-way=%d made=%ld taken=%d\n", under_way, made, atomic_load(&shared->strangers));
    atomic_fetch_add(&shared->turn, 1);
    return 0;
}

const struct probe freed_probes[] = {
    {"wants", probe_wants}, {"freed", probe_freed}, {"late", probe_late}, {0, 0}};
