#!/usr/bin/env bash
# Runs a script of the suite from the root of the repository, where nothing needs to be installed before.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pnpm=$("$here/scripts/install.sh")
cd "$here"
exec "$pnpm" --silent run "$@"
