"""What programs take for the method of a POST with this content, and what clients write.

`read`: each line of standard input is `KIND CONTENT`, all bytes escaped but letters and
digits; the answer is one line: `PROGRAM METHOD` between tabs for every program that
takes another method. `write COUNT SEED`: lines of that form, of what clients make of
names and values that ask for nothing.
"""
import http.client
import io
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.environ["READER_TOOLS"], "python"))
HERE = os.path.dirname(os.path.abspath(__file__))


def escape(text):
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else "%%%02x" % b for b in text)


def unescape(text):
    return urllib.parse.unquote_to_bytes(text)


def pairs_of(kind, content):
    """A form as Django and Werkzeug find it."""
    import django
    from django.conf import settings
    from werkzeug.formparser import parse_form_data

    if not settings.configured:
        settings.configure(DEFAULT_CHARSET="utf-8")
        django.setup()
    from django.core.handlers.wsgi import WSGIRequest

    def environ():
        return {
            "REQUEST_METHOD": "POST",
            "CONTENT_TYPE": kind,
            "CONTENT_LENGTH": str(len(content)),
            "wsgi.input": io.BytesIO(content),
            "PATH_INFO": "/",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
        }

    return {
        "django": lambda: WSGIRequest(environ()).POST.getlist("_method"),
        "werkzeug": lambda: parse_form_data(environ())[1].getlist("_method"),
        "tornado": lambda: tornado(kind, content),
        "python json": lambda: [json.loads(content)["_method"]] if "json" in kind else [],
    }


def tornado(kind, content):
    from tornado.httputil import parse_body_arguments

    found = {}
    parse_body_arguments(kind, content, found, {})
    return [value.decode("latin-1") for value in found.get("_method", [])]


class Server:
    """A program that answers a POST with the method that it takes."""

    def __init__(self, name, command, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.name = name
        command = [part.replace("PORT", str(self.port)) for part in command]
        self.child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if time.monotonic() > end or self.child.poll() is not None:
                    raise SystemExit(name + " listens nowhere")
                time.sleep(0.05)

    def ask(self, kind, content):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.request("POST", "/", content, {"Content-Type": kind})
            answer = line.getresponse()
            text = answer.read().decode("latin-1")
            return [text] if answer.status == 200 and text else []
        finally:
            line.close()


PHP = """<?php
$found = $_POST['_method'] ?? null;
if ($found === null && str_contains($_SERVER['CONTENT_TYPE'] ?? '', 'json')) {
    $found = json_decode(file_get_contents('php://input'), true)['_method'] ?? null;
}
if (is_array($found)) { $found = reset($found); }
if (is_string($found)) { echo trim($found); }
"""


def methods(found):
    for method in found:
        method = str(method).strip().upper()
        if method != "POST" and re.fullmatch("[A-Z]{3,16}", method):
            yield method


def read():
    node = os.path.join(os.environ["READER_TOOLS"], "node", "package.json")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "index.php"), "w") as page:
            page.write(PHP)
        servers = [
            Server("php", ["php", "-n", "-d", "display_errors=0", "-S", "127.0.0.1:PORT", "index.php"], folder),
            Server("rack", ["ruby", os.path.join(HERE, "methods.rb"), "PORT"], folder),
            Server("node", ["node", os.path.join(HERE, "methods.js"), "PORT", node], folder),
            Server("tomcat", ["java", "-XX:+UseSerialGC", "-cp", "/usr/share/java/*", os.path.join(HERE, "Methods.java"), "PORT", folder], folder),
        ]
        try:
            for line in sys.stdin.read().split("\n"):
                if line:
                    kind, content = line.split(" ")
                    print("\t".join(answers(servers, unescape(kind).decode("latin-1"), unescape(content))))
        finally:
            for server in servers:
                server.child.kill()
                server.child.wait()


def answers(servers, kind, content):
    asked = dict(pairs_of(kind, content))
    for server in servers:
        asked[server.name] = lambda server=server: server.ask(kind, content)
    for name, ask in asked.items():
        try:
            found = list(ask())
        except Exception:
            # What a program refuses, it does not do.
            if os.environ.get("READER_FAULTS"):
                import traceback
                traceback.print_exc()
            continue
        for method in methods(found):
            yield escape(name.encode()) + " " + method


WORDS = ["a", "file", "user name", "\u00e4\u00f6", "x[y]", "\u65e5\u672c", "a\"b", "naive", "it's", "A-1.2", "100%", "a;b", "a=b"]


