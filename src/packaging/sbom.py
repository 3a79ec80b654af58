#!/usr/bin/env python3
"""Prints what a program is made of, as SPDX 2.3 in JSON.

    sbom.py VERSION PROGRAM LINKED.TSV      with SOURCE_DATE_EPOCH; linked.cmake writes the table
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import sys
import urllib.parse


def package(name, version, licence, **more):
    return {
        "SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def of_debian(line):
    name, licence, debian, arch, version, source = line.split("\t")
    url = f"pkg:deb/debian/{urllib.parse.quote(debian)}@{urllib.parse.quote(version)}?arch={arch}"
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
    return package(name, version, licence, sourceInfo=f"Debian's {debian}, built from {source}", externalRefs=[reference])


def document(version, program, linked):
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    checksum = {"algorithm": "SHA256", "checksumValue": digest}
    ours = package("rlock", version, "MIT", packageFileName=program.name, checksums=[checksum], primaryPackagePurpose="APPLICATION")
    theirs = [of_debian(line) for line in linked]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    relations += [(ours["SPDXID"], "STATIC_LINK", their["SPDXID"]) for their in theirs]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": program.name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{program.name}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: rlock-sbom-{version}"]},
        "packages": [ours, *theirs],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations
        ],
    }


rows = pathlib.Path(sys.argv[3]).read_text().splitlines()
if not rows:
    sys.exit("sbom.py: dpkg does not know what was linked")
json.dump(document(sys.argv[1], pathlib.Path(sys.argv[2]), rows), sys.stdout, indent=1)
print()
