/* Sockets that name a destination at send time, and every family beside. */
#include "probe.h"
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/ioctl.h>

/* datagram TARGET...: sendto, sendmsg and connect+send on UDP. */
static int probe_datagram(int n, char **a) {
    for (int i = 0; i < n; i++) {
        struct target t = target_of(a[i]);
        int s = socket(t.family, SOCK_DGRAM, 0);
        report("socket", s, 0);
        if (s < 0) continue;
        long r = sendto(s, LEAK, LEAK_BYTES, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
        report("sendto", r, r);
        struct iovec v = {(void *)LEAK, LEAK_BYTES};
        struct mmsghdr m = {.msg_hdr = {.msg_name = &t.address, .msg_namelen = t.bytes, .msg_iov = &v, .msg_iovlen = 1}};
        r = sendmsg(s, &m.msg_hdr, MSG_NOSIGNAL);
        report("sendmsg", r, r);
        r = sendmmsg(s, &m, 1, MSG_NOSIGNAL);
        report("sendmmsg", r, r > 0 ? LEAK_BYTES : 0);
        r = connect(s, (void *)&t.address, t.bytes);
        report("connect", r, 0);
        r = leak(s);
        report("send", r, r);
        close(s);
    }
    return 0;
}

/* One datagram with a source chosen by control message. */
static void with_source(const char *name, int s, const struct target *t, const char *device, uint32_t source) {
    char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    memset(control, 0, sizeof control);
    struct iovec v = {(void *)LEAK, LEAK_BYTES};
    struct msghdr m = {.msg_name = (void *)&t->address, .msg_namelen = t->bytes, .msg_iov = &v, .msg_iovlen = 1,
                       .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    unsigned index = device ? if_nametoindex(device) : 0;
    if (t->family == AF_INET) {
        struct in_pktinfo info = {.ipi_ifindex = (int)index, .ipi_spec_dst = {source}};
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(c), &info, sizeof info);
        m.msg_controllen = CMSG_SPACE(sizeof info);
    } else {
        struct in6_pktinfo info;
        memset(&info, 0, sizeof info);
        info.ipi6_ifindex = index;
        c->cmsg_level = IPPROTO_IPV6;
        c->cmsg_type = IPV6_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(c), &info, sizeof info);
    }
    long r = sendmsg(s, &m, MSG_NOSIGNAL);
    report(name, r, r);
}

/* sealed TARGET...: out of a sealed network by source, interface or route. */
static int probe_sealed(int n, char **a) {
    for (int i = 0; i < n; i++) {
        struct target t = target_of(a[i]);
        int s = socket(t.family, SOCK_DGRAM, 0);
        report("socket", s, 0);
        if (s < 0) continue;
        with_source("pktinfo", s, &t, 0, 0);
        with_source("pktinfo-lo", s, &t, "lo", 0);
        for (int index = 0; index < 5; index++) {
            char name[32], device[IF_NAMESIZE];
            snprintf(name, sizeof name, "pktinfo-%d", index);
            with_source(name, s, &t, if_indextoname((unsigned)index, device), htonl(0x7f000001));
        }
        int on = 1, route = 1;
        report("broadcast", setsockopt(s, SOL_SOCKET, SO_BROADCAST, &on, sizeof on), 0);
        report("dontroute", setsockopt(s, SOL_SOCKET, SO_DONTROUTE, &route, sizeof route), 0);
        report("bindtodevice", setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2), 0);
        long r = sendto(s, LEAK, LEAK_BYTES, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
        report("sendto", r, r);
        r = ioctl(s, 0x894C /* SIOCGSKNS */);
        report("siocgskns", r, 0);
        if (r >= 0) report("setns", setns((int)r, 0), 0);
        close(s);
    }
    return 0;
}

/* mailbox TARGET: binds there, takes a datagram of its own, and at the next
 * byte of standard input says how many of others came. */
static int probe_mailbox(int n, char **a) {
    if (n < 1) return 64;
    struct target t = target_of(a[0]);
    int s = socket(t.family, SOCK_DGRAM, 0);
    report("bind", bind(s, (void *)&t.address, t.bytes), 0);
    long r = sendto(s, "own", 3, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
    report("own", r, r);
    char buffer[64];
    dprintf(1, "ready own=%d\n", recv(s, buffer, sizeof buffer, 0) == 3);
    long received = 0;
    if (read(0, buffer, 1) < 0) return 1;
    while (recv(s, buffer, sizeof buffer, MSG_DONTWAIT) >= 0) received++;
    dprintf(1, "received=%ld\n", received);
    return 0;
}

/* A socket that should not exist; if it does, an echo request is sent. */
static int probe_raw(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    int six = t.family == AF_INET6;
    unsigned char echo[16] = {six ? 128 : 8, 0};
    unsigned sum = 0;
    for (int i = 0; i < 16; i += 2) sum += (unsigned)(echo[i] << 8 | echo[i + 1]);
    sum = ~sum;
    echo[2] = (unsigned char)(sum >> 8);
    echo[3] = (unsigned char)sum;
    const struct { const char *name; int type, protocol; } rows[] = {
        {"ping", SOCK_DGRAM, six ? 58 : 1},
        {"raw-icmp", SOCK_RAW, six ? 58 : 1},
        {"raw-tcp", SOCK_RAW, 6},
        {"raw-ip", SOCK_RAW, 255},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int s = socket(t.family, rows[i].type, rows[i].protocol);
        if (s < 0) {
            report(rows[i].name, -1, 0);
            continue;
        }
        long r = sendto(s, echo, sizeof echo, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
        report(rows[i].name, s, r);
        close(s);
    }
    report("packet-raw", socket(AF_PACKET, SOCK_RAW, htons(3)), 0);
    report("packet-dgram", socket(AF_PACKET, SOCK_DGRAM, htons(3)), 0);
    report("packet-old", socket(AF_INET, 10 /* SOCK_PACKET */, htons(3)), 0);
    return 0;
}

/* vsock: to the host of this machine. */
static int probe_vsock(int n, char **a) {
    (void)n, (void)a;
    struct { unsigned short family, zero; unsigned port, cid; unsigned char pad[4]; } host = {40, 0, 9, 2, {0}};
    const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "vsock-%d", types[i]);
        int s = socket(40, types[i] | SOCK_NONBLOCK, 0);
        report(name, s, 0);
        if (s >= 0) connect(s, (void *)&host, sizeof host), close(s);
    }
    return 0;
}

