"""All that is outside: answers HTTP and DNS, and notes everything that arrives.

    world.py LOG READY
"""

import socket
import sys
import threading

LOG, READY = sys.argv[1:]
ADDRESS = bytes([93, 184, 216, 34])
LOCK = threading.Lock()


def note(text):
    with LOCK, open(LOG, "a", encoding="latin-1") as log:
        log.write(text + "\n")


def answer(client, port):
    with client:
        client.settimeout(20)
        note(f"connection {port}")
        data = client.recv(65536)
        note(f"{port} {data.decode('latin-1')}")
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\narrived\n")


def serve(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    ports.release()
    while True:
        client, _ = listener.accept()
        threading.Thread(target=answer, args=(client, port), daemon=True).start()


def names():
    # Not at every address: what answers has to be the one that was asked.
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((socket.inet_ntoa(ADDRESS), 53))
    ports.release()
    while True:
        question, client = listener.recvfrom(4096)
        end = question.index(b"\0", 12) + 5
        name = question[12:end].decode("latin-1")
        note("name " + "".join(letter if letter.isalnum() else "." for letter in name))
        answers = question[end - 4 : end - 2] == b"\0\1"
        head = question[:2] + b"\x81\x80\0\1" + (b"\0\1" if answers else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + ADDRESS if answers else b""
        listener.sendto(head + question[12:end] + record, client)


ports = threading.Semaphore(0)
for number in (80, 443, 53, 6443):
    threading.Thread(target=serve, args=(number,), daemon=True).start()
threading.Thread(target=names, daemon=True).start()
for _ in range(5):
    ports.acquire()
with open(READY, "w", encoding="ascii"):
    pass
threading.Event().wait()
