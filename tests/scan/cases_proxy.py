"""A gateway as the explicit proxy of the public cases, whose client shows no credentials.

    cases_proxy.py PORT OUTGATE POLICY CA FOLDER

Behind PORT each connection's first request gets the field that says whose sandbox it is; every
other byte is passed on as it came. Ends with its process group.
"""

import base64
import os
import socket
import subprocess
import sys
import threading

PORT, OUTGATE, POLICY, CA, FOLDER = sys.argv[1:]
GATEWAY = ("127.0.0.1", int(PORT) + 1)
LINE_BYTES_MAX = 65536
FOLDER = os.path.join(FOLDER, "proxy")
TOKENS = os.path.join(FOLDER, "tokens")


def outgate(*words):
    made = subprocess.run([OUTGATE, *words], check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.strip()


def first_line(client):
    """What came until the first line is whole, or until its end."""
    data = b""
    while b"\n" not in data and len(data) < LINE_BYTES_MAX:
        more = client.recv(65536)
        if not more:
            break
        data += more
    return data


def pass_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def relay(client):
    try:
        line, end, rest = first_line(client).partition(b"\n")
        gateway = socket.create_connection(GATEWAY)
        gateway.sendall(line + end + (FIELD if end else b"") + rest)
    except OSError:
        client.close()
        return
    back = threading.Thread(target=pass_on, args=(gateway, client), daemon=True)
    back.start()
    pass_on(client, gateway)
    back.join()
    client.close()
    gateway.close()


os.makedirs(FOLDER)
outgate("ca", "create", os.path.join(FOLDER, "ca"))
token = outgate("token", "create", "cases", "--tokens", TOKENS)
FIELD = b"Proxy-Authorization: Basic %s\r\n" % base64.b64encode(f"cases:{token}".encode())
options = ["--proxy", "%s:%d" % GATEWAY, "--tokens", TOKENS, "--ca", os.path.join(FOLDER, "ca")]
options += ["-p", POLICY, "--upstream-ca", CA, "--audit", os.path.join(FOLDER, "record.jsonl")]
running = subprocess.Popen([OUTGATE, "gateway", *options], stderr=subprocess.PIPE, text=True)
for said in running.stderr:
    sys.stderr.write(said)
    if "listens at" in said:
        break
else:
    sys.exit("no gateway")
listener = socket.create_server(("127.0.0.1", int(PORT)), backlog=128)


def drain():
    for said in running.stderr:
        sys.stderr.write(said)


threading.Thread(target=drain, daemon=True).start()
while True:
    accepted, _ = listener.accept()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=relay, args=(accepted,), daemon=True).start()
