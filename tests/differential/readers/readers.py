"""What the parsers of Python and of its packages make of targets and queries.

The exchange is that of readers.js. Nothing is served: each parser gets the
text that a server of its would get.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["READER_TOOLS"], "python"))

import http.server  # noqa: E402
import posixpath  # noqa: E402
import urllib.parse as up  # noqa: E402
import warnings  # noqa: E402
from wsgiref.simple_server import WSGIRequestHandler  # noqa: E402

warnings.simplefilter("ignore")

import bottle  # noqa: E402
import django  # noqa: E402
import falcon  # noqa: E402
import furl  # noqa: E402
import rfc3986  # noqa: E402
import tornado.httputil  # noqa: E402
import yarl  # noqa: E402
from django.conf import settings  # noqa: E402
from starlette.datastructures import QueryParams  # noqa: E402
from werkzeug.datastructures import MultiDict  # noqa: E402
from werkzeug.serving import WSGIRequestHandler as Werkzeug  # noqa: E402
from werkzeug.wrappers import Request  # noqa: E402
from werkzeug.test import create_environ  # noqa: E402

settings.configure(DEFAULT_CHARSET="utf-8")
django.setup()
from django.core.handlers.wsgi import WSGIRequest  # noqa: E402
from django.http import QueryDict  # noqa: E402


TABLE = [chr(b) if chr(b).isalnum() and b < 128 else "%%%02x" % b for b in range(256)]


def escape(text):
    if not isinstance(text, bytes):
        text = str(text)
        try:
            text = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            text = text.encode("utf-8", "replace")
    return "".join(map(TABLE.__getitem__, text))


def simple_http(target):
    handler = http.server.SimpleHTTPRequestHandler.__new__(http.server.SimpleHTTPRequestHandler)
    handler.directory = "/srv"
    path = target
    if path.startswith("//"):
        path = "/" + path.lstrip("/")
    return handler.translate_path(path)[len("/srv"):] or "/"


def simple_http_old(target):
    handler = http.server.SimpleHTTPRequestHandler.__new__(http.server.SimpleHTTPRequestHandler)
    handler.directory = "/srv"
    return handler.translate_path(target)[len("/srv"):] or "/"


class Server:
    server_name, server_port = "localhost", 80
    server_address = ("127.0.0.1", 80)
    base_environ = {}
    multithread = multiprocess = False
    shutdown_signal = False
    ssl_context = None


def environ_of(kind, target):
    handler = kind.__new__(kind)
    handler.path = target
    handler.command, handler.request_version = "GET", "HTTP/1.1"
    import email.message
    handler.headers = email.message.Message()
    handler.client_address = ("127.0.0.1", 1)
    handler.server = Server()
    handler.environ = {}
    handler.connection = None
    handler.rfile = None
    handler.address_string = lambda: "127.0.0.1"
    return handler.make_environ() if kind is Werkzeug else handler.get_environ()


def wsgi(target):
    environ = environ_of(WSGIRequestHandler, target)
    return environ["PATH_INFO"].encode("latin-1")


def werkzeug(target):
    environ = environ_of(Werkzeug, target)
    return Request({**create_environ("/"), "PATH_INFO": environ["PATH_INFO"]}).path


def django_path(target):
    environ = {**create_environ("/"), "PATH_INFO": environ_of(WSGIRequestHandler, target)["PATH_INFO"], "QUERY_STRING": ""}
    return WSGIRequest(environ).path_info


def tornado_path(target):
    return tornado.httputil.HTTPServerRequest(method="GET", uri=target).path


PATHS = {
    "python urlsplit": lambda t: up.urlsplit(t).path,
    "python urlparse": lambda t: up.urlparse(t).path,
    "python urljoin": lambda t: up.urlsplit(up.urljoin("http://localhost/", t)).path,
    "python urlsplit unquoted": lambda t: up.urlsplit(up.unquote(t.split("?")[0])).path,
    "python http.server": simple_http,
    "python http.server old": simple_http_old,
    "python normpath": lambda t: posixpath.normpath(up.unquote(t.split("?")[0])),
    "python wsgiref": wsgi,
    "werkzeug": werkzeug,
    "django": django_path,
    "bottle": lambda t: bottle.BaseRequest({"PATH_INFO": wsgi(t).decode("latin-1")}).path,
    "tornado": tornado_path,
    "yarl": lambda t: yarl.URL(t).path,
    "yarl raw": lambda t: yarl.URL(t, encoded=True).raw_path,
    "yarl joined": lambda t: yarl.URL("http://localhost/").join(yarl.URL(t)).path,
    "furl": lambda t: str(furl.furl(t).path),
    "rfc3986": lambda t: rfc3986.uri_reference(t).path or "",
}


def flat(mapping):
    return [(key, value) for key, values in mapping.items() for value in (values if isinstance(values, list) else [values])]


QUERIES = {
    "python parse_qsl": lambda q: up.parse_qsl(q),
    "python parse_qsl blanks": lambda q: up.parse_qsl(q, keep_blank_values=True),
    "python parse_qsl latin-1": lambda q: up.parse_qsl(q, keep_blank_values=True, encoding="latin-1"),
    "python parse_qsl ignore": lambda q: up.parse_qsl(q, keep_blank_values=True, errors="ignore"),
    "python parse_qsl unquoted": lambda q: up.parse_qsl(up.unquote(q), keep_blank_values=True),
    "python parse_qsl unquoted plus": lambda q: up.parse_qsl(up.unquote_plus(q)),
    "django": lambda q: [(k, v) for k, vs in QueryDict(q).lists() for v in vs],
    "werkzeug": lambda q: list(Request({**create_environ("/"), "QUERY_STRING": q}).args.items(multi=True)),
    "starlette": lambda q: QueryParams(q).multi_items(),
    "bottle": lambda q: list(bottle.BaseRequest({"QUERY_STRING": q}).query.allitems()),
    "tornado": lambda q: [(k, v) for k, vs in tornado.httputil.HTTPServerRequest(method="GET", uri="/?" + q).query_arguments.items() for v in vs],
    "falcon": lambda q: flat(falcon.uri.parse_query_string(q, keep_blank=True)),
    "falcon comma": lambda q: flat(falcon.uri.parse_query_string(q, keep_blank=True, csv=True)),
    "yarl": lambda q: list(yarl.URL("/?" + q).query.items()),
    "furl": lambda q: [(k, v or "") for k, v in furl.furl("/?" + q).query.params.allitems()],
}


def main():
    out = []
    for line in sys.stdin.buffer.read().decode("latin-1").split("\n"):
        if not line:
            continue
        kind, text = line[0], line[2:]
        entries = []
        for name, read in (PATHS if kind == "P" else QUERIES).items():
            try:
                found = read(text)
                if kind == "P":
                    entries.append(escape(name) + " " + escape(found))
                else:
                    entries.extend(" ".join(map(escape, (name, key, value))) for key, value in found)
            except Exception:
                # What a parser refuses, it does not serve.
                if os.environ.get("READER_FAULTS"):
                    import traceback
                    traceback.print_exc()
        out.append("\t".join(entries))
    sys.stdout.write("\n".join(out) + "\n")


main()
