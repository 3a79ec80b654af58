#!/usr/bin/env bash
# How many commands one locked section sends to Redis, counted by Redis, without those inside scripts.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/bench/queue.sh
source "$bench/queue.sh"

# sent COMMAND...: sets SENT to the number of commands that Redis got while it ran, without our own
sent() {
  ((++ROUND))
  ask ECHO "begin$ROUND"
  "$@"
  ask ECHO "end$ROUND"
  wait_for_text "\"end$ROUND\"" "$T/monitor"
  SENT=$(sed -n "/\"begin$ROUND\"/,/\"end$ROUND\"/p" "$T/monitor" | grep -Evc ' lua\]|"(ECHO|ZCARD|LLEN)"')
}

# renewing SECONDS: a run with ten renewals a second
renewing() { rlock run --key calls --ttl 2 --renew-every 0.1 --report "$T/report" -- sleep "$1"; }

ROUND=0
"$REDIS_CLI" -s "$REDIS_SOCK" MONITOR >"$T/monitor" &
disown
wait_for_text OK "$T/monitor"
mapfile -t peers < <(present limit rlock redis-cli redis-py)
renewing 0.5 # the server learns the scripts

heading 'Commands sent to Redis' lock 'per section, uncontended' 'per section that waited, 5 in the queue' 'per renewal'
for peer in "${peers[@]}"; do
  under "$peer" calls
  "${UNDER[@]}" "$TRUE" # it learns those of others
  sent "${UNDER[@]}" "$TRUE"
  alone=$SENT
  sent hand_offs "$peer" 5
  waited=$(calc %.1f "($SENT - $alone) / 5")
  renewal=-
  if [[ $peer == rlock ]]; then
    sent renewing 2
    renewal=$(calc %.1f "($SENT - $alone) / $(jq .renewals "$T/report")")
    # With RESP2 a connection that listens must stop listening before it can ask: two more commands in the same write.
    target 'commands of an uncontended section' most 4 "$alone"
    target 'commands of a section that waited' most 5 "$waited"
    target 'commands of a renewal' most 3 "$renewal"
  fi
  row "$peer" "$alone" "$waited" "$renewal"
done
