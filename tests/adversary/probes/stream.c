/* Stream sockets: every way to give a TCP (or TCP-like) socket a destination. */
#include "probe.h"

static int tcp(const struct target *t) { return socket(t->family, SOCK_STREAM, 0); }

/* connect TARGET...: the plain way. */
static int probe_connect(int n, char **a) {
    for (int i = 0; i < n; i++) {
        struct target t = target_of(a[i]);
        connect_and_leak(a[i], tcp(&t), &t);
    }
    return 0;
}

/* fastopen-sendto|sendmsg|sendmmsg TARGET: the destination rides on the send. */
static int probe_fastopen_sendto(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int s = tcp(&t);
    long r = sendto(s, LEAK, LEAK_BYTES, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&t.address, t.bytes);
    report("fastopen-sendto", r, r);
    return 0;
}

static struct msghdr message(struct target *t, struct iovec *v) {
    struct msghdr m;
    memset(&m, 0, sizeof m);
    v->iov_base = (void *)LEAK;
    v->iov_len = (size_t)LEAK_BYTES;
    m.msg_name = &t->address;
    m.msg_namelen = t->bytes;
    m.msg_iov = v;
    m.msg_iovlen = 1;
    return m;
}

static int probe_fastopen_sendmsg(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    struct iovec v;
    struct msghdr m = message(&t, &v);
    long r = sendmsg(tcp(&t), &m, MSG_FASTOPEN | MSG_NOSIGNAL);
    report("fastopen-sendmsg", r, r);
    return 0;
}

static int probe_fastopen_sendmmsg(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    struct iovec v;
    struct mmsghdr m = {.msg_hdr = message(&t, &v)};
    long r = sendmmsg(tcp(&t), &m, 1, MSG_FASTOPEN | MSG_NOSIGNAL);
    report("fastopen-sendmmsg", r, r > 0 ? LEAK_BYTES : 0);
    return 0;
}

/* The flag inside the header, where the kernel does not look. */
static int probe_fastopen_inside(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    struct iovec v;
    struct mmsghdr m = {.msg_hdr = message(&t, &v)};
    m.msg_hdr.msg_flags = MSG_FASTOPEN;
    long r = sendmmsg(tcp(&t), &m, 1, MSG_NOSIGNAL);
    report("fastopen-inside", r, r > 0 ? LEAK_BYTES : 0);
    return 0;
}

/* fastopen-connect TARGET: connect returns at once, the first write dials. */
static int probe_fastopen_connect(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int s = tcp(&t), one = 1;
    report("fastopen-option", setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one), 0);
    connect_and_leak("fastopen-connect", s, &t);
    return 0;
}

/* named-send TARGET: a name given to a send on a socket that is not connected. */
static int probe_named_send(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    long r = sendto(tcp(&t), LEAK, LEAK_BYTES, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
    report("named-sendto", r, r);
    struct iovec v;
    struct msghdr m = message(&t, &v);
    r = sendmsg(tcp(&t), &m, MSG_NOSIGNAL);
    report("named-sendmsg", r, r);
    return 0;
}

/* repair TARGET: a connection made without a handshake. */
static int probe_repair(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int s = tcp(&t), on = 1;
    report("repair-on", setsockopt(s, IPPROTO_TCP, 19 /* TCP_REPAIR */, &on, sizeof on), 0);
    return 0;
}

/* high-bits TARGET: the same calls with bits above 31 set, which the kernel
 * cuts off and a filter that compares 64 bits does not. */
static int probe_high_bits(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    const long high = 0x5a5a5a5a00000000L;
    long s = syscall(SYS_socket, high | t.family, high | SOCK_STREAM, high | IPPROTO_MPTCP);
    if (s >= 0) connect_and_leak("high-mptcp", (int)s, &t);
    else report("high-mptcp", s, 0);
    s = syscall(SYS_socket, high | AF_UNIX, high | SOCK_DGRAM, high);
    report("high-unix-dgram", s, 0);
    s = syscall(SYS_socket, high | 16 /* AF_NETLINK */, high | SOCK_RAW, high | 4);
    report("high-netlink-diag", s, 0);
    long r = syscall(SYS_sendto, high | tcp(&t), LEAK, LEAK_BYTES, high | MSG_FASTOPEN | MSG_NOSIGNAL,
                     &t.address, high | t.bytes);
    report("high-fastopen", r, r);
    int on = 1;
    r = syscall(SYS_setsockopt, high | tcp(&t), high | IPPROTO_TCP, high | TCP_FASTOPEN_CONNECT, &on,
                high | sizeof on);
    report("high-fastopen-option", r, 0);
    int pair[2];
    r = syscall(SYS_socketpair, high | AF_UNIX, high | SOCK_DGRAM, high, pair);
    /* A pair that keeps messages and names nobody is no datagram socket. */
    int type = 0;
    socklen_t bytes = sizeof type;
    if (r == 0 && getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
        type == SOCK_SEQPACKET) {
        r = -1;
        errno = ESOCKTNOSUPPORT;
    }
    report("high-socketpair", r, 0);
    r = syscall(SYS_ioctl, high, high | 0x5412 /* TIOCSTI */, "x");
    report("high-ioctl", r, 0);
    s = syscall(SYS_socket, high | t.family, high | SOCK_STREAM, high);
    if (s >= 0) {
        r = syscall(SYS_connect, high | s, &t.address, high | t.bytes);
        long sent = r == 0 ? leak((int)s) : 0;
        report("high-connect", r, sent);
    }
    return 0;
}

/* protocol FAMILY-OF TARGET NUMBER...: stream sockets of other protocols. */
static int probe_protocol(int n, char **a) {
    struct target t = target_of(a[0]);
    for (int i = 1; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "protocol-%s", a[i]);
        connect_and_leak(name, socket(t.family, SOCK_STREAM, atoi(a[i])), &t);
    }
    return 0;
}

