/* Times programs from a small process: posix_spawn (clone with CLONE_VM and
 * CLONE_VFORK in the C library) until reaped, several commands in turns.
 *
 *   spawn ROUNDS SECONDS wall|mark STDOUT COMMAND... [:: COMMAND...]
 *
 * Stops after ROUNDS rounds, or after SECONDS and at least five. Each round runs every command once, forwards and backwards in turn, and is
 * one line of output: for each command nanoseconds and microseconds of CPU (its
 * own and that of everything it waited for). `wall` ends with the reaping,
 * `mark` at the CLOCK_MONOTONIC time the command wrote to its standard output,
 * which is the file STDOUT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define ROUNDS_MIN 5

extern char **environ;

struct cost {
    long long ns;
    long long cpu_us;
};

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long micros(struct timeval time) {
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static void fail(FILE *report, const char *what, const char *which, int value) {
    fprintf(report, "spawn: %s %s: %d\n", which, what, value);
    fflush(report);
    _exit(1);
}

static struct cost run(FILE *report, char **command, int mark) {
    struct rusage usage;
    struct cost cost;
    int status;
    pid_t pid;
    if (mark && ftruncate(1, 0) != 0) fail(report, "truncate", "output", 1);
    long long begin = now();
    int error = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
    if (error != 0) fail(report, "is not started, errno", command[0], error);
    if (wait4(pid, &status, 0, &usage) != pid) fail(report, "wait", command[0], 1);
    cost.ns = now() - begin;
    cost.cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
    if (status != 0) fail(report, "ended with wait status", command[0], status);
    if (mark) {
        char text[32] = {0};
        if (pread(1, text, sizeof text - 1, 0) <= 0) fail(report, "wrote no mark", command[0], 1);
        cost.ns = atoll(text) - begin;
    }
    return cost;
}

int main(int argc, char **argv) {
    char **commands[COMMANDS_MAX];
    struct cost costs[COMMANDS_MAX];
    int count = 1;
    if (argc < 6) return 2;
    int rounds = atoi(argv[1]);
    long long until = now() + atoi(argv[2]) * 1000000000LL;
    int mark = strcmp(argv[3], "mark") == 0;
    FILE *report = fdopen(fcntl(1, F_DUPFD_CLOEXEC, 3), "w");
    int output = open(argv[4], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (report == NULL || output < 0 || null < 0) return 2;
    dup2(null, 0);
    dup2(output, 1);
    commands[0] = &argv[5];
    for (int i = 5; i < argc; i++) {
        if (strcmp(argv[i], "::") != 0) continue;
        if (count == COMMANDS_MAX) return 2;
        argv[i] = NULL;
        commands[count++] = &argv[i + 1];
    }
    for (int round = 0; round < rounds && (round < ROUNDS_MIN || now() < until); round++) {
        for (int turn = 0; turn < count; turn++) {
            int which = round % 2 ? count - 1 - turn : turn;
            costs[which] = run(report, commands[which], mark);
        }
        for (int i = 0; i < count; i++)
            fprintf(report, "%lld %lld%c", costs[i].ns, costs[i].cpu_us, i + 1 < count ? ' ' : '\n');
    }
    fflush(report);
    return 0;
}
