/* A 32-bit program: every call it makes has the foreign architecture.
 * Usage: elf32 ADDRESS PORT. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 64;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) return 64;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    int r = connect(s, (void *)&to, sizeof to);
    long sent = r == 0 ? send(s, "LEAK-LEAK-LEAK\n", 15, MSG_NOSIGNAL) : 0;
    dprintf(1, "result elf32 errno=%s(%d) sent=%ld\n", r ? "E?" : "0", r ? errno : 0, sent);
    return 0;
}
