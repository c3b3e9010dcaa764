"""Packages in Rust: what their manifests declare, what their sources name, and what a lock file holds."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import rust_text

TEST_DIRECTORIES = ("tests", "benches", "examples")
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
KINDS = ("dependencies", "dev-dependencies", "build-dependencies")


@dataclass(frozen=True)
class Dependency:
    kind: str  # one of KINDS
    key: str  # the name in the manifest, by which sources know it
    package: str  # the name in the registry
    settings: dict

    @property
    def crate(self):
        return self.key.replace("-", "_")


@dataclass
class Package:
    manifest: Path
    name: str
    dependencies: list
    ignored: list  # dependencies that no source names, and that stay (cargo-machete reads the same key)

    @property
    def directory(self):
        return self.manifest.parent


def read_manifest(path, replacements=()):
    """A package from its manifest, or nothing if the manifest is only that of a workspace."""
    text = path.read_text(encoding="utf-8")
    for old, new in replacements:
        text = text.replace(old, new)
    manifest = tomllib.loads(text)
    if "package" not in manifest:
        return None
    found = []
    for table in [manifest, *manifest.get("target", {}).values()]:
        for kind in KINDS:
            for key, value in table.get(kind, {}).items():
                settings = value if isinstance(value, dict) else {"version": value}
                found.append(Dependency(kind, key, settings.get("package", key), settings))
    package = manifest["package"]
    ignored = package.get("metadata", {}).get("cargo-machete", {}).get("ignored", [])
    return Package(path, package["name"], found, ignored)


def sources_of(directory):
    """The Rust files of a package, without those of packages inside of it."""
    found = []
    for entry in sorted(directory.iterdir()):
        if entry.is_dir() and entry.name not in ("target", "node_modules") and not (entry / "Cargo.toml").exists():
            found.extend(sources_of(entry))
        elif entry.suffix == ".rs":
            found.append(entry)
    return found


def crates_used(package):
    """The crates that a package names: in what is built always, for tests only, and by the build script."""
    sources = {path: path.read_text(encoding="utf-8") for path in sources_of(package.directory)}
    codes = {path: rust_text.code_of(rust_text.tokens(source)) for path, source in sources.items()}
    parts = {path: rust_text.split_tests(code) for path, code in codes.items()}
    test_paths = [place for path, (_, _, modules) in parts.items() for name in modules for place in module_places(path, name)]
    used = {kind: set() for kind in KINDS}
    for path, (product, tests, _) in parts.items():
        inside = path.relative_to(package.directory)
        if inside.parts[0] in TEST_DIRECTORIES or any(path == place or place in path.parents for place in test_paths):
            used["dev-dependencies"] |= rust_text.crates_named(codes[path])
        elif inside.name == "build.rs" and len(inside.parts) == 1:
            used["build-dependencies"] |= rust_text.crates_named(codes[path])
        else:
            used["dependencies"] |= rust_text.crates_named(product)
            used["dev-dependencies"] |= rust_text.crates_named(tests)
    return used


def module_places(path, name):
    """Where the module lies that `mod name;` in a file declares: its file, and the directory of its own modules."""
    base = path.parent if path.stem in ("lib", "main", "mod") else path.parent / path.stem
    return [base / f"{name}.rs", base / name]


def unused_dependencies(package):
    """What is wrong with the dependencies that a package declares, one sentence each."""
    used, problems, needless = crates_used(package), [], set(package.ignored)
    normal = {dependency.key: dependency for dependency in package.dependencies if dependency.kind == "dependencies"}
    for dependency in package.dependencies:
        key, kind = dependency.key, dependency.kind
        is_twin = kind == "dev-dependencies" and key in normal
        if is_twin and not adds_something(dependency, normal[key]):
            problems.append(f"{key} is in [dependencies] already, and [dev-dependencies] adds nothing to it")
        if is_twin or dependency.crate in used[kind]:
            continue
        if key in package.ignored:
            needless.discard(key)
        elif kind == "dependencies" and dependency.crate in used["dev-dependencies"]:
            problems.append(f"{key} is named by tests only: it belongs in [dev-dependencies]")
        else:
            problems.append(f"{key} of [{kind}] is named by no source")
    problems.extend(f"{key} need not be ignored by cargo-machete" for key in sorted(needless))
    return problems


def adds_something(dependency, normal):
    """Whether a dev-dependency has features that the dependency of the same name does not have."""
    return not set(dependency.settings.get("features", [])) <= set(normal.settings.get("features", []))


def uninherited(root_manifest, packages):
    """Names in [workspace.dependencies] that no package of the workspace inherits."""
    declared = tomllib.loads(root_manifest.read_text(encoding="utf-8"))["workspace"]["dependencies"]
    inherited = {d.key for package in packages for d in package.dependencies if d.settings.get("workspace")}
    return sorted(set(declared) - inherited)


# ---- lock files


class Lock:
    """The packages of a Cargo.lock, by (name, version)."""

    def __init__(self, text):
        self.packages = {(p["name"], p["version"]): p for p in tomllib.loads(text).get("package", [])}
        self.versions = {}
        for name, version in self.packages:
            self.versions.setdefault(name, []).append(version)

    def resolve(self, reference):
        """`name`, or `name version`, as the lock file names a dependency."""
        name, _, rest = reference.partition(" ")
        return (name, rest.split(" ")[0] if rest else self.versions[name][0])

    def reachable(self, packages, kinds):
        """What the packages need through dependencies of these kinds, and all that this needs in turn."""
        members = {package.name for package in packages}
        waiting, seen = [], set()
        for package in packages:
            names = {d.package for d in package.dependencies if d.kind in kinds}
            own = self.packages[(package.name, self.versions[package.name][0])]
            waiting += [self.resolve(r) for r in own.get("dependencies", []) if r.split(" ")[0] in names]
        while waiting:
            at = waiting.pop()
            if at in seen or at[0] in members:
                continue
            seen.add(at)
            waiting += [self.resolve(r) for r in self.packages[at].get("dependencies", [])]
        return seen


def foreign_sources(lock, allowed=(REGISTRY,)):
    """Packages that come from elsewhere than the allowed registries, or without a checksum."""
    for (name, version), package in sorted(lock.packages.items()):
        source = package.get("source")
        if source is not None and source not in allowed:
            yield f"{name} {version} comes from {source}"
        elif source is not None and "checksum" not in package:
            yield f"{name} {version} has no checksum"


def several_versions(shipped, skipped):
    """Crates in more versions than one, of which all but the newest must be in the list `skip`; and what the list has in vain."""
    versions = {}
    for name, version in shipped:
        versions.setdefault(name, []).append(version)
    extra = {
        f"{name}@{version}": max(found, key=version_key)
        for name, found in versions.items()
        for version in found
        if version != max(found, key=version_key)
    }
    for key in sorted(set(extra) - set(skipped)):
        yield f"{key.replace('@', ' ')} is built beside {extra[key]}"
    for key in sorted(set(skipped) - set(extra)):
        yield f"{key} is in the list of skipped versions and need not be"


def version_key(version):
    """Orders versions by their numbers."""
    return [int(part) if part.isdigit() else 0 for part in version.split("+")[0].replace("-", ".").split(".")]
