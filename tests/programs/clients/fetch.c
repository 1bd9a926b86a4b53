/* Fetches over plain HTTP: `fetch HOST PORT PATH`. Built statically with musl,
 * whose resolver binds a datagram socket and checks where answers come from. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *at;
	char text[2048];
	int fd = -1, code;

	if (count != 4)
		return 2;
	code = getaddrinfo(words[1], words[2], &hints, &list);
	if (code) {
		fprintf(stderr, "getaddrinfo: %s\n", gai_strerror(code));
		return 1;
	}
	for (at = list; at; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
			break;
		perror("connect");
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (fd < 0)
		return 1;
	int is_default = strcmp(words[2], "80") == 0;
	code = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s%s%s\r\nConnection: close\r\n\r\n",
			words[3], words[1], is_default ? "" : ":", is_default ? "" : words[2]);
	if (write(fd, text, (size_t)code) != code)
		return 1;
	ssize_t got;
	int fine = 0, first = 1;
	while ((got = read(fd, text, sizeof text)) > 0) {
		if (first)
			fine = got > 12 && memcmp(text + 9, "200", 3) == 0;
		first = 0;
		fwrite(text, 1, (size_t)got, stdout);
	}
	return fine ? 0 : 1;
}
