#!/usr/bin/env bash
# Makes the files of a release in DIRECTORY (target/release in the cache): a tarball and a Debian package for this platform, the npm packages,
# the SBOM, and SHA256SUMS of all of this version. docs/releasing.md says what becomes of them.
#
#   release.sh [--program FILE] [--fast] [DIRECTORY]
#
# --program takes a `spacetime` that is built; without it, it is built as `make install` does. --fast compresses little, for tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

program=() level=9 deb_compression=(-Zxz) out=$cache/release
while [ $# -gt 0 ]; do
    case $1 in
    --program)
        program=(--program "$(realpath "$2")")
        shift
        ;;
    --fast) level=1 deb_compression=(-Znone) ;;
    -*) die "unknown option $1; there are --program FILE and --fast" ;;
    *) out=$1 ;;
    esac
    shift
done
need node nodejs
need npm npm
need python3 python3
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PREFIX=$work/installed "$root/scripts/install.sh" "${program[@]}"
cd "$root"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
platform=$(node -p 'process.platform + "-" + process.arch')
# Archives of the same commit are the same.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
# pack FILE DIRECTORY: what is in a directory of $work, as .tar.gz.
pack() {
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$2" | gzip "-n$level" >"$out/$1"
}

say "bill of materials, licences"
files=$work/lightcone-$version-$platform
mv "$work/installed/bin" "$files"
# `spacetime init` names it in projects, until npm's registry has it.
install -Dm 644 -t "$files/lib/lightcone" "$work/installed/lib/lightcone/lightcone.tgz"
case $("$files/spacetime" --version) in
*"run on V8"*) features=lightcone-cli/v8,lightcone-cli/bundler ;;
*) features=lightcone-cli/quickjs,lightcone-cli/bundler ;;
esac
scripts/sbom.py "$files" --no-default-features --features "$features"
cp LICENSE "$files/"
cp "$files/sbom.cdx.json" "$out/lightcone-$version-$platform.cdx.json"

say "tarball"
pack "lightcone-$version-$platform.tar.gz" "$(basename "$files")"

say "npm packages"
scripts/sdk.sh build
[ "$(node -p 'require("./sdk-ts/package.json").version')" = "$version" ] || die "sdk-ts and Cargo.toml have different versions"
mkdir -p "$work/package/bin"
cp "$files"/spacetime* "$work/package/bin/"
cp "$files"/{LICENSE,THIRD-PARTY-LICENSES,sbom.cdx.json} "$work/package/"
libc=
[ "${platform%-*}" != linux ] || libc='"libc": ["glibc"],'
cat >"$work/package/package.json" <<EOF
{
  "name": "@lightcone/$platform",
  "version": "$version",
  "description": "The program of Lightcone for $platform; install @lightcone/cli",
  "license": "Apache-2.0",
  "os": ["${platform%-*}"],
  "cpu": ["${platform#*-}"],
  $libc
  "preferUnplugged": true
}
EOF
# npm itself would compress as much as it can, also for tests.
pack "lightcone-$platform-$version.tgz" package
cp -r packaging/npm/* "$work/"
# Those of other platforms lie in the directory already if it has been carried from machine to machine.
optional=()
for archive in "$out"/lightcone-*-*-"$version.tgz"; do
    other=$(basename "$archive" "-$version.tgz")
    optional+=("optionalDependencies.@lightcone/${other#lightcone-}=$version")
done
(cd "$work/cli" && npm pkg set "version=$version" "${optional[@]}")
(cd "$work/create-lightcone" && npm pkg set "version=$version" "dependencies.lightcone=$version")
cp LICENSE "$work/cli/"
cp LICENSE "$work/create-lightcone/"
for package in "$work/cli" "$work/create-lightcone" "$root/sdk-ts"; do
    (cd "$package" && npm pack --silent --pack-destination "$out" >/dev/null)
done

if command -v dpkg-deb >/dev/null 2>&1; then
    say "Debian package"
    need dpkg-shlibdeps dpkg-dev
    deb=$work/deb
    install -Dt "$deb/usr/bin" "$files"/spacetime*
    install -Dm 644 -t "$deb/usr/lib/lightcone" "$files/lib/lightcone/lightcone.tgz"
    install -Dm 644 -t "$deb/usr/lib/systemd/system" packaging/debian/lightcone.service
    install -Dm 644 -t "$deb/usr/share/doc/lightcone" packaging/debian/copyright "$files"/{THIRD-PARTY-LICENSES,sbom.cdx.json}
    install -Dt "$deb/DEBIAN" packaging/debian/{postinst,prerm,postrm}
    mkdir "$work/debian"
    touch "$work/debian/control"
    libraries=$(cd "$work" && dpkg-shlibdeps -O deb/usr/bin/* | sed 's/^shlibs:Depends=//')
    cat >"$deb/DEBIAN/control" <<EOF
Package: lightcone
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the Lightcone contributors <maintainers@lightcone.invalid>
Depends: adduser, $libraries
Recommends: ca-certificates
Section: database
Priority: optional
Homepage: $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
Description: application server and database in one process
 Reducers, functions over tables in TypeScript or Rust, run inside the database as serializable transactions, and every
 connected client gets the rows that changed for it.
EOF
    dpkg-deb --root-owner-group "${deb_compression[@]}" --build "$deb" "$out" >/dev/null
fi

# Other versions may lie there, too.
ours="[-_]${version//./\\.}(\.tgz|[-_][a-z0-9]+(-[a-z0-9]+)?\.(tar\.gz|deb|cdx\.json))\$"
(cd "$out" && find . -maxdepth 1 -type f -printf '%P\n' | grep -E -- "$ours" | sort | xargs sha256sum >SHA256SUMS)
say "the release is in $out"
ls -l "$out" >&2
