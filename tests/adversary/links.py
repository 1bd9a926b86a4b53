"""Reads what links say and which extended attributes files have, in a folder, by
every call and every way to name them, and reports the errno or what was read."""

import ctypes
import errno
import os
import sys
import threading

LIBRARY = ctypes.CDLL(None, use_errno=True)
HERE = -100
EMPTY_PATH, NO_FOLLOW, WITHOUT_ACCESS = 0x1000, 0x100, 3
READLINK, READLINKAT = {"x86_64": (89, 267), "aarch64": (None, 78)}[os.uname().machine]
GETXATTRAT, LISTXATTRAT, FILE_GETATTR = 464, 465, 468
LINKS, FILES = ["cookie", "pointer"], ["file", "folder"]


def report(name, count, room):
    if count == -1:
        said = errno.errorcode.get(ctypes.get_errno(), "?")
    else:
        said = f"read {room.raw[:count].rstrip(bytes(1)).decode()}"
    print(f"{name}={said}", flush=True)


def numbered(number, *arguments):
    registers = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    return LIBRARY.syscall(ctypes.c_long(number), *registers)


def link(way, text, directory=HERE):
    """One link by one name, with every call that reads it."""
    path, room = os.fsencode(text), ctypes.create_string_buffer(4096)
    if directory == HERE and READLINK is not None:
        report(f"readlink:{way}", numbered(READLINK, path, room, 4096), room)
    report(f"readlinkat:{way}", numbered(READLINKAT, directory, path, room, 4096), room)


def attributes(way, text):
    """One file by one name, with every call that reads its attributes."""
    path, room = os.fsencode(text), ctypes.create_string_buffer(65536)
    for name in ["getxattr", "lgetxattr"]:
        ctypes.set_errno(0)
        report(f"{name}:{way}", getattr(LIBRARY, name)(path, b"user.note", room, 65536), room)
    for name in ["listxattr", "llistxattr"]:
        ctypes.set_errno(0)
        report(f"{name}:{way}", getattr(LIBRARY, name)(path, room, 65536), room)
    for name in ["getxattr", "listxattr"]:
        ctypes.set_errno(0)
        words = [path, b"user.note"] if name == "getxattr" else [path]
        report(f"{name} size:{way}", getattr(LIBRARY, name)(*words, None, 0), ctypes.create_string_buffer(8))
    newer(way, path)


def newer(way, path):
    """What this kernel may lack."""
    room = ctypes.create_string_buffer(256)
    where = (ctypes.c_uint64 * 2)(ctypes.addressof(room), 256)
    report(f"newer getxattrat:{way}", numbered(GETXATTRAT, HERE, path, 0, b"user.note", where, 16), room)
    report(f"newer listxattrat:{way}", numbered(LISTXATTRAT, HERE, path, 0, room, 256), room)
    outcome = min(numbered(FILE_GETATTR, HERE, path, room, 24, 0), 0)
    report(f"newer file_getattr:{way}", outcome, room)


def by_descriptor(way, path, flags):
    room = ctypes.create_string_buffer(65536)
    number = LIBRARY.open(os.fsencode(path), flags)
    if number == -1:
        return report(f"open:{way}", -1, room)
    for name, words in [("fgetxattr", [b"user.note"]), ("flistxattr", [])]:
        ctypes.set_errno(0)
        report(f"{name}:{way}", getattr(LIBRARY, name)(number, *words, room, 65536), room)


def names(folder, scratch, kind):
    """Ways to name something in a folder."""
    path = os.path.join(folder, kind)
    yield "absolute", path
    yield "relative", os.path.relpath(path)
    yield "dots", os.path.join(scratch, "..", os.path.relpath(path, os.path.dirname(scratch)))
    yield "slashes", f"//{folder}/.//{kind}"
    yield "root", f"/proc/self/root{path}"
    yield "root by number", f"/proc/{os.getpid()}/root{path}"
    yield "root of a thread", f"/proc/thread-self/root{path}"
    yield "cwd", f"/proc/self/cwd/{os.path.relpath(path)}"
    yield "link", os.path.join(scratch, "out", kind)
    yield "links", os.path.join(scratch, "out-again", kind)


def every_way(folder, scratch):
    for name, target in [("out", folder), ("out-again", "out")]:
        if os.path.lexists(os.path.join(scratch, name)):
            os.unlink(os.path.join(scratch, name))
        os.symlink(target, os.path.join(scratch, name))
    below = os.open(folder, os.O_PATH)
    for kind in LINKS:
        for way, path in names(folder, scratch, kind):
            link(f"{kind} {way}", path)
        link(f"{kind} below", kind, below)
        link(f"{kind} descriptor", f"/proc/self/fd/{below}/{kind}")
        link(f"{kind} number", f"/dev/fd/{below}/{kind}")
        itself = os.open(os.path.join(folder, kind), os.O_PATH | os.O_NOFOLLOW)
        link(f"{kind} empty", "", itself)
        link(f"{kind} of a thread", os.path.join(folder, kind), HERE)
    for kind in FILES:
        path = os.path.join(folder, kind)
        for way, name in names(folder, scratch, kind):
            attributes(f"{kind} {way}", name)
        attributes(f"{kind} descriptor", f"/proc/self/fd/{below}/{kind}")
        place = os.open(path, os.O_PATH)
        attributes(f"{kind} place", f"/proc/self/fd/{place}")
        attributes(f"{kind} place by number", f"/dev/fd/{place}")
        by_descriptor(f"{kind} place", path, os.O_PATH)
        if kind == "file":
            by_descriptor(f"{kind} without access", path, WITHOUT_ACCESS)
    # Where a link leads: what was opened by it has a name.
    target = os.open(os.path.join(folder, "pointer"), os.O_PATH)
    for way, name in [
        ("its name", f"/proc/self/fd/{target}"),
        ("its name of a thread", f"/proc/thread-self/fd/{target}"),
        ("its name by number", f"/dev/fd/{target}"),
        ("its name by process", f"/proc/{os.getpid()}/fd/{target}"),
    ]:
        link(f"pointer {way}", name)
    table = os.open("/proc/self/fd", os.O_RDONLY)
    link("pointer its name below", str(target), table)
    # From inside.
    os.chdir(folder)
    for kind in LINKS:
        link(f"{kind} inside", kind)
        link(f"{kind} inside dots", f"../{os.path.basename(folder)}/{kind}")
        link(f"{kind} inside cwd", f"/proc/self/cwd/{kind}")
        thread = threading.Thread(target=link, args=(f"{kind} inside thread", kind))
        thread.start()
        thread.join()
        if os.fork() == 0:
            link(f"{kind} inside child", kind)
            os._exit(0)
        os.wait()


every_way(sys.argv[1], sys.argv[2])
