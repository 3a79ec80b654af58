#!/usr/bin/env bash
# How many locked sections a second 16 loops get through, each with a key of its own, and all with one.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

loop() { # PEER KEY END(us): prints how many sections ended in time
  local sections=0
  under "$1" "$2"
  while "${UNDER[@]}" "$TRUE" 2>/dev/null && ((${EPOCHREALTIME/./} <= $3)); do ((++sections)); done
  echo $sections
}

# window SECONDS PEER own|one: adds what all loops got through in a second to $T/rates.PEER.own|one
window() {
  local number pids=() end=$((${EPOCHREALTIME/./} + $1 * 1000000))
  for number in {1..16}; do
    [[ $3 == own ]] || number=one
    loop "$2" "$number" $end >>"$T/loops" &
    pids+=($!)
  done
  wait "${pids[@]}"
  awk -v seconds="$1" '{sum += $1} END {print sum / seconds}' "$T/loops" >>"$T/rates.$2.$3"
  rm "$T/loops"
}

a_second() { awk '{sum += $1} END {print sum / NR}' "$T/rates.$1.$2"; } # PEER own|one

build limit
start_redis
limit "$REDIS_PORT"
mapfile -t slow < <(present redis-cli etcdctl redis-py)
[[ -z $(present etcdctl) ]] || start_etcd
for ((round = 0; round < ${ROUNDS:-3}; ++round)); do
  for keys in own one; do
    for peer in limit rlock flock; do window 1 $peer $keys; done
  done
done
for keys in own one; do
  for peer in "${slow[@]}"; do window 2 "$peer" $keys; done
done

heading 'Throughput: sections per second, 16 loops' lock 'keys of their own' 'one key'
for peer in limit rlock flock "${slow[@]}"; do
  row "$peer" "$(calc %.0f "$(a_second "$peer" own)")" "$(calc %.0f "$(a_second "$peer" one)")"
done
declare -A least=([own]=0.75 [one]=0.8)
for keys in own one; do
  target "sections per second, $keys key, against limit" \
    least "${least[$keys]}" "$(calc %.2f "$(a_second rlock $keys) / $(a_second limit $keys)")" x
done
