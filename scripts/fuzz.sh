#!/usr/bin/env bash
# Runs the fuzz targets, guided by coverage, on a stable compiler. docs/fuzzing.md tells more.
#
#   scripts/fuzz.sh                        every target
#   scripts/fuzz.sh TARGET...              these targets
#   scripts/fuzz.sh --reproduce TARGET FILE  one input, e.g. one that a run found
#   scripts/fuzz.sh --list                 the targets
#
# Settings, as variables: FUZZ_SECONDS per target (60), FUZZ_JOBS targets at a time (the number of cores),
# FUZZ_DIR for corpora, artifacts and logs (never in the clone).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root/fuzz"

seconds=${FUZZ_SECONDS:-60}
jobs=${FUZZ_JOBS:-$(nproc)}
data=${FUZZ_DIR:-$cache/fuzz}
# Inputs longer than this find nothing that shorter ones do not.
input_bytes_max=4096
# One input may take so long and so much memory; every decoder needs far less.
input_seconds_max=10
memory_mib_max=2048
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$cache/fuzz-target}

all=$(sed -n '/^\[\[bin\]\]/,/^name/s/^name = "\(.*\)"/\1/p' Cargo.toml)
case ${1:-} in
--list) echo "$all"; exit 0 ;;
-h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$root/scripts/fuzz.sh"; exit 0 ;;
esac
reproduce=
if [ "${1:-}" = --reproduce ]; then
    [ $# = 3 ] || die "usage: scripts/fuzz.sh --reproduce TARGET FILE"
    [ -f "$3" ] || [ -f "$OLDPWD/$3" ] || die "no file \`$3\`"
    reproduce=$(cd "$OLDPWD" && realpath "$3")
    set -- "$2"
fi
targets=${*:-$all}
# These need the dependencies of the gateway or of databases, which take minutes to build with instrumentation. A run of seconds leaves them out: the
# property tests in fuzzing.rs of both crates call the same functions.
gateway_targets="frames text mcp history"
if [ $# = 0 ] && [ "$seconds" -lt 30 ]; then
    targets=$(grep -vxE "${gateway_targets// /|}" <<<"$all")
    echo "not in runs of less than 30 seconds: $gateway_targets"
fi
for target in $targets; do
    grep -qx "$target" <<<"$all" || die "no fuzz target \`$target\`; there are: $(tr '\n' ' ' <<<"$all")"
done
need_build_tools
need c++ build-essential

# What cargo-fuzz would pass, without what needs a nightly compiler (the sanitizers; the crates are safe Rust).
flags="-Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$option"
done
flags+=" --cfg fuzzing -Ccodegen-units=4"
# What runs for seconds needs no code that took minutes to optimize.
[ "$seconds" -ge 30 ] || export CARGO_PROFILE_RELEASE_OPT_LEVEL=1
bins=()
for target in $targets; do
    bins+=(--bin "$target")
    case " $gateway_targets " in *" $target "*) bins+=(--features gateway) ;; esac
done
RUSTFLAGS=$flags cargo build --release --quiet --target "$host" "${bins[@]}"
bin=$CARGO_TARGET_DIR/$host/release

if [ -n "$reproduce" ]; then
    exec "$bin/$targets" -timeout=$input_seconds_max -rss_limit_mb=$memory_mib_max "$reproduce"
fi

run() {
    local target=$1 corpus=$data/corpus/$1 artifacts=$data/artifacts/$1/ log=$data/logs/$1.log options=() seeds=()
    [ -d "$root/fuzz/seeds/$target" ] && seeds+=("$root/fuzz/seeds/$target")
    mkdir -p "$corpus" "$artifacts" "$data/logs"
    case $target in
    sql | query_plan) options+=(-dict="$root/fuzz/dict/sql.dict") ;;
    *json | mcp) options+=(-dict="$root/fuzz/dict/json.dict") ;;
    esac
    # New inputs go to the first directory, the seeds are only read. An allocation beyond the address space fails at
    # once, also one that is never touched.
    if (
        ulimit -v $((4 * memory_mib_max * 1024))
        exec "$bin/$target" -max_total_time="$seconds" -max_len=$input_bytes_max -timeout=$input_seconds_max \
            -rss_limit_mb=$memory_mib_max -artifact_prefix="$artifacts" -print_final_stats=1 -close_fd_mask=1 \
            "${options[@]}" "$corpus" "${seeds[@]}"
    ) >"$log" 2>&1; then
        local runs coverage
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 edges, \2 features, \3 inputs kept/p' "$log" | tail -n 1)
        printf '%-18s %10s runs, %s\n' "$target" "$runs" "$coverage"
    else
        local artifact
        artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        printf '%-18s FAILED\n' "$target"
        grep -m 3 -E "panicked at|ERROR: libFuzzer|memory allocation|^error" -A 2 "$log" | sed 's/^/    /' || true
        if [ -n "$artifact" ]; then
            printf '    again: scripts/fuzz.sh --reproduce %s %s\n' "$target" "$artifact"
            printf '    the input, in base64: %s\n' "$(base64 -w 0 "$artifact")"
        else
            tail -n 10 "$log" | sed 's/^/    /'
        fi
        return 1
    fi
}

# Runs `jobs` targets at a time, and waits for all of them even if one fails.
failed=0
running=0
for target in $targets; do
    if [ "$running" -ge "$jobs" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
[ $failed = 0 ] || die "a fuzz target failed; the logs are in $data/logs"
