"""Opens the live page in headless Chromium, by its debugging pipe: a picture for each size and
scheme, and what expressions on the page come to, as JSON. Usage: URL FOLDER WAIT EXPRESSION..."""

import base64, json, os, subprocess, sys, tempfile, time

url, folder, wait, expressions = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
down_read, down_write = os.pipe()
up_read, up_write = os.pipe()


def pipes():
    # Chromium reads from 3 and writes to 4; neither may be one of ours by chance.
    first, second = os.dup(down_read), os.dup(up_write)
    high = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
    one, other = os.dup(first), os.dup(second)
    os.dup2(one, 3)
    os.dup2(other, 4)
    for number in set(high + [first, second, one, other]) - {3, 4}:
        os.close(number)


profile = tempfile.mkdtemp()
browser = subprocess.Popen(
    ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
     "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}", "about:blank"],
    preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": profile})
os.close(down_read)
os.close(up_write)
numbered, rest, faults = 0, b"", []


def heard():
    global rest
    while b"\0" not in rest:
        more = os.read(up_read, 65536)
        if not more:
            raise SystemExit("the browser is gone")
        rest += more
    one, rest = rest.split(b"\0", 1)
    return json.loads(one)


def call(method, session=None, **parameters):
    global numbered
    numbered += 1
    message = {"id": numbered, "method": method, "params": parameters}
    if session:
        message["sessionId"] = session
    os.write(down_write, json.dumps(message).encode() + b"\0")
    while True:
        answer = heard()
        if answer.get("id") == numbered:
            if "error" in answer:
                raise SystemExit(f"{method}: {answer['error']}")
            return answer["result"]
        if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            faults.append(answer["params"])


target = call("Target.createTarget", url="about:blank")["targetId"]
page = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
for domain in ["Page", "Runtime", "Log"]:
    call(f"{domain}.enable", page)


def value(expression):
    result = call("Runtime.evaluate", page, expression=expression, returnByValue=True)
    return result["result"].get("value")


call("Page.navigate", page, url=url)
deadline = time.monotonic() + 60
while not value(f"!!({wait})"):
    if time.monotonic() > deadline:
        print(json.dumps({"late": value("document.body.innerText"), "faults": faults}))
        raise SystemExit(1)
    time.sleep(0.1)
values = [value(expression) for expression in expressions]
wide = []
for name, width, height in [("phone", 390, 844), ("desk", 1280, 900)]:
    for scheme in ["light", "dark"]:
        call("Emulation.setDeviceMetricsOverride", page, width=width, height=height,
             deviceScaleFactor=1, mobile=name == "phone")
        call("Emulation.setEmulatedMedia", page,
             features=[{"name": "prefers-color-scheme", "value": scheme}])
        # Two frames later it is drawn.
        call("Runtime.evaluate", page, awaitPromise=True, expression=
             "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
        wide.append(value("document.documentElement.scrollWidth - innerWidth"))
        picture = call("Page.captureScreenshot", page, captureBeyondViewport=False)["data"]
        with open(f"{folder}/{name}-{scheme}.png", "wb") as file:
            file.write(base64.b64decode(picture))
print(json.dumps({"values": values, "wide": wide, "faults": faults}))
browser.kill()
browser.wait()
