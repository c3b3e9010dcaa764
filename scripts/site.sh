#!/usr/bin/env bash
# Makes the site from the pages of the repository, with search: site/dist, or the directory that is named. A dead link is an error.
#
#   scripts/site.sh [directory]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need node nodejs
need npm npm
cd "$root/site"
npm_install
npx vitepress build --outDir "$(realpath -m "${1:-dist}")"
