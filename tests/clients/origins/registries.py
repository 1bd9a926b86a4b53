"""Makes one small package for every package manager, as files that a plain web
server serves: `registries.py FOLDER SCHEME`, with a folder per host in it.
"""
import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

FOLDER, SCHEME = sys.argv[1:]


def write(host, path, content):
    file = os.path.join(FOLDER, host, path)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as out:
        out.write(content.encode() if isinstance(content, str) else content)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def tarred(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def python():
    info = "demo_pkg-1.0.0.dist-info"
    wheel = zipped(
        {
            "demo_pkg.py": "print('from-the-real-origin')\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": f"demo_pkg.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        }
    )
    name = "demo_pkg-1.0.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel).hexdigest()
    write("pypi.example", f"files/{name}", wheel)
    write(
        "pypi.example",
        "simple/demo-pkg/index.html",
        f'<!DOCTYPE html><html><body><a href="/files/{name}#sha256={digest}">{name}</a></body></html>',
    )


def node():
    package = {"name": "demo-pkg", "version": "1.0.0", "main": "index.js"}
    archive = tarred(
        {
            "package/package.json": json.dumps(package),
            "package/index.js": "console.log('from-the-real-origin');\n",
        }
    )
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    path = "demo-pkg/-/demo-pkg-1.0.0.tgz"
    dist = {"tarball": f"{SCHEME}://npm.example/{path}", "integrity": f"sha512-{digest}"}
    write("npm.example", path, archive)
    write(
        "npm.example",
        "demo-pkg.json",
        json.dumps(
            {
                "name": "demo-pkg",
                "dist-tags": {"latest": "1.0.0"},
                "time": {"modified": "2020-01-01T00:00:00.000Z", "1.0.0": "2020-01-01T00:00:00.000Z"},
                "versions": {"1.0.0": package | {"dist": dist}},
            }
        ),
    )


def rust():
    root = "demo-crate-1.0.0"
    crate = tarred(
        {
            f"{root}/Cargo.toml": '[package]\nname = "demo-crate"\nversion = "1.0.0"\nedition = "2021"\n',
            f"{root}/src/lib.rs": "//! from-the-real-origin\n",
        }
    )
    entry = {
        "name": "demo-crate",
        "vers": "1.0.0",
        "deps": [],
        "cksum": hashlib.sha256(crate).hexdigest(),
        "features": {},
        "yanked": False,
    }
    write("crates.example", "index/config.json", json.dumps({"dl": f"{SCHEME}://crates.example/dl"}))
    write("crates.example", "index/de/mo/demo-crate", json.dumps(entry) + "\n")
    write("crates.example", "dl/demo-crate/1.0.0/download", crate)


def go():
    module = "module example.org/demo\n"
    root = "example.org/demo@v1.0.0"
    files = {f"{root}/go.mod": module, f"{root}/demo.go": "package demo // from-the-real-origin\n"}
    write("goproxy.example", "example.org/demo/@v/list", "v1.0.0\n")
    write(
        "goproxy.example",
        "example.org/demo/@v/v1.0.0.info",
        '{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}',
    )
    write("goproxy.example", "example.org/demo/@v/v1.0.0.mod", module)
    write("goproxy.example", "example.org/demo/@v/v1.0.0.zip", zipped(files))


def ruby():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "demo.rb"), "w", encoding="utf-8") as file:
            file.write("puts 'from-the-real-origin'\n")
        with open(os.path.join(folder, "demo.gemspec"), "w", encoding="utf-8") as file:
            file.write(
                "Gem::Specification.new { |s| s.name = 'demo-gem'; s.version = '1.0.0'; s.summary = 'x';"
                " s.authors = ['x']; s.files = ['demo.rb']; s.require_paths = ['.'] }\n"
            )
        into = os.path.join(FOLDER, "gems.example")
        os.makedirs(os.path.join(into, "gems"))
        gem = os.path.join(into, "gems", "demo-gem-1.0.0.gem")
        run = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["gem", "build", "demo.gemspec", "--output", gem], **run)
        subprocess.run(["gem", "generate_index", "--directory", into], **run)


def debian():
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "DEBIAN"))
        control = "Package: demo-deb\nVersion: 1.0.0\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: from-the-real-origin\n"
        with open(os.path.join(folder, "DEBIAN/control"), "w", encoding="utf-8") as file:
            file.write(control)
        deb = os.path.join(folder, "demo.deb")
        build = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", folder, deb]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        with open(deb, "rb") as file:
            package = file.read()
    write("apt.example", "pool/demo-deb_1.0.0_all.deb", package)
    entry = (
        f"{control}Filename: pool/demo-deb_1.0.0_all.deb\nSize: {len(package)}\n"
        f"SHA256: {hashlib.sha256(package).hexdigest()}\n\n"
    ).encode()
    files = {"Packages": entry, "Packages.gz": gzip.compress(entry)}
    release = "Suite: stable\nDate: Wed, 01 Jan 2020 00:00:00 UTC\nSHA256:\n"
    for name, content in files.items():
        write("apt.example", f"dists/flat/{name}", content)
        release += f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
    write("apt.example", "dists/flat/Release", release)


for make in (python, node, rust, go, ruby, debian):
    make()
