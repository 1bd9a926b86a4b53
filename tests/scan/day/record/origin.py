"""Origins for the recording: one server for every name, over TLS and without. It
keeps each request as it came and answers what makes its client go on.
"""
import os
import socket
import ssl
import subprocess
import threading
import zlib


class Request:
    """What came: the lines of the head as they were, and the content decoded from chunks."""

    def __init__(self, scheme, host, head, body):
        self.scheme, self.host, self.head, self.body = scheme, host, head, body
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.path, _, self.query = self.target.partition("?")
        pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
        self.fields = {name.lower(): value.strip() for name, value in pairs}

    def content(self):
        """The content without its coding."""
        if self.fields.get("content-encoding") == "gzip":
            return zlib.decompress(self.body, 31)
        return self.body


class Origins:
    """The server. `answer` gives (status, fields, content) for a request."""

    def __init__(self, folder, answer):
        self.folder, self.answer, self.requests = folder, answer, []
        self.lock, self.contexts = threading.Lock(), {}
        self.ca = os.path.join(folder, "ca.pem")
        self.openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-subj", "/CN=Recording", "-keyout", "ca.key", "-out", "ca.pem",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
        )
        for port, is_tls in ((443, True), (80, False)):
            listener = socket.create_server(("127.0.0.1", port), backlog=64)
            threading.Thread(target=self.listen, args=(listener, is_tls), daemon=True).start()

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def context(self, name):
        with self.lock:
            if name not in self.contexts:
                extensions = f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n"
                with open(os.path.join(self.folder, "ext"), "w") as file:
                    file.write(extensions)
                self.openssl(
                    "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=leaf", "-keyout", f"{name}.key", "-out", "csr",
                )
                self.openssl(
                    "x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                    "-days", "20", "-extfile", "ext", "-out", f"{name}.pem",
                )
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                chain = [os.path.join(self.folder, f"{name}.{end}") for end in ("pem", "key")]
                context.load_cert_chain(*chain)
                context.set_alpn_protocols(["http/1.1"])
                self.contexts[name] = context
            return self.contexts[name]

    def listen(self, listener, is_tls):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection, is_tls), daemon=True).start()

    def serve(self, connection, is_tls):
        name = [None]
        try:
            if is_tls:
                outer = self.context("localhost")

                def chosen(sock, server_name, _):
                    name[0] = server_name or "localhost"
                    sock.context = self.context(name[0])

                outer.sni_callback = chosen
                connection = outer.wrap_socket(connection, server_side=True)
            connection.settimeout(120)
            stream = connection.makefile("rb")
            while self.one(connection, stream, is_tls, name[0]):
                pass
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def one(self, connection, stream, is_tls, name):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return False
            head += line
        head = head[:-4]
        # Of a session that is taken up again TLS says no name.
        request = Request("https" if is_tls else "http", name, head, b"")
        request.host = name or request.fields.get("host", "").split(":")[0]
        if "100-continue" in request.fields.get("expect", "").lower():
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b""
        if request.fields.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(stream.readline().split(b";")[0], 16)
                body += stream.read(size)
                stream.readline()
                if size == 0:
                    break
        else:
            body = stream.read(int(request.fields.get("content-length", 0)))
        request.body = body
        with self.lock:
            self.requests.append(request)
        status, fields, content = self.answer(request)
        if isinstance(content, str):
            content = content.encode()
        lines = [f"HTTP/1.1 {status} Answer"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        if not any(name.lower() == "content-length" for name in fields):
            lines.append(f"Content-Length: {len(content)}")
        answer = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if request.method != "HEAD":
            answer += content
        connection.sendall(answer)
        return request.fields.get("connection", "").lower() != "close"

    def take(self):
        with self.lock:
            taken, self.requests = self.requests, []
        return taken
