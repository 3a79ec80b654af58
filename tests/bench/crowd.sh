#!/usr/bin/env bash
# Whether a long queue is slower than a short one, or asks more of Redis: 5, 20, 200 and 1,000 waiters on one key.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/bench/queue.sh
source "$bench/queue.sh"

measure() { # WAITERS TRIALS: sets P50 and CALLS, both of this WAITERS, and prints a row
  local trial stray=0
  cli CONFIG RESETSTAT >/dev/null
  for ((trial = 0; trial < $2; ++trial)); do
    hand_offs rlock "$1"
    ((stray += STRAY)) || true
  done
  P50=$(quantile 0.5 <"$T/latencies.rlock.$1")
  CALLS=$(calc %.2f "($(script_calls) - 2 * $2) / $(($1 * $2))") # the holder's two do not count
  row "$1 waiters" "$(calc %.2f "$P50")" "$(calc %.2f "$(quantile 0.99 <"$T/latencies.rlock.$1")")" "$CALLS" "$stray"
}

heading 'A crowd: many waiters on one key' queue 'hand-off p50, ms' p99 'script calls per waiter' 'out of order'
rlock run --key queue -- true # the server learns the scripts
measure 5 10
few_calls=$CALLS
measure 20 5
short=$P50
for waiters in 200 1000; do
  measure $waiters 1
  target "hand-off p50, $waiters waiters, against 20" most 2 "$(calc %.2f "$P50 / $short")" x
  target "script calls per waiter, $waiters waiters, against 5" most 1.1 "$(calc %.2f "$CALLS / $few_calls")" x
  target "connections of $waiters waiters" most "$waiters" $((CONNECTIONS - 2)) # without the holder's and our own
done
