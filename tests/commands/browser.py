"""Opens a page in Chromium as a person would, on a small and a large screen, light,
dark and printed: `browser.py PAGE FOLDER`. Writes what it looks like to FOLDER and
prints, as JSON, what was requested, how wide the page is, and how bright.

Speaks the protocol of Chromium's developer tools over a pair of pipes: texts of
JSON, each with a zero behind it.
"""
import base64
import json
import os
import struct
import subprocess
import sys
import zlib

PAGE, FOLDER = map(os.path.abspath, sys.argv[1:])
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
]
# What stands beyond the right edge, and no scrolling of its own takes care of; and
# texts that are cut off without a sign of it.
MEASURE = """(() => {
  const wide = document.documentElement.clientWidth, beyond = [];
  for (const one of document.body.querySelectorAll('*')) {
    let scrolls = false;
    for (let at = one.parentElement; at; at = at.parentElement)
      scrolls ||= ['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX);
    if (!scrolls && one.getBoundingClientRect().right > wide + 0.5)
      beyond.push(one.tagName + '.' + one.getAttribute('class') + ' ' + one.textContent.slice(0, 40));
  }
  const cut = [];
  for (const one of document.querySelectorAll('svg svg text')) {
    const room = one.ownerSVGElement.width.baseVal.value, box = one.getBBox();
    if (box.x < -0.5 || box.x + box.width > room + 0.5) cut.push(one.textContent);
  }
  for (const one of document.querySelectorAll('div, span, code, p, td, th')) {
    const style = getComputedStyle(one);
    if (style.overflowX == 'hidden' && one.scrollWidth > one.clientWidth + 1)
      if (style.textOverflow != 'ellipsis') cut.push(one.textContent);
  }
  return [wide, document.documentElement.scrollWidth, beyond.slice(0, 9), cut.slice(0, 9)];
})()"""


class Browser:
    """Chromium, which reads its commands from 3 and answers on 4."""

    def __init__(self):
        ours, self.theirs = os.pipe(), os.pipe()
        line = ["chromium", *FLAGS, f"--user-data-dir={FOLDER}/profile", "about:blank"]
        # Numbers far above 4 first, so that neither is overwritten.
        shell = f'exec "$@" 3<&{ours[0]} 4>&{self.theirs[1]}'
        with open(f"{FOLDER}/chromium.log", "wb") as log:
            self.child = subprocess.Popen(
                ["bash", "-c", shell, "chromium", *line],
                pass_fds=[ours[0], self.theirs[1]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(ours[0])
        os.close(self.theirs[1])
        self.to, self.read = ours[1], os.fdopen(self.theirs[0], "rb")
        self.left, self.count, self.events = b"", 0, []

    def hear(self):
        while b"\0" not in self.left:
            more = self.read.read1(1 << 16)
            if not more:
                sys.exit("chromium ended: " + open(f"{FOLDER}/chromium.log").read())
            self.left += more
        text, _, self.left = self.left.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def call(self, method, session=None, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text) :]
        while (answer := self.hear()).get("id") != self.count:
            pass
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, method):
        while not any(event["method"] == method for event in self.events):
            self.hear()


def brightness(png):
    """The mean of all samples, 0 to 255, and how many colours there are."""
    at, data = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
        if kind == b"IDAT":
            data += body
        at += length + 12
    data, step = zlib.decompress(data), {2: 3, 6: 4}[colour]
    size, before = width * step, bytes(width * step)
    total, colours = 0, set()
    for row in range(height):
        begin = row * (size + 1)
        kind, line = data[begin], bytearray(data[begin + 1 : begin + 1 + size])
        for place in range(size):
            left = line[place - step] if place >= step else 0
            above = before[place]
            corner = before[place - step] if place >= step else 0
            if kind == 1:
                line[place] = (line[place] + left) & 255
            elif kind == 2:
                line[place] = (line[place] + above) & 255
            elif kind == 3:
                line[place] = (line[place] + (left + above) // 2) & 255
            elif kind == 4:
                guess = left + above - corner
                near = min((left, above, corner), key=lambda one: abs(guess - one))
                line[place] = (line[place] + near) & 255
        before = bytes(line)
        for pixel in range(0, size, step):
            colours.add(before[pixel : pixel + 3])
            total += sum(before[pixel : pixel + 3])
    return total / (width * height * 3), len(colours)


browser = Browser()
target = browser.call("Target.createTarget", url="about:blank")["targetId"]
session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
for domain in ["Page", "Network", "Log", "Runtime"]:
    browser.call(f"{domain}.enable", session)
told = {"looks": {}}
browser.call("Page.navigate", session, url=f"file://{PAGE}")
browser.wait("Page.loadEventFired")
for name, width, height, scheme, media in [
    ("light", 390, 844, "light", "screen"),
    ("dark", 390, 844, "dark", "screen"),
    ("wide", 1280, 900, "light", "screen"),
    ("wide-dark", 1280, 900, "dark", "screen"),
    ("narrow", 320, 640, "light", "screen"),
    ("print", 794, 1123, "light", "print"),
]:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", session, **size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", session, media=media, features=features)
    measured = browser.call("Runtime.evaluate", session, expression=MEASURE, returnByValue=True)
    shot = browser.call("Page.captureScreenshot", session, format="png")
    png = base64.b64decode(shot["data"])
    # For whoever wants to look at it: all of it.
    content = browser.call("Page.getLayoutMetrics", session)["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": width, "height": content["height"], "scale": 1}
    beyond_view = {"format": "png", "clip": clip, "captureBeyondViewport": True}
    whole = browser.call("Page.captureScreenshot", session, **beyond_view)
    with open(f"{FOLDER}/{name}.png", "wb") as file:
        file.write(base64.b64decode(whole["data"]))
    wide, scrolls, beyond, cut = measured["result"]["value"]
    mean, colours = brightness(png)
    look = {"width": wide, "scroll": scrolls, "beyond": beyond, "cut": cut}
    told["looks"][name] = {**look, "brightness": round(mean), "colours": colours}
browser.call("Emulation.clearDeviceMetricsOverride", session)
browser.call("Emulation.setEmulatedMedia", session, media="", features=[])
pdf = base64.b64decode(browser.call("Page.printToPDF", session, printBackground=False)["data"])
with open(f"{FOLDER}/page.pdf", "wb") as file:
    file.write(pdf)
told["pdf"] = pdf[:5].decode("latin-1")
told["requests"] = [
    event["params"]["request"]["url"]
    for event in browser.events
    if event["method"] == "Network.requestWillBeSent"
]
told["complaints"] = [
    event["params"]["entry"]["text"]
    for event in browser.events
    if event["method"] == "Log.entryAdded"
]
browser.call("Browser.close")
browser.child.wait()
print(json.dumps(told))
