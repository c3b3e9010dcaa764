#!/usr/bin/env bash
# The benchmark suite: types, style, its tests, and a short run of it with real systems. Arguments go to vitest, e.g.
# `tests/bench/run.sh test/window.test.ts`. LIGHTCONE_BIN names the `spacetime` to use; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

# The suite installs PostgreSQL by itself; before the tests, it does not take the time of one of them.
if ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && ! command -v postgres >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing postgresql (for the tests of the benchmark suite)"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >&2
    fi
fi

pnpm=$("$root/bench/scripts/install.sh")
cd "$root/bench"
"$pnpm" --silent run typecheck
"$pnpm" --silent run lint
exec "$pnpm" --silent run test "$@"
