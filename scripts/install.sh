#!/usr/bin/env bash
# Builds the program as releases have it (profile `dist`), with V8 where its library can be had, and puts it into PREFIX/bin (~/.local/bin):
# `spacetime`, the small `spacetimedb-standalone` that starts it as a server, and PREFIX/lib/lightcone/spacetime.debug with the debug
# information, which debuggers find by themselves. `--program FILE` takes a `spacetime` that is built, and the other one beside it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need objcopy binutils
case $#:${1:-} in
0:)
    cd "$root"
    # shellcheck source=scripts/js-engine.sh
    . "$root/scripts/js-engine.sh"
    need_build_tools
    say "building (profile dist); the first time this takes long, as the whole program is optimized at once"
    # Rust's own linker, which folds functions of equal code, is the default on this platform only.
    if [ "$(rustc -vV | sed -n 's/^host: //p')" = x86_64-unknown-linux-gnu ]; then
        export RUSTFLAGS="${RUSTFLAGS:-} -C link-arg=-Wl,--icf=all"
    fi
    cargo_build --profile dist --locked --package lightcone-cli "${program_features[@]}"
    built=$CARGO_TARGET_DIR/dist
    ;;
2:--program) built=$(realpath "$(dirname "$2")") ;;
*) die "install.sh takes --program FILE, or nothing" ;;
esac

# Absolute, as npm packs from another directory.
prefix=$(realpath -m "${PREFIX:-$HOME/.local}")
cd "$root"
target=$prefix/bin
mkdir -p "$target" "$prefix/lib/lightcone"
# The file of a running program cannot be written to, but a new one can take its name.
debug=$prefix/lib/lightcone/spacetime.debug
objcopy --only-keep-debug "$built/spacetime" "$debug.new"
mv -f "$debug.new" "$debug"
for program in spacetime spacetimedb-standalone; do
    objcopy --strip-all "$built/$program" "$target/.$program.new"
    mv -f "$target/.$program.new" "$target/$program"
done
objcopy --add-gnu-debuglink="$debug" "$target/spacetime" "$target/.spacetime.new"
mv -f "$target/.spacetime.new" "$target/spacetime"
# The npm package, which `spacetime init` names in new projects, until npm's registry has it.
if command -v npm >/dev/null 2>&1; then
    if scripts/sdk.sh build && packed=$(cd sdk-ts && npm pack --silent --pack-destination "$prefix/lib/lightcone"); then
        mv -f "$prefix/lib/lightcone/$packed" "$prefix/lib/lightcone/lightcone.tgz"
    else
        echo "warning: the npm package could not be made (it needs Node 20 and npm's registry), so new TypeScript projects lack it" >&2
    fi
fi
say "spacetime and spacetimedb-standalone are in $target"
case :$PATH: in
*:"$target":*) ;;
*) echo "Put it on your path: export PATH=\"$target:\$PATH\"" >&2 ;;
esac
