"""A client of the explicit proxy that is made of Python's own parts.

    proxied_client.py WAY PROXY USER TOKEN METHOD URL CERTIFICATE

WAY is absolute, connect, socks-name or socks-address. Prints a status, or what was received of
tcp://; `refused` and why where the proxy says no before anything is asked for.
"""

import base64
import http.client
import socket
import ssl
import sys
import urllib.parse

WAY, PROXY, USER, TOKEN, METHOD, URL, CERTIFICATE = sys.argv[1:]
HOST, PORT = PROXY.rsplit(":", 1)
PORTS = {"http": 80, "ws": 80, "https": 443}
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def refused(why):
    print("refused", why)
    sys.exit(0)


def exactly(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            refused("closed")
        data += more
    return data


def socks(host, port):
    stream = socket.create_connection((HOST, int(PORT)), timeout=20)
    stream.sendall(b"\x05\x02\x00\x02")
    if exactly(stream, 2) != b"\x05\x02":
        refused("method")
    user, token = USER.encode(), TOKEN.encode()
    stream.sendall(b"\x01" + bytes([len(user)]) + user + bytes([len(token)]) + token)
    if exactly(stream, 2) != b"\x01\x00":
        refused("credentials")
    if WAY == "socks-address":
        kind, address = socket.AF_INET, host
        if ":" in host:
            kind = socket.AF_INET6
        where = (b"\x01" if kind == socket.AF_INET else b"\x04") + socket.inet_pton(kind, address)
    else:
        where = b"\x03" + bytes([len(host)]) + host.encode()
    stream.sendall(b"\x05\x01\x00" + where + port.to_bytes(2, "big"))
    reply = exactly(stream, 10)
    if reply[1] != 0:
        refused(f"reply {reply[1]}")
    return stream


def tunnel(host, port):
    if WAY.startswith("socks"):
        return socks(host, port)
    stream = socket.create_connection((HOST, int(PORT)), timeout=20)
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    stream.sendall(
        f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        f"Proxy-Authorization: Basic {CREDENTIALS}\r\n\r\n".encode()
    )
    answer = http.client.HTTPResponse(stream, method="CONNECT")
    answer.begin()
    if answer.status != 200:
        refused(f"{answer.status} {answer.reason}")
    return stream


CREDENTIALS = base64.b64encode(f"{USER}:{TOKEN}".encode()).decode()
url = urllib.parse.urlsplit(URL)
port = url.port or PORTS[url.scheme]
headers = dict(WEBSOCKET) if url.scheme == "ws" else {}
if url.scheme == "tcp":
    stream = tunnel(url.hostname, port)
    try:
        print(stream.recv(64).decode().strip() or "nothing")
    except OSError as error:
        print("nothing", error)
    sys.exit(0)
if WAY == "absolute":
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=20)
    headers["Proxy-Authorization"] = f"Basic {CREDENTIALS}"
    target = URL.replace("ws://", "http://", 1)
else:
    connection = http.client.HTTPConnection(url.hostname, port, timeout=20)
    connection.sock = tunnel(url.hostname, port)
    if url.scheme == "https":
        trusting = ssl.create_default_context(cafile=CERTIFICATE)
        connection.sock = trusting.wrap_socket(connection.sock, server_hostname=url.hostname)
    target = url.path or "/"
connection.request(METHOD, target, headers=headers)
answer = connection.getresponse()
print(answer.status, answer.reason, answer.getheader("Connection"))
