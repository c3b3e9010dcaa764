#!/usr/bin/env bash
# The tools for assistants, over HTTP and by `spacetime mcp`, with the client of MCP's own npm package. Arguments go to node's test
# runner, e.g. `tests/mcp/run.sh --test-name-pattern stdio`. LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
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
exec node --test --test-reporter=spec --test-timeout=180000 "$@" test/*.test.js
