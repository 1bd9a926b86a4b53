"""Sends requests that lie in files, each `HOST` and a line feed before its bytes, and
says of each: its name, the status, and the first line of the content if it is refused.
"""
import os
import socket
import sys

folder = sys.argv[1]
for name in sorted(os.listdir(folder), key=int):
    with open(os.path.join(folder, name), "rb") as file:
        host, _, request = file.read().partition(b"\n")
    answer = b""
    try:
        with socket.create_connection((host.decode(), 80), timeout=20) as connection:
            connection.sendall(request)
            stream = connection.makefile("rb")
            status = b"100"
            while status in (b"100", b"103"):
                status = stream.readline().split(b" ")[1]
                length = 0
                while (line := stream.readline().strip()):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
            if status not in (b"101", b"200") and not request.startswith(b"HEAD "):
                answer = stream.read(length)
    except (OSError, IndexError) as error:
        status, answer = b"000", repr(error).encode()
    print(name, status.decode(), answer.decode(errors="replace").replace("\n", " ")[:600], flush=True)
