#!/usr/bin/env bash
# Builds every Rust module below modules/ to WebAssembly: modules/transfer-rs becomes transfer.wasm.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_build_tools

for manifest in "$root"/modules/*-rs/Cargo.toml; do
    module=$(dirname "$manifest")
    name=$(basename "$module" -rs)
    "$root/scripts/build-module.sh" "$module" "$LIGHTCONE_MODULES_WASM_DIR/$name.wasm"
done
