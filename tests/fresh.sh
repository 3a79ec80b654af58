#!/usr/bin/env bash
# Runs the README's commands on a Debian with nothing installed, from a clone of this commit. Then runs the program of
# each Debian under systemd and on the others, with the name services of a desktop, and installs the packages.
#   tests/fresh.sh [SUITE...]    of Debian: bookworm, then trixie by default
#
#   FRESH_DIR, DEBIAN_MIRROR     see support/machines.bash
#   RLOCK_CMAKE_ARGS, JOBS       see tests/run.sh
#
# It needs root, debootstrap and a network; without them it says so and runs the commands in place.
set -euo pipefail

# shellcheck source=tests/support/machines.bash
source "$(dirname "${BASH_SOURCE[0]}")/support/machines.bash"
# shellcheck source=tests/support/steps.bash
source "$(dirname "${BASH_SOURCE[0]}")/support/steps.bash"
mapfile -t commands < <(sed -n '/^```shell$/,/^```$/ s/^bash tests/&/p' "$project/README.md")
unset RLOCK # each machine tests the program that it has built

in_place() {
  local command
  cd "$project"
  for command in "${commands[@]}"; do step "$command" bash -c "$command"; done
}

fresh() { # SUITE
  local command
  make_machine "$1" "$1"
  for command in "${commands[@]}"; do step "$1: $command" passes "$1" "$command"; done
}

# A test may be skipped only for a package that is in none of our lists, or for something that the machine lacks.
passes() { # MACHINE COMMAND
  local log=$machines/$1.log
  on "$1" "$2" 2>&1 | tee "$log" || return
  if grep -E '^ok .* # skip' "$log" | grep -vE '# skip (optional package|this machine) ' >"$log.skipped"; then
    echo "fresh.sh: these tests may not be skipped here:"
    sed 's/^ok/not ok/' "$log.skipped"
    return 1
  fi
}

# foreign SUITE OTHER: OTHER's program finds its servers by name on a machine with more name services than files and DNS
foreign() {
  cp "$machines/$2/root/rlock/build/rlock" "$machines/$1/root/rlock.$2"
  on "$1" "apt-get install -qq -y --no-install-recommends libnss-myhostname libnss-mdns >/dev/null 2>&1 &&
    grep '^hosts:.*myhostname.*mdns' /etc/nsswitch.conf" &&
    RLOCK=/root/rlock.$2 passes "$1" 'bash tests/run.sh redis/network'
}

# packages SUITE...: makes the packages on the first, and installs them on all
packages() {
  local suite package
  on "$1" 'cd build && cpack -G "DEB;TGZ" -B /root/packages >/dev/null'
  for suite; do
    make_machine installed "$suite"
    cp "$machines/$1"/root/packages/rlock*.{deb,tar.gz} "$machines/installed/root/"
    for package in '.deb' '.tar.gz /usr' '.tar.gz /usr/local'; do
      step "$suite: $1's package, $package" on installed "bash tests/installed.sh /root/rlock*$package"
    done
  done
}

(($#)) || set -- bookworm trixie
if why=$(why_no_machines "$@"); then
  echo "fresh.sh: no empty machine can be made here ($why); the commands run in place"
  in_place
else
  for suite; do fresh "$suite"; done
  if why=$(why_no_boot); then
    echo "fresh.sh: systemd is skipped: $why"
  else
    for suite; do step "$suite: systemd" boot "$suite" '/usr/bin/bash tests/systemd.sh'; done
  fi
  for suite; do
    for other; do step "$suite: names, by $other's program" foreign "$suite" "$other"; done
  done
  step packages packages "$@"
fi

conclude
