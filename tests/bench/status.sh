#!/usr/bin/env bash
# How long it takes to look at 5,000 locks, and at the history of 1,000.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build race
start_redis
rlock acquire 0 --ttl 10m >/dev/null
cli EVAL 'for number = 1, 4999 do
    redis.call("COPY", "rlock:0", "rlock:" .. number)
    redis.call("COPY", "{rlock:0}:meta", "{rlock:" .. number .. "}:meta")
  end' 0 >/dev/null
[[ $(rlock status | wc -l) == 5001 ]] # with the heading

heading 'Looking at 5,000 locks' command 'median, ms' 'p90, ms'
"$T/bin/race" 15 @ table rlock status @ JSON rlock status --json >"$T/times"
while read -r name median p90 _; do
  row "\`rlock status\`, $name" "$(calc %.0f "$median / 1000")" "$(calc %.0f "$p90 / 1000")"
done <"$T/times"
target '`status` of 5,000 locks' most 0.5 "$(awk '/^table/ {printf "%.2f", $2 / 1e6}' "$T/times")" ' s'

rlock release 0 --force >/dev/null
cli FLUSHALL >/dev/null
for number in {1..100}; do rlock run --key 0 -- true; done
cli EVAL 'for number = 1, 999 do
    redis.call("COPY", "{rlock:0}:history", "{rlock:" .. number .. "}:history")
    redis.call("COPY", "{rlock:0}:meta", "{rlock:" .. number .. "}:meta")
  end' 0 >/dev/null
[[ $(rlock log -n 100000 | grep -c true) == 100000 ]]

heading 'The history of 1,000 locks, 100 lines each' command 'median, ms' 'p90, ms'
"$T/bin/race" 5 @ latest rlock log @ whole rlock log -n 100000 >"$T/times"
while read -r name median p90 _; do
  row "\`rlock log\`, $name" "$(calc %.0f "$median / 1000")" "$(calc %.0f "$p90 / 1000")"
done <"$T/times"
target '`log` of 1,000 locks with 100 lines each' most 1 "$(awk '/^whole/ {printf "%.2f", $2 / 1e6}' "$T/times")" ' s'
