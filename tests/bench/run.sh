#!/usr/bin/env bash
# The benchmark suite: types, style, its tests, and a short run of it with real systems. Arguments go to vitest, e.g.
# `tests/bench/run.sh test/window.test.ts`. LIGHTCONE_BIN names the `spacetime` to use; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

# The suite installs databases by itself; before the tests, that does not take the time of one of them.
missing=()
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null || missing+=(postgresql)
[ -x /usr/sbin/mariadbd ] || missing+=(mariadb-server-core)
command -v my_print_defaults >/dev/null || missing+=(mariadb-client-core)
command -v redis-server >/dev/null || missing+=(redis-server)
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"

pnpm=$("$root/bench/scripts/install.sh")
cd "$root/bench"
"$pnpm" --silent run typecheck
"$pnpm" --silent run lint
exec "$pnpm" --silent run test "$@"
