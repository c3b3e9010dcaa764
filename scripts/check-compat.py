#!/usr/bin/env python3
"""Checks the documents against what they speak of.

compat.md
  - every section of the interface chapters whose heading says MUST (or SHOULD) has a row in the table of its chapter;
  - every row has a known state, and a row that does not work says which error code or what is missing.
limits.md
  - every constant that is named `NAME` in a row that names a source file is in that file, and has the value of the row.
    (Its keys come from the table of the limits: crates/limits/tests/page.rs.)
track-record.md
  - every test in Rust that guards against a bug, `file.rs: test`, is in its file.
recipes.md
  - a new special type is a row: no other source in Rust names several of them.
architecture.md
  - the picture of the dependencies is that of the manifests.
README.md and every page in docs/
  - every file that is named exists, also as `database/src/writer.rs` without `crates/`; every test named `file.rs::test` is in
    that file; every error code has its page.
every page, also below docs/
  - relative links lead to files and headings that exist.

Prints what is wrong, one line each, and exits with 1; exits with 0 if all is well.
"""

import re
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("error: Python 3.11 or newer is needed, for tomllib")

from checks import rust_packages
from checks.repository import name_of

ROOT = Path(__file__).resolve().parent.parent
INTERFACE = ROOT / "docs" / "interface"
COMPAT = ROOT / "docs" / "compat.md"
LIMITS = ROOT / "docs" / "limits.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
TRACK_RECORD = ROOT / "docs" / "track-record.md"

STATES = {"works", "partly", "not yet"}
PATH = re.compile(r"`((?:bench|crates|docs|fuzz|modules|scripts|sdk-ts|templates|tests)/[\w./-]+?)(?:::(\w+))?`")
PATH_IN_CRATE = re.compile(r"`(([\w-]+)/(?:src|tests|benches|examples)/[\w./-]+?)`")
# Directories that are named, and that only a run or a user makes.
MADE = {"bench/runs", "spacetimedb/src/index.ts"}
GUARD = re.compile(r"([\w./-]+\.rs): (.*)")
CODE = re.compile(r"\bLC\d{4}\b")
CHAPTER = re.compile(r"^## Chapter (\d\d)\b")
NUMBER = re.compile(r"^#+ (\d+(?:\.\d+)*[a-z]?)\.? ")

problems = []


def wrong(document, line, text):
    problems.append(f"{document.relative_to(ROOT)}:{line}: {text}")


def lines_of(path):
    return list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))


def cells(line):
    """The cells of a table row; a `|` inside of backticks or behind a backslash is text."""
    parts, cell, code = [], "", False
    previous = ""
    for char in line.strip().strip("|"):
        if char == "`":
            code = not code
        if char == "|" and not code and previous != "\\":
            parts.append(cell.strip())
            cell = ""
        else:
            cell += char
        previous = char
    return parts + [cell.strip()]


def check_references(document):
    """Files, tests and error codes that a document names."""
    for number, line in lines_of(document):
        for path, directory in PATH_IN_CRATE.findall(line):
            if path not in MADE and not (ROOT / directory).is_dir() and not (ROOT / "crates" / path).exists():
                wrong(document, number, f"crates/{path} does not exist")
        for path, test in PATH.findall(line):
            file = ROOT / path
            if path in MADE:
                continue
            if not file.exists():
                wrong(document, number, f"{path} does not exist")
            elif test and not re.search(rf"\bfn {test}\b", file.read_text(encoding="utf-8")):
                wrong(document, number, f"{path} has no test {test}")
        for code in CODE.findall(line):
            if not (ROOT / "docs" / "errors" / f"{code}.md").exists():
                wrong(document, number, f"{code} has no page in docs/errors")


def check_guards():
    """Tests that are named behind their file, `file.rs: one, two`, or behind that in backticks of their own."""
    for number, line in lines_of(TRACK_RECORD):
        file, last = None, cells(line)[-1] if line.startswith("| ") else ""
        for quote in re.findall(r"`([^`]*)`", last):
            named = GUARD.fullmatch(quote)
            if named:
                file, quote = next((p for p in (ROOT / named[1], ROOT / "crates" / named[1]) if p.exists()), None), named[2]
                if file is None:
                    wrong(TRACK_RECORD, number, f"{named[1]} does not exist")
            for test in re.findall(r"\b[a-z]\w*_\w+\b", quote) if file and "." not in quote else ():
                if not re.search(rf"\bfn {test}\b", file.read_text(encoding="utf-8")):
                    wrong(TRACK_RECORD, number, f"{name_of(file)} has no test {test}")


def check_rows():
    """Reads the rows of compat.md: the section numbers of each chapter."""
    listed, chapter, is_table = {}, None, False
    for number, line in lines_of(COMPAT):
        if line.startswith("## "):
            heading = CHAPTER.match(line)
            chapter = heading.group(1) if heading else None
            continue
        if chapter is None or not line.startswith("|"):
            is_table = False
            continue
        row = cells(line)
        if row[0] == "§" or set(row[0]) <= set("-:"):
            is_table = True
            continue
        if not is_table:
            continue
        if len(row) != 4:
            wrong(COMPAT, number, f"a row has 4 cells, this one {len(row)}")
            continue
        sections, _, state, note = row
        if state not in STATES:
            wrong(COMPAT, number, f"the state is {state!r}, not one of {', '.join(sorted(STATES))}")
        if not note:
            wrong(COMPAT, number, "the row says neither what shows it nor what is missing")
        for section in re.split(r",\s*", sections):
            listed.setdefault(chapter, set()).add(section)
    return listed


