#!/usr/bin/env bash
# Compiles all C# sources of a directory to nothing, with Mono: scripts/csharp-compile.sh <directory>
#
# Where that is allowed (root, Debian), Mono's compiler is installed; where it cannot be had, this says so and ends with 77, and
# tests that need it are skipped.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ $# -eq 1 ] || die "usage: scripts/csharp-compile.sh <directory>"

packages=(mono-mcs libmono-system-core4.0-cil libmono-system-runtime-serialization4.0-cil)
works() { [ -x "$(command -v mcs)" ]; }
if ! works && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing Mono's C# compiler"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >&2 || true
fi
if ! works; then
    printf 'skipped: there is no C# compiler (Debian: apt-get install %s)\n' "${packages[*]}" >&2
    exit 77
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# Unused events and fields are the SDK's business.
find "$1" -name '*.cs' -print0 | sort -z |
    xargs -0 mcs -nologo -langversion:7.2 -target:library -warnaserror -nowarn:67,169,414,649 -r:System.Runtime.Serialization -out:"$out"
