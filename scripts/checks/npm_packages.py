"""npm packages: what a package.json declares, what its folder names, and what a lock file or node_modules says of licences."""

import json
import re
from pathlib import Path

from .repository import MADE

SOURCES = {".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte", ".astro"}
IMPORT = re.compile(
    r"""(?: \bfrom \s* | \bimport \s* \(? \s* | \b(?:require|resolve|mock) (?:\.resolve)? \s* \( \s* )
        ["'`] ([^"'`\n]+) ["'`]""",
    re.VERBOSE,
)
ENVIRONMENT = re.compile(r"@(?:vitest|jest)-environment\s+([\w./-]+)|\benvironment:\s*[\"']([\w./-]+)[\"']")
PROGRAM = re.compile(r"""\.bin["'`]?\s*[,/]\s*["'`]?([\w-]+)""")
TYPES = re.compile(r'"types"\s*:\s*\[([^\]]*)\]')
# What the command line of a package is called, where it is not its name.
PROGRAMS = {
    "@angular/cli": "ng",
    "@arethetypeswrong/cli": "attw",
    "@biomejs/biome": "biome",
    "@size-limit/esbuild": "size-limit",
    "@size-limit/file": "size-limit",
    "typescript": "tsc",
}


def package_of(specifier):
    """The package that an import names: `a/b` is from a, `@a/b/c` from @a/b; nothing for files and what Node has."""
    if specifier.startswith((".", "/", "node:", "file:")):
        return None
    parts = specifier.split("/")
    return "/".join(parts[: 2 if specifier.startswith("@") else 1])


def files_of(directory, is_wanted):
    """Files below a directory, without those that belong to a package inside of it, or that a build has made."""
    for entry in sorted(directory.iterdir()):
        if entry.is_dir():
            if entry.name not in MADE and not (entry / "package.json").exists():
                yield from files_of(entry, is_wanted)
        elif is_wanted(entry):
            yield entry


def imported(directory):
    """The packages that the sources and settings of a folder import."""
    found = set()
    for path in files_of(directory, lambda path: path.suffix in SOURCES or path.name.startswith("tsconfig")):
        text = path.read_text(encoding="utf-8")
        specifiers = IMPORT.findall(text)
        specifiers += [name for pair in ENVIRONMENT.findall(text) for name in pair if name]
        specifiers += PROGRAM.findall(text)
        if any(specifier.startswith("node:") for specifier in specifiers):
            found.add("@types/node")
        if path.suffix == ".tsx":
            found.add("@types/react")
        if path.name.startswith("tsconfig"):
            specifiers += re.findall(r'"([^"]+)"', "".join(TYPES.findall(text)))
        found |= {package_of(specifier) for specifier in specifiers}
    return found - {None}


def commands(directory, manifest):
    """All words that scripts run: those of package.json and the shell scripts of the folder."""
    texts = [*manifest.get("scripts", {}).values()]
    texts += [path.read_text(encoding="utf-8") for path in files_of(directory, lambda path: path.suffix == ".sh")]
    return set(re.findall(r"[\w@./-]+", "\n".join(texts)))


def declared(manifest):
    """The packages that a package.json wants installed."""
    return {name for kind in ("dependencies", "devDependencies") for name in manifest.get(kind, {})}


def unused_dependencies(directory, allowed=()):
    """What is wrong with the dependencies of a package.json, one sentence each."""
    manifest = json.loads((directory / "package.json").read_text(encoding="utf-8"))
    names, words = imported(directory), commands(directory, manifest)
    # What templates have in common stands beside them.
    if (directory.parent / "shared").is_dir():
        names |= imported(directory.parent / "shared")
    for name in sorted(declared(manifest)):
        subject = name.removeprefix("@types/")
        is_used = (
            name in names
            or (name.startswith("@types/") and subject in names)
            or PROGRAMS.get(name, name.rpartition("/")[2]) in words
        )
        if is_used == (name in allowed):
            yield f"{name} is allowed to be unused, and is used" if is_used else f"{name} is named by no source and no script"
    for name in sorted(set(allowed) - declared(manifest)):
        yield f"{name} is allowed to be unused, and is not declared"
    for name in sorted(set(manifest.get("dependencies", {})) & set(manifest.get("devDependencies", {}))):
        yield f"{name} is in dependencies and in devDependencies"


def licences_of_lock(path):
    """Names and licences of what a package-lock.json installs from the registry."""
    for place, entry in json.loads(path.read_text(encoding="utf-8")).get("packages", {}).items():
        if "node_modules/" in place and not entry.get("link"):
            yield place.rpartition("node_modules/")[2], licence_text(entry)


def foreign_sources(path):
    """Packages of a package-lock.json that are neither of this repository nor from the registry with a checksum.

    Our lock files do not say where the registry is, so what says where it comes from does not come from there.
    """
    for place, entry in json.loads(path.read_text(encoding="utf-8")).get("packages", {}).items():
        if "node_modules/" not in place or entry.get("link") or entry.get("inBundle"):
            continue
        name = place.rpartition("node_modules/")[2]
        if "resolved" in entry:
            yield f"{name} comes from {entry['resolved']}"
        elif "integrity" not in entry:
            yield f"{name} has no checksum"


def licences_of_folder(node_modules):
    """Names and licences of what lies in a node_modules, also in the store of pnpm."""
    for manifest in sorted(Path(node_modules).rglob("package.json")):
        above = manifest.parent.parent
        is_package = above.name == "node_modules" or (above.name.startswith("@") and above.parent.name == "node_modules")
        if not is_package or manifest.parent.is_symlink():
            continue
        package = json.loads(manifest.read_text(encoding="utf-8"))
        if "name" in package and "version" in package:
            yield package["name"], licence_text(package)


def licence_text(package):
    """The licence expression of a package.json; the old form is a list of licences to choose from."""
    licence = package.get("license", package.get("licenses"))
    if isinstance(licence, list):
        return " OR ".join(entry["type"] if isinstance(entry, dict) else entry for entry in licence)
    return licence["type"] if isinstance(licence, dict) else licence
