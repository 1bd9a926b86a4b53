"""Echoes over gRPC: `grpc_server.py ADDRESS LOG`; with `CERTIFICATE KEY` inside TLS."""
import sys
from concurrent import futures

import grpc

ADDRESS, LOG, *SECRETS = sys.argv[1:]


def note(method):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(method + "\n")


def once(content, _):
    note("once")
    return b"from-the-real-origin " + content


def many(content, _):
    note("many")
    for number in range(5):
        yield b"%d " % number + content


def both(contents, _):
    note("both")
    for content in contents:
        yield b"echo " + content


class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        kinds = {
            "/demo.Echo/Once": grpc.unary_unary_rpc_method_handler(once),
            "/demo.Echo/Many": grpc.unary_stream_rpc_method_handler(many),
            "/demo.Echo/Both": grpc.stream_stream_rpc_method_handler(both),
        }
        return kinds.get(details.method)


server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((Echo(),))
if SECRETS:
    certificate, key = (open(name, "rb").read() for name in SECRETS)
    server.add_secure_port(ADDRESS, grpc.ssl_server_credentials([(key, certificate)]))
else:
    server.add_insecure_port(ADDRESS)
server.start()
server.wait_for_termination()
