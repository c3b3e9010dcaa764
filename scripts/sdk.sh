#!/usr/bin/env bash
# Types, style, build, package and tests of the TypeScript SDK. It is built if its sources have changed; `sdk.sh build` does no more than that.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need node nodejs
need npm npm
cd "$root/sdk-ts"
npm_install
[ -f dist/index.mjs ] && [ -z "$(find src package.json tsdown.config.ts -newer dist/index.mjs -print -quit)" ] || npm run --silent build
[ "${1:-}" != build ] || exit 0
npm run --silent typecheck
npm run --silent lint
npm run --silent check:package
npm test --silent
