# Empty Debian machines for fresh.sh and nightly.sh: roots made by debootstrap, which are entered with mount and process
# namespaces of their own.
#
#   FRESH_DIR=dir        for the roots, some GB (/var/tmp/rlock-fresh). Empty ones are kept there for the next run.
#   DEBIAN_MIRROR=url    where to get them from (the mirror that this machine uses)

tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
project=$(dirname "$tests")
machines=${FRESH_DIR:-/var/tmp/rlock-fresh}

mirror() {
  local url=${DEBIAN_MIRROR-}
  [[ -n $url ]] || url=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
  echo "${url:-http://deb.debian.org/debian}"
}

make_empty() { # SUITE: makes $machines/SUITE.empty, completely or not at all
  local new=$machines/$1.new
  [[ ! -e $machines/$1.empty ]] || return 0
  rm -rf --one-file-system "$new"
  debootstrap --variant=minbase "$1" "$new" "$(mirror)" >"$machines/debootstrap.log" 2>&1 || return
  apt-config dump | grep -E '^Acquire::(https?|Check-)' >"$new/etc/apt/apt.conf.d/99fresh" || true # such as a proxy
  printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$(uname -n)" >"$new/etc/hosts"
  cp /etc/resolv.conf "$new/etc/resolv.conf"
  mv "$new" "$machines/$1.empty"
}

# why_no_machines SUITE...: prints why there can be no such machines; fails if there can
why_no_machines() {
  local suite
  ((EUID == 0)) || { echo 'only root can make one' && return; }
  unshare --mount --pid --fork true 2>/dev/null || { echo 'no namespaces' && return; }
  bash "$tests/install-deps.sh" fresh >/dev/null 2>&1 || { echo 'debootstrap cannot be installed' && return; }
  mkdir -p "$machines"
  for suite; do
    make_empty "$suite" || { echo "debootstrap fails: $(tail -n 1 "$machines/debootstrap.log")" && return; }
  done
  return 1
}

make_machine() { # NAME SUITE: makes an empty machine with this commit in /root/rlock
  local ours=(git -c safe.directory='*' -C "$project")
  rm -rf --one-file-system "${machines:?}/$1"
  cp -a "$machines/$2.empty" "$machines/$1"
  "${ours[@]}" clone --quiet --no-hardlinks . "$machines/$1/root/rlock"
  git -C "$machines/$1/root/rlock" checkout --quiet --detach "$("${ours[@]}" rev-parse HEAD)"
}

# on NAME COMMAND: runs it as root on that machine, in /root/rlock; all that it starts and mounts ends with it
on() {
  local variable environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb)
  for variable in http_proxy https_proxy no_proxy CI JOBS RLOCK RLOCK_CMAKE_ARGS; do
    [[ -z ${!variable-} ]] || environment+=("$variable=${!variable}")
  done
  # shellcheck disable=SC2016 # the inner shell expands them
  timeout -k 10 3600 unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$1" "$1" # where the root is no mount, nobody in it can make mounts of his own
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys" # with the cgroups
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    exec chroot "$1" /usr/bin/env -i "${@:3}" bash -c "cd /root/rlock && $2"
    ' - "$machines/$1" "$2" "${environment[@]}" </dev/null
}
