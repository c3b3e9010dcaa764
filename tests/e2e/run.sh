#!/usr/bin/env bash
# Tests of the whole: the built server and command line with the published npm client. Arguments go to vitest, e.g.
# `tests/e2e/run.sh test/crash.test.ts`. LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
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
[ -f "$LIGHTCONE_MODULES_WASM_DIR/boards.wasm" ] && [ -f "$LIGHTCONE_MODULES_WASM_DIR/coverage.wasm" ] && [ -f "$LIGHTCONE_MODULES_WASM_DIR/rooms.wasm" ] && [ -f "$LIGHTCONE_MODULES_WASM_DIR/transfer.wasm" ] || "$root/scripts/modules.sh"
# Only what is stale.
"$root/scripts/js-modules.sh"

cd "$here"
npm_install
npx tsc --noEmit
exec npx vitest run "$@"
