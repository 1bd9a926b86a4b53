"""A chat with a model as an agent holds it: `chat.py HOST`, with the key in `KEY`.

Several turns over one session: text and code, calls of tools and what they came
to, images in base 64, a file in parts. Prints what came back, and ends with 1
where an answer is not what it must be.
"""
import base64
import hashlib
import json
import os
import random
import struct
import sys
import zlib

import httpx

HOST = sys.argv[1]
# The same bytes in every run.
chance = random.Random(20261123)

CODE = '''fn parse(text: &str) -> Result<Rule, Error> {
    let (method, rest) = text.split_once(' ').ok_or(Error::Method)?;
    let digest = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    // commit 9fceb02d0ae598e95dc970b74767f19372d61af8, see also
    // https://example.org/rfc9110?section=7.2&key=value#target
    Ok(Rule { method: method.parse()?, host: rest.to_owned(), digest })
}
'''

LISTING = "".join(
    f"src/rule_{number}.rs:{number * 7 + 1}:    let token = tokens.next().ok_or(Error::{kind})?;\n"
    for number, kind in enumerate(["Method", "Host", "Path", "Port"] * 40)
)

SHELL = {
    "name": "run_shell",
    "description": "Runs a command and returns what it prints.",
    "input_schema": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_ms": {"type": "integer"},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["command"],
    },
}


def image(width, height):
    """A PNG of noise, which nothing makes shorter."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    rows = b"".join(b"\0" + chance.randbytes(3 * width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def ended(what, response):
    print(what, response.status_code, response.read().decode())
    sys.exit(1)


def ask(client, messages):
    """One turn: the words of the answer and the call it asks for."""
    turn = {
        "model": "a-model-20261001",
        "max_tokens": 8192,
        "stream": True,
        "temperature": 0.7,
        "system": "You are a careful engineer. 请用简单的语言回答。",
        "tools": [SHELL],
        "metadata": {"user_id": "user_5c8f2c1a-6a0e-4b43-9d55-4a8d1b1f0c11"},
        "messages": messages,
    }
    words, arguments, call = [], [], None
    with client.stream("POST", "/v1/messages", json=turn) as response:
        if response.status_code != 200:
            ended("turn", response)
        for line in response.iter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line.removeprefix("data: "))
            if event["type"] == "error":
                print("the answer came as a whole")
                sys.exit(1)
            call = event.get("content_block", call)
            delta = event.get("delta", {})
            arguments.append(delta.get("partial_json", ""))
            if "text" in delta:
                words.append(delta["text"])
            if len(words) == 1 and "text" in delta:
                # Only now does the rest begin.
                client.get(f"/v1/heard/{len(messages)}").raise_for_status()
    call = {**call, "input": json.loads("".join(arguments))}
    print("".join(words))
    return "".join(words).strip(), call


fields = {
    "anthropic-version": "2023-06-01",
    "user-agent": "agent/1.4.2 (linux; x86_64)",
    "x-stainless-lang": "python",
    "x-stainless-retry-count": "0",
    "idempotency-key": "stainless-node-retry-7b0c8a3e-5a55-4c29-a0de-1f4b6a2f8e90",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}
if os.environ.get("KEY"):
    fields["x-api-key"] = os.environ["KEY"]
with httpx.Client(base_url=f"https://{HOST}", headers=fields, timeout=50) as client:
    document = chance.randbytes(200_000)
    parts = {
        "purpose": (None, "user_data"),
        "notes": ("notes.md", CODE * 20, "text/markdown"),
        "file": ("scan.pdf", b"%PDF-1.7\n" + document, "application/pdf"),
    }
    sent = client.build_request("POST", "/v1/files", files=parts)
    content = sent.read()
    stored = client.send(sent)
    if stored.status_code != 200:
        ended("file", stored)
    assert stored.json()["digest"] == hashlib.sha256(content).hexdigest()
    print("file", len(content))

    messages = [{"role": "user", "content": "What does this do?\n\n```rust\n" + CODE + "```"}]
    said, call = ask(client, messages)
    for _ in range(3):
        messages.append({"role": "assistant", "content": [{"type": "text", "text": said}, call]})
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": LISTING}
        messages.append({"role": "user", "content": [result]})
        said, call = ask(client, messages)
        assert call["input"]["timeout_ms"] == 120000
    pictures = [image(320, 320), image(200, 200)]
    first, second = (base64.b64encode(picture).decode() for picture in pictures)
    source = {"type": "base64", "media_type": "image/png", "data": first}
    url = {"url": "data:image/png;base64," + second}
    messages.append({"role": "assistant", "content": said})
    messages.append({
        "role": "user",
        "content": [
            {"type": "image", "source": source},
            {"type": "image_url", "image_url": url},
            {"type": "text", "text": "哪一个更大？"},
        ],
    })
    said, call = ask(client, messages)
    for picture in pictures:
        assert hashlib.sha256(picture).hexdigest() in said
print("turns", len(messages))
