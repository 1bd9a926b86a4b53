/* A file system that never answers, and calls that wait for it. */
#include "probe.h"
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/prctl.h>

/* mute FOLDER taken|left: mounts there what answers nothing but the first greeting.
 * Requests that were taken cannot even be given up by who is killed. */
static int probe_mute(int n, char **a) {
    if (n < 2) return 64;
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (device < 0 || mount("mute", a[0], "fuse", MS_NOSUID | MS_NODEV, options)) {
        dprintf(1, "no fuse: %s\n", strerror(errno));
        return 0;
    }
    static char buffer[1 << 20];
    ssize_t count = read(device, buffer, sizeof buffer);
    struct fuse_in_header *in = (void *)buffer;
    if (count < (ssize_t)sizeof *in || in->opcode != FUSE_INIT) return 65;
    struct {
        struct fuse_out_header head;
        struct fuse_init_out init;
    } out = {.head = {.len = sizeof out, .unique = in->unique},
             .init = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096}};
    if (write(device, &out, sizeof out) != sizeof out) return 66;
    dprintf(1, "mounted\n");
    if (!strcmp(a[1], "left"))
        for (char byte; read(0, &byte, 1) > 0;) {
        }
    while (read(device, buffer, sizeof buffer) > 0) {
    }
    return 0;
}

static struct target mute;
static atomic_int answered, last;

static void *knock(void *unused) {
    (void)unused;
    for (;;) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        atomic_store(&last, connect(s, (void *)&mute.address, mute.bytes) ? errno : 0);
        atomic_fetch_add(&answered, 1);
        close(s);
    }
    return 0;
}

static int listening(const struct target *t) {
    int s = socket(t->family, SOCK_STREAM, 0);
    if (bind(s, (void *)&t->address, t->bytes) || listen(s, 4096)) return -1;
    return s;
}

/* beside-mute PATH MILLISECONDS: threads connect below what never answers, while
 * this one connects to its own servers; then it waits to be ended. */
static int probe_beside_mute(int n, char **a) {
    if (n < 2) return 64;
    char text[128];
    snprintf(text, sizeof text, "unix:%s", a[0]);
    mute = target_of(text);
    snprintf(text, sizeof text, "unix:own-%d", (int)getpid());
    struct target own = target_of(text), tcp = target_of("127.0.0.1:0");
    int server = listening(&own), other = listening(&tcp);
    report("listen", server < 0 || other < 0 ? -1 : 0, 0);
    getsockname(other, (void *)&tcp.address, &tcp.bytes);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, knock, 0);
    long made = 0, tries = 0;
    long long longest = 0, end = now_us() + atoll(a[1]) * 1000;
    while (now_us() < end) {
        const struct target *t = tries++ % 2 ? &own : &tcp;
        long long before = now_us();
        int s = socket(t->family, SOCK_STREAM, 0);
        if (connect(s, (void *)&t->address, t->bytes) == 0) {
            made++;
            close(accept(t == &own ? server : other, 0, 0));
        }
        close(s);
        if (now_us() - before > longest) longest = now_us() - before;
        usleep(2000);
    }
    dprintf(1, "beside tries=%ld made=%ld max_us=%lld answered=%d last=%d\n", tries, made, longest,
            atomic_load(&answered), atomic_load(&last));
    dprintf(1, "waits\n");
    for (;;) pause();
}

const struct probe mute_probes[] = {{"mute", probe_mute}, {"beside-mute", probe_beside_mute}, {0, 0}};
