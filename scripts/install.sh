#!/usr/bin/env bash
# Builds the two programs in release, with V8 where its library can be had, and puts them into PREFIX/bin (~/.local/bin).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
# shellcheck source=scripts/js-engine.sh
. "$root/scripts/js-engine.sh"
need_build_tools

say "building (release)"
cargo build --release --package lightcone-cli "${js_features[@]}"

target=${PREFIX:-$HOME/.local}/bin
mkdir -p "$target"
for program in spacetime spacetimedb-standalone; do
    # The file of a running program cannot be written to, but a new one can take its name.
    cp "$CARGO_TARGET_DIR/release/$program" "$target/.$program.new"
    mv -f "$target/.$program.new" "$target/$program"
done
say "spacetime and spacetimedb-standalone are in $target"
case :$PATH: in
*:"$target":*) ;;
*) echo "Put it on your path: export PATH=\"$target:\$PATH\"" >&2 ;;
esac
