#!/usr/bin/env bash
# The benchmark suite: types, style, its tests, and a short run of it with real systems. Arguments go to vitest, e.g.
# `tests/bench/run.sh test/window.test.ts`. LIGHTCONE_BIN names the `spacetime` to use; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

pnpm=$("$root/bench/scripts/install.sh")
cd "$root/bench"
"$pnpm" --silent run typecheck
"$pnpm" --silent run lint
exec "$pnpm" --silent run test "$@"
