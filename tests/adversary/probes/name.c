/* DNS: questions written by hand, so that no library stands between. */
#include "probe.h"
#include <arpa/inet.h>

static size_t question(unsigned char *out, const char *name, int type) {
    memcpy(out, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
    size_t at = 12;
    while (*name) {
        size_t label = strcspn(name, ".");
        if (label > 63 || at + label + 6 > 500) break;
        out[at++] = (unsigned char)label;
        memcpy(out + at, name, label);
        at += label;
        name += label;
        if (*name == '.') name++;
    }
    out[at++] = 0;
    out[at++] = 0;
    out[at++] = (unsigned char)type;
    out[at++] = 0;
    out[at++] = 1;
    return at;
}

static void show(const char *how, const char *name, int type, const unsigned char *reply, long bytes, size_t asked) {
    if (bytes < 12) {
        dprintf(1, "answer %s %s type=%d none\n", how, name, type);
        return;
    }
    int count = reply[6] << 8 | reply[7], code = reply[3] & 15;
    char text[INET_ADDRSTRLEN] = "-";
    const unsigned char *record = reply + asked;
    /* owner (compressed or repeated), type, class, ttl, length, data */
    if (count > 0 && bytes > (long)asked + 12) {
        if ((record[0] & 0xc0) == 0xc0) record += 2;
        else while (record < reply + bytes && *record++) {
        }
        if (record + 14 <= reply + bytes && record[1] == 1) inet_ntop(AF_INET, record + 10, text, sizeof text);
    }
    dprintf(1, "answer %s %s type=%d code=%d count=%d first=%s\n", how, name, type, code, count, text);
}

/* ask SERVER NAME TYPE: over TCP and over UDP. */
static int probe_ask(int n, char **a) {
    if (n < 3) return 64;
    struct target t = target_of(a[0]);
    int type = atoi(a[2]);
    unsigned char message[514], reply[2048];
    size_t bytes = question(message + 2, a[1], type);
    message[0] = (unsigned char)(bytes >> 8);
    message[1] = (unsigned char)bytes;
    struct timeval limit = {.tv_sec = 2};
    int s = socket(t.family, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    long r = connect(s, (void *)&t.address, t.bytes);
    report("ask-tcp", r, 0);
    if (r == 0) {
        send(s, message, bytes + 2, MSG_NOSIGNAL);
        long got = 0;
        while (got < 2 || got < 2 + (reply[0] << 8 | reply[1])) {
            r = recv(s, reply + got, sizeof reply - (size_t)got, 0);
            if (r <= 0) break;
            got += r;
        }
        show("tcp", a[1], type, reply + 2, got - 2, bytes);
    }
    close(s);
    s = socket(t.family, SOCK_DGRAM, 0);
    report("ask-udp", s, 0);
    if (s < 0) return 0;
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    r = sendto(s, message + 2, bytes, MSG_NOSIGNAL, (void *)&t.address, t.bytes);
    report("ask-udp-send", r, 0);
    struct sockaddr_storage from;
    socklen_t from_bytes = sizeof from;
    r = recvfrom(s, reply, sizeof reply, 0, (void *)&from, &from_bytes);
    show("udp", a[1], type, reply, r, bytes);
    if (r > 0)
        dprintf(1, "source udp same=%d\n",
                !memcmp(&((struct sockaddr_in *)&from)->sin_addr, &((struct sockaddr_in *)&t.address)->sin_addr, 4));
    return 0;
}

const struct probe name_probes[] = {{"ask", probe_ask}, {0, 0}};
