"""One small package for each kind of registry."""
import base64
import hashlib
import io
import json
import tarfile
import zipfile


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as inner:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            inner.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def once(make):
    made = []

    def kept():
        if not made:
            made.append(make())
        return made[0]

    return kept


@once
def npm():
    about = json.dumps({"name": "demo-pkg", "version": "1.0.0", "main": "index.js"})
    return archive({"package/package.json": about, "package/index.js": "module.exports = 1\n"})


def npm_about():
    content = npm()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    dist = {"tarball": "https://npm.example/demo-pkg/-/demo-pkg-1.0.0.tgz", "integrity": integrity}
    version = {"name": "demo-pkg", "version": "1.0.0", "dist": dist}
    return {"name": "demo-pkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}


@once
def wheel():
    info, out = "demo_pkg-1.0.0.dist-info", io.BytesIO()
    with zipfile.ZipFile(out, "w") as inner:
        for name, text in {
            "demo_pkg.py": "print(1)\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: me\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": f"demo_pkg.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        }.items():
            inner.writestr(name, text)
    return "demo_pkg-1.0.0-py3-none-any.whl", out.getvalue()


@once
def crate():
    manifest = '[package]\nname = "demo-crate"\nversion = "1.0.0"\nedition = "2021"\n'
    return archive({"demo-crate-1.0.0/Cargo.toml": manifest, "demo-crate-1.0.0/src/lib.rs": "pub fn one() {}\n"})


def crate_about():
    digest = hashlib.sha256(crate()).hexdigest()
    return json.dumps({"name": "demo-crate", "vers": "1.0.0", "deps": [], "cksum": digest,
                       "features": {}, "yanked": False}) + "\n"


@once
def module():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as inner:
        inner.writestr("example.com/demo@v1.0.0/go.mod", "module example.com/demo\n")
        inner.writestr("example.com/demo@v1.0.0/demo.go", "package demo\n")
    return out.getvalue()
