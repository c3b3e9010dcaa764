#!/usr/bin/env bash
# The drop-in test: runs the end-to-end suite, written against npm package `spacetimedb`, with this package in its place,
# as a project gets it that depends on "spacetimedb": "npm:lightcone@...". Types are checked as well. Arguments go to
# vitest. LIGHTCONE_BIN names the `spacetime` to test, as for tests/e2e/run.sh.
set -euo pipefail
package=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=$package/../tests/e2e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. "$package/../scripts/lib.sh"
"$root/scripts/sdk.sh" build
(cd "$suite" && npm_install)
tarball=$(cd "$package" && npm pack --silent --pack-destination "$work")

# The suite next to its packages, of which one is exchanged.
cp -r "$suite/src" "$suite/test" "$suite/package.json" "$suite/tsconfig.json" "$suite/vitest.config.ts" "$work/"
mkdir -p "$work/node_modules/spacetimedb"
for entry in "$suite"/node_modules/* "$suite"/node_modules/.bin; do
    [ "$(basename "$entry")" = spacetimedb ] || ln -s "$entry" "$work/node_modules/"
done
tar -xzf "$work/$tarball" -C "$work/node_modules/spacetimedb" --strip-components 1
grep -q '"name": "lightcone"' "$work/node_modules/spacetimedb/package.json"

cd "$work"
echo "types of the suite, with lightcone as spacetimedb"
node_modules/.bin/tsc --noEmit
echo "the suite, with lightcone as spacetimedb"
node_modules/.bin/vitest run "$@"
