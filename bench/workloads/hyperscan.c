/* The expressions of a file, one in each line, looked for in another file by
 * Hyperscan or Vectorscan: in blocks of so many bytes, so many rounds, each
 * expression told once in a block. What the library refuses is left out.
 * Prints its version; how many expressions are in use, the seconds that compiling
 * took and the bytes it made; bytes and processor seconds of the fastest round;
 * and the numbers, from 0, of the expressions found in so many first bytes. */
#define _GNU_SOURCE
#include <hs/hs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
    char *bytes;
    size_t count;
};

static void fail(const char *what) {
    fprintf(stderr, "hyperscan: %s\n", what);
    exit(1);
}

static double seconds(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)) fail("no clock");
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct text load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    long count = ftell(file);
    rewind(file);
    struct text text = {count < 0 ? NULL : malloc((size_t)count + 1), (size_t)count};
    if (!text.bytes || fread(text.bytes, 1, text.count, file) != text.count) fail(path);
    text.bytes[count] = 0;
    fclose(file);
    return text;
}

/* All of them as one database, without those that are refused. */
static hs_database_t *compile(const char **lines, unsigned *ids, unsigned *count) {
    unsigned *flags = calloc(*count + 1, sizeof *flags);
    if (!flags) fail("no memory");
    for (unsigned at = 0; at < *count; at++) flags[at] = HS_FLAG_SINGLEMATCH;
    for (;;) {
        hs_database_t *database = NULL;
        hs_compile_error_t *error = NULL;
        if (hs_compile_multi(lines, flags, ids, *count, HS_MODE_BLOCK, NULL, &database, &error) == HS_SUCCESS) return database;
        int at = error ? error->expression : -1;
        if (at < 0 || (unsigned)at >= *count) fail(error ? error->message : "does not compile");
        hs_free_compile_error(error);
        *count -= 1;
        memmove(lines + at, lines + at + 1, (*count - (unsigned)at) * sizeof *lines);
        memmove(ids + at, ids + at + 1, (*count - (unsigned)at) * sizeof *ids);
    }
}

static int note(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *found) {
    (void)from, (void)to, (void)flags;
    ((char *)found)[id] = 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 6) fail("EXPRESSIONS CONTENT ROUNDS BLOCK FIRST");
    struct text expressions = load(argv[1]), content = load(argv[2]);
    size_t block = strtoul(argv[4], NULL, 10), first = strtoul(argv[5], NULL, 10);
    const char **lines = calloc(expressions.count + 1, sizeof *lines);
    unsigned *ids = calloc(expressions.count + 1, sizeof *ids), all = 0;
    if (!lines || !ids || !block) fail("no memory, or no block");
    for (char *line = strtok(expressions.bytes, "\n"); line; line = strtok(NULL, "\n"), all++) lines[all] = line, ids[all] = all;
    char *found = calloc(all + 1, 1), *beyond = calloc(all + 1, 1);
    unsigned used = all;
    double begin = seconds();
    hs_database_t *database = compile(lines, ids, &used);
    double compiled = seconds() - begin, least = 0;
    hs_scratch_t *scratch = NULL;
    size_t size = 0;
    if (!found || !beyond || hs_alloc_scratch(database, &scratch) || hs_database_size(database, &size)) fail("no memory");
    for (long round = strtol(argv[3], NULL, 10); round > 0; round--) {
        begin = seconds();
        for (size_t at = 0; at < content.count; at += block) {
            size_t length = content.count - at < block ? content.count - at : block;
            if (hs_scan(database, content.bytes + at, (unsigned)length, 0, scratch, note, at < first ? found : beyond)) fail("hs_scan");
        }
        double took = seconds() - begin;
        if (least == 0 || took < least) least = took;
    }
    printf("%s\n%u %.3f %zu\n%zu %.9f\n", hs_version(), used, compiled, size, content.count, least);
    for (unsigned id = 0; id < all; id++)
        if (found[id]) printf("%u ", id);
    printf("\n");
    return 0;
}
