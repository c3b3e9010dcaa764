#!/usr/bin/env bash
# What the suite needs of this repository's scripts:
#
#   prepare.sh server                   builds the server and the command line, prints the directory of the programs
#   prepare.sh loadgen                  builds the load generator, prints its directory
#   prepare.sh server-of DIRECTORY      the same for another working tree of this repository, with a target directory apart
#   prepare.sh module DIRECTORY         installs the npm packages that a TypeScript module needs
#   prepare.sh wasm COMMAND [ARG...]    runs a command that builds a Rust module
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

case ${1:-} in
server)
    # LIGHTCONE_BIN names a built `spacetime`, as for the tests.
    if [ -n "${LIGHTCONE_BIN:-}" ]; then
        [ -x "$LIGHTCONE_BIN" ] || die "LIGHTCONE_BIN: $LIGHTCONE_BIN is no program"
        dirname "$LIGHTCONE_BIN"
        exit 0
    fi
    need_build_tools
    cd "$root"
    # shellcheck source=../../scripts/js-engine.sh
    . "$root/scripts/js-engine.sh"
    cargo build --release --package lightcone-cli --package lightcone-loadgen "${program_features[@]}" >&2
    cargo build --release --package lightcone-loadgen --example live_queries >&2
    echo "$CARGO_TARGET_DIR/release"
    ;;
loadgen)
    if [ -n "${LIGHTCONE_BIN:-}" ]; then
        dirname "$LIGHTCONE_BIN"
        exit 0
    fi
    need_build_tools
    cd "$root"
    cargo build --release --package lightcone-loadgen >&2
    echo "$CARGO_TARGET_DIR/release"
    ;;
server-of)
    need_build_tools
    # The engine that this tree would choose, with the library that it would find, or the two could not be compared.
    # shellcheck source=../../scripts/js-engine.sh
    . "$root/scripts/js-engine.sh"
    export LIGHTCONE_JS_ENGINE=$js_engine
    root=$2
    cd "$root"
    js_features=() program_features=()
    # A commit from before it knows one engine.
    # shellcheck source=../../scripts/js-engine.sh
    if [ -f "$root/scripts/js-engine.sh" ]; then . "$root/scripts/js-engine.sh"; fi
    export CARGO_TARGET_DIR=${LIGHTCONE_GATE_TARGET_DIR:-$cache/gate-target}
    [ ${#program_features[@]} -gt 0 ] || program_features=("${js_features[@]}")
    cargo build --release --package lightcone-cli "${program_features[@]}" >&2
    echo "$CARGO_TARGET_DIR/release"
    ;;
module)
    cd "$2"
    [ -f package.json ] || exit 0
    if grep -q sdk-ts package.json; then "$root/scripts/sdk.sh" build >&2; fi
    if [ -f package-lock.json ]; then npm_install >&2; fi
    ;;
wasm)
    shift
    # shellcheck source=../../scripts/wasm-toolchain.sh
    . "$root/scripts/wasm-toolchain.sh"
    export CARGO_TARGET_DIR=$LIGHTCONE_MODULES_TARGET_DIR
    exec "$@"
    ;;
*) die "prepare.sh server | loadgen | server-of DIRECTORY | module DIRECTORY | wasm COMMAND" ;;
esac
