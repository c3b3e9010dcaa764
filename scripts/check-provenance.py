#!/usr/bin/env python3
"""Compares our Rust sources and documents with the published crates of the reference: nothing of theirs may be in ours.

Found are, where they are the same in ours and theirs,
  - code: NAMED_MIN tokens in a row, names and constants included, comments and layout aside;
  - shape: SHAPED_MIN tokens in a row with names and constants aside, unless they only repeat themselves;
  - prose: PROSE_MIN words in a row of comments, and of our documents and their README;
  - texts: TEXT_MIN words in a row of string literals, unless docs/interface has them: programs compare such texts.

What the interface lays down (names and order of what is on the wire) stands in scripts/checks/provenance.toml with its reason;
an entry that allows nothing fails too. The npm package has a test of its own in sdk-ts.

The crates are those of all Cargo.lock files, where cargo has put them. A crate that is not there is named and left out; the
tests of the workspace, modules/ and tests/rust-client bring all of them. Prints finds, one line each, and exits with 1 if there
are any. --show prints what was found with its words; with --all a crate that is not there is an error.
"""

import json
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("error: Python 3.11 or newer is needed, for tomllib")

import tomllib

from checks import cargo, provenance, rust_packages, rust_text
from checks.copies import Finder
from checks.repository import ROOT, files, name_of

ALLOWED = ROOT / "scripts" / "checks" / "provenance.toml"
REFERENCE = "spacetimedb"
NAMED_MIN, SHAPED_MIN, PROSE_MIN, TEXT_MIN = 30, 64, 8, 5


def wanted_crates():
    """Name and version of every published crate of the reference, and the manifests of the workspaces that need it."""
    wanted = {}
    ours = {tomllib.loads(path.read_text(encoding="utf-8")).get("package", {}).get("name") for path in files("Cargo.toml")}
    for path in files("Cargo.lock"):
        for name, version in rust_packages.Lock(path.read_text(encoding="utf-8")).packages:
            # Crates of ours that stand in the place of theirs have their names.
            if name not in ours and (name == REFERENCE or name.startswith(f"{REFERENCE}-")):
                wanted.setdefault((name, version), []).append(path.parent / "Cargo.toml")
    return wanted


def directories_of(wanted):
    """Where cargo has put these crates; asks as few workspaces as it can."""
    here, found, asked = cargo.for_this_machine(), {}, set()
    for manifests in wanted.values():
        for manifest in manifests:
            if manifest in asked or all(key in found for key, needed_by in wanted.items() if manifest in needed_by):
                continue
            asked.add(manifest)
            ran = cargo.metadata(manifest, "--offline", *here)
            packages = json.loads(ran.stdout)["packages"] if ran.returncode == 0 else []
            found |= {(p["name"], p["version"]): Path(p["manifest_path"]).parent for p in packages}
    return {key: found[key] for key in wanted if key in found}


class Comparison:
    """Their sources as indexes, and what of ours is in them."""

    def __init__(self):
        self.named, self.shaped = Finder(NAMED_MIN), Finder(SHAPED_MIN)
        self.prose, self.texts, self.interface = Finder(PROSE_MIN), Finder(TEXT_MIN), Finder(TEXT_MIN)

    def add_crate(self, directory):
        for path in sorted(directory.rglob("*.rs")):
            label, tokens = f"{directory.name}/{path.relative_to(directory)}", rust_text.tokens(path.read_text(encoding="utf-8"))
            code = provenance.code_items(tokens)
            self.named.add(label, words_of(code))
            self.shaped.add(label, words_of(provenance.shape_items(code)))
            self.prose.add(label, words_of(provenance.prose_items(tokens)))
            for piece in provenance.text_items(tokens):
                self.texts.add(label, words_of(piece))
        for path in sorted(directory.rglob("*.md")):
            text = path.read_text(encoding="utf-8")
            self.prose.add(f"{directory.name}/{path.relative_to(directory)}", words_of(provenance.word_items(text)))

    def add_interface(self, path):
        text = provenance.ESCAPE.sub(" ", path.read_text(encoding="utf-8"))
        self.interface.add(path.name, words_of(provenance.word_items(text)))

    def finds_in_source(self, text):
        """What a Rust source of ours has in common with theirs: (kind, line, label, items)."""
        tokens = rust_text.tokens(text)
        code = provenance.code_items(tokens)
        named = list(self.named.runs(words_of(code)))
        yield from (find("code", code, run) for run in named)
        shapes = provenance.shape_items(code)
        for run in self.shaped.runs(words_of(shapes)):
            is_known = any(run.ours < other.ours + other.length and other.ours < run.ours + run.length for other in named)
            if not is_known and not provenance.is_repetitive(words_of(shapes[run.ours : run.ours + run.length])):
                yield "shape", *find("shape", code, run)[1:]
        prose = provenance.prose_items(tokens)
        yield from (find("prose", prose, run) for run in self.prose.runs(words_of(prose)))
        for piece in provenance.text_items(tokens):
            for run in self.texts.runs(words_of(piece)):
                if not self.is_interface(words_of(piece[run.ours : run.ours + run.length])):
                    yield find("text", piece, run)

    def finds_in_document(self, text):
        words = provenance.word_items(text)
        yield from (find("prose", words, run) for run in self.prose.runs(words_of(words)))

    def is_interface(self, words):
        """Whether the chapters have this text, whole."""
        return any(run.length == len(words) for run in self.interface.runs(words))


def words_of(items):
    return [item for item, _ in items]


def find(kind, items, run):
    return kind, items[run.ours][1], run.source, words_of(items[run.ours : run.ours + run.length])


def unexpected(finds, allowed):
    """Parts finds from what is allowed; returns what is left and the entries that allowed nothing."""
    left, used = [], set()
    for file, (kind, line, source, items) in finds:
        text = " ".join(items)
        fitting = [
            number
            for number, entry in enumerate(allowed)
            if entry["file"] == file and entry["kind"] == kind and entry["has"] in text and len(items) <= entry["items_max"]
        ]
        used |= set(fitting)
        if not fitting:
            left.append((file, kind, line, source, items))
    return left, [entry for number, entry in enumerate(allowed) if number not in used]


def main(arguments):
    wanted = wanted_crates()
    directories = directories_of(wanted)
    missing = sorted(set(wanted) - set(directories))
    for name, version in missing:
        print(f"cargo does not have {name} {version} yet, so nothing is compared with it", file=sys.stderr)
    comparison = Comparison()
    for directory in directories.values():
        comparison.add_crate(directory)
    for path in files("*", below=ROOT / "docs" / "interface"):
        comparison.add_interface(path)
    finds = []
    for path in files("*.rs"):
        found = comparison.finds_in_source(path.read_text(encoding="utf-8"))
        finds += [(name_of(path), find) for find in found]
    for path in files("*.md"):
        found = comparison.finds_in_document(path.read_text(encoding="utf-8"))
        finds += [(name_of(path), find) for find in found]
    left, needless = unexpected(finds, tomllib.loads(ALLOWED.read_text(encoding="utf-8"))["allowed"])
    for file, kind, line, source, items in left:
        shown = f": {' '.join(items)}" if "--show" in arguments else ""
        print(f"{file}:{line}: {len(items)} {kind} items as in {source}{shown}", file=sys.stderr)
    if not missing:
        for entry in needless:
            print(f"{name_of(ALLOWED)}: nothing in {entry['file']} needs `{entry['has']}`", file=sys.stderr)
    # With --all, cargo must have all of them.
    is_incomplete = bool(missing) and "--all" in arguments
    return 1 if left or is_incomplete or (needless and not missing) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
