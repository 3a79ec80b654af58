#!/usr/bin/env bash
# Compares the model of Redis with a real one, then simulates on every processor: first the seeds that failed once, then
# new ones, or N worlds that are the same each time. Builds what it needs. README.md explains the simulator.
#   tests/sim/run.sh [--seconds N | --worlds N] [--commands N]       60 seconds, 10,000 commands
#
#   RLOCK_BUILD_DIR=dir   build there instead of in build
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
build=${RLOCK_BUILD_DIR:-$root/build}
amount=(--seconds 60) worlds=0 commands=10000

while (($#)); do
  case $1 in
    --seconds) amount=(--seconds "$2") ;;
    --worlds) worlds=$2 ;;
    --commands) commands=$2 ;;
    *) echo "run.sh: what is $1?" >&2 && exit 64 ;;
  esac
  shift 2
done

dir=$(mktemp -d)
server=
stop_server() { # and waits until it has gone, since it removes its socket itself
  [[ -z $server ]] || { kill "$server" && wait "$server"; } || true
  server=
}
trap 'stop_server; rm -r "$dir"' EXIT

bash "$root/tests/install-deps.sh" build server sim
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --parallel "$(nproc)" --target rlock-sim >"$dir/build" 2>&1 || { cat "$dir/build" && exit 1; }

# The model keeps small hashes and sorted sets in the order of insertion, whatever their size.
"${REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$dir/redis.sock" --save '' --dir "$dir" \
  --hash-max-listpack-value 1000000 --hash-max-listpack-entries 1000000 >"$dir/redis.log" &
server=$!
until [[ -S $dir/redis.sock ]]; do sleep 0.05; done
seed=$RANDOM
echo "comparing the model with redis-server, seed $seed, commands $commands"
"$build/rlock-sim" --compare "$dir/redis.sock" --seed "$seed" --commands "$commands" ||
  { echo "the model and redis-server differ, seed $seed" && exit 1; }
stop_server

pids=() failed=()
cores=$(nproc)
for ((i = 0; i < cores; ++i)); do
  seeds=/dev/null
  ((i)) || seeds=$here/seeds
  ((worlds == 0)) || amount=(--seed $((1 + i * worlds / cores)) --worlds $((worlds / cores)))
  "$build/rlock-sim" "${amount[@]}" --seeds "$seeds" >"$dir/worlds.$i" 2>&1 &
  pids+=($!)
done
for i in "${!pids[@]}"; do
  if wait "${pids[i]}"; then cat "$dir/worlds.$i"; else failed+=("$dir/worlds.$i"); fi
done
((${#failed[@]} == 0)) || { cat "${failed[@]}" && exit 1; } # at the end, where it is seen
