# Sourced, after lib.sh. Chooses the engine for JavaScript modules: V8 where its prebuilt library can be had, else QuickJS.
#
# Sets js_features (options for cargo, an array) and js_engine (the name), and exports RUSTY_V8_ARCHIVE if a library lies in
# ../shared/env/v8. LIGHTCONE_JS_ENGINE=v8 or =quickjs decides instead; with v8 and no library, the build tries to download it.

# shellcheck shell=bash
js_engine=${LIGHTCONE_JS_ENGINE:-}
if [ -z "${RUSTY_V8_ARCHIVE:-}" ] && [ "$js_engine" != quickjs ]; then
    for archive in "$root"/../shared/env/v8/librusty_v8_*"$(uname -m)"*.a.gz; do
        if [ -f "$archive" ]; then
            RUSTY_V8_ARCHIVE=$(realpath "$archive")
            export RUSTY_V8_ARCHIVE
        fi
    done
fi
# Whether the build of crate `v8` could download its library (or has it from before). Ten seconds, then no.
v8_can_be_downloaded() {
    local version file
    version=$(sed -n '/^name = "v8"$/{n;s/version = "\(.*\)"/\1/p}' "$root/Cargo.lock")
    file=librusty_v8_simdutf_release_$(rustc -vV | sed -n 's/^host: //p').a.gz
    command -v curl >/dev/null 2>&1 &&
        curl --silent --fail --location --head --max-time 10 --output /dev/null \
            "${RUSTY_V8_MIRROR:-https://github.com/denoland/rusty_v8/releases/download}/v$version/$file"
}

if [ -z "$js_engine" ]; then
    js_engine=quickjs
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ] || v8_can_be_downloaded; then
        js_engine=v8
    fi
fi
case $js_engine in
# Both are built in then, and V8 runs modules.
v8) js_features=(--features lightcone-cli/v8) ;;
quickjs) js_features=() ;;
*) die "LIGHTCONE_JS_ENGINE is v8 or quickjs, not $js_engine" ;;
esac
say "JavaScript modules run on $js_engine${RUSTY_V8_ARCHIVE:+ (library: $RUSTY_V8_ARCHIVE)}"
