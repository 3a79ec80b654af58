#!/usr/bin/env bash
# For how long one script keeps Redis from everybody else: with 10,000 waiters, and with 1,000 readers, slots and levels.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_redis --maxclients 100
for round in 1 2 3; do python3 "$bench/slowest.py" "$REDIS_PORT" "$RLOCK" >"$T/slowest.$round"; done

# The least of the three rounds, since the machine may have held up Redis in one of them.
heading 'The slowest call of a script' 'scene: script' ms
sort -t $'\t' -k 1,1 -k 2,2n "$T"/slowest.* | awk -F '\t' '$1 != last {print; last = $1}' >"$T/least"
while IFS=$'\t' read -r what us; do row "$what" "$(calc %.2f "$us / 1000")"; done <"$T/least"
target 'slowest call of a script' most 5 "$(calc %.1f "$(cut -f 2 "$T/least" | sort -n | tail -n 1) / 1000")" ' ms'
