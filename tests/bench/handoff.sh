#!/usr/bin/env bash
# How soon the next one's command starts: 1 and 20 waiters. The trials of rlock and limit alternate.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/bench/queue.sh
source "$bench/queue.sh"

# several TRIALS WAITERS PEER...
several() {
  local trial peer
  for ((trial = 0; trial < $1; ++trial)); do
    for peer in "${@:3}"; do
      hand_offs "$peer" "$2"
      echo "$STRAY" >>"$T/stray.$peer.$2"
    done
  done
}

# at PEER WAITERS QUANTILE
at() { quantile "$3" <"$T/latencies.$1.$2"; }

mapfile -t slow < <(present etcdctl redis-cli redis-py)
[[ -z $(present etcdctl) ]] || start_etcd
several "${TRIALS:-100}" 1 rlock limit
several 6 20 rlock limit
several 12 1 flock "${slow[@]}"
several 1 20 flock "${slow[@]}"

heading 'Hand-off: the end of one command to the start of the next, ms' \
  lock '1 waiter: p50' p99 '20 waiters: p50' p99 'out of order'
for peer in limit rlock flock "${slow[@]}"; do
  cells=()
  for waiters in 1 20; do
    for q in 0.5 0.99; do cells+=("$(calc %.2f "$(at "$peer" "$waiters" $q)")"); done
  done
  row "$peer" "${cells[@]}" "$(awk '{all += 21; stray += $1} END {printf "%.0f %%", 100 * stray / all}' "$T/stray.$peer.20")"
done
target 'hand-off p50, 1 waiter, against limit' most 1.4 "$(calc %.2f "$(at rlock 1 0.5) / $(at limit 1 0.5)")" x
target 'hand-off p99, 1 waiter' most 3 "$(calc %.2f "$(at rlock 1 0.99)")" ' ms'
target 'hand-off p50, 20 waiters, against limit' most 1.3 "$(calc %.2f "$(at rlock 20 0.5) / $(at limit 20 0.5)")" x
target 'served out of order, 20 waiters' most 0 "$(awk '{stray += $1} END {print stray + 0}' "$T/stray.rlock.20")"
