"""Makes programs with set-user-ID and set-group-ID bits in a folder, by every
call that takes a mode, and reports the errno of each and the bits that are there
afterwards."""

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys

LIBRARY = ctypes.CDLL(None, use_errno=True)
HERE = -100
EMPTY_PATH, NO_FOLLOW, FOLLOW = 0x1000, 0x100, 0x400
REGULAR = 0o100000
SAME = {"openat2": 437, "fchmodat2": 452}
NUMBERS = {
    "x86_64": {"open": 2, "mkdir": 83, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133, "openat": 257,
               "mkdirat": 258, "mknodat": 259, "fchmodat": 268},
    "aarch64": {"mknodat": 33, "mkdirat": 34, "fchmod": 52, "fchmodat": 53, "openat": 56},
}[platform.machine()] | SAME
FOLDER = sys.argv[1]
os.umask(0)
turn = 0


def fresh(content=True):
    global turn
    turn += 1
    path = os.path.join(FOLDER, f"program-{turn}")
    if content:
        with open(path, "w") as file:
            file.write("#!/bin/true\n")
        os.chmod(path, 0o755)
    return path


def call(name, *arguments):
    """The errno of a call by its number, with its arguments as whole registers."""
    if name not in NUMBERS:
        return None
    registers = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = LIBRARY.syscall(ctypes.c_long(NUMBERS[name]), *registers)
    return result, errno.errorcode.get(ctypes.get_errno(), "0") if result == -1 else "0"


def bits(path):
    return os.stat(path).st_mode & 0o6000 if os.path.lexists(path) else 0


def attempt(name, path, outcome):
    if outcome is not None:
        print(f"{name}={outcome[1]} {bits(path):o}", flush=True)


def linked(outcome, path):
    """Gives a file without a name one."""
    if outcome is not None and outcome[0] >= 0:
        LIBRARY.linkat(HERE, f"/proc/self/fd/{outcome[0]}".encode(), HERE, os.fsencode(path), FOLLOW)


def changes(label, mode):
    for kind in ["chmod", "fchmodat", "fchmodat2"]:
        path = fresh()
        where = [] if kind == "chmod" else [HERE]
        attempt(f"{kind} {label}", path, call(kind, *where, os.fsencode(path), mode, 0))
    path = fresh()
    attempt(f"fchmod {label}", path, call("fchmod", os.open(path, os.O_RDONLY), mode))
    path, folder = fresh(), os.open(FOLDER, os.O_PATH)
    attempt(f"fchmodat below {label}", path, call("fchmodat", folder, os.path.basename(path).encode(), mode))
    path = fresh()
    place = os.open(path, os.O_PATH)
    attempt(f"fchmodat2 empty {label}", path, call("fchmodat2", place, b"", mode, EMPTY_PATH))
    path = fresh()
    attempt(f"fchmodat2 itself {label}", path, call("fchmodat2", HERE, os.fsencode(path), mode, NO_FOLLOW))
    path = fresh()
    name = f"/proc/self/fd/{os.open(path, os.O_PATH)}".encode()
    attempt(f"fchmodat by descriptor {label}", path, call("fchmodat", HERE, name, mode))


def makes(label, mode):
    new, unnamed = os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_RDWR
    for kind, flags in [("new", new), ("append", new | os.O_APPEND | os.O_CLOEXEC), ("exclusive", new | os.O_EXCL)]:
        path = fresh(False)
        attempt(f"open {kind} {label}", path, call("open", os.fsencode(path), flags, mode))
        path = fresh(False)
        attempt(f"openat {kind} {label}", path, call("openat", HERE, os.fsencode(path), flags, mode))
    for kind, where in [("open", []), ("openat", [HERE])]:
        path = fresh(False)
        outcome = call(kind, *where, os.fsencode(FOLDER), unnamed, mode)
        linked(outcome, path)
        attempt(f"{kind} unnamed {label}", path, outcome)
    for kind, flags in [("new", new), ("unnamed", unnamed)]:
        path = fresh(False)
        how = struct.pack("QQQ", flags, mode & 0o7777, 0)
        name = path if flags == new else FOLDER
        outcome = call("openat2", HERE, os.fsencode(name), how, len(how))
        if flags == unnamed:
            linked(outcome, path)
        attempt(f"openat2 {kind} {label}", path, outcome)
    path = fresh(False)
    attempt(f"creat {label}", path, call("creat", os.fsencode(path), mode))
    path = fresh(False)
    attempt(f"mknod {label}", path, call("mknod", os.fsencode(path), REGULAR | mode, 0))
    path = fresh(False)
    attempt(f"mknodat {label}", path, call("mknodat", HERE, os.fsencode(path), REGULAR | mode, 0))


def folders(label, mode):
    path = fresh(False)
    attempt(f"mkdir {label}", path, call("mkdir", os.fsencode(path), mode))
    path = fresh(False)
    attempt(f"mkdirat {label}", path, call("mkdirat", HERE, os.fsencode(path), mode))


def programs():
    """What people use, which tries more than one call."""
    given = os.path.join(FOLDER, "given")
    for name, line in [
        ("chmod", "cp /bin/true $0; chmod 4755 $0"),
        ("chmod letters", "cp /bin/true $0; chmod ug+s $0"),
        ("install", "install -m 6755 /bin/true $0"),
        ("cp", f"cp -p {given} $0"),
        ("tar", f"tar -C {FOLDER} -cpf - given | tar -xpf - --transform s,given,$0, -C / -P"),
        ("python", f"{sys.executable} -c 'import shutil; shutil.copy2(\"{given}\", \"'$0'\")'"),
    ]:
        path = fresh(False)
        subprocess.run(["sh", "-c", line, path], stderr=subprocess.DEVNULL)
        attempt(f"program {name}", path, (0, "0"))


for label, mode in [("user", 0o4755), ("group", 0o2755), ("both", 0o6755), ("high bits", -1 << 32 | 0o4711)]:
    changes(label, mode)
    makes(label, mode)
    folders(label, mode)
programs()
print("made", sum(1 for entry in os.scandir(FOLDER) if entry.name.startswith("program") and bits(entry.path)))
