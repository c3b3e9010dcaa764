#!/usr/bin/env bash
# What `scripts/release.sh` makes, as users install it: the tarball, the Debian package (as root on Debian, if no `lightcone` is installed), and
# the npm packages from a registry of the test's own. Arguments go to node's test runner, e.g.
# `tests/install/run.sh --test-name-pattern npx`. LIGHTCONE_BIN names the `spacetime` to release; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

need node nodejs
need npm npm
if [ -z "${LIGHTCONE_BIN:-}" ]; then
    need_build_tools
    (cd "$root" && cargo build --release --package lightcone-cli)
    export LIGHTCONE_BIN=$CARGO_TARGET_DIR/release/spacetime
fi
[ -f "$LIGHTCONE_MODULES_WASM_DIR/transfer.wasm" ] || "$root/scripts/modules.sh"

cd "$here"
npm_install
LIGHTCONE_RELEASE=$(mktemp -d)
export LIGHTCONE_RELEASE
trap 'rm -rf "$LIGHTCONE_RELEASE"' EXIT
"$root/scripts/release.sh" --program "$LIGHTCONE_BIN" --fast "$LIGHTCONE_RELEASE"
node --test --test-concurrency=1 --test-reporter=spec --test-timeout=600000 "$@" test/*.test.js
