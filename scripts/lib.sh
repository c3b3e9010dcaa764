# What the scripts share. To be sourced, with `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lightcone
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export LIGHTCONE_MODULES_TARGET_DIR=${LIGHTCONE_MODULES_TARGET_DIR:-$cache/modules-target}
export LIGHTCONE_MODULES_WASM_DIR=${LIGHTCONE_MODULES_WASM_DIR:-$cache/wasm}

say() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# need COMMAND PACKAGE: makes sure that a command is there; where that is allowed (root, Debian), installs its package.
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing $2 (for $1)"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >&2
    fi
    command -v "$1" >/dev/null 2>&1 || die "\`$1\` is missing. Install it first (Debian package: $2)."
}

need_build_tools() {
    need cc build-essential
    command -v cargo >/dev/null 2>&1 || die "Rust is missing. https://rustup.rs tells how to install it."
}

# Installs what the lock file of the current directory names, unless that is what is installed.
npm_install() {
    cmp -s package-lock.json node_modules/.installed-lock 2>/dev/null && return 0
    npm ci --no-audit --no-fund
    cp package-lock.json node_modules/.installed-lock
}