/* families: each family with each type; only what opens is named. */
static int probe_families(int n, char **a) {
    (void)n, (void)a;
    for (int family = 0; family < 64; family++)
        for (int type = 1; type <= 10; type++) {
            int s = socket(family, type, 0);
            if (s < 0) continue;
            char name[32];
            snprintf(name, sizeof name, "family-%d-%d", family, type);
            report(name, 0, 0);
            close(s);
        }
    return 0;
}

/* netlink: each protocol. */
static int probe_netlink(int n, char **a) {
    (void)n, (void)a;
    for (int protocol = 0; protocol < 32; protocol++) {
        char name[32];
        snprintf(name, sizeof name, "netlink-%d", protocol);
        int s = socket(AF_NETLINK, SOCK_RAW, protocol);
        report(name, s, 0);
        if (s >= 0) close(s);
    }
    return 0;
}

/* administer: what a network's owner may do with it, over a datagram socket. */
static int probe_administer(int n, char **a) {
    (void)n, (void)a;
    char table[256] = {0}, name[16] = "br-test";
    struct ifreq request = {.ifr_name = "tunl0"};
    for (int six = 0; six < 2; six++) {
        int s = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), level = six ? IPPROTO_IPV6 : IPPROTO_IP;
        const char *family = six ? "6" : "4";
        const struct { const char *name; int option; } rows[] = {
            {"filter", 64}, {"xfrm", six ? 35 : 17}, {"ipsec", six ? 34 : 16}, {"arp", 96}, {"bridge-filter", 128},
        };
        for (int i = 0; i < (six ? 3 : 5); i++) {
            snprintf(name, sizeof name, "%s%s", rows[i].name, family);
            report(name, setsockopt(s, level, rows[i].option, table, sizeof table), 0);
        }
        snprintf(name, sizeof name, "br-test");
        report(six ? "add-bridge6" : "add-bridge4", ioctl(s, 0x89a0, name), 0);
        report(six ? "add-tunnel6" : "add-tunnel4", ioctl(s, 0x89f1, &request), 0);
        close(s);
    }
    return 0;
}

/* sweep: every option and every request of datagram sockets, one socket each; options that the
   kernel does not have are not reported. */
static int probe_sweep(int n, char **a) {
    (void)n, (void)a;
    static const int levels[] = {IPPROTO_IP, SOL_SOCKET, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6, 58, 136, 255};
    const char zeros[256] = {0}, one[4] = {1};
    char name[48];
    for (int six = 0; six < 2; six++) {
        int family = six ? AF_INET6 : AF_INET, rows = sizeof levels / sizeof *levels;
        for (int at = 0; at < 2 * rows * 1300; at++) {
            int form = at & 1, level = levels[at / 2 % rows], option = at / 2 / rows;
            int s = socket(family, SOCK_DGRAM, 0);
            int done = form ? setsockopt(s, level, option, zeros, sizeof zeros) : setsockopt(s, level, option, one, sizeof one);
            snprintf(name, sizeof name, "option-%d-%d-%d-%s", family, level, option, form ? "zeros" : "one");
            if (done == 0 || errno != ENOPROTOOPT) report(name, done, 0);
            close(s);
        }
        for (int op = 0x8900; op < 0x8a00; op++) {
            struct ifreq request = {.ifr_name = "lo"};
            int s = socket(family, SOCK_DGRAM, 0), done = ioctl(s, op, &request);
            snprintf(name, sizeof name, "ioctl-%d-%x", family, op);
            report(name, done, 0);
            close(s);
        }
    }
    return 0;
}

const struct probe datagram_probes[] = {
    {"administer", probe_administer}, {"sweep", probe_sweep},
    {"datagram", probe_datagram}, {"sealed", probe_sealed},     {"raw", probe_raw},
    {"mailbox", probe_mailbox},
    {"vsock", probe_vsock},       {"families", probe_families}, {"netlink", probe_netlink},
    {0, 0},
};
