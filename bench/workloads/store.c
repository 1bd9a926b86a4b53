/* An origin on 127.0.0.1 for `load`: `GET …/bytes/N` has N bytes of content,
 * whatever a POST sends is read and dropped, `GET …/events/…` has one
 * server-sent event and stays open. Prints its port and ends when its standard
 * input does. One thread, epoll, nothing blocks. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 16384
#define HEAD_BYTES_MAX 2048

struct stream {
    long long unread, unsent; /* content of the request, of the response */
    long long answer;         /* size of the response to come, -1: events */
    int head_unsent, is_busy;
    size_t have;
    char head[HEAD_BYTES_MAX]; /* of the request, then of the response */
};

static struct stream *streams[DESCRIPTORS_MAX];
static char filler[262144], rest[262144];
static int poller;

static void watch(int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

static void end(int fd) {
    free(streams[fd]);
    streams[fd] = NULL;
    close(fd);
}

/* Sends what the socket takes; 1 when all is sent, 0 when not, -1 when it fails. */
static int push(int fd, struct stream *stream) {
    while (stream->head_unsent > 0 || stream->unsent > 0) {
        struct iovec parts[2] = {{stream->head + stream->have - stream->head_unsent, (size_t)stream->head_unsent}, {filler, 0}};
        parts[1].iov_len = stream->unsent < (long long)sizeof filler ? (size_t)stream->unsent : sizeof filler;
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return 0;
        if (sent == 0) return -1;
        ssize_t of_head = sent < stream->head_unsent ? sent : stream->head_unsent;
        stream->head_unsent -= (int)of_head;
        stream->unsent -= sent - of_head;
    }
    stream->is_busy = 0;
    stream->have = 0;
    return 1;
}

static void respond(int fd, struct stream *stream) {
    stream->is_busy = 1;
    if (stream->answer < 0) {
        stream->have = (size_t)snprintf(stream->head, sizeof stream->head,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
            "Transfer-Encoding: chunked\r\n\r\nd\r\ndata: first\n\n\r\n");
        stream->unsent = 0;
    } else {
        stream->have = (size_t)snprintf(stream->head, sizeof stream->head,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %lld\r\n\r\n", stream->answer);
        stream->unsent = stream->answer;
    }
    stream->head_unsent = (int)stream->have;
    if (push(fd, stream) == 0) watch(fd, EPOLLIN | EPOLLOUT);
}

/* Reads once. */
static int hear(int fd, struct stream *stream) {
    if (stream->unread > 0) {
        size_t size = stream->unread < (long long)sizeof rest ? (size_t)stream->unread : sizeof rest;
        ssize_t count = recv(fd, rest, size, MSG_DONTWAIT);
        if (count <= 0) return -1;
        stream->unread -= count;
    } else {
        ssize_t count = recv(fd, stream->head + stream->have, sizeof stream->head - 1 - stream->have, MSG_DONTWAIT);
        if (count <= 0) return -1;
        stream->have += (size_t)count;
        stream->head[stream->have] = 0;
        char *blank = strstr(stream->head, "\r\n\r\n");
        if (blank == NULL) return stream->have + 1 < sizeof stream->head ? 0 : -1;
        char *bytes = strstr(stream->head, "/bytes/"), *length = strcasestr(stream->head, "\r\ncontent-length:");
        stream->answer = bytes != NULL ? atoll(bytes + 7) : -1;
        stream->unread = length == NULL ? 0 : atoll(length + 17) - (long long)(stream->have - (size_t)(blank + 4 - stream->head));
    }
    if (stream->unread <= 0) respond(fd, stream);
    return 0;
}

static void serve(int fd, unsigned events) {
    struct stream *stream = streams[fd];
    if (stream->is_busy && events & EPOLLOUT) {
        int done = push(fd, stream);
        if (done < 0) return end(fd);
        if (done > 0) watch(fd, EPOLLIN);
        return;
    }
    /* While a response is on its way only the end of the connection can come. */
    if (stream->is_busy && !(events & (EPOLLHUP | EPOLLERR))) return;
    if (hear(fd, stream) != 0) end(fd);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct rlimit files = {DESCRIPTORS_MAX, DESCRIPTORS_MAX};
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    setrlimit(RLIMIT_NOFILE, &files);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    memset(filler, 'x', sizeof filler);
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = 0;
    epoll_ctl(poller, EPOLL_CTL_ADD, 0, &event);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == 0) return 0;
            if (fd != listener) {
                if (streams[fd] != NULL) serve(fd, events[i].events);
                continue;
            }
            fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd < 0) continue;
            if (fd >= DESCRIPTORS_MAX || (streams[fd] = calloc(1, sizeof **streams)) == NULL) {
                close(fd);
                continue;
            }
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            event.data.fd = fd;
            event.events = EPOLLIN;
            epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