def check_chapters(listed):
    chapters = sorted(INTERFACE.glob("0[1-9]-*.md"))
    if len(chapters) != 9:
        problems.append(f"docs/interface: {len(chapters)} chapters in place of 9")
    for path in chapters:
        chapter = path.name[:2]
        in_code = False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                in_code = not in_code
            heading = None if in_code else NUMBER.match(line)
            if heading and re.search(r"\b(MUST|SHOULD)\b", line):
                if heading.group(1) not in listed.get(chapter, set()):
                    title = line.lstrip("# ")
                    problems.append(f"docs/compat.md: chapter {chapter} has no row for section {title!r}")


UNITS = {
    "": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
    "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000,
}


def stated_values(cell):
    """The numbers of a cell like `1 MiB, 65,536, 10 s`, times in milliseconds; None for one that is only about right."""
    values = []
    for part in cell.split(", "):
        number = re.fullmatch(r"([\d,]+)(?: (KiB|MiB|GiB|ms|s|min|h))?( less 1)?", part)
        power = re.fullmatch(r"2\^(\d+) - 1", part)
        if number:
            value = int(number.group(1).replace(",", "")) * UNITS[number.group(2) or ""]
            values.append(value - 1 if number.group(3) else value)
        elif power:
            values.append((1 << int(power.group(1))) - 1)
        else:
            values.append(None)
    return values


def constant_value(expression):
    """The value of a constant, times in milliseconds; None if it is not a plain expression of numbers."""
    plain = re.sub(r"\bas \w+", "", expression.replace("u32::MAX", "4294967295"))
    plain = re.sub(r"Duration::from_secs\(([\d_ *]+)\)", r"(\1) * 1000", plain)
    plain = re.sub(r"Duration::from_millis\(([\d_]+)\)", r"\1", plain)
    if not re.fullmatch(r"[\d_ ()<*+-]+", plain):
        return None
    return eval(plain.strip())  # digits and operators only


def check_limits():
    for number, line in lines_of(LIMITS):
        row = cells(line) if line.startswith("| ") else [""]
        sources = [ROOT / path for path, _ in PATH.findall(row[0])]
        if not sources:
            continue
        found = "\n".join(s.read_text(encoding="utf-8") for s in sources if s.exists())
        names = re.findall(r"`([A-Z][A-Z0-9_]{3,})`", row[0])
        stated = stated_values(row[1])
        if names and len(names) != len(stated):
            wrong(LIMITS, number, f"{len(names)} constants and {len(stated)} values")
            continue
        for name, value in zip(names, stated):
            constant = re.search(rf"\bconst {name}\b[^=;]*=\s*([^;\n]*)", found)
            if not constant:
                wrong(LIMITS, number, f"no constant {name} in the file that the row names")
            elif value is not None and constant_value(constant.group(1)) != value:
                wrong(LIMITS, number, f"{name} is {constant.group(1)}, not what the row says")


def check_special_types():
    """A source that names several special products would have to learn of a new one."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        named = set(re.findall(r"\bSpecialProduct::([A-Z][a-z]\w*)", path.read_text(encoding="utf-8")))
        if len(named) > 1 and path.name != "special.rs":
            problems.append(f"{name_of(path)} names the special types {', '.join(sorted(named))}: see docs/recipes.md")


def check_picture():
    """Compares the arrows of architecture.md with the manifests, where what follows from other arrows is left out."""
    prefix, uses = "lightcone-", {}
    for path in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        names = {d.package for d in rust_packages.read_manifest(path).dependencies if d.kind == "dependencies"}
        uses[path.parent.name] = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}

    def reached(start):
        return uses[start].union(*(reached(other) for other in uses[start]))

    arrows = {
        (crate, used)
        for crate in uses
        for used in uses[crate]
        if not any(used in reached(other) for other in uses[crate] - {used})
    }
    text = ARCHITECTURE.read_text(encoding="utf-8")
    drawn = set(re.findall(r"^ +([\w-]+) --> ([\w-]+)$", text, re.MULTILINE))
    for crate, used in sorted(arrows ^ drawn):
        verb = "misses" if (crate, used) in arrows else "has needlessly"
        problems.append(f"docs/architecture.md: the picture {verb} {crate} --> {used}")
    counts = f"{len(arrows)} arrows are left of {sum(map(len, uses.values()))}"
    if counts not in text:
        problems.append(f"docs/architecture.md: {counts}; the text beside the picture says otherwise")


def anchors_of(path):
    """The anchors that headings get: lower case, without punctuation, spaces as hyphens; repeated ones are numbered."""
    anchors, in_code = set(), False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            in_code = not in_code
        if in_code or not re.match(r"#+ ", line):
            continue
        anchor = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
        numbered, count = anchor, 0
        while numbered in anchors:
            count += 1
            numbered = f"{anchor}-{count}"
        anchors.add(numbered)
    return anchors


def check_links(document):
    """Relative links lead to files that exist, and to headings that they have."""
    in_code = False
    for number, line in lines_of(document):
        if line.startswith("```"):
            in_code = not in_code
        text = "" if in_code else re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (document.parent / file).resolve() if file else document
            if not path.exists():
                wrong(document, number, f"the link leads to {target}, which does not exist")
            elif anchor and path.suffix == ".md" and anchor not in anchors_of(path):
                wrong(document, number, f"{file or 'this page'} has no heading with the anchor {anchor}")


def main():
    check_chapters(check_rows())
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        check_references(document)
    check_limits()
    check_guards()
    check_picture()
    check_special_types()
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        check_links(document)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
