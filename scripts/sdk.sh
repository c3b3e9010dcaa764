#!/usr/bin/env bash
# Types, style, build and tests of the TypeScript SDK.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need node nodejs
need npm npm
cd "$root/sdk-ts"
npm_install
npm run --silent typecheck
npm run --silent lint
npm run --silent build
npm test --silent
