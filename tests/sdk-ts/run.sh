#!/usr/bin/env bash
# The TypeScript client on the built server: its own tests, those of the frameworks in Chromium included, and the end-to-end suite
# with it in place of the published package. Arguments go to the latter's vitest. LIGHTCONE_BIN names the `spacetime` to test;
# without it, it is built.
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
[ -f "$LIGHTCONE_MODULES_WASM_DIR/coverage.wasm" ] && [ -f "$LIGHTCONE_MODULES_WASM_DIR/transfer.wasm" ] || "$root/scripts/modules.sh"

"$root/scripts/sdk.sh" build
cd "$root/sdk-ts"
# The package is tested as it is published, in Node, Bun, Deno and workerd. Exact versions and no lock file: it would have to list the
# programs of every platform, and npm leaves out those it does not find.
[ -d test/runtimes/node_modules ] || npm --prefix test/runtimes install --no-package-lock --no-audit --no-fund
npm run --silent test:server
exec scripts/drop-in.sh "$@"
