#!/usr/bin/env python3
"""Plants faults in a copy of the committed tree, wakes one at a time, and says how soon the simulation finds each.

    scripts/planted-faults.py [--seconds N] [part of a name ...]

The faults are those of crates/database/tests/planted/faults.toml. Building takes its time, so this is no part of the tests. The copy, and
what is built of it, stay in CARGO_TARGET_DIR, or in ~/.cache/lightcone/planted. Prints the rows of the table in docs/simulation.md, with
seconds of one processor, of which a busy machine takes no more. Fails if a fault is not found, or if something is found without any.
"""

import argparse
import io
import os
import re
import resource
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = "crates/database/tests/planted/faults.toml"
# Whether a fault is awake: all are built at once.
PLANTED = 'std::env::var_os("PLANTED_FAULT").is_some_and(|of| of == "{name}")'
# A fault may also make the simulation stand still.
HANGS_AFTER_S = 180


def copy(tree: Path) -> list[dict]:
    """Makes the tree that of the last commit, with all faults in it, asleep, and gives these. Files that are so already keep their times, so
    that they are not built again."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        files = {entry.name: (entries.extractfile(entry).read(), entry.mode) for entry in entries if entry.isfile()}
    faults = tomllib.loads(files[FAULTS][0].decode())["fault"]
    for fault in faults:
        whole, mode = files[fault["file"]]
        old, new = (fault[of].strip("\n") for of in ("old", "new"))
        if whole.decode().count(old) != 1:
            sys.exit(f"{fault['name']}: its text is not once in {fault['file']}")
        planted = whole.decode().replace(old, new.replace("PLANTED", PLANTED.format(**fault)))
        files[fault["file"]] = planted.encode(), mode
    for name, (content, mode) in files.items():
        file = tree / name
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(mode)
    return faults


def build(tree: Path, target: str) -> str | None:
    """The program of the simulation, or None if the compiler refuses it."""
    of_make = ["--release", "-p", "lightcone-database", "--test", "simulation"]
    command = ["cargo", "test", "--locked", *of_make, "--no-run"]
    checks = {f"CARGO_PROFILE_RELEASE_{name}": "true" for name in ("DEBUG_ASSERTIONS", "OVERFLOW_CHECKS")}
    env = {**os.environ, **checks, "CARGO_TARGET_DIR": target}
    built = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        return None
    return re.search(r"\((.*)\)\s*$", built.stderr.strip()).group(1)


def processor_s() -> float:
    """What all that has ended took of processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: str, tree: Path, seconds: int, fault: str = "") -> tuple[float, str | None]:
    """How long it took, and what was found."""
    env = {**os.environ, "SIMULATE_SECONDS": str(seconds), "SIMULATE_SHRINK": "0", "PLANTED_FAULT": fault}
    before = processor_s()
    try:
        command = [program, "what_was_acknowledged_is", "--nocapture"]
        ran = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=seconds + HANGS_AFTER_S)
    except subprocess.TimeoutExpired:
        return processor_s() - before, "it stands still"
    took = processor_s() - before
    if ran.returncode == 0:
        return took, None
    told = re.search(r"make simulate SEED=(\S+) fails: (.*)\n(.*)", ran.stderr + ran.stdout)
    return took, f"{told[1]}: {told[2]} {told[3]}" if told else f"it ended with {ran.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=300, help="for each fault, at most")
    asked = parser.parse_args()
    target = os.environ.get("CARGO_TARGET_DIR", str(Path.home() / ".cache/lightcone/planted"))
    tree = Path(target) / "planted"
    faults = copy(tree)
    program = build(tree, target)
    found = run(program, tree, 20)[1] if program else "it does not compile"
    if found:
        print(f"without any fault: {found}", file=sys.stderr)
        return 1
    missed = 0
    for fault in faults:
        if asked.names and not any(part in fault["name"] for part in asked.names):
            continue
        took, found = run(program, tree, asked.seconds, fault["name"])
        missed += found is None
        seed = re.match(r"\d+", found or "")
        when = f"{took:.0f} s | {seed[0] if seed else ''}" if found else "not found |"
        print(f"| {fault['name']} | `{fault['file']}` | {when} |", flush=True)
        print(f"    {found}", file=sys.stderr, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
