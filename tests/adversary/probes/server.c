/* Being connected to: listening where one should not, and on others' ports. */
#include "probe.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>

static long served(int s, int seconds) {
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int c = accept(s, 0, 0);
    if (c < 0) return -1;
    long r = leak(c);
    close(c);
    return r;
}

/* listen WHERE...: `unbound`, `unbound6` or an address; says the port, serves one. */
static int probe_listen(int n, char **a) {
    for (int i = 0; i < n; i++) {
        int unbound = !strncmp(a[i], "unbound", 7);
        struct target t = unbound ? target_of(a[i][7] ? "[::]:0" : "0.0.0.0:0") : target_of(a[i]);
        int s = socket(t.family, SOCK_STREAM, 0), one = 1;
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        char name[96];
        if (!unbound) {
            snprintf(name, sizeof name, "bind-%s", a[i]);
            long r = bind(s, (void *)&t.address, t.bytes);
            report(name, r, 0);
            if (r < 0) {
                close(s);
                continue;
            }
        }
        snprintf(name, sizeof name, "listen-%s", a[i]);
        long r = listen(s, 8);
        report(name, r, 0);
        struct sockaddr_in6 at;
        socklen_t bytes = sizeof at;
        getsockname(s, (void *)&at, &bytes);
        dprintf(1, "port %s %d\n", a[i], r == 0 ? ntohs(at.sin6_port) : 0);
        if (r == 0) {
            r = served(s, 2);
            snprintf(name, sizeof name, "served-%s", a[i]);
            report(name, r, r);
        }
        close(s);
    }
    return 0;
}

/* listen-all WHERE...: as `listen`, but all of them at once, until the input ends;
 * `[V6ONLY::]:PORT` takes IPv6 alone. */
