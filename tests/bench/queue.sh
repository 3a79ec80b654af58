# shellcheck shell=bash
# Hand-offs: from the end of one command to the start of the next that waited for it. Sourced after lib.sh.

# hand_offs PEER WAITERS: one trial, with a holder and WAITERS that come one after the other and hold for 5 ms each.
# Their latencies, in ms, are added to $T/latencies.PEER.WAITERS. Sets STRAY, how many were not served in their order,
# and CONNECTIONS, how many the server had while all waited, ours included.
hand_offs() {
  local number pids=()
  : >"$T/log"
  under "$1" queue
  "${UNDER[@]}" "$T/bin/stamp" "$T/log" 0 "$T/gate" &
  pids+=($!)
  exec {gate}>"$T/gate" # returns when the holder's command has opened it too
  for ((number = 1; number <= $2; ++number)); do
    "${UNDER[@]}" "$T/bin/stamp" "$T/log" "$number" 5000 {gate}>&- 2>/dev/null &
    pids+=($!)
    queued "$1" "$number"
  done
  CONNECTIONS=$(cli INFO clients | sed -n 's/^connected_clients:\([0-9]*\).*/\1/p')
  sleep "0.0$((20 + RANDOM % 80))" # all are idle now, and one that polls is met anywhere between two looks
  exec {gate}>&-
  wait "${pids[@]}"
  [[ $(wc -l <"$T/log") == $(($2 + 1)) ]] || fail "$1: somebody did not get the lock"
  sort -nk 2 "$T/log" | awk 'NR > 1 {print ($2 - end) / 1e6} {end = $3}' >>"$T/latencies.$1.$2"
  STRAY=$(sort -nk 2 "$T/log" | awk '$1 != NR - 1 {++stray} END {print stray + 0}')
}

# queued PEER COUNT: waits until that many are in the queue; most tools do not show that, and are given time instead
queued() {
  case $1 in
    rlock) until ask ZCARD '{rlock:queue}:queue' && ((REPLY >= $2)); do :; done ;;
    limit) until ask LLEN queue:q && ((REPLY >= $2)); do :; done ;;
    flock) sleep 0.02 ;;
    redis-py) sleep 0.3 ;;
    *) sleep 0.1 ;;
  esac
}

script_calls() { cli INFO commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }

build limit stamp
mkfifo "$T/gate"
start_redis
limit "$REDIS_PORT"
