#!/usr/bin/env python3
"""Plants faults, one at a time, in a copy of the committed tree, and says how soon the simulation finds each.

    scripts/planted-faults.py [--seconds N] [part of a name ...]

The faults are those of crates/database/tests/planted/faults.toml. Building takes its time, so this is no part of the tests. What is
built stays in CARGO_TARGET_DIR, or in ~/.cache/lightcone/planted. Prints the rows of the table in docs/simulation.md. Fails if a fault
is not found.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = "crates/database/tests/planted/faults.toml"
# A fault may also make the simulation stand still.
HANGS_AFTER_S = 180


def build(tree: Path, target: str) -> str | None:
    """The program of the simulation, or None if the compiler refuses it."""
    command = ["cargo", "test", "--locked", "-p", "lightcone-database", "--test", "simulation", "--no-run"]
    built = subprocess.run(
        command, cwd=tree, env={**os.environ, "CARGO_TARGET_DIR": target}, capture_output=True, text=True
    )
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        return None
    return re.search(r"\((.*)\)\s*$", built.stderr.strip()).group(1)


def run(program: str, tree: Path, seconds: int) -> tuple[float, str | None]:
    """How long it took, and what was found."""
    env = {**os.environ, "SIMULATE_SECONDS": str(seconds), "SIMULATE_SHRINK": "0"}
    started = time.monotonic()
    try:
        command = [program, "what_was_acknowledged_is", "--nocapture"]
        ran = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=seconds + HANGS_AFTER_S)
    except subprocess.TimeoutExpired:
        return time.monotonic() - started, "it stands still"
    took = time.monotonic() - started
    if ran.returncode == 0:
        return took, None
    told = re.search(r"make simulate SEED=(\S+) fails: (.*)", ran.stderr + ran.stdout)
    return took, f"{told.group(1)}: {told.group(2)}" if told else f"it ended with {ran.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=300, help="for each fault, at most")
    asked = parser.parse_args()
    target = os.environ.get("CARGO_TARGET_DIR", str(Path.home() / ".cache/lightcone/planted"))
    faults = tomllib.loads((ROOT / FAULTS).read_text())["fault"]
    faults = [of for of in faults if not asked.names or any(part in of["name"] for part in asked.names)]
    missed = 0
    with tempfile.TemporaryDirectory(dir=Path(target).parent) as directory:
        tree = Path(directory)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True)
        for fault in faults:
            file = tree / fault["file"]
            whole = file.read_text()
            old, new = fault["old"].strip("\n"), fault["new"].strip("\n")
            if whole.count(old) != 1:
                print(f"{fault['name']}: its text is not once in {fault['file']}", file=sys.stderr)
                missed += 1
                continue
            file.write_text(whole.replace(old, new))
            program = build(tree, target)
            took, found = run(program, tree, asked.seconds) if program else (0.0, None)
            file.write_text(whole)
            missed += found is None
            when = f"{took:.0f} s" if found else "not found" if program else "does not compile"
            print(f"| {fault['name']} | `{fault['file']}` | {when} |", flush=True)
            print(f"    {found}", file=sys.stderr, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
