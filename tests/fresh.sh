#!/usr/bin/env bash
# The README's commands where it promises them: on a Debian with nothing installed, from a clone of this commit.
#   tests/fresh.sh [SUITE...]    of Debian: bookworm, then trixie by default
#
#   FRESH_DIR=dir        for the roots, some GB (/var/tmp/rlock-fresh). Empty ones are kept there for the next run.
#   DEBIAN_MIRROR=url    where to get them from (the mirror that this machine uses)
#   RLOCK_CMAKE_ARGS, JOBS, as of tests/run.sh
#
# It needs root, debootstrap and a network; without them it says so and runs the commands in place.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(dirname "$here")
dir=${FRESH_DIR:-/var/tmp/rlock-fresh}
mapfile -t commands < <(sed -n '/^```shell$/,/^```$/ s/^bash tests/&/p' "$root/README.md")
red=()

step() { # NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  "$@" || red+=("$name")
}

# ---- machines

mirror() {
  local url
  url=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)}
  echo "${url:-http://deb.debian.org/debian}"
}

make_empty() { # SUITE: at $dir/SUITE.empty, whole or not at all
  local new=$dir/$1.new
  [[ ! -e $dir/$1.empty ]] || return 0
  rm -rf --one-file-system "$new"
  debootstrap --variant=minbase "$1" "$new" "$(mirror)" >"$dir/debootstrap.log" 2>&1 || return
  apt-config dump | grep -E '^Acquire::(https?|Check-)' >"$new/etc/apt/apt.conf.d/99fresh" || true # such as a proxy
  printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$(uname -n)" >"$new/etc/hosts"
  cp /etc/resolv.conf "$new/etc/resolv.conf"
  mv "$new" "$dir/$1.empty"
}

# why_not SUITE...: says why there can be no empty machines, and fails where there can
why_not() {
  local suite
  ((EUID == 0)) || { echo 'only root can make one' && return; }
  unshare --mount --pid --fork true 2>/dev/null || { echo 'no namespaces' && return; }
  bash "$here/install-deps.sh" fresh >/dev/null 2>&1 || { echo 'debootstrap cannot be installed' && return; }
  mkdir -p "$dir"
  for suite; do
    make_empty "$suite" || { echo "debootstrap fails: $(tail -n 1 "$dir/debootstrap.log")" && return; }
  done
  return 1
}

make_machine() { # NAME SUITE: an empty one, in which this commit is at /root/rlock
  rm -rf --one-file-system "${dir:?}/$1"
  cp -a "$dir/$2.empty" "$dir/$1"
  git -c safe.directory='*' clone --quiet --no-hardlinks "$root" "$dir/$1/root/rlock"
  git -C "$dir/$1/root/rlock" checkout --quiet --detach "$(git -c safe.directory='*' -C "$root" rev-parse HEAD)"
}

# on NAME COMMAND: as root of that machine, with mounts and processes of its own, which end with it
on() {
  local variable environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb)
  for variable in http_proxy https_proxy no_proxy RLOCK_CMAKE_ARGS JOBS CI; do
    [[ -z ${!variable-} ]] || environment+=("$variable=${!variable}")
  done
  # shellcheck disable=SC2016 # the inner shell expands them
  timeout -k 10 3600 unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$1" "$1" # where a root is no mount, nobody in it can make mounts of his own
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    exec chroot "$1" /usr/bin/env -i "${@:3}" bash -c "cd /root/rlock && $2"' - "$dir/$1" "$2" "${environment[@]}" </dev/null
}

# ---- what is tried there

fresh() { # SUITE
  local command log=$dir/$1.log
  make_machine "$1" "$1"
  for command in "${commands[@]}"; do
    step "$1: $command" command_passes "$1" "$command" "$log"
  done
  summaries+=("$(tail -n 1 "$log")")
}

# A test may be skipped for what the machine has not, or a package that is not in our list; nothing else.
command_passes() { # SUITE COMMAND LOG
  on "$1" "$2" 2>&1 | tee "$3" || return
  ! grep -E '^ok .* # skip' "$3" | grep -vE '# skip:? \(?(optional package|this machine) '
}

# In place, where there are no empty machines.
in_place() {
  local command
  cd "$root"
  for command in "${commands[@]}"; do step "$command" bash -c "$command"; done
}

summaries=()
(($#)) || set -- bookworm trixie
if why=$(why_not "$@"); then
  echo "fresh.sh: no empty machine can be made here ($why); the commands run in place"
  in_place
else
  for suite; do fresh "$suite"; done
fi
if ((${#red[@]})); then
  echo "red: ${red[*]}"
  exit 1
fi
echo green
