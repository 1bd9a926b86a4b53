/* `probe NAME ARGUMENTS`: runs one probe. */
#include "probe.h"
#include <arpa/inet.h>

struct target target_of(const char *text) {
    struct target t;
    memset(&t, 0, sizeof t);
    if (!strncmp(text, "unix:", 5) || !strncmp(text, "abstract:", 9)) {
        struct sockaddr_un *a = (void *)&t.address;
        int abstract = text[0] == 'a';
        const char *name = strchr(text, ':') + 1;
        size_t n = strlen(name);
        if (n >= sizeof a->sun_path) n = sizeof a->sun_path - 1;
        a->sun_family = t.family = AF_UNIX;
        memcpy(a->sun_path + abstract, name, n);
        t.bytes = offsetof(struct sockaddr_un, sun_path) + n + 1;
        return t;
    }
    char host[128];
    const char *colon = strrchr(text, ':');
    if (!colon) {
        fprintf(stderr, "probe: no port in %s\n", text);
        exit(64);
    }
    int brackets = text[0] == '[';
    size_t n = (size_t)(colon - text) - (brackets ? 2 : 0);
    if (n >= sizeof host) exit(64);
    memcpy(host, text + (brackets ? 1 : 0), n);
    host[n] = 0;
    uint16_t port = htons((uint16_t)atoi(colon + 1));
    if (brackets) {
        struct sockaddr_in6 *a = (void *)&t.address;
        a->sin6_family = t.family = AF_INET6;
        a->sin6_port = port;
        if (inet_pton(AF_INET6, host, &a->sin6_addr) != 1) exit(64);
        t.bytes = sizeof *a;
    } else {
        struct sockaddr_in *a = (void *)&t.address;
        a->sin_family = t.family = AF_INET;
        a->sin_port = port;
        if (inet_pton(AF_INET, host, &a->sin_addr) != 1) exit(64);
        t.bytes = sizeof *a;
    }
    return t;
}

static const char *errno_name(int e) {
    if (e == 0) return "0";
    if (e == EOPNOTSUPP) return "EOPNOTSUPP";
    if (e == EAGAIN) return "EAGAIN";
    const char *name = strerrorname_np(e);
    return name ? name : "E?";
}

void report(const char *name, long outcome, long sent) {
    int e = outcome == -1 ? errno : 0;
    dprintf(1, "result %s errno=%s(%d) sent=%ld\n", name, errno_name(e), e, sent > 0 ? sent : 0);
}

long leak(int s) { return send(s, LEAK, LEAK_BYTES, MSG_NOSIGNAL); }

void connect_and_leak(const char *name, int s, const struct target *t) {
    if (s < 0) {
        report(name, -1, 0);
        return;
    }
    long r = connect(s, (void *)&t->address, t->bytes);
    long sent = 0;
    if (r == 0) sent = leak(s);
    report(name, r == 0 && sent < 0 ? -1 : r, sent);
    close(s);
}

long long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    const struct probe *const tables[] = {stream_probes,  datagram_probes,  local_probes,
                                          process_probes, ring_probes,      privilege_probes,
                                          filter_probes,  race_probes,      shape_probes,
                                          load_probes,    server_probes,    name_probes,    hold_probes,
                                          storm_probes,   freed_probes,     mute_probes,      wait_probes};
    if (argc < 2) {
        fprintf(stderr, "probe: no name given\n");
        return 64;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct probe *p = tables[i]; p->name; p++)
            if (!strcmp(p->name, argv[1])) return p->run(argc - 2, argv + 2);
    fprintf(stderr, "probe: no probe is called %s\n", argv[1]);
    return 64;
}
