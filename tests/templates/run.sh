#!/usr/bin/env bash
# Every template as a user gets it: init, install, publish, generate, use. Arguments go to vitest, e.g.
# `tests/templates/run.sh test/chat.test.ts`. LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
# LIGHTCONE_NPM_SDK replaces the npm package, e.g. npm:lightcone@0.1.0; without it, it is made. LIGHTCONE_TEMPLATES=all tests the
# templates of all frameworks instead of one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

need node nodejs
need npm npm
need chromium chromium
if [ -z "${LIGHTCONE_BIN:-}" ]; then
    need_build_tools
    (cd "$root" && cargo build --release --package lightcone-cli)
    export LIGHTCONE_BIN=$CARGO_TARGET_DIR/release/spacetime
fi
if [ -z "${LIGHTCONE_NPM_SDK:-}" ]; then
    "$root/scripts/sdk.sh" build
    packed=$(mktemp -d)
    trap 'rm -rf "$packed"' EXIT
    LIGHTCONE_NPM_SDK=file:$packed/$(cd "$root/sdk-ts" && npm pack --silent --pack-destination "$packed")
    export LIGHTCONE_NPM_SDK
fi
# basic-rs is built like any module.
. "$root/scripts/wasm-toolchain.sh"

cd "$here"
npm_install
npx tsc --noEmit
npx vitest run "$@"
