#!/usr/bin/env bash
# What a large fleet asks of one Redis: 20,000 locks that are held and renewed, and 10,000 waiters for one lock. So many
# processes do not fit on one machine, so fleet.py says what they would say.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELD=${HELD:-20000}
WAITERS=${WAITERS:-10000}
WINDOW=30 # seconds, in which each lock is renewed three times
TURNS=500

fleet() { python3 "$bench/fleet.py" "$REDIS_PORT" "$RLOCK" "$@"; }

ticks() { awk '{print $14 + $15}' "/proc/$REDIS_PID/stat"; }

# watch_server FILE: writes how busy the server is once all locks are held, in percent of a core
watch_server() {
  local before
  wait_until "$PATIENCE" all_held
  before=$(ticks)
  sleep "$WINDOW"
  calc %.1f "100 * ($(ticks) - $before) / $(getconf CLK_TCK) / $WINDOW" >"$1"
}

all_held() { [[ $(cli DBSIZE) == $((2 * HELD)) ]]; } # each has its lock and its record of the last

ulimit -n "$(ulimit -Hn)"
start_redis --maxclients $((HELD / 2 + 1000))
watch_server "$T/busy" &
latest=$(fleet hold "$HELD" $((WINDOW + 2)))
wait $!
busy=$(<"$T/busy")
cli FLUSHALL >/dev/null
short=$(fleet queue 20 "$TURNS")
long=$(fleet queue "$WAITERS" "$TURNS")

heading 'A fleet of connections' what measured
row "server with $HELD held locks, of one core" "$busy %"
row 'latest of their renewals' "$latest ms late"
row 'hand-off with 20 waiters, median' "$short us"
row "hand-off with $WAITERS waiters, median" "$long us"
cat <<'END'

Here `tests/bench/fleet.py` speaks for all holders and waiters, since so many processes do not fit on one machine. Its
hand-off is the time from sending the release to reading the grant; those of the tables above also have a command that
ends, and one that starts.
END
target "server with $HELD held locks, of one core" most 20 "$busy" ' %'
target "latest renewal of $HELD locks" most 500 "$latest" ' ms late'
target "hand-off with $WAITERS waiters, against 20" most 1.5 "$(calc %.2f "$long / $short")" x