def sent(write):
    """The kind and the content of what a client sends to a listener."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        found = []

        def take():
            line, _ = listener.accept()
            with line, line.makefile("rb") as stream:
                head = http.client.parse_headers(io.BytesIO(stream_head(stream)))
                content = stream.read(int(head["Content-Length"])) if head["Content-Length"] else chunks(stream)
                found.append((head["Content-Type"], content))
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        taker = threading.Thread(target=take)
        taker.start()
        write("http://127.0.0.1:%d/" % listener.getsockname()[1])
        taker.join(30)
        return found[0]


def stream_head(stream):
    stream.readline()
    lines = []
    while not lines or lines[-1] not in (b"\r\n", b""):
        lines.append(stream.readline())
        if lines[-1].lower().startswith(b"expect:"):
            lines.pop()
    return b"".join(lines)


def chunks(stream):
    content = b""
    while size := int(stream.readline().strip() or b"0", 16):
        content += stream.read(size)
        stream.readline()
    return content


def clients(folder):
    """What writes contents of a client's own: given names and values, one of them a file."""
    import requests as package
    from werkzeug.test import EnvironBuilder

    def requests(draw):
        files = {draw() + "f": (draw(), b"x\r\n\r\ny", "text/plain")}
        request = package.Request("POST", "http://localhost/", data={draw(): draw()}, files=files).prepare()
        return request.headers["Content-Type"], request.body

    def werkzeug(draw):
        # A client for tests, which writes quotes as they are.
        plain = lambda: draw().replace("\"", "_")
        builder = EnvironBuilder(method="POST", data={plain(): draw(), "f" + plain(): (io.BytesIO(b"x"), plain())})
        environ = builder.get_environ()
        return environ["CONTENT_TYPE"], environ["wsgi.input"].read()

    def curl(draw):
        path = os.path.join(folder, "upload")
        with open(path, "wb") as file:
            file.write(b"--x\r\nContent: y\r\n\r\n")
        # Its own signs in names and values are no part of them.
        plain = lambda: re.sub("[=;\"]", "_", draw())
        words = ["-F", plain() + "=" + plain(), "-F", plain() + "=@" + path + ";filename=\"" + plain() + "\""]
        return sent(lambda url: subprocess.run(["curl", "-sS", "-H", "Expect:", *words, url], check=True))

    def google(draw):
        from email.mime.multipart import MIMEMultipart
        from email.mime.nonmultipart import MIMENonMultipart
        from email.generator import BytesGenerator

        outer = MIMEMultipart("related")
        setattr(outer, "_write_headers", lambda self: None)
        for kind, content in (("json", json.dumps({draw(): draw()})), ("octet-stream", "x\r\n\r\ny")):
            inner = MIMENonMultipart("application", kind)
            if kind != "json":
                inner["Content-Transfer-Encoding"] = "binary"
            inner.set_payload(content)
            outer.attach(inner)
        stream = io.BytesIO()
        BytesGenerator(stream, mangle_from_=False).flatten(outer, unixfrom=False)
        return "multipart/related; boundary=\"%s\"" % outer.get_boundary(), stream.getvalue()

    def python_json(draw):
        document = {draw(): [draw(), random.random(), float("nan"), None, {draw(): True}]}
        return "application/json", json.dumps(document, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1])).encode()

    def form(draw):
        return "application/x-www-form-urlencoded", urllib.parse.urlencode([(draw(), draw()) for _ in range(3)]).encode()

    return [requests, werkzeug, curl, google, python_json, form]


def write(count, seed):
    random.seed(seed)

    def draw():
        return " ".join(random.choices(WORDS, k=random.randint(1, 2)))

    node = os.path.join(os.environ["READER_TOOLS"], "node", "package.json")
    script = [os.path.join(HERE, "methods.js"), "write", node]
    names = [[draw() for _ in range(4)] for _ in range(count)]
    forms = subprocess.run(["node", *script], input=json.dumps(names), capture_output=True, text=True, check=True).stdout
    sys.stdout.write(forms)
    with tempfile.TemporaryDirectory() as folder:
        for client in clients(folder):
            for _ in range(count):
                kind, content = client(draw)
                print(escape(kind.encode()) + " " + escape(content))


if sys.argv[1] == "read":
    read()
else:
    write(int(sys.argv[2]), int(sys.argv[3]))
