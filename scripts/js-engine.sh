# Sourced, after lib.sh. Chooses the engine for JavaScript modules: V8 where its prebuilt library can be had, else QuickJS.
#
# Sets js_features (options for cargo, an array) and js_engine (the name), and exports RUSTY_V8_ARCHIVE if a library lies in
# ../shared/env/v8. LIGHTCONE_JS_ENGINE=v8 or =quickjs decides instead; with v8 and no library, the build downloads it.

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
if [ -z "$js_engine" ]; then
    js_engine=quickjs
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then
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
