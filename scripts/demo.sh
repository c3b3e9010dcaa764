#!/usr/bin/env bash
# The whole way in one run: build, start a server on a free port with fresh data, publish the transfer module, seed accounts,
# run transfers, check that no money was lost, and print one table. Everything is stopped at the end, whatever happens.
#
# --module ts (TypeScript with this repository's SDK, the default), ts-npm (with the published npm package) or rust.
# Settings, as variables: ACCOUNTS SECONDS_OF_LOAD CONNECTIONS IN_FLIGHT
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
# shellcheck source=scripts/js-engine.sh
. "$root/scripts/js-engine.sh"

module=ts
while [ $# -gt 0 ]; do
    case $1 in
    --module)
        [ $# -ge 2 ] || die "--module needs one of ts, ts-npm, rust"
        module=$2
        shift 2
        ;;
    --module=*)
        module=${1#--module=}
        shift
        ;;
    *) die "unknown option $1; there is --module ts|ts-npm|rust" ;;
    esac
done
case $module in
ts | ts-npm | rust) module_path=modules/transfer-$module ;;
*) die "--module is ts, ts-npm or rust, not $module" ;;
esac
[ "$module" != rust ] || module_path=modules/transfer-rs

accounts=${ACCOUNTS:-100000}
balance=1000000000
seconds=${SECONDS_OF_LOAD:-10}
connections=${CONNECTIONS:-64}
in_flight=${IN_FLIGHT:-40}

need_build_tools
need node nodejs
need npm npm
# Runs a command with what cargo needs to build for WebAssembly: the module needs it, the server must not have it.
wasm() (
    # shellcheck source=scripts/wasm-toolchain.sh
    . "$root/scripts/wasm-toolchain.sh"
    export CARGO_TARGET_DIR=$LIGHTCONE_MODULES_TARGET_DIR
    "$@"
)

say "building the program and the load generator (release); the first time this takes several minutes"
cargo_build --release --package lightcone-cli --package lightcone-loadgen "${program_features[@]}"
bin=$CARGO_TARGET_DIR/release

work=$(mktemp -d "${TMPDIR:-/tmp}/lightcone-demo.XXXXXX")
server=
stop() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if [ $status -ne 0 ] && [ -s "$work/server.log" ]; then
        echo "the server's last lines:" >&2
        tail -n 20 "$work/server.log" >&2
    fi
    rm -rf "$work"
    exit $status
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "starting a server on a free port, with fresh data"
mkdir -p "$work/keys"
"$bin/spacetimedb-standalone" start --non-interactive --listen-addr 127.0.0.1:0 \
    --data-dir "$work/data" --jwt-key-dir "$work/keys" >"$work/server.log" 2>&1 &
server=$!
address=
for _ in $(seq 300); do
    address=$(sed -n 's/.*Starting SpacetimeDB listening on \([0-9.:]*\).*/\1/p' "$work/server.log" | head -n 1)
    [ -n "$address" ] && break
    kill -0 "$server" 2>/dev/null || die "the server did not start"
    sleep 0.1
done
[ -n "$address" ] || die "the server did not start within 30 seconds"
url=http://$address
# With a configuration of the demo's own, so that it touches no user's login.
spacetime() { "$bin/spacetime" --config-path "$work/cli.toml" "$@"; }
# Shows what a command writes to stderr only if it fails.
quietly() { "$@" 2>"$work/stderr" || { cat "$work/stderr" >&2; return 1; }; }
quietly spacetime server ping "$url"

if [ "$module" != rust ]; then
    say "installing what $module_path needs"
    [ "$module" != ts ] || scripts/sdk.sh build
    (cd "$module_path" && npm_install)
fi
say "building and publishing $module_path"
quietly spacetime login --server-issued-login "$url"
wasm spacetime publish --server "$url" --module-path "$module_path" --yes demo

say "seeding $accounts accounts"
quietly spacetime call --server "$url" demo seed "$accounts" "$balance"
quietly spacetime logs --server "$url" demo -n 1

metrics() { node "$root/scripts/demo-metrics.mjs" "$url"; }
say "$connections connections with $in_flight transfers in flight each, $seconds seconds"
metrics >"$work/before.json"
"$bin/lightcone-loadgen" --url "ws://$address" --database demo --connections "$connections" --in-flight "$in_flight" \
    --seconds "$seconds" --accounts "$accounts" --initial-balance "$balance" --server-pid "$server" --json >"$work/load.json"
metrics >"$work/after.json"

say "adding up the balances"
quietly spacetime sql --server "$url" --format json demo 'SELECT * FROM accounts' >"$work/rows.json"
node "$root/scripts/demo-report.mjs" "$work" "$accounts" "$balance"
