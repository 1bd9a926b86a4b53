"""Writes a small OCI image into a folder."""
import gzip
import hashlib
import json
import os
import sys

folder = sys.argv[1]


def blob(content, kind):
    digest = hashlib.sha256(content).hexdigest()
    os.makedirs(f"{folder}/blobs/sha256", exist_ok=True)
    with open(f"{folder}/blobs/sha256/{digest}", "wb") as file:
        file.write(content)
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


layer = blob(gzip.compress(bytes(10240)), "layer.v1.tar+gzip")
config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["true"]},
          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(bytes(10240)).hexdigest()]}}
config = blob(json.dumps(config).encode(), "config.v1+json")
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}
manifest = blob(json.dumps(manifest).encode(), "manifest.v1+json")
manifest["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
with open(f"{folder}/index.json", "w") as file:
    json.dump({"schemaVersion": 2, "manifests": [manifest]}, file)
with open(f"{folder}/oci-layout", "w") as file:
    file.write('{"imageLayoutVersion":"1.0.0"}')
