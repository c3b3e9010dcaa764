# What the scripts share. To be sourced, with `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lightcone
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export LIGHTCONE_MODULES_TARGET_DIR=${LIGHTCONE_MODULES_TARGET_DIR:-$cache/modules-target}
export LIGHTCONE_MODULES_WASM_DIR=${LIGHTCONE_MODULES_WASM_DIR:-$cache/wasm}

# With the time since the script began, so that a log tells what took long.
say() { printf '\n\033[1m== %s\033[0m (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)) >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# install_packages PACKAGE...: Debian's, where that is allowed (root), one command at a time. Else nothing happens.
install_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
    say "installing $*"
    mkdir -p "$cache"
    # shellcheck disable=SC2016
    flock "$cache" sh -c 'apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"' sh "$@" >&2
}

# need COMMAND PACKAGE: makes sure that a command is there; where that is allowed (root, Debian), installs its package.
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    install_packages "$2"
    command -v "$1" >/dev/null 2>&1 || die "\`$1\` is missing. Install it first (Debian package: $2)."
}

need_build_tools() {
    need cc build-essential
    command -v cargo >/dev/null 2>&1 || die "Rust is missing. https://rustup.rs tells how to install it."
}

# Installs what the lock file of the current directory names, unless that is what is installed. One at a time: others may need the same.
npm_install() (
    flock 9
    cmp -s package-lock.json node_modules/.installed-lock 2>/dev/null && return 0
    npm ci --no-audit --no-fund && cp package-lock.json node_modules/.installed-lock
) 9<.

# cargo_build ARGUMENT...: `cargo build` with one line that says what has been built and how much is left. On a terminal the line is
# written anew; elsewhere there is one every 20 seconds. Warnings and errors pass through.
cargo_build() {
    CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=160 cargo build "$@" 2>&1 |
        stdbuf -oL tr '\r' '\n' | _show_progress
}

_show_progress() {
    local line shown=0 said_at=-20 started_at=$SECONDS
    while IFS= read -r line; do
        if [[ $line =~ \ ([0-9]+)/([0-9]+)(:\ ([^\ ,]*))? ]] && [[ $line == *Building\ [* ]]; then
            local now=$((SECONDS - started_at))
            local text="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} parts built, $((now / 60)) min $((now % 60)) s${BASH_REMATCH[4]:+; now ${BASH_REMATCH[4]}}"
            if [ -t 2 ]; then
                printf '\r\033[K   %s' "$text" >&2
                shown=1
            elif [ $((now - said_at)) -ge 20 ]; then
                printf '   %s\n' "$text" >&2
                said_at=$now
            fi
            continue
        fi
        [[ -z ${line// /} || $line =~ ^\ *(Compiling|Downloaded|Downloading|Updating|Locking|Adding|Fresh)\  ]] && continue
        [ $shown = 0 ] || printf '\r\033[K' >&2
        shown=0
        printf '%s\n' "$line" >&2
    done
}
