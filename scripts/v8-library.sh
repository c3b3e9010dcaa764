#!/usr/bin/env bash
# Prints the path of V8's prebuilt library, which is downloaded if it is not there, after its checksum has proven to be that of
# scripts/v8.sha256. Without this script the build of crate `v8` would download one and take whatever it is sent.
#
#   v8-library.sh [FILE]   checks FILE instead of downloading
#   LIGHTCONE_V8_SHA256    the checksum of a library that is not listed (another target, or a build of one's own)
#   RUSTY_V8_MIRROR        where to download from, instead of the releases of rusty_v8
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

version=$(sed -n '/^name = "v8"$/{n;s/version = "\(.*\)"/\1/p}' "$root/Cargo.lock")
file=librusty_v8_simdutf_release_$(rustc -vV | sed -n 's/^host: //p').a.gz
expected=${LIGHTCONE_V8_SHA256:-$(sed -n "s|^\([0-9a-f]\{64\}\)  v$version/$file\$|\1|p" "$root/scripts/v8.sha256")}
[ -n "$expected" ] || fail "scripts/v8.sha256 has no checksum of v$version/$file, so it is not used. Say which one you trust with LIGHTCONE_V8_SHA256, or build with QuickJS."

sum() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}
check() {
    found=$(sum "$1")
    [ "$found" = "$expected" ] || fail "$1 is not the library that scripts/v8.sha256 names: its SHA-256 is $found, expected $expected. Remove it."
}

if [ $# -gt 0 ]; then
    check "$1"
    realpath "$1"
    exit 0
fi
target=${XDG_CACHE_HOME:-$HOME/.cache}/lightcone/v8/v$version/$file
if [ ! -f "$target" ]; then
    command -v curl >/dev/null 2>&1 || fail "\`curl\` is missing, so V8 cannot be downloaded."
    mkdir -p "$(dirname "$target")"
    # Under another name until it is checked, so that a file with the final name is always good.
    partial=$(mktemp "$target.XXXXXX")
    trap 'rm -f "$partial"' EXIT
    address=${RUSTY_V8_MIRROR:-https://github.com/denoland/rusty_v8/releases/download}/v$version/$file
    curl --silent --show-error --fail --location --connect-timeout 10 --retry 2 --output "$partial" "$address" ||
        fail "V8 cannot be downloaded from $address"
    check "$partial"
    mv "$partial" "$target"
fi
check "$target"
printf '%s\n' "$target"
