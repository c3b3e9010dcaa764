#!/usr/bin/env bash
# Builds a Rust module to WebAssembly: scripts/build-module.sh <module directory> <out.wasm>
#
# Uses the toolchain that is there: rustup's target if it is installed or can be, else Debian's (scripts/wasm-toolchain.sh).
# All modules share one target directory, so that only the first build is slow.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ $# -ne 2 ]; then
    echo "usage: scripts/build-module.sh <module directory> <out.wasm>" >&2
    exit 2
fi
module=$(cd "$1" && pwd)
out=$2

# shellcheck source=scripts/wasm-toolchain.sh
. "$here/wasm-toolchain.sh"

export CARGO_TARGET_DIR=${LIGHTCONE_MODULES_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/lightcone/modules-target}
(cd "$module" && "$CARGO" build --release --ignore-rust-version --target wasm32-unknown-unknown)

name=$(sed -n 's/^name *= *"\(.*\)"/\1/p' "$module/Cargo.toml" | head -n 1 | tr - _)
built=$CARGO_TARGET_DIR/wasm32-unknown-unknown/release/$name.wasm
mkdir -p "$(dirname "$out")"
# Under another name first, so that no reader sees half of it.
if command -v wasm-opt >/dev/null 2>&1 && wasm-opt -all -g -O2 "$built" -o "$out.tmp"; then :; else cp "$built" "$out.tmp"; fi
mv "$out.tmp" "$out"
echo "$out: $(stat -c %s "$out") bytes"
