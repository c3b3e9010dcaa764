#!/usr/bin/env bash
# Makes the suite runnable: pnpm (from the cache if the machine has none), the packages of the lock file, and this
# repository's SDK. Prints the pnpm to use.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
need node nodejs
need npm npm

pnpm_version=9.15.9
if [[ $(command -v pnpm >/dev/null && pnpm --version 2>/dev/null) == 9.* ]]; then
    pnpm=pnpm
else
    pnpm=$cache/pnpm-$pnpm_version/node_modules/.bin/pnpm
    if [ ! -x "$pnpm" ]; then
        say "installing pnpm $pnpm_version into $cache"
        npm install --prefix "$cache/pnpm-$pnpm_version" --no-audit --no-fund --loglevel=error "pnpm@$pnpm_version" >&2
    fi
fi

"$root/scripts/sdk.sh" build >&2
cd "$root/bench"
if ! cmp -s pnpm-lock.yaml node_modules/.installed-lock 2>/dev/null; then
    say "installing the packages of the suite"
    # better-sqlite3 is compiled where there is no prebuilt one.
    need_build_tools >&2
    need python3 python3 >&2
    "$pnpm" install --frozen-lockfile >&2
    cp pnpm-lock.yaml node_modules/.installed-lock
fi
echo "$pnpm"
