#!/usr/bin/env bash
# Bundles the JavaScript modules of the tests and benchmarks with the published npm package, into
# ~/.cache/lightcone/js (or $LIGHTCONE_JS_DIR). What is there and newer than its sources stays.
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

for source in crates/host-js/tests/modules/*.ts modules/coverage-ts/src/index.ts; do
    [ -f "$source" ] || continue
    name=$(basename "$source" .ts)
    [ "$name" = index ] && name=$(basename "$(dirname "$(dirname "$source")")")
    bundle=$out/$name.js
    [ "$bundle" -nt "$source" ] && [ "$bundle" -nt "$tools/package.json" ] && continue
    say "bundling $name"
    NODE_PATH=$tools/node_modules "$tools/node_modules/.bin/esbuild" "$source" --bundle --format=esm --platform=browser \
        --target=esnext --sourcemap=inline --external:'spacetime:sys*' --conditions=production,import \
        --define:process.env.NODE_ENV='"production"' --log-level=warning --outfile="$bundle"
done

# The transfer module with the SDK of this repository, from its sources.
source=modules/transfer-ts/src/index.ts
bundle=$out/transfer-lightcone.js
if [ -z "$(find "$bundle" -newer "$source" 2>/dev/null)" ] || [ -n "$(find sdk-ts/src -name '*.ts' -newer "$bundle" -print -quit)" ]; then
    say "bundling transfer-lightcone"
    "$tools/node_modules/.bin/esbuild" "$source" --bundle --format=esm --platform=browser --target=esnext --sourcemap=inline \
        --external:'spacetime:sys*' --alias:lightcone/server="$root/sdk-ts/src/server/index.ts" --log-level=warning --outfile="$bundle"
fi
