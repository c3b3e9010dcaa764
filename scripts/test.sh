#!/usr/bin/env bash
# Every test, from nothing: documents, dependencies, format, lints, modules, fuzz targets, published clients, and the tests of the workspace.
#
# What is quick comes first; what is built once is used by everything behind it. The tests of the workspace come last, so
# that the last lines are those of their runner. Setting: FUZZ_SECONDS per fuzz target (5).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
# shellcheck source=scripts/js-engine.sh
. "$root/scripts/js-engine.sh"
need_build_tools
need python3 python3
need node nodejs
need npm npm
for component in rustfmt clippy; do
    "cargo-${component/rustfmt/fmt}" --version >/dev/null 2>&1 ||
        { command -v rustup >/dev/null 2>&1 && timeout 300 rustup component add "$component" >&2; } ||
        die "$component is missing. It comes with the Rust toolchain: rustup component add $component"
done

say "documents"
scripts/check-compat.py

say "words"
scripts/check-words.py

say "the checks themselves"
python3 -m unittest discover --quiet --start-directory scripts/checks/tests --top-level-directory scripts

say "dependencies"
scripts/check-dependencies.py

say "circles of imports"
scripts/check-circles.py

say "what the machine of a database may not use"
scripts/check-machine.py

say "format"
scripts/fmt.sh --check

logs=$(mktemp -d)
# What runs in the background does not hear of Ctrl-C.
trap 'kill 0' INT
trap 'rm -rf "$logs"' EXIT
# run COMMAND...: prints what it says when it has ended. What fails is told once more at the end, and the rest runs all the same.
run() {
    local log=$logs/$BASHPID status=0 TIMEFORMAT='%R s, and %U s + %S s of processors'
    { time "$@" >"$log" 2>&1; } 2>"$log.time" || status=$?
    say "$*: $(tail -n 1 "$log.time")"
    cat "$log"
    [ $status != 0 ] || return 0
    {
        echo "== $*"
        sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -E "$failure_lines" | cut -c 1-180 | awk '!seen[$0]++' | head -n 8 || true
        tail -n 2 "$log" | cut -c 1-180
    } >>"$logs/failures"
}
# The lines by which vitest, node, cargo, the fuzzer and these scripts name what has failed.
failure_lines='^ *(FAIL |✖ |error(\[|:)|[A-Za-z]*Error: |thread .* panicked at|test .* FAILED$)|FAILED$'

end_if_failed() {
    [ -f "$logs/failures" ] || return 0
    say "what has failed"
    cat "$logs/failures"
    exit 1
}

# What tests need is made while the sources are checked: modules, and the TypeScript package, which nothing may build anew while others
# use it.
needs() { scripts/modules.sh && scripts/js-modules.sh && scripts/sdk.sh build; }
run needs &
run cargo clippy --workspace --all-targets --quiet "${js_features[@]}" -- -D warnings
wait
end_if_failed
# Tests find the modules there instead of building them again.
export LIGHTCONE_MODULES_DIR=$LIGHTCONE_MODULES_WASM_DIR

say "building the tests of the workspace"
# With the two programs, which the tests of the command line need.
cargo test --workspace --no-run --quiet "${js_features[@]}"
# The clients below test the same build: one with overflow checks, and no second one of everything.
export LIGHTCONE_BIN=${LIGHTCONE_BIN:-$CARGO_TARGET_DIR/debug/spacetime}
[ -x "$LIGHTCONE_BIN" ] || die "$LIGHTCONE_BIN is missing; LIGHTCONE_BIN names the \`spacetime\` to test."

# What follows waits more than it computes, so two of them run at a time, the longest first.
fuzz() { FUZZ_SECONDS=${FUZZ_SECONDS:-5} scripts/fuzz.sh; }
site() { scripts/site.sh "$cache/site"; }
# Each directory of `tests` has tests with published clients, and a script that starts what they need.
first=(fuzz tests/bench/run.sh tests/templates/run.sh scripts/sdk.sh)
mapfile -t others < <(printf '%s\n' tests/*/run.sh | grep -v -e bench -e templates)
for command in "${first[@]}" "${others[@]}" site; do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n || true
    run "$command" &
done
wait

provenance() {
    scripts/check-provenance.py --all && scripts/check-dependencies.py --installed
}
# By now cargo and pnpm have brought everything that is compared and looked at.
run provenance

if [ "$js_engine" = v8 ]; then
    # JavaScript modules on the other engine. The whole workspace, so that its dependencies are those of the other builds; only one
    # package has a test of this name.
    run cargo test --workspace --test suite --quiet
fi

say "tests of the workspace"
status=0
cargo test --workspace --no-fail-fast "${js_features[@]}" 2>&1 | tee "$logs/workspace" || status=$?
[ $status = 0 ] || grep -aE '^test .* FAILED$' "$logs/workspace" >>"$logs/failures" || true
end_if_failed
exit $status
