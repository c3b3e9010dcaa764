#!/usr/bin/env bash
# Formats all Rust sources, or with --check says which are not formatted.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

cargo fmt --all -- "$@"
# Packages outside of the workspace.
for manifest in modules/*/Cargo.toml fuzz/Cargo.toml tests/*/Cargo.toml; do
    [ -f "$manifest" ] || continue
    cargo fmt --manifest-path "$manifest" -- "$@"
done
