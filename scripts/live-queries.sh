#!/usr/bin/env bash
# Measures live queries on a server of its own: scripts/live-queries.sh [rust|ts] [case ...]
# What a message to ten of many subscribers costs: scripts/live-queries.sh fanout [shape ...], for as many as SUBSCRIBERS says.
# Cases: join join-view exists view query-view window-outside window-inside first-rows scans unrelated (default: all).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
module=${1:-rust}
[ $# -gt 0 ] && shift
shapes="unsubscribed room two-conditions one-of-two range square anonymous-view join view-join rule rule-for-all"
# shellcheck disable=SC2086
[ $# -gt 0 ] || [ "$module" != fanout ] || set -- $shapes
[ $# -gt 0 ] || set -- join join-view exists view query-view window-outside window-inside first-rows scans unrelated
target=${CARGO_TARGET_DIR:-$root/target}/release
server_bin=${LIGHTCONE_BIN:-$target/spacetime}
example=$target/examples/live_queries
loadgen=$target/lightcone-loadgen
case $module in
rust) program=$LIGHTCONE_MODULES_WASM_DIR/live.wasm flag=--bin-path ;;
ts) program=${LIGHTCONE_JS_DIR:-$HOME/.cache/lightcone/js}/live.js flag=--js-path ;;
fanout) program=$LIGHTCONE_MODULES_WASM_DIR/fanout.wasm flag=--bin-path ;;
*) echo "usage: scripts/live-queries.sh [rust|ts|fanout] [case ...]" >&2 && exit 2 ;;
esac
for file in "$server_bin" "$example" "$loadgen" "$program"; do
    [ -e "$file" ] || { echo "$file is missing: build first (docs/benchmarks.md, \"Live queries\")" >&2; exit 2; }
done
ulimit -n "$(ulimit -Hn)"

directory=$(mktemp -d)
pid=
stop() {
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; }
    pid=
    rm -rf "$directory/data"
}
trap 'stop; [ -n "${KEEP:-}" ] || rm -rf "$directory"' EXIT

# A server with the module, alone in its data.
start() {
    stop
    mkdir -p "$directory/data"
    : >"$directory/log"
    # The subscribers answer no Pings until all have subscribed.
    printf '[websocket]\nping-interval = "300s"\nidle-timeout = "600s"\n' >"$directory/data/config.toml"
    "$server_bin" --root-dir "$directory/root" start --data-dir "$directory/data" --jwt-key-dir "$directory/keys" \
        --listen-addr 127.0.0.1:0 "$@" >"$directory/log" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        port=$(sed -n 's/.*127\.0\.0\.1:\([0-9][0-9]*\).*/\1/p' "$directory/log" | head -n 1)
        [ -z "$port" ] || break
        sleep 0.1
    done
    [ -n "$port" ] || { cat "$directory/log" >&2; exit 1; }
    url=http://127.0.0.1:$port
    "$server_bin" --root-dir "$directory/root" publish --server "$url" "$flag" "$program" --yes live >"$directory/publish" 2>&1 ||
        { cat "$directory/publish" >&2; exit 1; }
}
queries() { "$example" --url "ws://127.0.0.1:$port" --database live --server-pid "$pid" "$@"; }
transfers() { "$loadgen" --url "ws://127.0.0.1:$port" --database live --connections 64 --seconds 10 --seed --quiet "$@"; }

if [ "$module" = fanout ]; then
    for count in ${SUBSCRIBERS:-100 1000 10000}; do
        for shape in "$@"; do
            start
            # shellcheck disable=SC2086
            queries --case fanout --shape "$shape" --subscribers "$count" ${FANOUT_OPTIONS:-}
        done
    done
    exit
fi
for name in "$@"; do
    case $name in
    unrelated)
        for _ in 1 2 3; do
            start
            echo "unrelated: no subscribers"
            transfers --in-flight 40 | grep -iE 'transfers|p50|cpu' || true
            mkfifo "$directory/hold"
            queries --case hold --subscribers 1000 <"$directory/hold" >"$directory/held" &
            exec 3>"$directory/hold"
            until grep -q ready "$directory/held"; do sleep 0.1; done
            echo "unrelated: 1,000 joins that no transfer concerns"
            transfers --in-flight 40 | grep -iE 'transfers|p50|cpu' || true
            exec 3>&-
            rm "$directory/hold"
        done
        ;;
    scans)
        start
        queries --case first-rows >/dev/null
        echo "scans: no scans"
        transfers --in-flight 1
        queries --case scans --subscribers 1 --seconds 14 >"$directory/scans" &
        scanning=$!
        sleep 1
        echo "scans: one client scans 1,000,000 rows without pause"
        transfers --in-flight 1
        wait "$scanning"
        cat "$directory/scans"
        ;;
    window-inside)
        # Each subscriber of the one window gets each change.
        start
        queries --case "$name" --subscribers 1
        ;;
    *)
        start
        queries --case "$name"
        ;;
    esac
done
