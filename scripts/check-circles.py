#!/usr/bin/env python3
"""Checks that the files of a crate do not import each other in circles (checks/rust_modules.py says what an import is).

KNOWN lists the crates that still have circles: a crate that is not listed must have none, and one that has none must not be listed.
Prints each circle with what ties it, and exits with 1 if something is wrong.
"""

import sys
from pathlib import Path

from checks.repository import ROOT, name_of
from checks.rust_modules import Module

KNOWN = set()


def imports_of(crate):
    """The names that each file of a crate takes from each other one: {file: {file: names}}."""
    source, imports = crate / "src", {}
    for root in (source / "lib.rs", source / "main.rs", *sorted(source.glob("bin/*.rs"))):
        if root.exists():
            for file, other, name in Module(root).read_file(root.parent).taken():
                if file != other:
                    imports.setdefault(file, {}).setdefault(other, set()).add(name)
    return imports


def circles_of(imports):
    """The largest sets of files of which each reaches each other one."""
    reached = {file: reachable(imports, file) for file in imports}
    circles = {frozenset(other for other in reached[file] if file in reached.get(other, ())) for file in imports}
    return sorted((sorted(circle) for circle in circles if circle), key=lambda circle: circle[0])


def reachable(imports, file):
    found, left = set(), [file]
    while left:
        more = imports.get(left.pop(), {}).keys() - found
        found |= more
        left += more
    return found


def main():
    has_failed = False
    for crate in sorted(path for path in (ROOT / "crates").iterdir() if (path / "src").is_dir()):
        imports = imports_of(crate)
        circles = circles_of(imports)
        for circle in circles:
            print(f"crates/{crate.name}: {len(circle)} files in a circle")
            for file in circle:
                for other in sorted(imports[file].keys() & set(circle)):
                    print(f"  {name_of(file)} -> {name_of(other)}: {', '.join(sorted(imports[file][other]))}")
        if circles and crate.name not in KNOWN:
            print(f"crates/{crate.name} has circles", file=sys.stderr)
            has_failed = True
        if not circles and crate.name in KNOWN:
            print(f"crates/{crate.name} has no circle any more: remove it from KNOWN", file=sys.stderr)
            has_failed = True
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
