# rlock run --once-per day: the slot of the local calendar in which a run was started is done once. The calendar is shifted
# by the time zone: DAY24 is a day behind DAY0, and DAY-24 a day ahead of it.

load ../support/helpers
load ../support/servers

setup() {
  until [[ $(date -u +%H%M) != 2359 ]]; do sleep 1; done # the day does not change while a test runs
  hermetic
  start_redis
  export TZ=DAY0
}


@test "a slot is done once, and messages name it: the minute, hour, day, week and month" {
  local period slot
  for period in 'minute %F %H:%M' 'hour %F %H:00' 'day %F' 'week %G-W%V' 'month %Y-%m'; do
    until (($(date +%-S) < 50)); do sleep 1; done
    slot=$(date "+${period#* }")
    try run "${period%% *}" --once-per "${period%% *}" -v -- echo ran
    exits 0
    same "$OUT" ran
    contains "$ERR" "holding ${period%% *} for $slot, fence "
    try run "${period%% *}" --once-per "${period%% *}" -- echo again
    exits 0
    same "$OUT" ''
    matches "$ERR" "^rlock: ${period%% *}: $slot done by $(id -un)@$(uname -n) [0-9.]+m?s ago$"
  done
}

@test "the next day is another slot, and so is a day of another lock; a failed run does not count for its slot" {
  try run backup --once-per day -- sh -c 'exit 3'
  exits 3
  try run backup --once-per day -- echo ran
  same "$OUT" ran
  try run other --once-per day -- echo ran
  same "$OUT" ran
  TZ=DAY-24 try run backup --once-per day -- echo ran
  same "$OUT" ran
}

@test "no ID of --once is a slot, and a run without the option does not undo one" {
  local day
  day=$(date +%F)
  try run backup --once-per day -- echo ran
  for id in "day:$day" "day%3A$day" "$day"; do
    try run backup --once "$id" -- echo "$id"
    same "$OUT" "$id"
  done
  try run backup -- true
  try run backup --once-per day -- echo again
  exits 0
  same "$OUT" ''
}

@test "a run that waits past midnight is still that of its day" {
  start holder rlock run backup -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done' "$T/go"
  wait_held backup
  TZ=DAY24 start late rlock run backup --once-per day -- echo yesterday
  local late=$PID
  wait_until "$PATIENCE" waiting 1 backup
  touch "$T/go"
  finish "$late"
  exits 0
  same "$(<"$T/late.out")" yesterday
  try run backup --once-per day -- echo today
  same "$OUT" today
  TZ=DAY24 try run backup --once-per day -- echo again
  same "$OUT" ''
}

@test "a run inside its own lock does not mind that the day has changed" {
  TZ=DAY24 try run backup --once-per day -- env TZ=DAY0 rlock run backup --once-per day -- echo inner
  exits 0
  same "$OUT" inner
}

@test "a period may stand in the configuration file" {
  printf '[run]\nonce-per = day\n' >"$T/conf"
  try run --config "$T/conf" backup -- echo ran
  same "$OUT" ran
  try run --config "$T/conf" backup -- echo again
  same "$OUT" ''
  try run --config "$T/conf" backup --once-per 1ms -- echo again # a duration on the command line outranks it
  same "$OUT" again
  try run --config "$T/conf" backup --once v42 -- echo other
  same "$OUT" other
}

@test "with several servers one that knows of the slot's success is enough, whatever was done after it" {
  local port
  start_quorum 3
  try run backup --ttl 1s --once-per day -- echo ran
  same "$OUT" ran
  for port in "${QUORUM_PORTS[@]:1}"; do cli_at "$port" FLUSHALL >/dev/null; done
  try run backup --ttl 1s -- true
  exits 0
  stop "${QUORUM_PIDS[2]}" # so that the first is heard in any case
  try run backup --ttl 1s --once-per day -- echo again
  exits 0
  same "$OUT" ''
  contains "$ERR" "backup: $(date +%F) done by "
}

# ---- the README's crontab

# The job notes its day and machine, and then does what this machine is to do today.
make_backup() {
  cat >"$T/bin/backup.sh" <<'END'
#!/bin/sh
echo "$DAY $MACHINE" >>"$T/runs"
[ ! -e "$T/$DAY-$MACHINE" ] || . "$T/$DAY-$MACHINE"
END
  chmod +x "$T/bin/backup.sh"
  mkdir "$T/.config"
  printf 'ttl = 1\n' >"$T/.config/rlock.conf" # a crash is over soon
  export T
}

# plan DAY MACHINE COMMAND
plan() { echo "$3" >"$T/$1-$2"; }

# cron DAY MACHINE: starts the line of the README, with half a second for the five minutes of its --backoff
cron() {
  local zone=([1]=DAY24 [2]=DAY0 [3]=DAY-24) line
  line=$(sed -nE 's/^17 3-5 \* \* \* //p' "$BATS_TEST_DIRNAME/../../README.md")
  contains "$line" ' --backoff 5m..5m '
  line=${line/ 5m..5m / 500ms..500ms }
  start "$1-$2" env TZ="${zone[$1]}" DAY="$1" MACHINE="$2" sh -c "exec $line"
  PIDS[$1-$2]=$PID
}

ends_with() { # STATUS DAY-MACHINE...: without a word
  local run
  for run in "${@:2}"; do
    finish "${PIDS[$run]}"
    exits "$1"
    same "$(<"$T/$run.err")" ''
  done
}

@test "the README's crontab on three machines, three days: a failure, a death, a late take-over; each day is done once" {
  local -A PIDS
  local machine
  make_backup
  # The first day db1 fails, db2 dies, and db3 takes over so late that it ends on the second day.
  plan 1 db1 'until [ -e "$T/go" ]; do sleep 0.02; done; exit 3'
  plan 1 db2 'kill -KILL $(ps -o ppid= "$PPID"); sleep 600' # rlock's first process, on which the second kills the job
  plan 1 db3 'until [ -e "$T/tomorrow" ]; do sleep 0.02; done'
  for machine in 1 2 3; do
    cron 1 "db$machine"
    ((machine == 1)) && wait_held backup || wait_until "$PATIENCE" waiting $((machine - 1)) backup
  done
  touch "$T/go"
  ends_with 3 1-db1
  finish "${PIDS[1-db2]}"
  wait_for_text '1 db3' "$T/runs"
  # The second day begins meanwhile, and is not yesterday's.
  for machine in 1 2 3; do
    cron 2 "db$machine"
    wait_until "$PATIENCE" waiting "$machine" backup
  done
  touch "$T/tomorrow"
  ends_with 0 1-db3 2-db1 2-db2 2-db3
  # The third day nothing happens, but one machine's cron is an hour late.
  cron 3 db2
  ends_with 0 3-db2
  cron 3 db1
  cron 3 db3
  ends_with 0 3-db1 3-db3
  same "$(sort "$T/runs" | cut -d' ' -f1 | uniq -c | xargs)" '3 1 1 2 1 3'
  same "$(head -n 4 "$T/runs" | xargs)" '1 db1 1 db2 1 db3 2 db1'
  same "$(rlock log backup --json | jq -c '[.[].end]')" '["exited","died","exited","exited","exited"]'
}
