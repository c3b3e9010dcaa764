#!/usr/bin/env python3
"""Checks what others have written and we use: that we use it, that we may, and that we know where it comes from.

every Cargo.toml
  - each dependency is named by a source of its package: [dependencies] by what is built always, [dev-dependencies] by tests,
    benchmarks and examples, [build-dependencies] by build.rs. [package.metadata.cargo-machete] lists what stays nevertheless;
  - what [workspace.dependencies] declares, some package inherits.
every Cargo.lock and package-lock.json
  - everything comes from the registry, with a checksum.
the programs (what the crates in crates/ need, without [dev-dependencies])
  - none of the published packages of the reference is in them;
  - licences and crates in several versions are those that deny.toml allows.
every package.json
  - each dependency is imported by a source or run by a script of its folder; what is shipped (sdk-ts) has none at all;
  - licences are those of deny.toml and scripts/checks/allowed.toml, as far as lock files or a node_modules tell.

Whatever is allowed stands in these two files with its reason, and fails when it is no longer needed.
Prints what is wrong, one line each, and exits with 1; exits with 0 if all is well. Looks into no network if cargo has all crates.

  check-dependencies.py               all of it
  check-dependencies.py --installed   only the licences in the node_modules of packages without a package-lock.json
"""

import json
import sys

if sys.version_info < (3, 11):
    sys.exit("error: Python 3.11 or newer is needed, for tomllib")

import tomllib

from checks import cargo, licences, npm_packages, rust_packages
from checks.repository import ROOT, files, name_of

SHIPPED_KINDS = ("dependencies", "build-dependencies")
ALLOWED = ROOT / "scripts" / "checks" / "allowed.toml"
# Published packages of the reference: oracles of tests, and in modules and templates what their users write with.
REFERENCE = "spacetimedb"

problems = []


def wrong(path, text):
    problems.append(f"{name_of(path)}: {text}")


def read_toml(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def check_manifests():
    """Returns the packages of the workspace."""
    found = [rust_packages.read_manifest(path) for path in files("Cargo.toml")]
    found += [rust_packages.read_manifest(path, [("{{database}}", "name")]) for path in files("Cargo.toml.template")]
    packages = [package for package in found if package]
    for package in packages:
        for problem in rust_packages.unused_dependencies(package):
            wrong(package.manifest, problem)
    workspace = [package for package in packages if package.directory.parent == ROOT / "crates"]
    for name in rust_packages.uninherited(ROOT / "Cargo.toml", workspace):
        wrong(ROOT / "Cargo.toml", f"no package inherits {name} of [workspace.dependencies]")
    return workspace


def check_programs(workspace, deny, allowed):
    path = ROOT / "Cargo.lock"
    lock = rust_packages.Lock(path.read_text(encoding="utf-8"))
    shipped = lock.reachable(workspace, SHIPPED_KINDS)
    for name, version in sorted(shipped):
        if name.startswith(REFERENCE):
            wrong(path, f"{name} {version} would be part of the programs; tests alone may use it")
    skipped = [entry["crate"] for entry in deny["bans"]["skip"]]
    for problem in rust_packages.several_versions(shipped, skipped):
        wrong(path, problem)
    licensed, are_all_there = licences_of_crates()
    tests_only = pick(licensed, lock.reachable(workspace, rust_packages.KINDS) - shipped)
    shipped = pick(licensed, shipped)
    listed = set(deny["licenses"]["allow"])
    exceptions = {entry["crate"]: entry["allow"] for entry in deny["licenses"]["exceptions"]}
    found = list(licences.unsatisfied(shipped, listed, exceptions))
    # What only tests use is not shipped. It must still have a licence, or a line that says why not.
    oracles = allowed["rust"]["test-licences"]
    found += licences.unsatisfied([pair for pair in tests_only if pair[0] not in oracles], listed)
    if are_all_there:
        found += licences.needless(shipped, listed, exceptions)
        gone = set(oracles) - {name for name, _ in tests_only}
        found += [f"{name} is named in scripts/checks/allowed.toml, and no test uses it" for name in sorted(gone)]
    for problem in found:
        wrong(path, problem)


def pick(licensed, wanted):
    """Names and licences of the wanted crates, as far as cargo has them."""
    return [(name, licensed[name, version]) for name, version in wanted if (name, version) in licensed]


def licences_of_crates():
    """The licences of the crates in Cargo.lock, and whether these are all: if cargo lacks some, only those for this machine."""
    here = cargo.for_this_machine()
    for options in (["--offline"], ["--offline", *here], here):
        ran = cargo.metadata(ROOT / "Cargo.toml", "--all-features", *options)
        if ran.returncode == 0:
            packages = json.loads(ran.stdout)["packages"]
            found = {(package["name"], package["version"]): package["license"] for package in packages}
            return found, "--filter-platform" not in options
    problems.append(f"cargo metadata fails, so licences of crates are not checked: {ran.stderr.strip()}")
    return {}, False


def check_sources():
    for path in files("Cargo.lock"):
        for problem in rust_packages.foreign_sources(rust_packages.Lock(path.read_text(encoding="utf-8"))):
            wrong(path, problem)
    for path in files("package-lock.json"):
        for problem in npm_packages.foreign_sources(path):
            wrong(path, problem)


def check_npm(deny, allowed):
    unused, manifests = allowed["npm"]["unused"], files("package.json")
    for path in manifests:
        folder = name_of(path.parent)
        for problem in npm_packages.unused_dependencies(path.parent, unused.get(folder, {})):
            wrong(path, problem)
    for folder in sorted(set(unused) - {name_of(path.parent) for path in manifests}):
        wrong(ALLOWED, f"{folder} has no package.json")
    sdk = ROOT / "sdk-ts" / "package.json"
    if json.loads(sdk.read_text(encoding="utf-8")).get("dependencies"):
        wrong(sdk, "the package is shipped without dependencies, and has some")
    found = [pair for path in files("package-lock.json") for pair in npm_packages.licences_of_lock(path)]
    check_npm_licences(found, deny, allowed)
    for problem in licences.needless(found, allowed["npm"]["licences"], {}):
        wrong(ALLOWED, problem)


def check_installed(deny, allowed):
    """The lock file of pnpm does not tell licences: only what it has installed does."""
    for lock in files("pnpm-lock.yaml"):
        folder = lock.parent / "node_modules"
        if folder.is_dir():
            check_npm_licences(npm_packages.licences_of_folder(folder), deny, allowed)
        else:
            print(f"{name_of(folder)} is not installed; its licences are not checked", file=sys.stderr)


def check_npm_licences(found, deny, allowed):
    # The published package of the reference refers to a file of its own; it is an oracle of tests, as its crates are.
    found = [(name, expression) for name, expression in found if name != REFERENCE]
    for problem in licences.unsatisfied(found, [*deny["licenses"]["allow"], *allowed["npm"]["licences"]]):
        wrong(ALLOWED, problem)


def main(arguments):
    if arguments not in ([], ["--installed"]):
        print(__doc__, file=sys.stderr)
        return 2
    deny, allowed = read_toml(ROOT / "deny.toml"), read_toml(ALLOWED)
    check_installed(deny, allowed)
    if not arguments:
        check_programs(check_manifests(), deny, allowed)
        check_sources()
        check_npm(deny, allowed)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
