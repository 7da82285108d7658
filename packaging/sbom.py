"""Writes a bill of materials (CycloneDX 1.5, JSON) of the crates that some programs are made of.

    packaging/sbom.py --name NAME --version VERSION PACKAGE...

What is compiled into them for Linux on x86-64, and what builds it; nothing that only tests need.
Versions and digests are those of Cargo.lock. The same tree gives the same bytes.
"""

import argparse
import datetime
import json
import os
import subprocess
import tomllib
import uuid

TRIPLE = "x86_64-unknown-linux-gnu"
SPACE = uuid.UUID("5f6c1d3e-6f0b-4f3e-9a51-7f2d6b6f9a10")


def metadata():
    done = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TRIPLE],
        check=True, capture_output=True)
    return json.loads(done.stdout)


def digests():
    with open("Cargo.lock", "rb") as file:
        packages = tomllib.load(file)["package"]
    return {(p["name"], p["version"]): p["checksum"] for p in packages if "checksum" in p}


def edges(found):
    """Who needs whom, without what only tests need."""
    return {
        node["id"]: sorted(
            dep["pkg"] for dep in node["deps"]
            if any(kind["kind"] != "dev" for kind in dep["dep_kinds"]))
        for node in found["resolve"]["nodes"]
    }


def reached(roots, needs):
    seen, waiting = set(), list(roots)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting.extend(needs[one])
    return seen


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, known):
    digest = known.get((package["name"], package["version"]))
    entry = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package.get("license"):
        # Some old ones write a slash for "or".
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry


def bill(arguments):
    found = metadata()
    packages = {package["id"]: package for package in found["packages"]}
    members = {packages[one]["name"]: one for one in found["workspace_members"]}
    needs, known = edges(found), digests()
    roots = [members[name] for name in arguments.packages]
    inside = sorted(reached(roots, needs), key=lambda one: reference(packages[one]))
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC)
    whole = f"pkg:generic/{arguments.name}@{arguments.version}"
    components = [component(packages[one], known) for one in inside]
    depends = [{"ref": whole, "dependsOn": sorted(reference(packages[one]) for one in roots)}]
    depends += [
        {"ref": reference(packages[one]),
         "dependsOn": sorted(reference(packages[other]) for other in needs[one])}
        for one in inside
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(SPACE, json.dumps([whole, components]))),
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": whole, "name": arguments.name,
                          "version": arguments.version, "purl": whole},
        },
        "components": components,
        "dependencies": depends,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("packages", nargs="+")
    print(json.dumps(bill(parser.parse_args()), indent=1))


main()
