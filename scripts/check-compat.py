#!/usr/bin/env python3
"""Checks docs/compat.md and docs/limits.md against what they speak of.

compat.md
  - every section of the interface chapters whose heading says MUST (or SHOULD) has a row in the table of its chapter
    (only where the chapters are at hand: ../shared/spec, or the directory in LIGHTCONE_SPEC_DIR);
  - every row has a known state, and a row that does not work says which error code or what is missing;
  - every file that is named exists, every test named `file.rs::test` is in that file, every error code has its page.
limits.md
  - every key of [limits] and [websocket] in config.default.toml is listed with its default;
  - every constant that is named `NAME` in a row that names a source file is in that file.

Prints what is wrong, one line each, and exits with 1; exits with 0 if all is well.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = Path(os.environ.get("LIGHTCONE_SPEC_DIR", ROOT.parent / "shared" / "spec"))
COMPAT = ROOT / "docs" / "compat.md"
LIMITS = ROOT / "docs" / "limits.md"
CONFIG = ROOT / "crates" / "server" / "src" / "config.default.toml"

STATES = {"works", "partly", "not yet"}
PATH = re.compile(r"`((?:crates|docs|fuzz|modules|scripts|sdk-ts|tests)/[\w./-]+?)(?:::(\w+))?`")
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
        for path, test in PATH.findall(line):
            file = ROOT / path
            if not file.exists():
                wrong(document, number, f"{path} does not exist")
            elif test and not re.search(rf"\bfn {test}\b", file.read_text(encoding="utf-8")):
                wrong(document, number, f"{path} has no test {test}")
        for code in CODE.findall(line):
            if not (ROOT / "docs" / "errors" / f"{code}.md").exists():
                wrong(document, number, f"{code} has no page in docs/errors")


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
    if not SPEC.is_dir():
        print(f"check-compat: no chapters at {SPEC}, so their sections are not compared", file=sys.stderr)
        return
    for path in sorted(SPEC.glob("0[1-9]-*.md")):
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


def check_limits():
    text = LIMITS.read_text(encoding="utf-8")
    table = None
    for number, line in lines_of(CONFIG):
        if line.startswith("["):
            table = line.strip().strip("[]")
        key = re.match(r"# ([a-z0-9-]+) = (.+)$", line)
        if key and table in ("limits", "websocket"):
            name, default = f"{table}.{key.group(1)}", key.group(2).strip('"')
            row = re.search(rf"^\| `{re.escape(name)}` \| ([^|]*)\|", text, re.MULTILINE)
            if not row:
                wrong(CONFIG, number, f"docs/limits.md has no row for {name}")
            elif f"`{default}`" not in row.group(1):
                wrong(CONFIG, number, f"docs/limits.md gives {name} another default than {default}")
    for number, line in lines_of(LIMITS):
        sources = [ROOT / path for path, _ in PATH.findall(line) if path.endswith(".rs")]
        if line.startswith("| ") and sources:
            found = "\n".join(s.read_text(encoding="utf-8") for s in sources if s.exists())
            for name in re.findall(r"`([A-Z][A-Z0-9_]{3,})`", cells(line)[0]):
                if not re.search(rf"\bconst {name}\b", found):
                    wrong(LIMITS, number, f"no constant {name} in the file that the row names")


def main():
    check_chapters(check_rows())
    check_references(COMPAT)
    check_references(LIMITS)
    check_limits()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
