#!/usr/bin/env bash
# Tests of the whole: the built server and command line with the published Rust client. Arguments go to `cargo test`.
# LIGHTCONE_BIN names the `spacetime` to test; without it, it is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/lib.sh"
need_build_tools
# The client's TLS is OpenSSL's.
need pkg-config pkg-config
pkg-config --exists openssl || install_packages libssl-dev
pkg-config --exists openssl || die "the headers of OpenSSL are missing. Install them first (Debian package: libssl-dev)."
if [ -z "${LIGHTCONE_BIN:-}" ]; then
    (cd "$root" && cargo build --release --package lightcone-cli)
    export LIGHTCONE_BIN=$CARGO_TARGET_DIR/release/spacetime
fi
[ -f "$LIGHTCONE_MODULES_WASM_DIR/transfer.wasm" ] || "$root/scripts/modules.sh"

cd "$here"
CARGO_TARGET_DIR=${LIGHTCONE_RUST_CLIENT_TARGET_DIR:-$cache/rust-client-target} exec cargo test --quiet --ignore-rust-version "$@"
