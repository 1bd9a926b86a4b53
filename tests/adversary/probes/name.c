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

/* The address a name stands for, asked over TCP; 0 when there is none. */
static uint32_t address_of(const char *server, const char *name) {
    struct target t = target_of(server);
    unsigned char message[514], reply[2048];
    size_t bytes = question(message + 2, name, 1);
    message[0] = (unsigned char)(bytes >> 8);
    message[1] = (unsigned char)bytes;
    int s = socket(t.family, SOCK_STREAM, 0);
    if (connect(s, (void *)&t.address, t.bytes) || send(s, message, bytes + 2, MSG_NOSIGNAL) < 0) return 0;
    long got = 0, r;
    while (got < 2 || got < 2 + (reply[0] << 8 | reply[1])) {
        r = recv(s, reply + got, sizeof reply - (size_t)got, 0);
        if (r <= 0) return 0;
        got += r;
    }
    close(s);
    uint32_t address;
    if (got < (long)bytes + 2 + 16 || (reply[2 + 6] << 8 | reply[2 + 7]) == 0) return 0;
    memcpy(&address, reply + 2 + bytes + 12, 4);
    return address;
}

/* fetch NAME PORT TEXT...: one connection, each text sent after the answer to
 * the one before (which ends at its Content-Length, or when nothing comes). A text
 * of `@FILE` is what the file holds. */
static int probe_fetch(int n, char **a) {
    if (n < 3) return 64;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(a[1]))};
    if (inet_pton(AF_INET, a[0], &to.sin_addr) != 1) to.sin_addr.s_addr = address_of("127.0.0.53:53", a[0]);
    char text[INET_ADDRSTRLEN];
    dprintf(1, "fetch %s is %s\n", a[0], inet_ntop(AF_INET, &to.sin_addr, text, sizeof text));
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval limit = {.tv_sec = 3};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    long r = connect(s, (void *)&to, sizeof to);
    report("fetch", r, 0);
    for (int i = 2; r == 0 && i < n; i++) {
        size_t size = strlen(a[i]);
        char *text = a[i];
        if (text[0] == '@') {
            FILE *file = fopen(text + 1, "r");
            if (!file) return 65;
            text = calloc(1, 1 << 20);
            size = fread(text, 1, 1 << 20, file);
            fclose(file);
        }
        /* Who refuses it may not read all of it. */
        for (ssize_t part; size > 0 && (part = send(s, text, size, MSG_NOSIGNAL)) > 0; size -= (size_t)part) text += part;
        char reply[16384] = "";
        size_t got = 0;
        while (got < sizeof reply - 1) {
            ssize_t part = recv(s, reply + got, sizeof reply - 1 - got, 0);
            if (part <= 0) {
                if (part == 0) dprintf(1, "<closed>");
                break;
            }
            got += (size_t)part;
            reply[got] = 0;
            char *end = strstr(reply, "\r\n\r\n"), *length = strcasestr(reply, "content-length:");
            if (end && length && length < end && got >= (size_t)(end + 4 - reply) + (size_t)atol(length + 15)) break;
        }
        dprintf(1, "reply %d: %s\n", i - 1, reply);
    }
    return 0;
}

const struct probe name_probes[] = {{"ask", probe_ask}, {"fetch", probe_fetch}, {0, 0}};
