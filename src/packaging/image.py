#!/usr/bin/env python3
"""Writes a container image of nothing but rlock, its licences and the certificates of Mozilla, as an OCI layout in a tar.

    image.py VERSION FILE ARCHITECTURE=ROOT...      with SOURCE_DATE_EPOCH; ROOT is where rlock was installed
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

TYPE = "application/vnd.oci.image."
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
DOC = pathlib.PurePath("usr/share/doc/rlock")


def archive(files):
    """A tar of {path: bytes} that does not depend on who makes it, or when."""
    folders = {folder for path in files for folder in pathlib.PurePath(path).parents if folder.name}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(str(path) for path in folders | set(files)):
            entry = tarfile.TarInfo(path)
            entry.mtime, entry.uname, entry.gname = EPOCH, "root", "root"
            entry.mode = 0o644
            if path not in files:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(files[path])
            if path not in files or "bin" in pathlib.PurePath(path).parts:
                entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(files.get(path, b"")))
    return stream.getvalue()


def contents(root):
    """What the image holds. The machine's own list of certificates may have more than Mozilla's, so it is not copied."""
    shared = pathlib.Path("/usr/share")
    files = {str(path.relative_to(root)): path.read_bytes() for path in (root / DOC).rglob("*") if path.is_file()}
    files["usr/bin/rlock"] = (root / "usr/bin/rlock").read_bytes()
    files[str(DOC / "licences/ca-certificates")] = (shared / "doc/ca-certificates/copyright").read_bytes()
    certificates = sorted(shared.glob("ca-certificates/mozilla/*.crt"))
    files["etc/ssl/certs/ca-certificates.crt"] = b"".join(path.read_bytes() for path in certificates)
    return files


class Layout:
    """The blobs of an image, each named by its digest, and the index that leads to them."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(self, kind, content, **more):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.files["blobs/sha256/" + digest] = data
        return {"mediaType": TYPE + kind, "digest": "sha256:" + digest, "size": len(data), **more}

    def manifest(self, version, arch, root):
        layer = archive(contents(root))
        created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        platform = {"architecture": arch, "os": "linux"}
        config = {
            **platform,
            "created": created,
            "config": {
                "Entrypoint": ["/usr/bin/rlock"],
                "User": "65534:65534",
                "Labels": {"org.opencontainers.image.title": "rlock", "org.opencontainers.image.version": version},
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        }
        content = {
            "schemaVersion": 2,
            "mediaType": TYPE + "manifest.v1+json",
            "config": self.blob("config.v1+json", config),
            "layers": [self.blob("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))],
        }
        return self.blob("manifest.v1+json", content, platform=platform)


def main(version, file, *roots):
    layout = Layout()
    manifests = [layout.manifest(version, arch, pathlib.Path(root)) for arch, root in (each.split("=", 1) for each in roots)]
    index = {"schemaVersion": 2, "mediaType": TYPE + "index.v1+json", "manifests": manifests}
    name = {"org.opencontainers.image.ref.name": version}
    top = {"schemaVersion": 2, "manifests": [layout.blob("index.v1+json", index, annotations=name)]}
    layout.files["index.json"] = json.dumps(top).encode()
    pathlib.Path(file).write_bytes(archive(layout.files))


main(*sys.argv[1:])
