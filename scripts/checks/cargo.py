"""What cargo knows."""

import subprocess


def for_this_machine():
    """Options that leave out what only other platforms need: cargo need not have that."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return ["--filter-platform", next(line.split()[1] for line in version.splitlines() if line.startswith("host: "))]


def metadata(manifest, *options):
    """Runs `cargo metadata`, which never changes a lock file here: its exit status and output."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(manifest), *options]
    return subprocess.run(command, capture_output=True, text=True)
