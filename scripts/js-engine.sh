# Sourced, after lib.sh. Chooses the engine for JavaScript modules: V8 where its prebuilt library can be had, else QuickJS.
#
# Sets js_engine (the name) and two arrays of options for cargo: js_features for tests, which need both engines, and program_features for
# programs, which get the one that runs their modules. Exports RUSTY_V8_ARCHIVE: as the caller has set it,
# or the library in ../shared/env/v8, or a downloaded one. The latter two must have the checksum of scripts/v8.sha256.
# LIGHTCONE_JS_ENGINE=v8 or =quickjs decides instead; with v8 and no library, that is an error.

# shellcheck shell=bash
js_engine=${LIGHTCONE_JS_ENGINE:-}
if [ -z "${RUSTY_V8_ARCHIVE:-}" ] && [ "$js_engine" != quickjs ]; then
    for archive in "$root"/../shared/env/v8/librusty_v8_*"$(uname -m)"*.a.gz; do
        if [ -f "$archive" ]; then
            RUSTY_V8_ARCHIVE=$("$root/scripts/v8-library.sh" "$archive") || die "remove it, or set RUSTY_V8_ARCHIVE"
        fi
    done
    if [ -z "${RUSTY_V8_ARCHIVE:-}" ] && ! RUSTY_V8_ARCHIVE=$("$root/scripts/v8-library.sh"); then
        [ "$js_engine" != v8 ] || die "LIGHTCONE_JS_ENGINE is v8, and there is no library of V8 (see above)"
        unset RUSTY_V8_ARCHIVE
    fi
    [ -z "${RUSTY_V8_ARCHIVE:-}" ] || export RUSTY_V8_ARCHIVE
fi
if [ -z "$js_engine" ]; then
    js_engine=quickjs
    [ -z "${RUSTY_V8_ARCHIVE:-}" ] || js_engine=v8
fi
case $js_engine in
# With this feature both engines are built in, and V8 runs modules.
v8)
    js_features=(--features lightcone-cli/v8)
    program_features=(--no-default-features --features lightcone-cli/v8,lightcone-cli/bundler)
    ;;
quickjs)
    js_features=()
    program_features=()
    ;;
*) die "LIGHTCONE_JS_ENGINE is v8 or quickjs, not $js_engine" ;;
esac
say "JavaScript modules run on $js_engine${RUSTY_V8_ARCHIVE:+ (library: $RUSTY_V8_ARCHIVE)}"
