# What is installed, and what a release is made of.

load ../support/helpers

setup() { hermetic; }

ROOT=$BATS_TEST_DIRNAME/../..
MANUAL=$ROOT/man/rlock.1
SOURCES=("$ROOT"/{CMakeLists.txt,LICENSE,src,man,completions,tests})

# Installing lists what it installs in the directory of the build, by which a user uninstalls: these tests have their own.
setup_file() {
  local rlock built options
  rlock=$(realpath "${RLOCK:-$ROOT/build/rlock}")
  built=$(dirname "$rlock")
  [[ -e $built/CMakeCache.txt ]] || return 0
  mapfile -t options < <(sed -nE 's/^(RLOCK_[A-Z_]+|CMAKE_BUILD_TYPE):[A-Z]+=(.*)/-D\1=\2/p' "$built/CMakeCache.txt")
  cmake -S "$ROOT" -B "$BATS_FILE_TMPDIR/build" "${options[@]}" >/dev/null
  cp "$rlock" "$BATS_FILE_TMPDIR/build/rlock"
}

find_build() {
  BUILD=$BATS_FILE_TMPDIR/build
  [[ -e $BUILD/cmake_install.cmake ]] || skip "this rlock was not built here"
}

# PREFIX: where zsh finds completions that are installed there
zsh_directory() {
  if [[ $1 == /usr && -e /etc/debian_version ]]; then echo zsh/vendor-completions; else echo zsh/site-functions; fi
}

installed_files() { # PREFIX
  cd "$T/dest$1$1" || return
  same "$(find . -type f -not -path './share/doc/rlock/licences/*' | sort)" "$(sort <<END
./bin/rlock
./share/bash-completion/completions/rlock
./share/doc/rlock/copyright
./share/fish/vendor_completions.d/rlock.fish
./share/man/man1/rlock.1
./share/man/man7/rlock-protocol.7
./share/$(zsh_directory "$1")/_rlock
END
)"
  [[ -x bin/rlock && ! -x share/man/man1/rlock.1 ]]
  ! is_static || grep -q Apache share/doc/rlock/licences/libssl-dev
  cmp share/man/man1/rlock.1 "$MANUAL"
  same "$(bin/rlock --version)" "$(rlock --version)"
}

@test "cmake --install puts every file where it belongs" {
  find_build
  local prefix
  for prefix in /usr /usr/local; do
    DESTDIR=$T/dest$prefix cmake --install "$BUILD" --prefix "$prefix" >/dev/null
    installed_files "$prefix"
  done
}

@test "cpack makes a .tar.gz of them" {
  find_build
  (cd "$BUILD" && cpack -G TGZ -B "$T/packages" >"$T/out")
  tar -C "$T" -xzf "$T"/packages/*.tar.gz
  cd "$T"/rlock-*/
  [[ -x bin/rlock && -e share/man/man1/rlock.1 && -e share/zsh/site-functions/_rlock ]]
}

# as_somebody COMMAND...: as another user, who may read and write everything, with a narrow umask
as_somebody() {
  (umask 077 && setpriv --reuid=12345 --regid=12345 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override "$@")
}

