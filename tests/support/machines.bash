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
  timeout -k 10 3600 unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$1" "$1" # where the root is no mount, nobody in it can make mounts of his own
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys" # with the cgroups
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    exec chroot "$1" /usr/bin/env -i "${@:3}" bash -c "cd /root/rlock && $2"
    ' - "$machines/$1" "$2" "${environment[@]}" </dev/null
}

# Where control groups can be made for `boot`; nothing if there is no cgroup2.
hierarchy() { findmnt --noheadings --first-only --types cgroup2 --output TARGET; }

# why_no_boot: prints why `boot` cannot be used here; fails if it can
why_no_boot() {
  [[ -n $(hierarchy) ]] || { echo 'no cgroup2 is mounted' && return; }
  mkdir -p "$(hierarchy)/rlock-fresh" 2>/dev/null || { echo 'no control group can be made' && return; }
  return 1
}

# boot NAME COMMAND: runs it as root on that machine, in /root/rlock, as a service of systemd, which is process 1 there
# in a control group and a network of its own
boot() {
  local root=$machines/$1 group status=0
  group=$(hierarchy)/rlock-fresh
  on "$1" 'apt-get install -qq -y --no-install-recommends systemd >/dev/null 2>&1' || return
  cat >"$root/etc/systemd/system/only.service" <<END
[Unit]
SuccessAction=exit-force
FailureAction=exit-force
FailureActionExitStatus=1
[Service]
Type=oneshot
WorkingDirectory=/root/rlock
Environment=HOME=/root
ExecStart=$2
StandardOutput=truncate:/root/only.log
StandardError=inherit
END
  mkdir -p "$group"
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    exec timeout -k 10 600 unshare --mount --uts --ipc --net --cgroup --pid --fork --kill-child bash -euc '
      mount --bind "$0" "$0"
      mount -t proc proc "$0/proc"
      mount -t sysfs sysfs "$0/sys"
      mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
      mount --rbind /dev "$0/dev"
      for there in run tmp dev/shm; do mount -t tmpfs tmpfs "$0/$there"; done
      exec chroot "$0" /usr/bin/env -i container=rlock /lib/systemd/systemd --unit=only.service --show-status=0
      ' "$root"
  ) >/dev/null 2>&1 </dev/null || status=$?
  cat "$root/root/only.log"
  find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true # in which nobody is left
  return "$status"
}
