#!/usr/bin/env bash
# Installs the Debian packages for building and testing rlock, as far as they are missing.
#   tests/install-deps.sh [GROUP...]            of the table below; build, server and test by default
#   tests/install-deps.sh --list GROUP...       prints the packages of these groups, installed or not
#   tests/install-deps.sh --missing GROUP...    prints those that are not installed
# Prints nothing and returns at once if everything is there.
set -euo pipefail

server=${REDIS_SERVER:-redis-server} # or valkey-server, or the path of either

# group, package, what the package is needed for: a command, a header, a file, or a Python module
needs() {
  cat <<END
build   g++             g++
build   cmake           cmake
build   make            make
build   pkg-config      pkg-config
build   libhiredis-dev  hiredis/hiredis.h
build   libfmt-dev      fmt/format.h
build   libcli11-dev    CLI/CLI.hpp
build   libssl-dev      openssl/ssl.h
build   zlib1g-dev      zlib.h
build   libzstd-dev     zstd.h
server  $(basename "$server")         $server
server  $(basename "${server%-server}")-tools     ${server%-server}-cli
test    bats            bats
test    parallel        env_parallel
test    jq              jq
test    python3         python3
test    python3-redis   import:redis
test    openssl         openssl
test    procps          pgrep
test    time            /usr/bin/time
test    strace          strace
test    patch           patch
test    iproute2        ip
test    bash-completion /usr/share/bash-completion/bash_completion
test    zsh             zsh
test    fish            fish
test    sudo            sudo
test    cron            /usr/sbin/cron
test    less            less
test    vim-tiny        vim.tiny
test    file            file
test    mandoc          mandoc
sim     liblua5.1-0-dev lua5.1/lua.h
lint    clang-format    clang-format
lint    shellcheck      shellcheck
lint    shfmt           shfmt
lint    lua-check       luacheck
lint    mandoc          mandoc
tidy    clang-tidy      clang-tidy
fuzz    clang           clang++
fresh   debootstrap     debootstrap
fresh   git             git
installed man-db        man
arm64   g++-aarch64-linux-gnu aarch64-linux-gnu-g++
arm64   libhiredis-dev:arm64  /usr/lib/aarch64-linux-gnu/libhiredis.a
arm64   libfmt-dev:arm64      /usr/lib/aarch64-linux-gnu/cmake/fmt
arm64   libssl-dev:arm64      /usr/lib/aarch64-linux-gnu/libssl.a
arm64   zlib1g-dev:arm64      /usr/lib/aarch64-linux-gnu/libz.a
arm64   libzstd-dev:arm64     /usr/lib/aarch64-linux-gnu/libzstd.a
dist    git             git
dist    rpm             rpmbuild
dist    python3         python3
dist    ca-certificates /usr/share/ca-certificates/mozilla
release skopeo          skopeo
release umoci           umoci
release cpio            cpio
release busybox-static  /bin/busybox
release qemu-user       qemu-aarch64
END
}

die() {
  echo "install-deps.sh: $*" >&2
  exit 1
}

is_there() { # COMMAND, HEADER, FILE or import:MODULE
  case $1 in
    /*) [[ -e $1 ]] ;;
    import:*) /usr/bin/python3 -c "import ${1#*:}" ;; # only Debian's Python sees Debian's modules
    *.h | *.hpp) printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$1" | g++ -E -x c++ - ;;
    *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

of_groups() { # GROUP...: their lines
  local group rest
  while read -r group rest; do
    [[ " $* " != *" $group "* ]] || echo "$rest"
  done < <(needs)
}

missing() { # GROUP...: prints their packages that are not installed
  local package what
  while read -r package what; do
    is_there "$what" || echo "$package"
  done < <(of_groups "$@")
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# A package must not start the service that it brings. (101: forbidden by policy.)
forbid_services() {
  local policy=/usr/sbin/policy-rc.d
  [[ ! -e $policy ]] || return 0
  # shellcheck disable=SC2064 # the path is known now, and local
  trap "as_root rm -f $policy" EXIT
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
  as_root chmod 755 "$policy"
}

apt() { # its output is shown only if it fails
  local output
  output=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" 2>&1 </dev/null) ||
    die "apt-get $1 failed:"$'\n'"$output"
}

main() {
  local packages
  if [[ ${1-} == --list ]]; then
    of_groups "${@:2}" | cut -d ' ' -f 1
    return
  fi
  if [[ ${1-} == --missing ]]; then
    missing "${@:2}"
    return
  fi
  (($#)) || set -- build server test
  mapfile -t packages < <(missing "$@")
  ((${#packages[@]})) || return 0

  command -v apt-get >/dev/null ||
    die "no apt-get on this system; please install what Debian calls: ${packages[*]}"
  ((EUID == 0)) || command -v sudo >/dev/null ||
    die "there is no sudo; please run as root: apt-get install --no-install-recommends ${packages[*]}"
  echo "Installing ${packages[*]} ..."
  forbid_services
  [[ ${packages[*]} != *:arm64* ]] || as_root dpkg --add-architecture arm64
  apt update
  apt install --no-install-recommends "${packages[@]}"
}

main "$@"
