"""The origin of everything that a file server cannot answer: uploads, streams,
WebSockets, repositories. `origin.py ADDRESS PORT LOG REPOSITORIES CERTIFICATE KEY`;
with these two it also speaks TLS, on port 443.

Writes one line per connection and, before it answers, one per request.
"""
import base64
import hashlib
import http.server
import json
import os
import ssl
import struct
import subprocess
import sys
import threading
import time

ADDRESS, PORT, LOG, REPOSITORIES, CERTIFICATE, KEY = sys.argv[1:]
MARK = "from-the-real-origin"
log_lock = threading.Lock()


def log(line):
    with log_lock, open(LOG, "a", encoding="utf-8") as file:
        file.write(line + "\n")


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def get_request(self):
        accepted = super().get_request()
        log("+")
        return accepted


class Secure(Server):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATE, KEY)
        self.context.set_alpn_protocols(["http/1.1"])

    def get_request(self):
        stream, address = super().get_request()
        # Its thread shakes hands, with its first read.
        wrap = {"server_side": True, "do_handshake_on_connect": False}
        return self.context.wrap_socket(stream, **wrap), address


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def note(self, more=""):
        log(f"{self.headers.get('Host')} {self.command} {self.path}{more}")

    def parts(self):
        """The content of the request, piece by piece."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            part = self.rfile.read(min(left, 1 << 20))
            if not part:
                return
            left -= len(part)
            yield part

    def answer(self, status, content, kind="text/plain", fields=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def any(self):
        path = self.path.split("?")[0]
        if path == "/socket":
            self.socket()
        elif path == "/events":
            self.events()
        elif path == "/sink":
            count, digest = 0, hashlib.sha256()
            for part in self.parts():
                count += len(part)
                # What is longer is counted only: the test is not of hashing.
                if count <= 64 << 20:
                    digest.update(part)
            self.note(f" {count}")
            self.answer(200, f"{MARK} {count} {digest.hexdigest()}\n".encode())
        elif path == "/fields":
            list(self.parts())
            self.note()
            self.answer(200, json.dumps(list(self.headers.items())).encode(), "application/json")
        elif path == "/elsewhere":
            self.note()
            self.answer(302, b"", fields=[("Location", "http://other.example/moved")])
        elif path == "/here":
            self.note()
            self.answer(302, b"", fields=[("Location", "/hello")])
        elif path.startswith("/git/"):
            self.git()
        else:
            list(self.parts())
            self.note()
            self.answer(200, f"{MARK}\n".encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = any

    def events(self):
        """Server-sent events, spaced, each with the time it was sent at."""
        self.note()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(5):
            event = f"id: {number}\ndata: {time.time()}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
            time.sleep(0.2)
        self.wfile.write(b"0\r\n\r\n")

    def socket(self):
        """A WebSocket that echoes (RFC 6455)."""
        self.note()
        key = self.headers.get("Sec-WebSocket-Key", "")
        if self.headers.get("Upgrade", "").lower() != "websocket" or not key:
            self.answer(426, b"a WebSocket lives here\n")
            return
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(digest).decode())
        self.end_headers()
        self.close_connection = True
        while head := self.rfile.read(2):
            size = head[1] & 127
            if size == 126:
                (size,) = struct.unpack(">H", self.rfile.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self.rfile.read(8))
            mask = self.rfile.read(4)
            data = self.rfile.read(size)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            kind = head[0] & 15
            length = (
                bytes([size])
                if size < 126
                else b"\x7e" + struct.pack(">H", size)
            )
            # A ping is answered with a pong, everything else with itself.
            self.wfile.write(bytes([0x80 | (10 if kind == 9 else kind)]) + length + data)
            if kind == 8:
                return

    def git(self):
        """git http-backend, which is a CGI program (RFC 3875)."""
        content = b"".join(self.parts())
        path, _, query = self.path.partition("?")
        self.note()
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": REPOSITORIES,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path.removeprefix("/git"),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(content)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "tester",
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        made = subprocess.run(
            ["git", "http-backend"], input=content, env=environment, stdout=subprocess.PIPE, check=False
        )
        head, _, body = made.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().splitlines()]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        kind = next((value for name, value in fields if name == "Content-Type"), "text/plain")
        self.answer(status, body, kind)


threading.Thread(target=Secure((ADDRESS, 443), Handler).serve_forever, daemon=True).start()
Server((ADDRESS, int(PORT)), Handler).serve_forever()
