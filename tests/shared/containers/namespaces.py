"""Containers in the tests: processes in network namespaces, with the users, capabilities,
volumes and networks that they are to have, and a world behind them that notes what arrives.

Its files lie in the folder $CONTAINERS. Used by docker.py and kubectl.py beside this.
"""

import ipaddress
import os
import re
import signal
import subprocess
import sys
import time

# Whatever the umask of whoever types.
os.umask(0o022)
HOME = os.environ["CONTAINERS"]
# What there is outside, and who answers for every name there.
WORLD = "93.184.216.34"
CREDENTIALS = "169.254.169.254"
PATH = os.environ["PATH"]
# Whatever others have mounted below /run/outgate is not there, and a name server is known.
MOUNTS = """
mkdir -p /run/outgate && mount -t tmpfs -o mode=755 none /run/outgate
mount --bind "$1" "$(realpath /etc/resolv.conf)"
shift
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "$(dirname "$2")" && touch "$2"; fi
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def place(*names):
    path = os.path.join(HOME, *names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def spawn(name, command):
    """Starts what goes on behind this, and keeps its number."""
    log = open(place("logs", name), "ab")
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    with open(place("running", name), "w", encoding="ascii") as kept:
        kept.write(str(child.pid))
    return child


def ended(names):
    """Ends what was started so."""
    for name in names:
        try:
            with open(place("running", name), encoding="ascii") as kept:
                os.killpg(int(kept.read()), signal.SIGTERM)
        except (OSError, ValueError):
            pass


def network(name, routed):
    """A bridge in a namespace of its own; a routed one leads to the world."""
    if os.path.exists(f"/run/netns/net-{name}"):
        return
    ip("netns", "add", f"net-{name}")
    ip("-n", f"net-{name}", "link", "set", "lo", "up")
    ip("-n", f"net-{name}", "link", "add", "br0", "type", "bridge")
    ip("-n", f"net-{name}", "link", "set", "br0", "up")
    if routed is None:
        return
    first = next(routed.hosts())
    ip("-n", f"net-{name}", "addr", "add", f"{first}/{routed.prefixlen}", "dev", "br0")
    for address in (WORLD, CREDENTIALS):
        ip("-n", f"net-{name}", "addr", "add", f"{address}/32", "dev", "lo")
    world = os.path.join(os.path.dirname(os.path.abspath(__file__)), "world.py")
    words = [sys.executable, world, place("arrived"), place("ready")]
    spawn("world", ["ip", "netns", "exec", f"net-{name}", *words])
    until("the world", lambda: os.path.exists(place("ready")))


def joined(container, number, name, address, gateway):
    """A container's interface in a network, and its route where that leads anywhere."""
    space, peer = f"c-{container}", f"v{number}{container}"[:15]
    if not os.path.exists(f"/run/netns/{space}"):
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
    ip("link", "add", peer, "netns", f"net-{name}", "type", "veth", "peer", f"eth{number}", "netns", space)
    ip("-n", f"net-{name}", "link", "set", peer, "master", "br0", "up")
    ip("-n", space, "addr", "add", address, "dev", f"eth{number}")
    ip("-n", space, "link", "set", f"eth{number}", "up")
    if gateway:
        ip("-n", space, "route", "add", "default", "via", str(gateway))


class Container:
    """What is run where, as whom and with what."""

    def __init__(self, name, space, user, command, environment, mounts, capabilities=()):
        self.name, self.space, self.user = name, space, user
        self.command, self.environment, self.mounts = command, environment, mounts
        self.capabilities = capabilities

    def words(self, command=None):
        resolver = place("resolv.conf")
        with open(resolver, "w", encoding="ascii") as text:
            text.write(f"nameserver {WORLD}\n")
        few = ",".join(["-all", *(f"+{capability}" for capability in self.capabilities)])
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        space = ["ip", "netns", "exec", self.space] if self.space else ["unshare", "--net"]
        return [
            *space, "unshare", "--mount", "sh", "-euc", MOUNTS, "mounts", resolver,
            *(path for mount in self.mounts for path in mount), "--",
            "setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups",
            "--no-new-privs", f"--inh-caps={few}", f"--bounding-set={few}", "--",
            "env", "-i", f"PATH={PATH}", *environment, *(command or self.command),
        ]

    def run(self, command=None):
        return subprocess.run(self.words(command), stdin=subprocess.DEVNULL).returncode

    def start(self):
        return spawn(self.name, self.words())


def until(what, holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} does not come")
        time.sleep(0.1)


def expanded(text, environment):
    """$(NAME) in the texts of a pod."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), text)


def hosts(network_):
    return ipaddress.ip_network(network_)
