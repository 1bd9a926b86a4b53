"""Records an ordinary day: `unshare -mnu python3 record.py TOOLS [CLIENT …]`.

TOOLS holds what the clients need and no distribution packages: bin/ of a Python
environment with twine and the libraries, node_modules/, deb/usr/bin. Runs in a network
and with mounts of its own: every name leads to the origins of this program, and the
home directory is one that says nothing of the machine.
"""
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile

import answers
import clients
import origin
import write

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = """github.com api.github.com uploads.github.com codeload.github.com gitlab.com git.example.com lfs.example.com
npm.example python.example upload.python.example crates.example ghcr.io images.example
my-bucket.s3.eu-west-1.amazonaws.com my-bucket.s3.amazonaws.com s3.eu-west-1.amazonaws.com sts.eu-west-1.amazonaws.com
sts.amazonaws.com dynamodb.eu-west-1.amazonaws.com logs.eu-west-1.amazonaws.com secretsmanager.eu-west-1.amazonaws.com
lambda.eu-west-1.amazonaws.com eu-west-1.queue.amazonaws.com api.ecr.eu-west-1.amazonaws.com sqs.eu-west-1.amazonaws.com ec2.eu-west-1.amazonaws.com
oauth2.googleapis.com storage.googleapis.com cloudresourcemanager.googleapis.com generativelanguage.googleapis.com
play.googleapis.com clearcut.googleapis.com files.example.com dav.example.com api.example.com api.stripe.com slack.com
api.anthropic.com platform.claude.com claude.ai statsig.anthropic.com mcp-proxy.anthropic.com api.openai.com
ab.chatgpt.com chatgpt.com auth.openai.com models.dev www.example.com opencode.ai us.i.posthog.com
raw.githubusercontent.com openrouter.ai goproxy.example huggingface.co o1.ingest.sentry.io""".split()

MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"


def run(*words):
    subprocess.run(words, check=True)


def clean(text):
    """Without the day of the recording, the machine, and names of public registries."""
    for ahead in (0, 1):
        for form in ("%Y-%m-%d", "%Y%m%d"):
            day = datetime.date.today() + datetime.timedelta(ahead)
            text = text.replace(day.strftime(form), datetime.date(2024, 1, 5).strftime(form))
    text = re.sub(rf"\b\d\d ({MONTHS}) 20\d\d", "05 Jan 2024", text)
    text = re.sub(rf"\b({MONTHS}) \d\d 20\d\d", "Jan 05 2024", text)
    text = re.sub(r"([Ll]inux[/ #]+)\d+\.\d+\.\d+[-\w.]*", r"\g<1>6.1.0", text)
    text = re.sub(r"\b6\.\d+\.\d+-[\w-]+", "6.1.0", text)
    for name in (["registry", "npmjs", "org"], ["upload", "pypi", "org"], ["pypi", "org"], ["npmjs", "com"],
                 ["index", "crates", "io"], ["static", "crates", "io"], ["crates", "io"], ["proxy", "golang", "org"]):
        text = text.replace(".".join(name), "packages.example")
    return text


def main():
    tools, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(clients.CLIENTS)
    scratch = tempfile.mkdtemp()
    run("ip", "link", "set", "lo", "up")
    run("hostname", "laptop")
    with open(f"{scratch}/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {host}\n" for host in HOSTS))
    run("mount", "--bind", f"{scratch}/hosts", "/etc/hosts")
    run("mount", "-t", "tmpfs", "none", "/home")
    os.makedirs("/home/tools")
    run("mount", "--bind", tools, "/home/tools")
    tools = "/home/tools"
    origins = origin.Origins(scratch, answers.answer)
    for name in names:
        record(name, clients.CLIENTS[name], origins, tools, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def record(name, client, origins, tools, scratch):
    home = "/home/me"
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(f"{home}/work")
    # What programs say of their own files says nothing of the machine.
    shutil.copytree(HERE, f"{home}/lib", ignore=shutil.ignore_patterns("__pycache__"))
    root = f"{scratch}/git-{name}"
    shutil.rmtree(root, ignore_errors=True)
    for repository in ("app", "private"):
        path = f"{root}/me/{repository}.git"
        run("git", "init", "-q", "--bare", "-b", "main", path)
        run("git", "-C", path, "config", "http.receivepack", "true")
        made = (f"git init -q -b main {scratch}/seed-{name}-{repository}; cd {scratch}/seed-{name}-{repository}; "
                "echo a > a; git add .; git -c user.name=Me -c user.email=me@example.com commit -qm a; "
                f"git push -q {path} HEAD:main")
        run("sh", "-c", made)
    answers.GIT["root"] = root
    recording = write.Recording(client["title"], client["values"], client["environment"], client["files"], clean)
    answers.HELD.update(recording.values)
    for path, text in recording.files.items():
        os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
        with open(f"{home}/{path}", "w") as file:
            file.write(text + "\n")
        os.chmod(f"{home}/{path}", 0o600)
    first = [f"{tools}/{part}" for part in ("deb/usr/bin", "venv/bin", "node/node_modules/.bin", "aider/bin")]
    cargo = os.path.dirname(shutil.which("cargo") or "/usr/bin/cargo")
    environment = {
        "HOME": home, "USER": "me", "LANG": "C.UTF-8", "TERM": "dumb", "RECORD": f"{home}/lib",
        "PATH": ":".join([*first, cargo, os.path.dirname(sys.executable), "/usr/local/bin:/usr/bin:/bin"]),
        "LD_LIBRARY_PATH": f"{tools}/deb/usr/lib/x86_64-linux-gnu",
        "NODE_TOOLS": f"{tools}/node", "CARGO_HTTP_CAINFO": origins.ca, "RUSTUP_HOME": os.path.expanduser("~/.rustup"),
        "SSL_CERT_FILE": origins.ca, "REQUESTS_CA_BUNDLE": origins.ca, "NODE_EXTRA_CA_CERTS": origins.ca,
        "CURL_CA_BUNDLE": origins.ca, "GIT_SSL_CAINFO": origins.ca, "CODEX_CA_CERTIFICATE": origins.ca,
        "TWINE_CERT": origins.ca, "HF_HUB_DISABLE_XET": "1", "NPM_CONFIG_CAFILE": origins.ca, "GIT_TERMINAL_PROMPT": "0",
        "PYTHONWARNINGS": "ignore", "WGETRC": f"{scratch}/wgetrc",
        **recording.environment,
        **{variable: recording.fill(text) for variable, text in client.get("hidden", {}).items()},
    }
    with open(f"{scratch}/wgetrc", "w") as file:
        file.write(f"ca_certificate = {origins.ca}\n")
    origins.take()
    done = subprocess.run(["bash", "-c", client["script"]], env=environment, cwd=f"{home}/work",
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240)
    requests = origins.take()
    with open(f"/tmp/record-{name}.log", "w") as file:
        file.write(done.stdout + done.stderr)
    count = recording.write(os.path.join(HERE, "..", f"{name}.txt"), requests)
    print(f"{name}: {count} requests, {done.returncode}", flush=True)


main()
