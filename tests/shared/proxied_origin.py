"""Origins behind the explicit proxy: HTTP, HTTPS, WebSocket, and a protocol that is none of
them. Every request is written to a file as it came, every connection counted there.

    proxied_origin.py ADDRESS CERTIFICATE KEY LOG
"""

import socket
import ssl
import sys
import threading

ADDRESS, CERTIFICATE, KEY, LOG = sys.argv[1:]
LOCK = threading.Lock()
UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def note(text):
    with LOCK, open(LOG, "a", encoding="latin-1", newline="") as log:
        log.write(text)


def answer(client, name):
    note(f"connection {name}\n")
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = client.recv(65536)
            if not more:
                return
            data += more
        head, data = data.split(b"\r\n\r\n", 1)
        note(head.decode("latin-1") + "\r\n\r\n")
        fields = head.lower()
        if b"\r\nupgrade: websocket" in fields:
            # A message, and the end.
            client.sendall(UPGRADED + b"\x81\x02hi" + b"\x88\x02\x03\xe8")
            return
        length = 0
        for line in fields.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while len(data) < length:
            data += client.recv(65536)
        data = data[length:]
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\narrived")


def serve(port, wrap, talk):
    both = {"family": socket.AF_INET6, "dualstack_ipv6": True}
    listener = socket.create_server((ADDRESS, port), backlog=128, **both)

    def one(client):
        try:
            client.settimeout(300)
            talk(wrap(client), str(port))
        except OSError:
            pass
        finally:
            client.close()

    while True:
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()


def banner(client, name):
    note(f"connection {name}\n")
    client.sendall(b"tcp-banner\r\n")
    client.shutdown(socket.SHUT_WR)
    while client.recv(65536):
        pass


def echo(client, name):
    note(f"connection {name}\n")
    while data := client.recv(65536):
        client.sendall(data)
    client.sendall(b"half-closed")


TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
TLS.load_cert_chain(CERTIFICATE, KEY)
SERVERS = [
    (80, lambda client: client, answer),
    (443, lambda client: TLS.wrap_socket(client, server_side=True), answer),
    (5432, lambda client: client, banner),
    (5433, lambda client: client, banner),
    (7000, lambda client: client, echo),
]
for server in SERVERS[1:]:
    threading.Thread(target=serve, args=server, daemon=True).start()
serve(*SERVERS[0])