static int probe_listen_all(int n, char **a) {
    for (int i = 0; i < n; i++) {
        int unbound = !strncmp(a[i], "unbound", 7), one = 1, only = !strncmp(a[i], "[V6ONLY", 7);
        char place[96];
        snprintf(place, sizeof place, "%s%s", only ? "[" : "", only ? a[i] + 7 : a[i]);
        struct target t = unbound ? target_of(a[i][7] ? "[::]:0" : "0.0.0.0:0") : target_of(place);
        int s = socket(t.family, SOCK_STREAM, 0);
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (only) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
        char name[128];
        snprintf(name, sizeof name, "bind-%s", a[i]);
        if (!unbound) report(name, bind(s, (void *)&t.address, t.bytes), 0);
        snprintf(name, sizeof name, "listen-%s", a[i]);
        report(name, listen(s, 8), 0);
        struct sockaddr_in6 at;
        socklen_t bytes = sizeof at;
        getsockname(s, (void *)&at, &bytes);
        dprintf(1, "port %s %d\n", a[i], ntohs(at.sin6_port));
    }
    dprintf(1, "ready\n");
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

/* own-server: listens on loopback and connects to itself by both families. */
static int probe_own_server(int n, char **a) {
    (void)n, (void)a;
    const char *const at[] = {"127.0.0.1:0", "[::1]:0"};
    for (int i = 0; i < 2; i++) {
        struct target t = target_of(at[i]);
        int s = socket(t.family, SOCK_STREAM, 0);
        report(i ? "bind6" : "bind4", bind(s, (void *)&t.address, t.bytes), 0);
        report(i ? "listen6" : "listen4", listen(s, 8), 0);
        getsockname(s, (void *)&t.address, &t.bytes);
        int c = socket(t.family, SOCK_STREAM, 0);
        long r = connect(c, (void *)&t.address, t.bytes);
        report(i ? "connect6" : "connect4", r, 0);
        if (r < 0) continue;
        int accepted = accept(s, 0, 0);
        char buffer[64];
        leak(c);
        r = recv(accepted, buffer, sizeof buffer, 0);
        dprintf(1, "own %d got=%ld\n", i, r);
    }
    return 0;
}

/* squat TARGET: connects once so that private listeners exist, then tries to
 * share every listening port it can see. */
static int probe_squat(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int c = socket(t.family, SOCK_STREAM, 0);
    report("first", connect(c, (void *)&t.address, t.bytes), 0);
    FILE *table = fopen("/proc/net/tcp", "r");
    char line[512];
    int seen = 0;
    while (table && fgets(line, sizeof line, table)) {
        unsigned address, port, state;
        if (sscanf(line, "%*d: %x:%x %*x:%*x %x", &address, &port, &state) != 3 || state != 10) continue;
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {address}};
        const uint32_t places[] = {address, 0, htonl(0x7f000001)};
        for (int i = 0; i < 3; i++) {
            at.sin_addr.s_addr = places[i];
            int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
            setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
            setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
            long r = bind(s, (void *)&at, sizeof at);
            if (r == 0) r = listen(s, 8);
            char name[64];
            snprintf(name, sizeof name, "squat-%d-%u", i, port);
            report(name, r, 0);
            close(s);
        }
        seen++;
    }
    dprintf(1, "squat seen=%d\n", seen);
    if (!table) report("squat-table", -1, 0);
    dprintf(1, "ready\n");
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

/* What another thread does to a socket while `listen` is on its way. */
static atomic_int race_socket = -1, race_stop, race_delay, race_rebind;
static void *dissolve(void *unused) {
    (void)unused;
    const struct sockaddr_in any = {.sin_family = AF_INET};
    while (!atomic_load(&race_stop)) {
        int s = atomic_load(&race_socket);
        if (s < 0) {
            sched_yield();
            continue;
        }
        for (volatile int i = 0; i < atomic_load(&race_delay); i++) {
        }
        shutdown(s, SHUT_RDWR);
        if (atomic_load(&race_rebind)) bind(s, (void *)&any, sizeof any);
        atomic_store(&race_socket, -1);
    }
    return 0;
}

/* A socket on its way to a listener whose queue is full: it stays SYN_SENT,
 * with a loopback address that nobody bound. */
static int on_its_way(const struct target *full) {
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(s, (void *)&full->address, full->bytes);
    return s;
}

/* A socket that listens on loopback already. */
static int listening(void) {
    struct target t = target_of("127.0.0.1:0");
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (void *)&t.address, t.bytes) == 0) listen(s, 8);
    return s;
}

/* listen-race MILLISECONDS sent|again: another thread takes the address away
 * while the socket is made to listen; counts those that listen everywhere. */
static int probe_listen_race(int n, char **a) {
    if (n < 2) return 64;
    int again = !strcmp(a[1], "again");
    struct target full = target_of("127.0.0.1:0");
    int server = socket(AF_INET, SOCK_STREAM, 0);
    report("bind", bind(server, (void *)&full.address, full.bytes), 0);
    report("listen", listen(server, 0), 0);
    getsockname(server, (void *)&full.address, &full.bytes);
    for (int i = 0; i < 4 && !again; i++) on_its_way(&full);
    atomic_store(&race_rebind, again);
    pthread_t other;
    pthread_create(&other, 0, dissolve, 0);
    long tries = 0, everywhere = 0, under_way = 0;
    const long long end = now_us() + 1000L * atol(a[0]);
    while (now_us() < end) {
        int s = again ? listening() : on_its_way(&full);
        struct tcp_info info = {0};
        socklen_t bytes = sizeof info;
        getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &bytes);
        under_way += info.tcpi_state == (again ? TCP_LISTEN : TCP_SYN_SENT);
        atomic_store(&race_delay, (int)(tries * 7919 % 20000));
        atomic_store(&race_socket, s);
        do listen(s, 8);
        while (atomic_load(&race_socket) >= 0);
        int listens = 0;
        bytes = sizeof listens;
        getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
        struct sockaddr_in at = {0};
        bytes = sizeof at;
        getsockname(s, (void *)&at, &bytes);
        everywhere += listens && at.sin_addr.s_addr == 0;
        tries++;
        close(s);
    }
    atomic_store(&race_stop, 1);
    pthread_join(other, 0);
    dprintf(1, "listen-race tries=%ld under-way=%ld everywhere=%ld\n", tries, under_way, everywhere);
    return 0;
}

