#!/usr/bin/env bash
# Installs the Debian packages that rlock is built and tested with, those that are missing.
#   tests/install-deps.sh [build|server|test|lint|fuzz]...     default: build server test
# Says nothing and returns at once when everything is there.
set -euo pipefail

server=${REDIS_SERVER:-redis-server} # or valkey-server, or the path of either

# group, package, what it is needed for: a command or a header
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
test    strace          strace
test    patch           patch
test    iproute2        ip
test    zsh             zsh
test    fish            fish
lint    clang-format    clang-format
lint    shellcheck      shellcheck
lint    shfmt           shfmt
lint    lua-check       luacheck
lint    mandoc          mandoc
fuzz    clang           clang++
END
}

die() {
  echo "install-deps.sh: $*" >&2
  exit 1
}

is_there() { # COMMAND or HEADER
  case $1 in
    *.h | *.hpp) printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$1" | g++ -E -x c++ - ;;
    *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

missing() { # GROUP...: prints their packages that are not there
  local group package what
  while read -r group package what; do
    case " $* " in
      *" $group "*) is_there "$what" || echo "$package" ;;
    esac
  done < <(needs)
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

apt() { # its output matters only when it fails
  local output
  output=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" 2>&1 </dev/null) ||
    die "apt-get $1 failed:"$'\n'"$output"
}

main() {
  local packages
  (($#)) || set -- build server test
  mapfile -t packages < <(missing "$@")
  ((${#packages[@]})) || return 0

  command -v apt-get >/dev/null ||
    die "no apt-get on this system; please install what Debian calls: ${packages[*]}"
  ((EUID == 0)) || command -v sudo >/dev/null ||
    die "there is no sudo; please run as root: apt-get install --no-install-recommends ${packages[*]}"
  echo "Installing ${packages[*]} ..."
  forbid_services
  apt update
  apt install --no-install-recommends "${packages[@]}"
}

main "$@"