@test "what root unpacks or installs is root's, and no directory changes, whoever built it with whatever umask" {
  ((EUID == 0)) || skip 'this machine has one user only'
  find_build
  chmod 755 "$BATS_RUN_TMPDIR" "${BATS_TEST_TMPDIR%/*}" "$T"
  mkdir "$T/source" "$T/packages"
  cp -r "${SOURCES[@]}" "$T/source" # ours may be in /root
  cmake -S "$T/source" -B "$T/build" >"$T/out" 2>&1
  cp -L "$T/bin/rlock" "$T/build/rlock"
  chown -R 12345 "$T/source" "$T/build" "$T/packages"
  as_somebody sh -c 'cd "$0" && cpack -G "TGZ;DEB" -B "$1"' "$T/build" "$T/packages" >"$T/out"
  mkdir -p "$T/root/bin" "$T/root/share"
  chmod 755 "$T/root" "$T/root"/*
  tar -C "$T/root" --strip-components 1 -xzf "$T"/packages/*.tar.gz
  dpkg-deb -x "$T"/packages/*.deb "$T/root/deb"
  same "$(find "$T/root" -not -user 0 -o -not -group 0)" ''
  same "$(find "$T/root" -type d -not -perm 755)" ''
  same "$(find "$T/root" -type f -not -name rlock -not -perm 644)" ''
  same "$(stat -c %a "$T/root/bin/rlock" "$T/root/deb/usr/bin/rlock")" $'755\n755'
}

@test "a source directory with a space in its name is configured, with a packager's own flags, and installed" {
  local source=$T/'a source'
  find_build
  mkdir "$source"
  cp -r "${SOURCES[@]}" "$source"
  cmake -S "$source" -B "$T/a build" -DCMAKE_CXX_FLAGS_RELEASE=-O3 >"$T/out" 2>&1
  grep -q -- ' -O3 ' "$T/a build/compile_commands.json"
  cp -L "$T/bin/rlock" "$T/a build/rlock"
  cmake --install "$T/a build" --prefix "$T/a prefix" >"$T/out"
  [[ -x $T/a\ prefix/bin/rlock && -e $T/a\ prefix/share/zsh/site-functions/_rlock ]]
}

@test "libraries in a place of their own are linked from there, and a packager's own level of checks is kept" {
  mkdir -p "$T/opt/lib"
  printf 'Name: %s\nDescription: x\nVersion: 1.2.0\nLibs: -L%s/lib -l%s\n' hiredis "$T/opt" hiredis >"$T/opt/hiredis.pc"
  PKG_CONFIG_PATH=$T/opt cmake -S "$ROOT" -B "$T/b" -DCMAKE_CXX_FLAGS=-D_FORTIFY_SOURCE=3 >/dev/null
  contains "$(<"$T/b/CMakeFiles/rlock.dir/link.txt")" "-L$T/opt/lib "
  [[ $(grep -oE -- '[DU]_FORTIFY_SOURCE.*' "$T/b/CMakeFiles/rlock.dir/flags.make") != *SOURCE=2* ]]
}

@test "without the static libraries cmake says what to do; a program with shared ones brings the licence of CLI11" {
  printf 'Name: hiredis\nDescription: x\nVersion: 1.2.0\nLibs: -lnot-there\n' >"$T/hiredis.pc"
  PKG_CONFIG_PATH=$T cmake -S "$ROOT" -B "$T/b" >/dev/null 2>"$T/err"
  contains "$(tr -s ' \n' ' ' <"$T/err")" 'libnot-there.a was not found, so rlock cannot be linked statically: install it, or add -DRLOCK_SHARED_LIBRARIES=ON'
  cmake -S "$ROOT" -B "$T/shared" -DRLOCK_SHARED_LIBRARIES=ON >/dev/null
  same "$(cut -f 1 "$T/shared/linked.tsv")" CLI11
}

@test "cpack makes a .deb that lintian accepts" {
  find_build
  (cd "$BUILD" && umask 022 && cpack -G DEB -B "$T/packages" >"$T/out")
  dpkg-deb -x "$T"/packages/*.deb "$T/root"
  [[ -e $T/root/usr/share/man/man1/rlock.1.gz && -e $T/root/usr/share/zsh/vendor-completions/_rlock ]]
  same "$("$T/root/usr/bin/rlock" --version)" "$(rlock --version)"
  optional lintian lintian
  lintian --allow-root --fail-on error "$T"/packages/*.deb
}

@test "cpack makes an .rpm" {
  optional rpmbuild rpm
  find_build
  (cd "$BUILD" && cpack -G RPM -B "$T/packages" >"$T/out")
  rpm -qlp "$T"/packages/*.rpm >"$T/list"
  grep -qx /usr/bin/rlock "$T/list"
  grep -qx /usr/share/man/man1/rlock.1 "$T/list"
  same "$(grep -cx /usr/share/man "$T/list")" 0 # that one is the system's
}

@test "packages made twice, at other times and places, have the same bytes" {
  local each
  find_build
  for each in one other; do
    cp -r --no-preserve=timestamps "${SOURCES[@]}" "$(mkdir -p "$T/$each" && echo "$T/$each")"
    SOURCE_DATE_EPOCH=1234567890 cmake -S "$T/$each" -B "$T/$each.build" >"$T/out" 2>&1
    cp -L "$T/bin/rlock" "$T/$each.build/rlock"
    (cd "$T/$each.build" && SOURCE_DATE_EPOCH=1234567890 cpack -B "$T/$each.packages" >"$T/out")
    rm -r "$T/$each.packages/_CPack_Packages"
  done
  diff -r "$T/one.packages" "$T/other.packages"
}

@test "a .deb says what is linked in, and every package brings the licences of that" {
  find_build
  is_static || skip 'this machine builds with shared libraries'
  local name
  (cd "$BUILD" && cpack -G 'DEB' -B "$T/packages" >"$T/out")
  dpkg-deb -f "$T"/packages/*.deb Static-Built-Using >"$T/using"
  for name in openssl hiredis fmtlib cli11 glibc; do contains "$(<"$T/using")" "$name (= "; done
  dpkg-deb -x "$T"/packages/*.deb "$T/root"
  cut -f 3 "$BUILD/linked.tsv" | while read -r name; do cmp "$T/root/usr/share/doc/rlock/licences/$name" "/usr/share/doc/$name/copyright"; done
  same "$(cut -f 1 "$BUILD/linked.tsv" | grep -vxE 'zlib|zstd' | sort | tr '\n' ' ')" 'CLI11 OpenSSL fmt glibc hiredis libgcc libstdc++ '
  for name in Apache-2.0 LGPL-2.1 GPL-3; do [[ -s $T/root/usr/share/doc/rlock/licences/$name ]]; done
}

@test "the SBOM names the versions that --version does" {
  find_build
  is_static || skip 'this machine builds with shared libraries'
  SOURCE_DATE_EPOCH=1234567890 python3 "$ROOT/src/packaging/sbom.py" 1.2.3 "$T/bin/rlock" "$BUILD/linked.tsv" >"$T/sbom.json"
  version_of() { jq -r --arg name "$1" '.packages[] | select(.name == $name) | .versionInfo' "$T/sbom.json"; }
  same "$(version_of rlock)" 1.2.3
  matches "$(rlock --version)" "OpenSSL $(version_of OpenSSL | grep -oE '^[0-9.]+')"
  matches "$(rlock --version)" "hiredis $(version_of hiredis | grep -oE '^[0-9.]+')"
  same "$(jq -r '.creationInfo.created, .packages[0].checksums[0].checksumValue' "$T/sbom.json")" \
    "2009-02-13T23:31:30Z"$'\n'"$(sha256sum "$(realpath "$T/bin/rlock")" | cut -d ' ' -f 1)"
  # Every relation is between two things that the document describes, and no name stands for two.
  same "$(jq -r '([.packages[].SPDXID] | unique | length) == (.packages | length) and
    ([.relationships[].relatedSpdxElement] | sort) == ([.packages[].SPDXID] | sort)' "$T/sbom.json")" true
}

@test "the image holds rlock, licences and certificates, is the same when made twice, and runs alone and as nobody" {
  [[ -d /usr/share/ca-certificates/mozilla ]] || skip 'optional package ca-certificates is not installed'
  find_build
  is_static || skip 'this machine builds with shared libraries'
  local blob each
  DESTDIR=$T/root cmake --install "$BUILD" --prefix /usr --strip >/dev/null
  for each in one other; do
    SOURCE_DATE_EPOCH=1234567890 python3 "$ROOT/src/packaging/image.py" 1.2.3 "$T/$each.tar" amd64="$T/root" arm64="$T/root"
    find "$T/root" -exec touch {} +
  done
  cmp "$T/one.tar" "$T/other.tar"
  mkdir "$T/layout" "$T/image"
  tar -C "$T/layout" -xf "$T/one.tar"
  cd "$T/layout"
  for each in blobs/sha256/*; do same "$(sha256sum <"$each")" "${each##*/}  -"; done
  blob() { echo "blobs/sha256/${1#sha256:}"; }
  each=$(blob "$(jq -r '.manifests[0].digest' index.json)")
  same "$(jq -r '.manifests[].platform | .os + "/" + .architecture' "$each" | tr '\n' ' ')" 'linux/amd64 linux/arm64 '
  each=$(blob "$(jq -r '.manifests[0].digest' "$each")")
  same "$(jq -r '.config.User' "$(blob "$(jq -r .config.digest "$each")")")" 65534:65534
  each=$(blob "$(jq -r '.layers[0].digest' "$each")")
  same "$(zcat "$each" | sha256sum)" "$(jq -r '.rootfs.diff_ids[0]' "$(blob "$(jq -r .config.digest \
    "$(blob "$(jq -r '.manifests[0].digest' "$(blob "$(jq -r '.manifests[0].digest' index.json)")")")")")" | sed 's/sha256://')  -"
  tar -C "$T/image" -xzf "$each"
  same "$(find "$T/image" -type f -not -path '*/licences/*' -printf '/%P %m\n' | sort)" "$(sort <<END
