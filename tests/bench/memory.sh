#!/usr/bin/env bash
# The memory of a run while its command runs: all processes but the command, of one such run and of ten at once. PSS
# divides a page that several processes share among them.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/support/supervision.bash
source "$tests/support/supervision.bash"

# The command writes its pid to its file, once it runs.
command_of() { [[ -s $T/command.$1 ]]; } # NUMBER

pss() { # PID NUMBER: kB of it and its descendants, but for the command
  local pid files=()
  for pid in "$1" $(family_of "$1"); do
    [[ $pid == "$(<"$T/command.$2")" ]] || files+=("/proc/$pid/smaps_rollup")
  done
  awk '/^Pss:/ {sum += $2} END {print sum}' "${files[@]}"
}

mean_pss() { # PEER COPIES
  local number pids=()
  for ((number = 0; number < $2; ++number)); do
    under "$1" "memory$number"
    "${UNDER[@]}" sh -c 'echo $$ >"$0" && exec sleep 600' "$T/command.$number" 2>/dev/null &
    pids+=($!)
  done
  for ((number = 0; number < $2; ++number)); do wait_until "$PATIENCE" command_of "$number"; done
  for ((number = 0; number < $2; ++number)); do pss "${pids[number]}" "$number"; done |
    awk '{sum += $1} END {printf "%.2f", sum / NR / 1024}'
  cat "$T"/command.* | xargs kill
  wait "${pids[@]}" || true
  rm "$T"/command.*
}

build limit
start_redis
limit "$REDIS_PORT"
mapfile -t peers < <(present limit rlock flock redis-cli etcdctl redis-py)
[[ -z $(present etcdctl) ]] || start_etcd

heading 'Memory beside the command, MB of PSS' lock alone 'each of 10'
for peer in "${peers[@]}"; do
  under "$peer" memory
  "${UNDER[@]}" "$TRUE" # which sends the scripts: all others find them in Redis
  alone=$(mean_pss "$peer" 1)
  of_ten=$(mean_pss "$peer" 10)
  row "$peer" "$alone" "$of_ten"
  [[ $peer == rlock ]] || continue
  target 'memory, alone' most 2.4 "$alone" ' MB'
  target 'memory, each of 10' most 1.2 "$of_ten" ' MB'
done
