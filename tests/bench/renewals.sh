#!/usr/bin/env bash
# Two thousand runs at once, each with a lease of 30 s that it renews every 10 s: how busy the server is with that, and
# whether a renewal is ever late: then a lease has less than 20 s left.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

COUNT=${COUNT:-2000}
WINDOW=20 # seconds, in which each renews twice

runs_begun() { [[ $(cli DBSIZE) == $((2 * COUNT)) ]]; } # each has its lock and its record of the last

server_ticks() { awk '{print $14 + $15}' "/proc/$REDIS_PID/stat"; }

memory_used() { free -m | awk '/^Mem:/ {print $3}'; }

shortest_lease() { # ms
  cli EVAL 'local shortest
    for _, key in ipairs(redis.call("KEYS", "rlock:*")) do
      local left = redis.call("PTTL", key)
      shortest = math.min(shortest or left, left)
    end
    return shortest' 0
}

start_redis
used=$(memory_used)
for ((number = 0; number < COUNT; ++number)); do
  rlock run --key "$number" -- sleep 600 &
  pids+=($!)
done
wait_until "$PATIENCE" runs_begun
used=$(($(memory_used) - used))

ticks=$(server_ticks)
shortest=30000
for ((second = 0; second < WINDOW; ++second)); do
  sleep 1
  lease=$(shortest_lease)
  ((lease > shortest)) || shortest=$lease
done
ticks=$(($(server_ticks) - ticks))
kill "${pids[@]}"
wait "${pids[@]}" || true

busy=$(calc %.1f "100 * $ticks / $(getconf CLK_TCK) / $WINDOW")
late=$(calc %.0f "20000 - $shortest")
heading "$COUNT held locks" 'server, of one core' 'latest renewal' 'memory of all, commands included'
row "$busy %" "$late ms late" "$used MB"
target "server with $COUNT held locks, of one core" most 5 "$busy" ' %'
target 'latest of their renewals' most 500 "$late" ' ms late'