/etc/ssl/certs/ca-certificates.crt 644
/usr/bin/rlock 755
/usr/share/doc/rlock/copyright 644
END
)"
  (($(grep -c BEGIN "$T/image/etc/ssl/certs/ca-certificates.crt") > 100))
  ((EUID == 0)) || skip 'this machine has one user only'
  same "$(chroot --userspec=65534:65534 "$T/image" /usr/bin/rlock --version)" "$(rlock --version)"
}

# What sudo does with a line of the README, in the directory of the test instead of the system.
sudo() {
  case $1 in
    dpkg) dpkg-deb --info "$3" ;;
    rpm) ! command -v rpmbuild || rpm -qip "$3" ;;
    *) "${@//\/usr\/local/$T/usr/local}" ;;
  esac
}

@test "the README's lines install the files that a release has" {
  find_build
  local line name
  local -i tried=0
  mkdir -p "$T/usr/local/bin"
  (cd "$BUILD" && cpack -B "$T/dist" >"$T/out")
  cd "$T/dist"
  name=$(basename ./rlock-*.tar.gz .tar.gz)
  cp "$(realpath "$T/bin/rlock")" "$name"
  sha256sum rlock* >SHA256SUMS
  echo "0000000000000000000000000000000000000000000000000000000000000000  rlock-of-another-processor" >>SHA256SUMS
  while read -r line; do
    rm -f "$T/usr/local/bin/rlock"
    eval "${line//amd64/"${name##*-}"}" >"$T/out" || fail "$line: $(<"$T/out")"
    [[ $line != */usr/local* ]] || same "$("$T/usr/local/bin/rlock" --version)" "$(rlock --version)"
    tried+=1
  done < <(sed -n '/^```sh install$/,/^```$/ { /^```/d; p }' "$ROOT/README.md")
  same "$tried" 4
  line=$(sed -n 's/^COPY --from=[^ ]* //p' "$ROOT/README.md")
  same "$line" '/usr/bin/rlock /usr/bin/' # as the test of the image above has found it
  matches "$(<"$ROOT/README.md")" "ADD --checksum=sha256:DIGEST --chmod=755 https://HOST/rlock-VERSION-linux-amd64 /"
}

@test "without a compiler for arm64 a release is not made, and dist says what is missing" {
  cp -rs /usr/bin "$T/few"
  rm -f "$T/few"/aarch64-linux-gnu-*
  STATUS=0
  PATH=$T/few bash "$ROOT/src/packaging/dist.sh" "$T/dist" >"$T/out" 2>&1 || STATUS=$?
  exits 1
  matches "$(<"$T/out")" "packages are missing; .*install-deps.sh build arm64 dist.* g\+\+-aarch64-linux-gnu"
  [[ ! -e $T/dist ]]
}

@test "the version stands in CMakeLists.txt, and nothing that is built or packed says it again" {
  local version
  version=$(sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$ROOT/CMakeLists.txt")
  same "$(rlock --version | head -n 1)" "rlock $version"
  # The format of an OCI layout has a version too, which happens to be ours.
  same "$(grep -rF "$version" "$ROOT"/{src,completions,.github,.ci} | grep -v imageLayoutVersion)" ''
}
