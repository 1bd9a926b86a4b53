/* io_uring: calls made by the kernel's own workers, past any filter. */
#include "probe.h"
#include <linux/io_uring.h>
#include <sys/mman.h>

struct ring {
    int fd;
    unsigned *tail, *array, *mask, *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
};

static int ring_open(struct ring *r) {
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    long fd = syscall(SYS_io_uring_setup, 4, &p);
    if (fd < 0) return -1;
    size_t bytes = p.sq_off.array + p.sq_entries * 4, done = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    if (done > bytes) bytes = done;
    char *q = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)fd, IORING_OFF_SQ_RING);
    char *e = mmap(0, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                   (int)fd, IORING_OFF_SQES);
    if (q == MAP_FAILED || e == MAP_FAILED) return -1;
    r->fd = (int)fd;
    r->tail = (void *)(q + p.sq_off.tail);
    r->array = (void *)(q + p.sq_off.array);
    r->mask = (void *)(q + p.sq_off.ring_mask);
    r->done_head = (void *)(q + p.cq_off.head);
    r->done_tail = (void *)(q + p.cq_off.tail);
    r->done_mask = (void *)(q + p.cq_off.ring_mask);
    r->completions = (void *)(q + p.cq_off.cqes);
    r->entries = (void *)e;
    return 0;
}

static long ring_run(struct ring *r, const struct io_uring_sqe *entry) {
    unsigned tail = *r->tail, at = tail & *r->mask;
    r->entries[at] = *entry;
    r->array[at] = at;
    __atomic_store_n(r->tail, tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0) return -1;
    unsigned head = *r->done_head;
    if (head == __atomic_load_n(r->done_tail, __ATOMIC_ACQUIRE)) return -1;
    long result = r->completions[head & *r->done_mask].res;
    __atomic_store_n(r->done_head, head + 1, __ATOMIC_RELEASE);
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* ring TARGET: SOCKET, CONNECT and SEND as ring entries. */
static int probe_ring(int n, char **a) {
    struct target t = target_of(a[n - 1]);
    struct ring r;
    int opened = ring_open(&r);
    report("ring-setup", opened, 0);
    report("ring-enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, 0, 0), 0);
    report("ring-register", syscall(SYS_io_uring_register, -1, 0, 0, 0), 0);
    if (opened < 0) return 0;
    struct io_uring_sqe e;
    memset(&e, 0, sizeof e);
    e.opcode = 45; /* IORING_OP_SOCKET */
    e.fd = t.family;
    e.off = SOCK_STREAM;
    long s = ring_run(&r, &e);
    report("ring-socket", s, 0);
    if (s < 0) s = socket(t.family, SOCK_STREAM, 0);
    memset(&e, 0, sizeof e);
    e.opcode = IORING_OP_CONNECT;
    e.fd = (int)s;
    e.addr = (uintptr_t)&t.address;
    e.off = t.bytes;
    report("ring-connect", ring_run(&r, &e), 0);
    memset(&e, 0, sizeof e);
    e.opcode = IORING_OP_SEND;
    e.fd = (int)s;
    e.addr = (uintptr_t)LEAK;
    e.len = (unsigned)LEAK_BYTES;
    e.msg_flags = MSG_NOSIGNAL;
    long sent = ring_run(&r, &e);
    report("ring-send", sent, sent);
    return 0;
}

const struct probe ring_probes[] = {{"ring", probe_ring}, {0, 0}};
