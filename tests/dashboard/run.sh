#!/usr/bin/env bash
# The dashboard as the server has it inside, in Chromium: that it is what its sources give, each page, looks, accessibility. Arguments go
# to vitest, e.g. `tests/dashboard/run.sh test/pages.test.ts`; `tests/dashboard/run.sh --pictures` takes those of the documents anew.
# LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

need node nodejs
need npm npm
need chromium chromium

cd "$root/dashboard"
npm_install
npm run --silent typecheck
npm run --silent lint
npm run --silent check

if [ -z "${LIGHTCONE_BIN:-}" ]; then
    need_build_tools
    (cd "$root" && cargo build --release --package lightcone-cli)
    export LIGHTCONE_BIN=$CARGO_TARGET_DIR/release/spacetime
fi

cd "$here"
npm_install
npx tsc --noEmit
if [ "${1:-}" = --pictures ]; then
    exec npx vitest run --config vitest.pictures.config.ts
fi
exec npx vitest run "$@"