/* bind-race: what another thread makes of an address, or of a descriptor, while it is
 * bound by the number that stays. */
static struct sockaddr_in shifting;
static uint32_t elsewhere;
static int shifting_number, spare_tcp, spare_unix;
static void *shift(void *descriptors) {
    while (!atomic_load(&race_stop)) {
        if (descriptors) {
            dup2(spare_unix, shifting_number);
            dup2(spare_tcp, shifting_number);
            continue;
        }
        const uint32_t places[] = {htonl(INADDR_LOOPBACK), 0, elsewhere};
        for (int i = 0; i < 3; i++) *(volatile uint32_t *)&shifting.sin_addr.s_addr = places[i];
    }
    return 0;
}

/* bind-race MILLISECONDS address|descriptor ADDRESS:PORT: binds to loopback, and counts
 * the sockets that are bound to PORT, or listen, anywhere else. */
static int probe_bind_race(int n, char **a) {
    if (n < 3) return 64;
    int descriptors = !strcmp(a[1], "descriptor"), one = 1;
    struct target t = target_of(a[2]);
    shifting = *(struct sockaddr_in *)&t.address;
    const in_port_t port = shifting.sin_port;
    elsewhere = shifting.sin_addr.s_addr;
    if (!descriptors) shifting.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    spare_tcp = socket(AF_INET, SOCK_STREAM, 0);
    spare_unix = socket(AF_UNIX, SOCK_STREAM, 0);
    shifting_number = dup(spare_unix);
    pthread_t other;
    pthread_create(&other, 0, shift, descriptors ? &one : 0);
    long tries = 0, bound = 0, beyond = 0, everywhere = 0;
    const long long end = now_us() + 1000L * atol(a[0]);
    for (; now_us() < end; tries++) {
        int s = descriptors ? -1 : socket(AF_INET, SOCK_STREAM, 0);
        if (descriptors) {
            /* A new socket each time, which the other thread puts in the place. */
            int made = socket(AF_INET, SOCK_STREAM, 0);
            setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
            dup2(made, spare_tcp);
            bind(shifting_number, (void *)&shifting, sizeof shifting);
            s = made;
        } else {
            setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
            bind(s, (void *)&shifting, sizeof shifting);
        }
        listen(s, 8);
        struct sockaddr_in at = {0};
        socklen_t bytes = sizeof at;
        getsockname(s, (void *)&at, &bytes);
        int listens = 0, here = at.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
        bytes = sizeof listens;
        getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
        bound += here && listens;
        beyond += !here && at.sin_port == port;
        everywhere += !here && listens;
        close(s);
    }
    atomic_store(&race_stop, 1);
    pthread_join(other, 0);
    dprintf(1, "bind-race tries=%ld bound=%ld beyond=%ld everywhere=%ld\n", tries, bound, beyond, everywhere);
    return 0;
}

/* beside WHERE TARGET...: listens at WHERE, then connects to each target. */
static int probe_beside(int n, char **a) {
    if (n < 2) return 64;
    struct target t = target_of(a[0]);
    int s = socket(t.family, SOCK_STREAM, 0), one = 1;
    if (t.family == AF_INET6 && !strncmp(a[0], "[::]", 4))
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    report("bind", bind(s, (void *)&t.address, t.bytes), 0);
    report("listen", listen(s, 8), 0);
    for (int i = 1; i < n; i++) {
        struct target to = target_of(a[i]);
        connect_and_leak(a[i], socket(to.family, SOCK_STREAM, 0), &to);
    }
    return 0;
}

const struct probe server_probes[] = {
    {"listen", probe_listen}, {"own-server", probe_own_server}, {"squat", probe_squat},
    {"listen-race", probe_listen_race}, {"beside", probe_beside},
    {"listen-all", probe_listen_all}, {"bind-race", probe_bind_race}, {0, 0}};
