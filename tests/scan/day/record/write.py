"""Writes recordings: one text for each client, without the values of its credentials.

    # what it is
    value NAME TEMPLATE         a credential, as the detectors' samples write it
    env NAME=TEXT               what the user has in the environment
    file NAME                   and in the home directory, each line behind a tab
    ==== SCHEME HOST PORT       a request: its head, an empty line, its content
    ==== base64 SCHEME HOST PORT    with the content in base 64
    ==== gzip SCHEME HOST PORT      with the content of a gzip stream

In texts «NAME» stands for a value, «url NAME» for its percent form and «b64 TEXT» for
the base 64 of a text in which ‹NAME› are values. A line feed is itself, other bytes
that are not printable ASCII are \\r or \\xNN, a backslash is two.
"""
import base64
import json
import re
import secrets
import string
import urllib.parse
import zlib

ALPHABETS = {
    "b62": string.ascii_letters + string.digits,
    "b64u": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "alpha": string.ascii_letters,
    "hex": "0123456789abcdef",
    "digits": string.digits,
    "lower": string.ascii_lowercase + string.digits,
}

# Longest text within JSON that is kept, most elements of a list, and longest content.
TEXT_MAX, LIST_MAX, CONTENT_MAX = 240, 3, 12288


def expand(template):
    """A credential of the form, with a right checksum where this knows it."""
    out = ""
    for part in re.split(r"(\{[^}]*\})", template):
        word, _, count = part.strip("{}").partition(":")
        if not part.startswith("{"):
            out += part
        elif word in ALPHABETS:
            out += "".join(secrets.choice(ALPHABETS[word]) for _ in range(int(count)))
        elif word == "crc62":
            number, digits = zlib.crc32(out.rsplit("_", 1)[-1].encode()), ""
            for _ in range(6):
                number, digit = divmod(number, 62)
                digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[digit] + digits
            out += digits
        elif word == "akid":
            out += "".join(secrets.choice(string.ascii_uppercase + "234567") for _ in range(16))
        elif word == "macaroon":
            out += "AgEIcHlwaS5vcmc" + "".join(secrets.choice(ALPHABETS["b64u"]) for _ in range(150))
        else:
            raise ValueError(part)
    return out


def cut(value):
    """The same JSON, shorter."""
    if isinstance(value, dict):
        return {name: cut(inner) for name, inner in list(value.items())[:40]}
    if isinstance(value, list):
        return [cut(inner) for inner in value[:LIST_MAX]]
    if isinstance(value, str) and len(value) > TEXT_MAX and " " in value[:TEXT_MAX]:
        return value[:TEXT_MAX]
    return value


def shortened(body):
    """JSON and lines of JSON, cut where they are long."""
    if len(body) <= 2048:
        return body
    try:
        return json.dumps(cut(json.loads(body)), ensure_ascii=False, separators=(",", ":")).encode()
    except ValueError:
        return body


def escaped(data):
    out = []
    for byte in data:
        if byte == 10 or (32 <= byte < 127 and byte != 92):
            out.append(chr(byte))
        else:
            out.append({92: "\\\\", 13: "\\r", 9: "\\t"}.get(byte, f"\\x{byte:02x}"))
    return "".join(out)


class Recording:
    def __init__(self, title, values, environment, files, clean):
        self.title, self.templates, self.clean = title, values, clean
        self.values = {name: expand(template) for name, template in values.items()}
        self.said = (environment, files)
        self.environment = {name: self.fill(text) for name, text in environment.items()}
        self.files = {name: self.fill(text) for name, text in files.items()}

    def fill(self, text):
        def full(match):
            word = match.group(1)
            if word.startswith("b64 "):
                inner = re.sub("‹([^›]*)›", lambda name: self.values[name.group(1)], word[4:])
                return base64.b64encode(inner.encode()).decode()
            return self.values[word]

        return re.sub("«([^»]*)»", full, text)

    def hidden(self, text):
        """The text with names in place of values, in every form a client writes them."""
        longest = sorted(self.values.items(), key=lambda pair: -len(pair[1]))
        for name, value in longest:
            text = text.replace(value, f"«{name}»")
            quoted = urllib.parse.quote(value, safe="")
            text = text.replace(quoted, f"«url {name}»")

        def pair(match):
            try:
                inner = base64.b64decode(match.group(2) + "==").decode()
            except ValueError:
                return match.group(0)
            before = inner
            for name, value in longest:
                inner = inner.replace(value, f"‹{name}›")
            return match.group(0) if inner == before else f"{match.group(1)}«b64 {inner}»"

        return re.sub(r'((?:[Bb]asic |"auth": ?"|auth=|[a-z]: ))([A-Za-z0-9+/]{12,}={0,2})', pair, text)

    def write(self, path, requests):
        seen, out = set(), [f"# {line}" for line in self.title.strip().splitlines()]
        out += [f"value {name} {template}" for name, template in self.templates.items()]
        environment, files = self.said
        out += [f"env {name}={text}" for name, text in environment.items()]
        for name, text in files.items():
            out.append(f"file {name}")
            out += [f"\t{line}" for line in text.splitlines()]
        for request in requests:
            if len(request.body) > 1 << 20:
                continue
            body, coded = request.body, ""
            if request.fields.get("content-encoding") == "gzip":
                body, coded = request.content(), "gzip "
            body = shortened(body)
            head = self.clean(self.hidden(escaped(request.head).replace("\\r\n", "\n")))
            port = {"https": 443, "http": 80}[request.scheme]
            binary = sum(not (32 <= byte < 127 or byte in (9, 10, 13)) for byte in body)
            if binary * 8 > len(body):
                coded, body = "base64 ", request.body
                text = base64.encodebytes(body[:CONTENT_MAX]).decode().strip()
            else:
                text = self.clean(self.hidden(escaped(body[:CONTENT_MAX])))
            key = (request.host, head, text)
            if key in seen:
                continue
            seen.add(key)
            out += [f"==== {coded}{request.scheme} {request.host} {port}", head, "", text]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(out) + "\n")
        return len(seen)
