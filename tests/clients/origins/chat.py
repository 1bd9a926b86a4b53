"""The origin of a chat with a model: `chat.py ADDRESS LOG CERTIFICATE KEY`.

Answers are streams of events. It sends the first words of one, and the rest
when the client says that it has them: a client that gets an answer only as a
whole waits for ever. Writes one line per connection and per request.
"""
import base64
import hashlib
import http.server
import json
import ssl
import sys
import threading

ADDRESS, LOG, CERTIFICATE, KEY = sys.argv[1:]
MARK = "from-the-real-origin"
HELD_SECONDS_MAX = 30
log_lock = threading.Lock()
heard = {}


def log(line):
    with log_lock, open(LOG, "a", encoding="utf-8") as file:
        file.write(line + "\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def get_request(self):
        stream, address = super().get_request()
        log("+")
        # Its thread shakes hands, with its first read.
        wrap = {"server_side": True, "do_handshake_on_connect": False}
        return self.context.wrap_socket(stream, **wrap), address


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def content(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def answer(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def event(self, kind, **members):
        data = json.dumps({"type": kind, **members})
        event = f"event: {kind}\ndata: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()

    def do_GET(self):
        """The client has the first words of an answer."""
        heard[self.path.rsplit("/", 1)[1]].set()
        self.answer({"heard": True})

    def do_POST(self):
        content = self.content()
        key = hashlib.sha256(self.headers.get("x-api-key", "").encode()).hexdigest()
        log(f"{self.headers.get('Host')} {self.command} {self.path} {key}")
        if self.path == "/v1/files":
            self.answer({"id": "file_011", "digest": hashlib.sha256(content).hexdigest()})
            return
        turn = json.loads(content)
        blocks = [
            block
            for message in turn["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        images = [block["source"]["data"] for block in blocks if block["type"] == "image"]
        images += [
            block["image_url"]["url"].split(",", 1)[1]
            for block in blocks
            if block["type"] == "image_url"
        ]
        digests = [hashlib.sha256(base64.b64decode(image)).hexdigest() for image in images]
        number = str(len(turn["messages"]))
        heard[number] = threading.Event()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.event("message_start", message={"id": f"msg_{number}", "role": "assistant"})
        self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"{MARK} "})
        if not heard[number].wait(HELD_SECONDS_MAX):
            self.event("error", error={"type": "nobody_heard"})
        for word in [number, *digests]:
            self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"{word} "})
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "run_shell", "input": {}}
        self.event("content_block_start", index=1, content_block=call)
        for piece in ['{"command": "grep -rn ', "'fn main' src", '", "timeout_ms": 120000}']:
            delta = {"type": "input_json_delta", "partial_json": piece}
            self.event("content_block_delta", index=1, delta=delta)
        self.event("message_stop")
        self.wfile.write(b"0\r\n\r\n")


Server.context.load_cert_chain(CERTIFICATE, KEY)
Server.context.set_alpn_protocols(["http/1.1"])
host, port = ADDRESS.split(":")
Server((host, int(port)), Handler).serve_forever()
