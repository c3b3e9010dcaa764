#!/usr/bin/env python3
"""Checks that comments, names and pages use words that name something (checks/words.py has the list; the glossary of
docs/architecture.md has the words to use).

KNOWN lists the crates, pages and directories that still have riddles: what is not listed must have none, and what has none must
not be listed. docs/interface quotes others and is left out. Prints each riddle of what is not listed, and exits with 1 if something is
wrong; --all prints those of KNOWN too, and names of crates or pages print only theirs.
"""

import sys

from checks.repository import ROOT, files, name_of
from checks.words import riddles_in

KNOWN = set(
    """
    crates/database
    crates/engine
    crates/live
    """.split()
)

TEXTS = "*.cs *.css *.html *.js *.jsx *.md *.mjs *.py *.rs *.sh *.toml *.ts *.tsx *.txt".split()
# The list itself; others' words; what a program writes.
LEFT_OUT = ("docs/interface/", "docs/scoreboard.md", "scripts/checks/words.py", "scripts/checks/tests/test_words.py", ".github/")


def part_of(name):
    """The crate, page or directory that a file belongs to."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in {"crates", "docs"} else parts[0]


def main(arguments):
    shown, riddles, problems = set(arguments) - {"--all"}, {}, 0
    for path in files(*TEXTS):
        name = name_of(path)
        if name.startswith(LEFT_OUT):
            continue
        for line, text in riddles_in(name, path.read_text(encoding="utf-8"), path.suffix == ".md"):
            riddles.setdefault(part_of(name), []).append(f"{name}:{line}: {text}")
    for part in sorted(riddles.keys() | KNOWN):
        if part in shown or (not shown and (part not in KNOWN or "--all" in arguments)):
            print(*riddles.get(part, []), sep="\n", end="\n" if part in riddles else "")
        if part in riddles and part not in KNOWN:
            problems += 1
            print(f"{part} has {len(riddles[part])} riddles, which are shown above", file=sys.stderr)
        if part in KNOWN and part not in riddles:
            problems += 1
            print(f"{part} has no riddle: remove it from KNOWN in scripts/check-words.py", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
