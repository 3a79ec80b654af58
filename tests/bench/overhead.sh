#!/usr/bin/env bash
# What it costs to run `true` under a lock that nobody else wants.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

race() { # ROUNDS PEER...: against limit
  local peer entries=()
  for peer in limit "${@:2}"; do
    under "$peer" overhead
    entries+=(@ "$peer" "${UNDER[@]}" "$TRUE")
  done
  "$T/bin/race" "$1" "${entries[@]}"
}

build limit race
start_redis
limit "$REDIS_PORT"
[[ -z $(present etcdctl) ]] || start_etcd
race "${ROUNDS:-300}" none flock rlock >"$T/fast"
# shellcheck disable=SC2046 # one word each
race 15 redis-cli $(present etcdctl redis-py) | tail -n +2 >"$T/slow"

heading 'Uncontended: `true` under the lock' lock 'median, ms' 'p90, ms' 'x limit' 'more than limit, us'
while read -r name median p90 ratio excess; do
  row "$name" "$(calc %.2f "$median / 1000")" "$(calc %.2f "$p90 / 1000")" "$ratio" "$excess"
done < <(cat "$T/fast" "$T/slow")
read -r _ _ _ ratio excess < <(grep ^rlock "$T/fast")
target '`run -- true`, against limit' most 1.35 "$ratio" x
target '`run -- true`, more than limit' most 600 "$excess" ' us'
