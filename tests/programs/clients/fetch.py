"""Fetches a URL with urllib: `fetch.py URL [CA]`."""
import ssl
import sys
import urllib.error
import urllib.request

context = ssl.create_default_context(cafile=sys.argv[2]) if len(sys.argv) > 2 else None
try:
    with urllib.request.urlopen(sys.argv[1], timeout=30, context=context) as response:
        print(response.status, response.read().decode(), end="")
except urllib.error.HTTPError as error:
    print(error.code, error.reason, error.read().decode(), end="")
    sys.exit(1)
