"""Process groups and standard streams, tried from inside: what joins a job outside, what hangs up
who started the run. Says NAME=ERRNO, 0 where it worked."""

import errno
import os
import signal
import sys
import time


def tried(name, call):
    try:
        call()
        print(f"{name}=0", flush=True)
    except OSError as error:
        print(f"{name}={errno.errorcode[error.errno]}", flush=True)


def child(work):
    number = os.fork()
    if number == 0:
        work()
        os._exit(0)
    return number


def join(group):
    """Into the group of a job outside, and into groups of one's own."""
    own = os.getpgrp()
    os.waitpid(child(lambda: tried("outside", lambda: os.setpgid(0, group))), 0)
    os.waitpid(child(lambda: tried("own", lambda: os.setpgid(0, 0))), 0)
    leader = child(lambda: time.sleep(5))
    tried("of-a-child", lambda: os.setpgid(leader, leader))
    second = child(lambda: time.sleep(5))
    tried("beside-a-child", lambda: os.setpgid(second, leader))
    os.kill(leader, signal.SIGKILL)
    os.waitpid(leader, 0)
    third = child(lambda: time.sleep(5))
    tried("whose-leader-is-gone", lambda: os.setpgid(third, leader))
    os.waitpid(child(lambda: (os.setpgid(0, 0), tried("back", lambda: os.setpgid(0, own)))), 0)
    for one in (second, third):
        os.kill(one, signal.SIGKILL)
        os.waitpid(one, 0)


def hang_up():
    """Has the kernel hang up the group that this process is in (setpgid(2): a group that becomes
    orphaned while a member is stopped)."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def stopped():
        if os.fork():
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)
        os._exit(0)

    os.waitpid(child(stopped), 0)
    group = os.getpgrp()

    def ties():
        os.setpgid(0, 0)

        def back():
            os.setpgid(0, group)
            time.sleep(5)

        tie = child(back)
        time.sleep(0.5)
        os.kill(tie, signal.SIGKILL)
        os.waitpid(tie, 0)

    os.waitpid(child(ties), 0)
    time.sleep(0.5)


if sys.argv[1] == "join":
    join(int(sys.argv[2]))
else:
    hang_up()
    print("tried", flush=True)
