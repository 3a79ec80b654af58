# A script of several steps, of which one that fails does not stop the others.
# shellcheck shell=bash

red=()

step() { # NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  "$@" || red+=("$name")
}

# To be called last: names the steps that failed, and fails if there are any.
conclude() {
  ((${#red[@]})) || { echo green; return; }
  printf 'red: %s\n' "${red[@]}"
  return 1
}
