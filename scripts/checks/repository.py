"""The files of the repository, without asking git: a copy of the tree is checked like a clone."""

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What builds and tests leave behind, wherever it lies; .gitignore names the same.
MADE = {".git", "__pycache__", "artifacts", "corpus", "dist", "node_modules", "runs", "target"}


def files(*patterns, below=ROOT):
    """All files whose name fits one of the patterns, in order."""
    found = []
    for entry in sorted(below.iterdir()):
        if entry.is_dir():
            if entry.name not in MADE and not entry.is_symlink():
                found.extend(files(*patterns, below=entry))
        elif any(fnmatch(entry.name, pattern) for pattern in patterns):
            found.append(entry)
    return found


def name_of(path):
    """How messages name a file."""
    return path.relative_to(ROOT).as_posix()
