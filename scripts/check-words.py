#!/usr/bin/env python3
"""Checks that comments, names and pages use words that name something (checks/words.py has the list; the glossary of
docs/architecture.md has the words to use). docs/interface quotes others and is left out. Prints each riddle, and exits with 1 if
there is one.
"""

import sys

from checks.repository import files, name_of
from checks.words import riddles_in

TEXTS = "*.cs *.css *.html *.js *.jsx *.md *.mjs *.py *.rs *.sh *.toml *.ts *.tsx *.txt".split()
# The list itself; others' words; what a program writes.
LEFT_OUT = ("docs/interface/", "docs/scoreboard.md", "scripts/checks/words.py", "scripts/checks/tests/test_words.py", ".github/")


def main():
    riddles = 0
    for path in files(*TEXTS):
        name = name_of(path)
        if name.startswith(LEFT_OUT):
            continue
        for line, text in riddles_in(name, path.read_text(encoding="utf-8"), path.suffix == ".md"):
            print(f"{name}:{line}: {text}")
            riddles += 1
    return 1 if riddles else 0


if __name__ == "__main__":
    sys.exit(main())