/* others TARGET: protocols beside TCP and UDP, connected where they exist. */
static int probe_others(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    const struct { const char *name; int family, type, protocol; } rows[] = {
        {"sctp-stream", t.family, SOCK_STREAM, 132}, {"sctp-seqpacket", t.family, SOCK_SEQPACKET, 132},
        {"smc", 43, SOCK_STREAM, 0},                 {"dccp", t.family, 6, 33},
        {"udp-lite", t.family, SOCK_DGRAM, 136},     {"smc-as-tcp", t.family, SOCK_STREAM, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        connect_and_leak(rows[i].name, socket(rows[i].family, rows[i].type, rows[i].protocol), &t);
    return 0;
}

/* disconnect TARGET: AF_UNSPEC first, then the same socket again. */
static int probe_disconnect(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    struct sockaddr_storage nowhere = t.address;
    nowhere.ss_family = AF_UNSPEC;
    int s = tcp(&t);
    report("unspec", connect(s, (void *)&nowhere, t.bytes), 0);
    long r = sendto(s, LEAK, LEAK_BYTES, MSG_NOSIGNAL, (void *)&nowhere, t.bytes);
    report("unspec-send", r, r);
    connect_and_leak("unspec-reuse", s, &t);
    return 0;
}

/* reuse FIRST SECOND: connected where it may, then elsewhere with the same socket. */
static int probe_reuse(int n, char **a) {
    struct target first = target_of(a[n - 2]), second = target_of(a[n - 1]);
    struct sockaddr_storage nowhere;
    memset(&nowhere, 0, sizeof nowhere);
    int s = tcp(&first);
    report("first", connect(s, (void *)&first.address, first.bytes), 0);
    report("again", connect(s, (void *)&second.address, second.bytes), 0);
    report("unspec", connect(s, (void *)&nowhere, 16), 0);
    connect_and_leak("second", s, &second);
    return 0;
}

/* device TARGET NAME: bound to an interface, then connected without waiting. */
static int probe_device(int n, char **a) {
    struct target t = target_of(a[n - 2]);
    int s = tcp(&t), index = 1;
    report("bindtodevice", setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, a[n - 1], strlen(a[n - 1])), 0);
    report("bindtoifindex", setsockopt(s, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof index), 0);
    long long start = now_us();
    connect_and_leak("device-connect", s, &t);
    dprintf(1, "took device-connect us=%lld\n", now_us() - start);
    return 0;
}

/* say TARGET TEXT: connects, says TEXT, shows what comes back. */
static int probe_say(int n, char **a) {
    struct target t = target_of(a[0]);
    int s = tcp(&t);
    long r = connect(s, (void *)&t.address, t.bytes);
    if (r == 0 && n > 1) r = send(s, a[1], strlen(a[1]), MSG_NOSIGNAL);
    report("say", r, r > 0 ? r : 0);
    if (r < 0) return 0;
    struct timeval limit = {.tv_sec = 5};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char buffer[4096];
    ssize_t got;
    while ((got = recv(s, buffer, sizeof buffer, 0)) > 0)
        if (write(1, buffer, (size_t)got) < 0) break;
    dprintf(1, "\n");
    return 0;
}

const struct probe stream_probes[] = {
    {"connect", probe_connect},
    {"fastopen-sendto", probe_fastopen_sendto},
    {"fastopen-sendmsg", probe_fastopen_sendmsg},
    {"fastopen-sendmmsg", probe_fastopen_sendmmsg},
    {"fastopen-inside", probe_fastopen_inside},
    {"fastopen-connect", probe_fastopen_connect},
    {"named-send", probe_named_send},
    {"repair", probe_repair},
    {"high-bits", probe_high_bits},
    {"protocol", probe_protocol},
    {"others", probe_others},
    {"disconnect", probe_disconnect},
    {"reuse", probe_reuse},
    {"device", probe_device},
    {"say", probe_say},
    {0, 0},
};
