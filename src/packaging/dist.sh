#!/usr/bin/env bash
# Makes the files of a release, for amd64 and arm64, on a Debian for amd64. `cmake --build build --target dist` runs it.
#   src/packaging/dist.sh DIRECTORY [CMAKE-OPTION...]     what an earlier release left there is removed
#
#   SOURCE_DATE_EPOCH=seconds       the time of every file (the commit's)
#
# The same commit gives the same bytes, wherever it is, as long as Debian's packages are the same; the .spdx.json say
# which they were.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
version=$(sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
umask 022
export LC_ALL=C TZ=UTC

die() {
  echo "dist.sh: $*" >&2
  exit 1
}

build() { # ARCHITECTURE CMAKE-OPTION...
  local arch=$1 name=rlock-$version-linux-$1
  shift
  cmake -S "$root" -B "$work/$arch" -DCMAKE_BUILD_TYPE=Release "$@" >/dev/null
  cmake --build "$work/$arch" --parallel "$(nproc)" --target rlock
  (cd "$work/$arch" && cpack -G 'TGZ;DEB;RPM' -B "$work/$arch.packages") >"$work/log" || die "cpack: $(<"$work/log")"
  mv "$work/$arch.packages"/rlock* "$out"
  DESTDIR=$work/$arch.root cmake --install "$work/$arch" --prefix /usr --strip >/dev/null
  cp "$work/$arch.root/usr/bin/rlock" "$out/$name"
  python3 "$here/sbom.py" "$version" "$out/$name" "$work/$arch/linked.tsv" >"$out/$name.spdx.json"
}

missing=$(bash "$root/tests/install-deps.sh" --missing build arm64 dist)
[[ -z $missing ]] || die "these packages are missing; 'bash tests/install-deps.sh build arm64 dist' installs them: ${missing//$'\n'/ }"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' -C "$root" log -1 --format=%ct)} ||
  die "this is no clone: set SOURCE_DATE_EPOCH to the time of the release, in seconds"
export SOURCE_DATE_EPOCH

mkdir -p "$1"
out=$(realpath "$1")
rm -f "$out"/rlock[-_]* "$out/SHA256SUMS"
shift
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
build amd64 "$@"
build arm64 "$@" -DCMAKE_TOOLCHAIN_FILE="$here/arm64.cmake"
python3 "$here/image.py" "$version" "$out/rlock-$version-oci.tar" amd64="$work/amd64.root" arm64="$work/arm64.root"
cd "$out"
sha256sum rlock* >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .
cat SHA256SUMS
