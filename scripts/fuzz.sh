#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS seconds each. With cargo-fuzz and a nightly compiler the runs are guided by
# coverage; without, the targets are driven by random input, which a stable compiler can do.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

[ -f fuzz/Cargo.toml ] || { echo "no fuzz targets yet"; exit 0; }
need_build_tools
exec fuzz/run.sh "${FUZZ_SECONDS:-5}"
