#!/usr/bin/env bash
# Types, style, build, package and tests of the TypeScript SDK. `sdk.sh build` builds it only, if its sources changed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need node nodejs
need npm npm
cd "$root/sdk-ts"
npm_install
if [ "${1:-}" = build ]; then
    [ -f dist/index.mjs ] && [ -z "$(find src package.json -newer dist/index.mjs -print -quit)" ] || npm run --silent build
    exit 0
fi
npm run --silent typecheck
npm run --silent lint
npm run --silent build
npm run --silent check:package
npm test --silent
