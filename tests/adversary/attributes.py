"""Changes modes, owners, times and extended attributes of what lies in a folder,
by every call and every way to name a file, and reports the errno of each."""

import ctypes
import errno
import fcntl
import os
import struct
import sys

LIBRARY = ctypes.CDLL(None, use_errno=True)
HERE = -100
EMPTY_PATH = 0x1000
NO_FOLLOW = 0x100
FCHMODAT2, SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR = 452, 463, 466, 469
GETFLAGS, SETFLAGS, FSGETXATTR, FSSETXATTR = 0x80086601, 0x40086602, 0x801C581F, 0x401C5820
NODUMP = 0x40


def report(name, result):
    code = ctypes.get_errno() if result == -1 else 0
    print(f"{name}={errno.errorcode.get(code, '0')}", flush=True)


def call(name, way, *arguments):
    ctypes.set_errno(0)
    report(f"{name}:{way}", getattr(LIBRARY, name)(*arguments))


def numbered(number, name, way, *arguments):
    ctypes.set_errno(0)
    registers = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    report(f"{name}:{way}", LIBRARY.syscall(ctypes.c_long(number), *registers))


def times(*numbers):
    return (ctypes.c_long * 4)(*numbers)


def by_path(way, text, directory=HERE):
    path = os.fsencode(text)
    uid, gid = os.getuid(), os.getgid()
    numbered(FCHMODAT2, "fchmodat2", way, directory, path, 0o700, 0)
    call("fchmodat", way, directory, path, 0o711, 0)
    call("fchownat", way, directory, path, uid, gid, 0)
    call("utimensat", way, directory, path, times(1, 2, 3, 4), 0)
    call("utimensat", f"{way}, now", directory, path, None, 0)
    call("futimesat", way, directory, path, times(1, 2, 3, 4))
    if directory != HERE:
        return
    call("chmod", way, path, 0o755)
    call("chown", way, path, uid, gid)
    call("utimes", way, path, times(1, 2, 3, 4))
    call("utime", way, path, times(1, 2, 0, 0))
    call("setxattr", way, path, b"user.one", b"1", 1, 0)
    call("removexattr", way, path, b"user.one")
    if not os.path.islink(path):
        call("lchown", way, path, uid, gid)
        call("lutimes", way, path, times(1, 2, 3, 4))
        call("lsetxattr", way, path, b"user.one", b"1", 1, 0)
        call("lremovexattr", way, path, b"user.one")


def by_descriptor(way, number):
    call("fchmod", way, number, 0o755)
    call("fchown", way, number, os.getuid(), os.getgid())
    call("futimens", f"{way}, now", number, None)
    call("futimens", way, number, times(1, 2, 3, 4))
    call("fsetxattr", way, number, b"user.one", b"1", 1, 0)
    call("fremovexattr", way, number, b"user.one")


def newer(way, text):
    """What this kernel or its file system may lack."""
    path, value = os.fsencode(text), ctypes.create_string_buffer(b"1")
    arguments = struct.pack("QII", ctypes.addressof(value), 1, 0)
    numbered(SETXATTRAT, "newer setxattrat", way, HERE, path, 0, b"user.two", arguments, len(arguments))
    numbered(REMOVEXATTRAT, "newer removexattrat", way, HERE, path, 0, b"user.two")
    attributes = bytes(24)
    numbered(FILE_SETATTR, "newer file_setattr", way, HERE, path, attributes, len(attributes), 0)
    number = os.open(path, os.O_RDONLY)
    for name, get, put, size in [("flags", GETFLAGS, SETFLAGS, 8), ("attributes", FSGETXATTR, FSSETXATTR, 28)]:
        held = bytearray(size)
        ctypes.set_errno(0)
        try:
            fcntl.ioctl(number, get, held)
            if put == SETFLAGS:
                held[0] ^= NODUMP
            fcntl.ioctl(number, put, bytes(held))
            print(f"newer {name}:{way}=0", flush=True)
        except OSError as error:
            print(f"newer {name}:{way}={errno.errorcode[error.errno]}", flush=True)


def every_way(kind, folder, scratch):
    path = os.path.join(folder, kind)
    by_path(f"{kind} absolute", path)
    by_path(f"{kind} relative", os.path.relpath(path))
    by_path(f"{kind} dots", os.path.join(scratch, "..", os.path.relpath(path, os.path.dirname(scratch))))
    by_path(f"{kind} root", "/proc/self/root" + path)
    link = os.path.join(scratch, f"link-{kind}")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(path, link)
    by_path(f"{kind} link", link)
    directory = os.open(folder, os.O_PATH)
    by_path(f"{kind} below", kind, directory)
    for way, flags in [("read", os.O_RDONLY), ("place", os.O_PATH)]:
        number = os.open(path, flags)
        by_path(f"{kind} {way} name", f"/proc/self/fd/{number}")
        by_path(f"{kind} {way} number", f"/dev/fd/{number}")
        numbered(FCHMODAT2, "fchmodat2", f"{kind} {way} empty", number, b"", 0o700, EMPTY_PATH)
        call("fchownat", f"{kind} {way} empty", number, b"", os.getuid(), os.getgid(), EMPTY_PATH)
        call("utimensat", f"{kind} {way} empty", number, b"", times(1, 2, 3, 4), EMPTY_PATH)
    by_descriptor(f"{kind} read", os.open(path, os.O_RDONLY))
    newer(kind, path)


for kind in ["file", "folder"]:
    every_way(kind, sys.argv[1], sys.argv[2])
