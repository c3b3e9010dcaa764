#!/usr/bin/env python3
"""Writes what belongs beside a released program: `sbom.cdx.json`, the crates that it is built from (CycloneDX 1.6), and
`THIRD-PARTY-LICENSES`, the licence texts that these crates bring, and those of the dashboard's packages.

  sbom.py DIRECTORY CARGO-OPTION...   the options are those that chose the program's features when it was built
"""

import gzip
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from checks import cargo
from checks.repository import ROOT

PROGRAM = "lightcone-cli"
DASHBOARD_LICENCES = ROOT / "crates" / "gateway" / "assets" / "dashboard" / "licences.txt.gz"
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def built(options):
    """Names and versions of the crates that are in the program; no macros, no tools of the build."""
    command = ["cargo", "tree", "--locked", "--package", PROGRAM, "--edges", "normal,no-proc-macro", "--prefix", "none"]
    tree = subprocess.run([*command, "--format", "{p}", *options], cwd=ROOT, check=True, capture_output=True, text=True)
    return {tuple(line.replace(" v", " ", 1).split()[:2]) for line in tree.stdout.splitlines()}


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    licence = (package["license"] or "").replace("/", " OR ")
    checksum = checksums.get((package["name"], package["version"]))
    return {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
        **({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}),
        **({"licenses": [{"expression": licence}]} if licence else {}),
    }


def bill_of_materials(packages, nodes, checksums):
    components = {package["id"]: component(package, checksums) for package in packages}
    program = next(id for id, part in components.items() if part["name"] == PROGRAM)
    dependencies = [
        {
            "ref": part["bom-ref"],
            "dependsOn": sorted(components[name]["bom-ref"] for name in nodes[id]["dependencies"] if name in components),
        }
        for id, part in components.items()
    ]
    subject = components.pop(program) | {"type": "application"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": list(components.values()),
        "dependencies": dependencies,
    }


def licence_texts(packages):
    """Each text once, behind the names of the crates that bring it. A crate without a text is named with its licence."""
    users, without = {}, []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        files = [path for path in sorted(Path(package["manifest_path"]).parent.iterdir()) if LICENCE_FILE.match(path.name)]
        texts = [path.read_text(encoding="utf-8", errors="replace").strip() for path in files if path.is_file()]
        for text in texts:
            users.setdefault(text, []).append(name)
        if not texts:
            without.append(f"{name}: {package['license']}, {package['repository']}")
    parts = [", ".join(names) + "\n\n" + text for text, names in users.items()]
    return f"\n\n{'-' * 80}\n\n".join([*parts, "Without a text in their packages:\n\n" + "\n".join(without)]) + "\n"


def main(directory, *options):
    metadata = json.loads(cargo.metadata(ROOT / "Cargo.toml", "--all-features", *cargo.for_this_machine()).stdout)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    wanted = built(options)
    packages = [package for package in metadata["packages"] if (package["name"], package["version"]) in wanted]
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    bill = bill_of_materials(packages, nodes, checksums)
    Path(directory, "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    foreign = [package for package in packages if package["source"]]
    dashboard = gzip.decompress(DASHBOARD_LICENCES.read_bytes()).decode("utf-8")
    texts = f"{licence_texts(foreign)}\n{'-' * 80}\n\n{dashboard}"
    Path(directory, "THIRD-PARTY-LICENSES").write_text(texts, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
