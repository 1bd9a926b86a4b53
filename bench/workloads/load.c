/* One client under load: the same requests bare, inside, or through a proxy.
 *
 *   load PORT PROXY KIND CONNECTIONS COUNT BYTES
 *
 * PROXY is 0, or the port of a forward proxy on 127.0.0.1. Kinds:
 *   get     GETs of BYTES on kept connections, always one under way on each
 *   post    POSTs of BYTES, likewise
 *   fresh   GETs of BYTES, each on a new connection, one after the other
 *   paced   GETs of BYTES on one connection, 200 a second
 *   event   the first server-sent event of each new connection
 *   idle    CONNECTIONS connections with one GET each, then nothing
 *
 * Warms up, prints a line, waits for a line, works, prints `total p50 p99 max`
 * in nanoseconds, waits for a line, closes its connections, prints a line and
 * waits for the last one: whoever measures looks at the proxy meanwhile. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define SAMPLES_MAX 2000000
#define SECONDS_MAX 100
#define PACE_NS 5000000LL

struct stream {
    int fd;
    long long begun, unsent, unread;
    size_t have;
    char head[4096];
};

static struct stream streams[CONNECTIONS_MAX];
static long long samples[SAMPLES_MAX];
static int taken;
static int port, proxy;
static char request[512], block[262144], filler[262144];
static size_t request_bytes;
static long long content_bytes;
static int is_post;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void must(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void take(long long sample) {
    if (taken < SAMPLES_MAX) samples[taken++] = sample;
}

/* The other side looks at the proxy; goes on when it says so. */
static void meet(const char *line) {
    char answer[16];
    printf("%s\n", line);
    fflush(stdout);
    must(fgets(answer, sizeof answer, stdin) != NULL, "standard input");
}

