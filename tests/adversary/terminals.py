"""Opens the terminal of a program outside in every way that one made inside is opened,
and the latter too. `victim` is that program: it types, and says what it is shown."""

import ctypes
import errno
import fcntl
import os
import pty
import select
import sys
import threading
import time

TIOCGPTPEER = 0x5441
TALK = os.O_RDWR | os.O_NOCTTY


def victim():
    first, other = pty.openpty()
    os.set_blocking(first, False)
    print(f"ready {os.ttyname(other)}", flush=True)
    shown = b""
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        try:
            os.write(first, b"typed-secret\n")
            shown += os.read(first, 4096)
        except BlockingIOError:
            pass
    print("written-by-a-stranger" if b"stranger" in shown else "untouched", flush=True)


def attempt(way, opening):
    try:
        descriptor = opening()
    except OSError as error:
        print(f"{way}={errno.errorcode.get(error.errno, error.errno)}", flush=True)
        return
    try:
        os.write(descriptor, b"stranger\n")
        print(f"{way}=opened", flush=True)
    except OSError as error:
        print(f"{way}=opened, {errno.errorcode.get(error.errno)}", flush=True)
    os.close(descriptor)


def swapped(own, theirs):
    """A path that another thread changes while it is judged."""
    room = ctypes.create_string_buffer(64)
    stop = threading.Event()
    library = ctypes.CDLL(None, use_errno=True)

    def swap():
        while not stop.is_set():
            room.value = own
            room.value = theirs

    thread = threading.Thread(target=swap)
    thread.start()
    reached, until = 0, time.monotonic() + float(sys.argv[3])
    mine = os.stat(own).st_rdev
    opened = 0
    while time.monotonic() < until:
        descriptor = library.open(room, TALK)
        if descriptor >= 0:
            opened += 1
            reached += os.fstat(descriptor).st_rdev != mine
            os.close(descriptor)
    stop.set()
    thread.join()
    print(f"swapped={'reached' if reached else 'EACCES' if opened else 'never opened'}", flush=True)


def attack(theirs):
    first = os.open("/dev/ptmx", TALK)
    fcntl.ioctl(first, 0x40045431, b"\0\0\0\0")
    number = int.from_bytes(fcntl.ioctl(first, 0x80045430, b"\0\0\0\0"), "little")
    own = f"/dev/pts/{number}"
    name = os.path.basename(theirs)
    for flags, word in [(TALK, "talk"), (os.O_RDWR, "plain"), (os.O_RDONLY, "read"), (os.O_WRONLY, "write"),
                        (TALK | os.O_NONBLOCK, "wait"), (TALK | os.O_CLOEXEC, "close")]:
        attempt(f"by-name-{word}", lambda: os.open(theirs, flags))
    attempt("by-dots", lambda: os.open(f"/dev/pts/../pts/{name}", TALK))
    attempt("by-root", lambda: os.open(f"/proc/self/root{theirs}", TALK))
    if os.path.lexists("link"):
        os.unlink("link")
    os.symlink(theirs, "link")
    attempt("by-link", lambda: os.open("link", TALK))
    os.chdir("/dev/pts")
    attempt("by-directory", lambda: os.open(name, TALK))
    place = os.open(theirs, os.O_PATH)
    attempt("by-place", lambda: os.open(f"/proc/self/fd/{place}", TALK))
    attempt("peer-of-place", lambda: fcntl.ioctl(place, TIOCGPTPEER, TALK))
    null = os.open("/dev/null", os.O_RDWR)
    attempt("peer-of-another", lambda: fcntl.ioctl(null, TIOCGPTPEER, TALK))
    swapped(own.encode(), theirs.encode())
    attempt("own-by-name", lambda: os.open(own, TALK))
    attempt("own-by-request", lambda: fcntl.ioctl(first, TIOCGPTPEER, TALK))


victim() if sys.argv[1] == "victim" else attack(sys.argv[2])
