"""Fetches a plain HTTP URL over asyncio streams: `fetch_asyncio.py URL`."""
import asyncio
import sys
import urllib.parse


async def fetch(url):
    parts = urllib.parse.urlsplit(url)
    # Happy eyeballs, as the libraries on top of asyncio ask for.
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port or 80, happy_eyeballs_delay=0.25
    )
    assert writer.get_extra_info("peername")
    head = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = (await asyncio.wait_for(reader.read(), 30)).decode()
    writer.close()
    print(answer)
    return 0 if " 200 " in answer.splitlines()[0] else 1


sys.exit(asyncio.run(fetch(sys.argv[1])))
