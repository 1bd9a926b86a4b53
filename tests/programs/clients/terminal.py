"""Runs a command under a pseudo-terminal of its own: `terminal.py COMMAND...`.

Standard input goes to the terminal as it is, except `NUL rows x columns LF`,
which resizes it; the end of input hangs it up. What the terminal shows goes to
standard output. Exits as a shell would say the command did.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios


def resize(master, rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def obey(master, text):
    while b"\0" in text:
        before, _, text = text.partition(b"\0")
        os.write(master, before)
        order, _, text = text.partition(b"\n")
        resize(master, *map(int, order.split(b"x")))
    os.write(master, text)


pid, master = pty.fork()
if pid == 0:
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    finally:
        os._exit(127)
resize(master, 24, 80)
sources = [0, master]
while True:
    ready, _, _ = select.select(sources, [], [])
    if master in ready:
        try:
            shown = os.read(master, 65536)
        except OSError:
            shown = b""
        if not shown:
            break
        os.write(1, shown)
    if 0 in ready:
        text = os.read(0, 65536)
        if not text:
            break
        obey(master, text)
os.close(master)
_, status = os.waitpid(pid, 0)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
