#!/usr/bin/env bash
# Every test: format, lints, modules, clients, short fuzz runs, and the tests of the workspace.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
need_build_tools

say "format"
scripts/fmt.sh --check

say "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

say "modules"
scripts/modules.sh
# Tests find the modules there instead of building them again.
export LIGHTCONE_MODULES_DIR=$LIGHTCONE_MODULES_WASM_DIR

say "fuzz targets, ${FUZZ_SECONDS:-5} seconds each"
scripts/fuzz.sh

# Tests with the published clients: a directory each, with a script `run.sh` that starts what it needs.
for run in tests/*/run.sh; do
    [ -x "$run" ] || continue
    say "$(dirname "$run")"
    "$run"
done

say "tests of the workspace"
cargo test --workspace --quiet
