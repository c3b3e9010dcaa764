#!/usr/bin/env python3
"""Checks that the machine of a database neither waits, locks, spawns nor reads a clock (checks/machine.py says what that is).

Prints each place that does, and exits with 1 if there is one.
"""

import sys

from checks.machine import uses_of
from checks.repository import ROOT, files, name_of

SOURCE = ROOT / "crates/database/src"
# The writer, fan-out, and what is stepped with them.
MACHINE = (
    *("writer.rs", "writer", "commit.rs", "guest.rs", "frozen.rs", "schedule_queue.rs", "views", "backfill"),
    *("events.rs", "fanout.rs", "subscriptions.rs"),
)
# Its thread waits there.
DRIVERS = {SOURCE / "writer/waits.rs"}


def main():
    found = 0
    for place in MACHINE:
        path = SOURCE / place
        for file in files("*.rs", below=path) if path.is_dir() else [path]:
            for line, text in uses_of(file.read_text()) if file not in DRIVERS else ():
                print(f"{name_of(file)}:{line}: {text}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
