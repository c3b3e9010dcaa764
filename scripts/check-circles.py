#!/usr/bin/env python3
"""Checks that the files of a crate do not import each other in circles (checks/rust_modules.py says what an import is).

KNOWN lists the crates that still have circles: a crate that is not listed must have none, and one that has none must not be listed.
Prints each circle with what ties it, and exits with 1 if something is wrong; --new leaves out the circles of the listed crates.
"""

import sys

from checks.repository import ROOT, name_of
from checks.rust_modules import Module

KNOWN = {"database"}


def imports_of(source):
    """The names that each file of a crate takes from each other one: {file: {file: names}}."""
    imports = {}
    for root in (source / "lib.rs", source / "main.rs", *sorted(source.glob("bin/*.rs"))):
        if not root.exists():
            continue
        for file, other, name in Module(root).read_file(root.parent).taken():
            if file != other:
                imports.setdefault(file, {}).setdefault(other, set()).add(name)
    return imports


def circles_of(imports):
    """The largest sets of files of which each reaches each other one."""
    reached = {file: reachable(imports, file) for file in imports}
    circles = {frozenset(other for other in reached[file] if file in reached.get(other, ())) for file in imports}
    return sorted(sorted(circle) for circle in circles if circle)


def reachable(imports, file):
    found, left = set(), [file]
    while left:
        more = imports.get(left.pop(), {}).keys() - found
        found |= more
        left += more
    return found


def show(crate, circle, imports):
    print(f"crates/{crate}: {len(circle)} files in a circle")
    for file in circle:
        for other in sorted(imports[file].keys() & set(circle)):
            print(f"  {name_of(file)} -> {name_of(other)}: {', '.join(sorted(imports[file][other]))}")


def main(arguments):
    problems = []
    for source in sorted((ROOT / "crates").glob("*/src")):
        crate, imports = source.parent.name, imports_of(source)
        circles = circles_of(imports)
        if crate not in KNOWN or "--new" not in arguments:
            for circle in circles:
                show(crate, circle, imports)
        if circles and crate not in KNOWN:
            problems.append(f"crates/{crate} has circles, which are shown above")
        if not circles and crate in KNOWN:
            problems.append(f"crates/{crate} has no circle: remove it from KNOWN in scripts/check-circles.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
