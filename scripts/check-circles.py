#!/usr/bin/env python3
"""Checks that the files of a crate do not import each other in circles (checks/rust_modules.py says what an import is), and that each
file of its tests is in a program.

Prints each circle with what ties it, and each file that is left out, and exits with 1 if there is one.
"""

import re
import sys

from checks.repository import ROOT, name_of
from checks.rust_modules import Module


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


def left_out(crate):
    """Files of tests that neither `tests/main.rs` nor a `[[test]]` names, where cargo does not look for them itself."""
    manifest = (crate / "Cargo.toml").read_text()
    if "autotests = false" not in manifest:
        return []
    taken = set(re.findall(r'^path = "tests/(\w+)\.rs"', manifest, re.M))
    taken |= set(re.findall(r"^mod (\w+);", (crate / "tests/main.rs").read_text(), re.M))
    return [file for file in sorted((crate / "tests").glob("*.rs")) if file.stem not in taken]


def main():
    found = 0
    for crate in sorted((ROOT / "crates").iterdir()):
        for file in left_out(crate):
            print(f"{name_of(file)}: no program has these tests: `mod {file.stem};` is missing in main.rs")
            found += 1
    for source in sorted((ROOT / "crates").glob("*/src")):
        imports = imports_of(source)
        for circle in circles_of(imports):
            show(source.parent.name, circle, imports)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
