/* A tiny origin on 127.0.0.1: `origin echo` sends back what it gets, `origin
 * http` answers each request (it looks for the empty line only) with 1 KiB.
 * Prints its port and ends when its standard input does. One thread, epoll. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTENT_BYTES 1024
#define DESCRIPTORS_MAX 4096

static char answer[CONTENT_BYTES + 256];
static size_t answer_bytes;
/* How many bytes of the empty line's CR LF CR LF each connection has sent. */
static unsigned char matched[DESCRIPTORS_MAX];

static int all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

static int answer_requests(int fd, const char *bytes, ssize_t count) {
    static const char end[] = "\r\n\r\n";
    unsigned char state = matched[fd];
    for (ssize_t i = 0; i < count; i++) {
        state = bytes[i] == end[state] ? state + 1 : bytes[i] == '\r';
        if (state < 4) continue;
        state = 0;
        if (all(fd, answer, answer_bytes) != 0) return -1;
    }
    matched[fd] = state;
    return 0;
}

static void serve(int fd, int http) {
    static char bytes[65536];
    ssize_t count = recv(fd, bytes, sizeof bytes, 0);
    if (count > 0 && (http ? answer_requests(fd, bytes, count) : all(fd, bytes, (size_t)count)) == 0) return;
    close(fd);
}

int main(int argc, char **argv) {
    int http = argc > 1 && strcmp(argv[1], "http") == 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    answer_bytes = (size_t)snprintf(answer, sizeof answer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", CONTENT_BYTES);
    memset(answer + answer_bytes, 'x', CONTENT_BYTES);
    answer_bytes += CONTENT_BYTES;
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = 0;
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &event);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == 0) return 0;
            if (fd != listener) {
                serve(fd, http);
                continue;
            }
            fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd < 0) continue;
            if (fd >= DESCRIPTORS_MAX) {
                close(fd);
                continue;
            }
            matched[fd] = 0;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            event.data.fd = fd;
            epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
