/* What runs inside and bare: calls timed by the program that makes them.
 * Each line of output is a sample in nanoseconds, or two where said.
 *
 *   client first PORT          one GET; prints CLOCK_MONOTONIC at its response
 *   client fresh PORT N        connect, GET, close: connect and whole
 *   client keep PORT N         GETs on one connection
 *   client many PORT N COUNT   N GETs on COUNT connections: nanoseconds in all
 *   client echo PORT N         256 bytes there and back
 *   client send|message|write PORT N   N sends and N receives, not timed
 *   client open PORT N         N opens after one connect, not timed
 *   client hold PORT GATE      one GET, then waits until GATE closes */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ECHO_BYTES 256
#define WARMUP 200
#define CONNECTIONS_MAX 256
#define SECONDS_MAX 60

struct stream {
    int fd;
    size_t have;
    char bytes[8192];
};

static struct stream streams[CONNECTIONS_MAX];
static char request[256];
static size_t request_bytes;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void must(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(1);
}

static int open_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    return fd;
}

static void join(int fd, int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
}

static void hurry(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Ends a connection without a TIME_WAIT, so that ports never run out. */
static void reset(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void ask(struct stream *stream) {
    stream->have = 0;
    must(send(stream->fd, request, request_bytes, 0) == (ssize_t)request_bytes, "send");
}

/* Reads once; whether the response is whole. */
static int hear(struct stream *stream) {
    ssize_t count = recv(stream->fd, stream->bytes + stream->have, sizeof stream->bytes - 1 - stream->have, 0);
    must(count > 0, "response");
    stream->have += (size_t)count;
    stream->bytes[stream->have] = 0;
    char *end = strstr(stream->bytes, "\r\n\r\n");
    if (end == NULL) return 0;
    must(strncmp(stream->bytes, "HTTP/1.1 200", 12) == 0, stream->bytes);
    char *length = strcasestr(stream->bytes, "\r\ncontent-length:");
    must(length != NULL, "no content-length");
    return stream->have >= (size_t)(end + 4 - stream->bytes) + (size_t)atoi(length + 17);
}

static void get(struct stream *stream) {
    ask(stream);
    while (!hear(stream)) {}
}

static void fresh(int port, int count) {
    for (int i = -WARMUP / 4; i < count; i++) {
        streams[0].fd = open_socket();
        long long begin = now();
        join(streams[0].fd, port);
        long long joined = now();
        hurry(streams[0].fd);
        get(&streams[0]);
        long long end = now();
        reset(streams[0].fd);
        if (i >= 0) printf("%lld %lld\n", joined - begin, end - begin);
    }
}

static void keep(int port, int count) {
    streams[0].fd = open_socket();
    join(streams[0].fd, port);
    hurry(streams[0].fd);
    for (int i = -WARMUP; i < count; i++) {
        long long begin = now();
        get(&streams[0]);
        long long end = now();
        if (i >= 0) printf("%lld\n", end - begin);
    }
}

static void many(int port, int count, int connections) {
    static struct pollfd polls[CONNECTIONS_MAX];
    must(connections > 0 && connections <= CONNECTIONS_MAX, "connections");
    for (int i = 0; i < connections; i++) {
        streams[i].fd = polls[i].fd = open_socket();
        polls[i].events = POLLIN;
        join(streams[i].fd, port);
        hurry(streams[i].fd);
        get(&streams[i]);
    }
    long long begin = now();
    for (int i = 0; i < connections; i++) ask(&streams[i]);
    for (int done = 0; done < count;) {
        must(poll(polls, (nfds_t)connections, -1) > 0, "poll");
        for (int i = 0; i < connections && done < count; i++) {
            if (polls[i].revents == 0 || !hear(&streams[i])) continue;
            done++;
            ask(&streams[i]);
        }
    }
    printf("%lld\n", now() - begin);
}

static void echo(int port, int count) {
    static char bytes[ECHO_BYTES];
    int fd = open_socket();
    join(fd, port);
    hurry(fd);
    for (int i = -WARMUP; i < count; i++) {
        long long begin = now();
        must(send(fd, bytes, sizeof bytes, 0) == sizeof bytes, "send");
        must(recv(fd, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes, "recv");
        long long end = now();
        if (i >= 0) printf("%lld\n", end - begin);
    }
}

static void calls(const char *kind, int port, int count) {
    char byte = 'x';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int fd = open_socket();
    join(fd, port);
    hurry(fd);
    for (int i = 0; i < count; i++) {
        if (*kind == 'o') {
            int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
            must(file >= 0, "open");
            close(file);
        } else if (*kind == 's') {
            must(send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1, "send, recv");
        } else if (*kind == 'm') {
            must(sendmsg(fd, &message, 0) == 1 && recvmsg(fd, &message, 0) == 1, "sendmsg, recvmsg");
        } else {
            must(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "write, read");
        }
    }
}

static void hold(int port, int gate) {
    char byte;
    int fd = open_socket();
    streams[0].fd = open_socket();
    join(streams[0].fd, port);
    get(&streams[0]);
    join(fd, gate);
    while (read(fd, &byte, 1) > 0) {}
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *kind = argv[1];
    int port = atoi(argv[2]);
    int count = argc > 3 ? atoi(argv[3]) : 0;
    alarm(SECONDS_MAX);
    request_bytes = (size_t)snprintf(request, sizeof request,
        "GET /measure HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: client\r\nAccept: */*\r\n\r\n", port);
    if (strcmp(kind, "first") == 0) {
        streams[0].fd = open_socket();
        join(streams[0].fd, port);
        get(&streams[0]);
        printf("%lld\n", now());
    } else if (strcmp(kind, "fresh") == 0) {
        fresh(port, count);
    } else if (strcmp(kind, "keep") == 0) {
        keep(port, count);
    } else if (strcmp(kind, "many") == 0) {
        many(port, count, argc > 4 ? atoi(argv[4]) : 1);
    } else if (strcmp(kind, "echo") == 0) {
        echo(port, count);
    } else if (strcmp(kind, "hold") == 0) {
        hold(port, count);
    } else {
        calls(kind, port, count);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
