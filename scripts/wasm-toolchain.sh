# Finds (or, as root on Debian, installs) a Rust toolchain for wasm32-unknown-unknown and exports what `cargo` needs to use it:
# CARGO, and for Debian's toolchain RUSTC and the switches that build the standard library from its sources. To be sourced.

_debian_wasm_ready() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && command -v wasm-ld-22 >/dev/null 2>&1 &&
        [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std" ]
}

_wasm_toolchain() {
    local sysroot cargo=${CARGO:-cargo}
    if sysroot=$("${RUSTC:-rustc}" --print sysroot 2>/dev/null) && [ -d "$sysroot/lib/rustlib/wasm32-unknown-unknown/lib" ]; then
        export CARGO=$cargo
        return 0
    fi
    if ! _debian_wasm_ready; then
        if command -v rustup >/dev/null 2>&1 && timeout 120 rustup target add wasm32-unknown-unknown >/dev/null 2>&1; then
            export CARGO=$cargo
            return 0
        fi
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            echo "installing Debian's Rust toolchain for WebAssembly" >&2
            apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                rustc-web cargo-web rust-web-src lld-22 binaryen >&2 || true
        fi
    fi
    if _debian_wasm_ready; then
        export CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
        export CARGO_UNSTABLE_BUILD_STD=std,panic_abort CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-22
        # rustup's proxy sets this for its own toolchain; Debian's must not see it.
        unset RUSTUP_TOOLCHAIN
        return 0
    fi
    cat >&2 <<'MESSAGE'
No Rust toolchain for wasm32-unknown-unknown. Do one of these:
    rustup target add wasm32-unknown-unknown
    apt-get install rustc-web cargo-web rust-web-src lld-22       (Debian, as root)
MESSAGE
    return 1
}

_wasm_toolchain
