#!/usr/bin/env bash
# Asks for known vulnerabilities of everything that the lock files name. Needs a network, so it is no part of the tests: run it
# before a release, and when you hear of one. What to do about a finding: docs/CONTRIBUTING.md.
#
# Rust needs cargo-deny or cargo-audit (cargo install --locked cargo-deny); npm and pnpm ask by themselves.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
need node nodejs
need npm npm

failed=0
# Runs a command in a directory, and goes on if it finds something.
audit() {
    local directory=$1
    shift
    say "$directory: $*"
    (cd "$root/$directory" && "$@") || failed=1
}

locks() {
    find . -name node_modules -prune -o -name target -prune -o -name "$1" -printf '%h\n' | sed 's#^\./##' | sort
}

if cargo deny --version >/dev/null 2>&1; then
    # The workspace by all rules of deny.toml, what is outside of it for advisories only.
    audit . cargo deny check
    for directory in $(locks Cargo.lock); do
        [ "$directory" = . ] || audit "$directory" cargo deny --config "$root/deny.toml" check advisories
    done
elif cargo audit --version >/dev/null 2>&1; then
    for directory in $(locks Cargo.lock); do
        audit "$directory" cargo audit
    done
else
    echo "Neither cargo-deny nor cargo-audit is installed: crates are not asked for. cargo install --locked cargo-deny" >&2
    failed=1
fi
for directory in $(locks package-lock.json); do
    audit "$directory" npm audit --package-lock-only
done
pnpm=$("$root/bench/scripts/install.sh")
for directory in $(locks pnpm-lock.yaml); do
    audit "$directory" "$pnpm" audit
done
[ $failed = 0 ] || die "something was found, or could not be asked for; see above"