static void join(struct stream *stream) {
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((unsigned short)(proxy != 0 ? proxy : port));
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(stream->fd >= 0, "socket");
    must(connect(stream->fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Ends a connection without a TIME_WAIT, so that ports never run out. */
static void reset(struct stream *stream) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(stream->fd);
}

/* Sends what is left of the content; -1 when the socket is full. */
static int push(struct stream *stream, int flags) {
    while (stream->unsent > 0) {
        size_t size = stream->unsent < (long long)sizeof filler ? (size_t)stream->unsent : sizeof filler;
        ssize_t sent = send(stream->fd, filler, size, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EAGAIN) return -1;
        must(sent > 0, "send content");
        stream->unsent -= sent;
    }
    return 0;
}

static void ask(struct stream *stream) {
    stream->have = 0;
    stream->unread = -1;
    stream->unsent = is_post ? content_bytes : 0;
    stream->begun = now();
    must(send(stream->fd, request, request_bytes, MSG_NOSIGNAL) == (ssize_t)request_bytes, "send");
    push(stream, MSG_DONTWAIT);
}

/* Reads once; whether the response is whole. */
static int hear(struct stream *stream) {
    if (stream->unread < 0) {
        ssize_t count = recv(stream->fd, stream->head + stream->have, sizeof stream->head - 1 - stream->have, 0);
        must(count >= 0, "response");
        if (count == 0) {
            fprintf(stderr, "the connection was closed before a response\n");
            exit(1);
        }
        stream->have += (size_t)count;
        stream->head[stream->have] = 0;
        char *end = strstr(stream->head, "\r\n\r\n");
        if (end == NULL) return 0;
        if (strncmp(stream->head + 8, " 200", 4) != 0) {
            fprintf(stderr, "not 200: %s\n", stream->head);
            exit(1);
        }
        char *length = strcasestr(stream->head, "\r\ncontent-length:");
        must(length != NULL, "no content-length");
        stream->unread = atoll(length + 17) - (long long)(stream->have - (size_t)(end + 4 - stream->head));
    } else {
        size_t size = stream->unread < (long long)sizeof block ? (size_t)stream->unread : sizeof block;
        ssize_t count = recv(stream->fd, block, size, 0);
        must(count > 0, "content");
        stream->unread -= count;
    }
    if (stream->unread != 0) return 0;
    take(now() - stream->begun);
    return 1;
}

static void get(struct stream *stream) {
    ask(stream);
    push(stream, 0);
    while (!hear(stream)) {}
}

static void keep(int connections, int count) {
    static struct pollfd polls[CONNECTIONS_MAX];
    if (connections == 1) {
        for (int i = 0; i < count; i++) get(&streams[0]);
        return;
    }
    int asked = 0;
    for (int i = 0; i < connections; i++) {
        polls[i].fd = asked < count ? streams[i].fd : -1;
        if (asked < count) ask(&streams[i]);
        asked++;
    }
    for (int done = 0; done < count;) {
        for (int i = 0; i < connections; i++) polls[i].events = streams[i].unsent > 0 ? POLLIN | POLLOUT : POLLIN;
        must(poll(polls, (nfds_t)connections, -1) > 0, "poll");
        for (int i = 0; i < connections; i++) {
            if (polls[i].fd < 0 || polls[i].revents == 0) continue;
            if (streams[i].unsent > 0 && polls[i].revents & POLLOUT) push(&streams[i], MSG_DONTWAIT);
            if (!(polls[i].revents & ~POLLOUT) || !hear(&streams[i])) continue;
            done++;
            if (asked++ < count) ask(&streams[i]);
            else polls[i].fd = -1;
        }
    }
}

static void fresh(int count) {
    for (int i = 0; i < count; i++) {
        long long begun = now();
        join(&streams[0]);
        get(&streams[0]);
        samples[taken - 1] = now() - begun;
        reset(&streams[0]);
    }
}

static void paced(int count) {
    long long due = now();
    for (int i = 0; i < count; i++) {
        due += PACE_NS;
        struct timespec time = {.tv_sec = due / 1000000000LL, .tv_nsec = due % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
        get(&streams[0]);
    }
}

static void events(int count) {
    for (int i = 0; i < count; i++) {
        struct stream *stream = &streams[0];
        long long begun = now();
        join(stream);
        must(send(stream->fd, request, request_bytes, MSG_NOSIGNAL) == (ssize_t)request_bytes, "send");
        stream->have = 0;
        stream->head[0] = 0;
        while (strstr(stream->head, "data: ") == NULL) {
            ssize_t count = recv(stream->fd, stream->head + stream->have, sizeof stream->head - 1 - stream->have, 0);
            must(count > 0, "event");
            stream->have += (size_t)count;
            stream->head[stream->have] = 0;
        }
        take(now() - begun);
        reset(stream);
    }
}

static int by_size(const void *left, const void *right) {
    long long a = *(const long long *)left, b = *(const long long *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    port = atoi(argv[1]);
    proxy = atoi(argv[2]);
    const char *kind = argv[3];
    int connections = atoi(argv[4]), count = atoi(argv[5]);
    content_bytes = atoll(argv[6]);
    is_post = strcmp(kind, "post") == 0;
    int is_idle = strcmp(kind, "idle") == 0, is_event = strcmp(kind, "event") == 0;
    int keeps = strcmp(kind, "fresh") != 0 && !is_event;
    must(connections > 0 && connections <= CONNECTIONS_MAX, "connections");
    alarm(SECONDS_MAX);
    /* As an archive, an image or a pack is: bytes in no order (xorshift64). */
    unsigned long long state = 88172645463325252ULL;
    for (size_t i = 0; i < sizeof filler; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        filler[i] = (char)(state >> 32);
    }
    char origin[64] = "", content[64] = "";
    if (proxy != 0) snprintf(origin, sizeof origin, "http://127.0.0.1:%d", port);
    if (is_post) snprintf(content, sizeof content, "Content-Length: %lld\r\n", content_bytes);
    request_bytes = (size_t)snprintf(request, sizeof request,
        "%s %s/%s%lld HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: client\r\nAccept: */*\r\n%s\r\n",
        is_post ? "POST" : "GET", origin, is_event ? "events/" : "bytes/", is_post ? 2 : content_bytes, port, content);
    if (keeps && !is_idle)
        for (int i = 0; i < connections; i++) join(&streams[i]);
    int warm = content_bytes > 4000000 ? 0 : is_event ? 2 : 100;
    if (strcmp(kind, "get") == 0 || is_post) {
        if (warm > 0) keep(connections, warm + connections);
    } else if (strcmp(kind, "paced") == 0) {
        paced(warm / 4);
    } else if (is_event) {
        events(warm);
    } else if (!is_idle) {
        fresh(warm / 4);
    }
    taken = 0;
    meet("ready");
    long long begun = now();
    if (is_idle)
        for (int i = 0; i < connections; i++) {
            join(&streams[i]);
            get(&streams[i]);
        }
    else if (strcmp(kind, "get") == 0 || is_post)
        keep(connections, count);
    else if (strcmp(kind, "paced") == 0)
        paced(count);
    else if (is_event)
        events(count);
    else
        fresh(count);
    long long total = now() - begun;
    must(taken > 0, "no sample");
    qsort(samples, (size_t)taken, sizeof *samples, by_size);
    char line[128];
    snprintf(line, sizeof line, "%lld %lld %lld %lld", total, samples[(taken - 1) / 2],
        samples[(long long)(taken - 1) * 99 / 100], samples[taken - 1]);
    meet(line);
    if (keeps)
        for (int i = 0; i < connections; i++) close(streams[i].fd);
    meet("closed");
    return 0;
}
