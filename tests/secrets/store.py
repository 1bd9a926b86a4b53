"""A store of objects inside TLS that checks signatures with the vendor's own
library: ADDRESS PORT ID SECRET SESSION LOG."""

import hashlib
import http.server
import ssl
import sys
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

ADDRESS, PORT, ID, SECRET, SESSION, LOG = sys.argv[1:7]


class Checked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def check(self, content):
        url = f"https://{self.headers['host']}{self.path}"
        parts = urllib.parse.urlsplit(url)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        keys = botocore.credentials.Credentials(ID, SECRET)
        if "X-Amz-Signature" in query:
            scope = query["X-Amz-Credential"].split("/")
            if scope[0] != ID or query.get("X-Amz-Security-Token", "") != SESSION:
                return "keys"
            signed, sent = query["X-Amz-SignedHeaders"], query["X-Amz-Signature"]
            date, hashed = query["X-Amz-Date"], "UNSIGNED-PAYLOAD"
            rest = "&".join(p for p in parts.query.split("&") if not p.startswith("X-Amz-Signature="))
            url = url.split("?")[0] + "?" + rest
        else:
            words = self.headers.get("authorization", "").split(" ", 1)
            if words[0] != "AWS4-HMAC-SHA256":
                return "unsigned"
            said = dict(part.strip().split("=", 1) for part in words[1].split(","))
            scope = said["Credential"].split("/")
            if scope[0] != ID or self.headers.get("x-amz-security-token", "") != SESSION:
                return "keys"
            signed, sent, date = said["SignedHeaders"], said["Signature"], self.headers["x-amz-date"]
            hashed = self.headers.get("x-amz-content-sha256")
            if hashed is None:
                hashed = hashlib.sha256(content).hexdigest()
            elif len(hashed) == 64 and hashed != hashlib.sha256(content).hexdigest():
                return "content"
        kind = botocore.auth.S3SigV4Auth if scope[3] == "s3" else botocore.auth.SigV4Auth
        signer = kind(keys, scope[3], scope[2])
        request = botocore.awsrequest.AWSRequest(method=self.command, url=url)
        for name in signed.split(";"):
            request.headers[name] = self.headers[name]
        request.context["timestamp"] = date
        headers = signer.headers_to_sign(request)
        if ";".join(sorted(headers.keys())) != signed:
            headers = {name: self.headers[name] for name in signed.split(";")}
        lines = [f"{name}:{' '.join(headers[name].split())}" for name in signed.split(";")]
        canonical = "\n".join([
            self.command,
            signer._normalize_url_path(urllib.parse.urlsplit(url).path),
            signer.canonical_query_string(request),
            "\n".join(lines) + "\n",
            signed,
            hashed,
        ])
        made = signer.signature(signer.string_to_sign(request, canonical), request)
        return None if made == sent else "signature"

    def answer(self):
        length = self.headers.get("content-length")
        if length is not None:
            content = self.rfile.read(int(length))
        elif "chunked" in self.headers.get("transfer-encoding", ""):
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            content = b""
        wrong = self.check(content)
        status = 200 if wrong is None else 403
        with open(LOG, "a") as log:
            log.write(f"{status} {self.command} {self.path} {wrong or ''}".strip() + "\n")
        body = b"{}" if b"json" in self.headers.get("content-type", "").encode() else b"<Result/>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def log_message(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
server = http.server.ThreadingHTTPServer((ADDRESS, int(PORT)), Checked)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
