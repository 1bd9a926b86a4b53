/* What the probes share: targets given as text, and one line per attempt.
 * A probe tries to get bytes out, says what the kernel answered, and never
 * decides whether that was right: the test does. */
#ifndef OUTGATE_PROBE_H
#define OUTGATE_PROBE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a leak looks like at the witness. */
#define LEAK "LEAK-LEAK-LEAK\n"
#define LEAK_BYTES ((long)sizeof(LEAK) - 1)

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/* A destination: `1.2.3.4:80`, `[::1]:80`, `unix:/path`, `abstract:name`. */
struct target {
    struct sockaddr_storage address;
    socklen_t bytes;
    int family;
};

struct target target_of(const char *text);

/* `result NAME errno=EPERM(1) sent=0`; errno is 0 when `outcome` is not -1. */
void report(const char *name, long outcome, long sent);

/* Sends LEAK on a connected socket; bytes sent, or -1. */
long leak(int socket);

/* connect, then leak; reports under `name`. */
void connect_and_leak(const char *name, int socket, const struct target *target);

/* Microseconds on the monotonic clock. */
long long now_us(void);

typedef int (*probe_function)(int argc, char **argv);
struct probe {
    const char *name;
    probe_function run;
};

/* One table per file, each ended by an empty entry. */
extern const struct probe stream_probes[], datagram_probes[], local_probes[], process_probes[],
    ring_probes[], privilege_probes[], filter_probes[], race_probes[], shape_probes[],
    load_probes[], server_probes[], name_probes[], hold_probes[], storm_probes[],
    freed_probes[], mute_probes[], wait_probes[];

#endif
