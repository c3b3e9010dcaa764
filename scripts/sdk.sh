#!/usr/bin/env bash
# Types, style, build, package and tests of the TypeScript SDK. It is built if its sources have changed; `sdk.sh build` does no more than that.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need node nodejs
need npm npm
cd "$root/sdk-ts"
npm_install
built=node_modules/.built
if [ ! -f dist/index.mjs ] || [ ! -f $built ] || [ -n "$(find src ./*.json tsdown.config.ts -newer $built -print -quit)" ]; then
    npm run --silent build
    touch $built
fi
[ "${1:-}" != build ] || exit 0
npm run --silent typecheck
npm run --silent lint
npm run --silent check:package
npm test --silent
