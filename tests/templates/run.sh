#!/usr/bin/env bash
# Every template as a user gets it: init, install, publish, generate, use. Arguments go to vitest, e.g.
# `tests/templates/run.sh test/chat.test.ts`. LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
# LIGHTCONE_NPM_SDK replaces the npm package, e.g. file:/path/to/lightcone-0.1.0.tgz.
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
# basic-rs is built like any module.
. "$root/scripts/wasm-toolchain.sh"

cd "$here"
npm_install
npx tsc --noEmit
exec npx vitest run "$@"
