#!/usr/bin/env bash
# Bundles the JavaScript modules of the tests and benchmarks, most with the published npm package and some with our SDK, into
# ~/.cache/lightcone/js (or $LIGHTCONE_JS_DIR). A bundle that is newer than its source is not made again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
need node nodejs
need npm npm

out=${LIGHTCONE_JS_DIR:-$HOME/.cache/lightcone/js}
tools=$out/npm
mkdir -p "$tools"
manifest='{ "private": true, "type": "module", "dependencies": { "spacetimedb": "2.10.1" }, "devDependencies": { "esbuild": "0.25.12" } }'
if [ "$(cat "$tools/package.json" 2>/dev/null)" != "$manifest" ] || [ ! -x "$tools/node_modules/.bin/esbuild" ]; then
    say "installing the published package and a bundler"
    printf '%s' "$manifest" >"$tools/package.json"
    npm install --prefix "$tools" --no-audit --no-fund --loglevel=error >&2
fi

# The last of the 1.x packages, apart from the other, for the modules that were made with them (04 §10).
legacy=$out/npm-1
mkdir -p "$legacy"
if [ ! -d "$legacy/node_modules/spacetimedb-1" ]; then
    say "installing the published package 1.x"
    printf '{ "private": true, "dependencies": { "spacetimedb-1": "npm:spacetimedb@1.12.0" } }' >"$legacy/package.json"
    npm install --prefix "$legacy" --no-audit --no-fund --loglevel=error >&2
fi

# bundle NAME SOURCE [OPTION...]
bundle() {
    local name=$1 source=$2 target=$out/$1.js
    shift 2
    [ "$target" -nt "$source" ] && [ "$target" -nt "$tools/package.json" ] && return 0
    say "bundling $name"
    # Under another name first, so that no reader sees half of it: tests may run this script at the same time.
    NODE_PATH=$tools/node_modules:$legacy/node_modules "$tools/node_modules/.bin/esbuild" "$source" --bundle --format=esm --platform=browser \
        --target=esnext --sourcemap=inline --external:'spacetime:sys*' --conditions=production,import \
        --define:process.env.NODE_ENV='"production"' --log-level=warning "$@" --outfile="$target.$$"
    mv "$target.$$" "$target"
}

for source in crates/host-js/tests/modules/*.ts; do
    bundle "$(basename "$source" .ts)" "$source"
done
for name in boards coverage live procedures shop views; do
    bundle $name modules/$name-ts/src/index.ts
done

# Modules with the SDK of this repository, from its sources.
sdk=$root/sdk-ts/src
for name in transfer jobs league2 league3 latest; do
    target=$out/$name-lightcone.js
    if [ -n "$(find "$sdk" -name '*.ts' -newer "$target" -print -quit 2>/dev/null)" ]; then
        rm -f "$target"
    fi
    bundle $name-lightcone modules/$name-ts/src/index.ts \
        --alias:lightcone/server="$sdk/server/index.ts" --alias:lightcone="$sdk/client/index.ts"
done
