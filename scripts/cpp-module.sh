#!/usr/bin/env bash
# Builds a C++ module to WebAssembly: scripts/cpp-module.sh <module directory> <out.wasm>
# Only makes sure that one could be built: scripts/cpp-module.sh --check
#
# Needs clang, its linker and a C++ library for WebAssembly. Where that is allowed (root, Debian), they are installed; where they
# cannot be had, this says so and ends with 77, and tests that need a module in C++ are skipped.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
packages=(cmake make clang lld wasi-libc libc++-dev-wasm32 libc++abi-14-dev-wasm32 libclang-rt-14-dev-wasm32)
toolchain=$root/templates/basic-cpp/spacetimedb/lightcone/toolchain.cmake

# Whether a program with the C++ library can be compiled and linked.
works() {
    command -v cmake >/dev/null 2>&1 && command -v make >/dev/null 2>&1 && command -v wasm-ld >/dev/null 2>&1 &&
        echo '#include <string>
              extern "C" __attribute__((export_name("f"))) int f(int n) { return std::to_string(n).size(); }' |
        clang++ --target=wasm32-wasi -std=c++20 -fno-exceptions -nostartfiles -Wl,--no-entry -x c++ - -o /dev/null >/dev/null 2>&1
}

if ! works && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing clang for WebAssembly"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >&2 || true
fi
if ! works; then
    printf 'skipped: there is no clang for WebAssembly with a C++ library (Debian 12: apt-get install %s)\n' "${packages[*]}" >&2
    exit 77
fi

[ "$*" = --check ] && exit 0
[ $# -eq 2 ] || die "usage: scripts/cpp-module.sh <module directory> <out.wasm> | --check"
module=$(cd "$1" && pwd)
out=$2

# A directory for each that builds: tests may run this at the same time.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cmake -G 'Unix Makefiles' -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release -S "$module" -B "$build" >/dev/null
cmake --build "$build" --parallel >&2
mkdir -p "$(dirname "$out")"
cp "$(find "$build" -name '*.wasm' | head -n 1)" "$out.$$"
mv "$out.$$" "$out"
