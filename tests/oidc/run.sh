#!/usr/bin/env bash
# Logins with an OpenID Connect provider: the built server and command line, and `oidc-provider` from npm. Arguments go to node's test
# runner, e.g. `tests/oidc/run.sh --test-name-pattern device`. LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"

need node nodejs
need npm npm
if [ -z "${LIGHTCONE_BIN:-}" ]; then
    need_build_tools
    (cd "$root" && cargo build --release --package lightcone-cli)
    export LIGHTCONE_BIN=$CARGO_TARGET_DIR/release/spacetime
fi

cd "$here"
npm_install
exec node --test --test-reporter=spec --test-timeout=180000 "$@" test/*.test.js
