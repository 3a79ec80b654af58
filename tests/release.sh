#!/usr/bin/env bash
# Whether the files of a release are what they say, and do rlock's main job where there is next to nothing: in roots
# with busybox alone, which have no glibc as Alpine has none, or with Alpine itself where /root/alpine.tar.gz is one.
#   tests/release.sh DIRECTORY [CHECK]      as root on an empty Debian, with what `cmake --build build --target dist` made
set -euo pipefail
shopt -s nullglob

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# shellcheck source=tests/support/steps.bash
source "$here/support/steps.bash"
cd "$1"
version=$(sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$here/../CMakeLists.txt")
roots=$(mktemp -d)

new_root() { # NAME: sets root
  root=$roots/$1
  mkdir -p "$root"/{bin,dev,proc,tmp,usr/bin}
  if [[ -e /root/alpine.tar.gz ]]; then
    tar -C "$root" -xzf /root/alpine.tar.gz
  else
    cp /bin/busybox "$root/bin"
    chroot "$root" /bin/busybox --install -s /bin
  fi
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
}

main_job() { bash "$here/main_job.sh" "$@"; }

checksums() {
  sha256sum --check --quiet SHA256SUMS
  [[ $(printf '%s\n' rlock* | sort) == "$(sed 's/^[^ ]*  //' SHA256SUMS | sort)" ]]
}

# The README's lines as they are written; that of the .rpm is for other systems.
readme() {
  local line
  sudo() { "$@"; }
  while read -r line; do
    [[ $line != *' rpm '* ]] || continue
    eval "$line"
    main_job rlock
    dpkg --purge rlock
    rm -f /usr/local/bin/rlock
    hash -r
  done < <(sed -n '/^```sh install$/,/^```$/ { /^```/d; p }' "$here/../README.md")
}

binary() {
  new_root binary
  install rlock-"$version"-linux-amd64 "$root/usr/bin/rlock"
  main_job chroot "$root" /usr/bin/rlock
}

# By name and over TLS, where Alpine keeps the authorities, and without glibc's name services and /etc/nsswitch.conf.
as_on_alpine() {
  local url=rediss://locks.internal:7778
  new_root as_on_alpine
  install rlock-"$version"-linux-amd64 "$root/usr/bin/rlock"
  mkdir -p "$root/etc/ssl"
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=locks.internal -addext subjectAltName=DNS:locks.internal \
    -keyout "$roots/key" -out "$root/etc/ssl/cert.pem" 2>/dev/null
  echo '127.0.0.1 locks.internal' >>"$root/etc/hosts"
  redis-server --port 0 --tls-port 7778 --tls-auth-clients no --tls-cert-file "$root/etc/ssl/cert.pem" \
    --tls-key-file "$roots/key" --save '' >/dev/null &
  trap 'kill %1' EXIT
  until redis-cli -p 7778 --tls --insecure PING >/dev/null 2>&1; do sleep 0.1; done
  chroot "$root" /usr/bin/rlock acquire job --redis "$url" >/dev/null
  chroot "$root" /usr/bin/rlock status --redis "$url" | grep '^job '
}

archive() {
  new_root archive
  mkdir -p "$root/usr/local"
  tar -C "$root/usr/local" --strip-components 1 --no-same-owner --no-overwrite-dir -xzf rlock-"$version"-linux-amd64.tar.gz
  main_job chroot "$root" /usr/local/bin/rlock
}

rpm_package() {
  new_root rpm
  rpm --root "$root" --initdb
  rpm --root "$root" --install --nodeps rlock-"$version"-1.x86_64.rpm
  main_job chroot "$root" /usr/bin/rlock
  rpm --root "$root" --verify rlock
  rpm --root "$root" --erase rlock
  [[ ! -e $root/usr/bin/rlock && ! -e $root/usr/share/doc/rlock ]]
}

# Others read the layout as we meant it, and what is in the image runs alone, as nobody.
image() {
  local layout=$roots/layout arch
  skopeo copy --quiet --insecure-policy --all "oci-archive:rlock-$version-oci.tar" "oci:$layout:all"
  for arch in amd64 arm64; do
    skopeo copy --quiet --insecure-policy --override-arch "$arch" "oci-archive:rlock-$version-oci.tar" "oci:$layout:$arch"
    umoci unpack --image "$layout:$arch" "$roots/$arch"
    cmp "$roots/$arch/rootfs/usr/bin/rlock" rlock-"$version-linux-$arch"
    (($(grep -c BEGIN "$roots/$arch/rootfs/etc/ssl/certs/ca-certificates.crt") > 100))
    [[ $(find "$roots/$arch/rootfs" -type f | wc -l) -lt 30 ]]
  done
  chroot --userspec=65534:65534 "$roots/amd64/rootfs" /usr/bin/rlock --version
  new_root copied
  cp "$roots/amd64/rootfs/usr/bin/rlock" "$root/usr/bin"
  main_job chroot "$root" /usr/bin/rlock
}

# Every package has the same program and the licences of what is in it, and says for which processor it is.
same_program() { # DEBIAN'S-NAME RPM'S-NAME
  local deb=rlock_${version}_$1.deb rpm=rlock-$version-1.$2.rpm name=rlock-$version-linux-$1 into=$roots/files root each
  mkdir -p "$into"/{deb,rpm,tar}/usr
  dpkg-deb -x "$deb" "$into/deb"
  rpm2cpio "$rpm" | cpio --quiet -id -D "$into/rpm"
  tar -C "$into/tar/usr" --strip-components 1 -xzf "$name.tar.gz"
  for root in "$into"/*; do
    cmp "$root/usr/bin/rlock" "$name"
    diff -r "$into/deb/usr/share/doc/rlock/licences" "$root/usr/share/doc/rlock/licences"
    [[ -s $root/usr/share/doc/rlock/copyright ]]
  done
  (cd "$into/deb/usr/share/doc/rlock/licences" && ls libhiredis-dev libcli11-dev libssl-dev libc6-dev* Apache-2.0 LGPL-2.1)
  [[ $(dpkg-deb -f "$deb" Architecture) == "$1" && $(rpm -qp --qf '%{arch}' "$rpm") == "$2" ]]
  for each in cli11 fmtlib hiredis openssl; do [[ $(dpkg-deb -f "$deb" Static-Built-Using) == *"$each (= "* ]]; done
  for each in OpenSSL hiredis fmt CLI11 libstdc++ glibc; do
    jq --exit-status --arg name "$each" 'any(.packages[]; .name == $name and .versionInfo > "")' "$name.spdx.json" >/dev/null
  done
}

on_arm64() {
  qemu-aarch64 rlock-"$version"-linux-arm64 --version
  # The emulator of Debian 12 has no PR_SET_CHILD_SUBREAPER, so that `rlock run` ends with 71 there.
  grep -q bookworm /etc/os-release || main_job qemu-aarch64 "$PWD/rlock-$version-linux-arm64"
}

if (($# > 1)); then # alone, since a function under || would not end where it fails
  "${@:2}"
  exit
fi
bash "$here/install-deps.sh" server test dist release
[[ -e /root/alpine.tar.gz ]] || echo 'release.sh: Alpine is skipped, since ALPINE names no root of it; a root of busybox without glibc stands in'
for each in checksums readme binary as_on_alpine archive rpm_package image \
  'same_program amd64 x86_64' 'same_program arm64 aarch64' on_arm64; do
  # shellcheck disable=SC2086 # a function and its arguments
  step "$each" bash "$here/release.sh" "$PWD" $each
done
conclude
