# rlock hold: nobody is granted the lock until a time, or until somebody ends that. What runs goes on.

load ../support/helpers
load ../support/servers

# on_hold KEY OPTION...: by ann@ops1, for the disks
on_hold() {
  try hold "$1" --holder ann@ops1 --note 'disk swap' "${@:2}"
  exits 0
}

# fence KEY: of the lock's first holder
fence() { rlock status "$1" --json | jq '.[0].holders[0].fence'; }

# shown TIME DAY: as rlock shows it, with the day in this format of `date`, and with seconds only if they are not 0
shown() {
  local time
  time=$(date -d "$1" "+$2 %T")
  echo "${time%:00}"
}

@test "a lock on hold is granted to nobody: -n and -w get 75, and all are told until when, by whom and why" {
  local until words
  on_hold backup --for 1h
  until=$(rlock status backup --json | jq -r '.[0].hold.until')
  same "$OUT" "backup: on hold until $(shown "$until" %F) by ann@ops1 (disk swap)"
  words="on hold until $(shown "$until" %a) by ann@ops1 (disk swap)"
  try run backup -n -- true
  exits 75
  same "$ERR" "rlock: backup not acquired: $words"
  try acquire backup -w 1s
  exits 75
  matches "$ERR" $'^[^\n]*; gives up in [0-9]+m?s\n[^\n]*$'
  contains "$ERR" "rlock: waiting for backup, $words; gives up in "
  contains "$ERR" "rlock: backup not acquired: $words; the wait of 1s is over"
  same "$OUT" ''
  try release backup --force
  exits 1
  contains "$ERR" 'backup is not held: it is on hold until '
  contains "$ERR" ' by ann@ops1 (disk swap); `rlock hold backup --end` ends that; nothing changed'
  absent rlock:backup
}

@test "waiters are granted the lock, in their order, when the hold ends by itself" {
  local begin
  begin=$(now_ms)
  on_hold job --for 1s
  start first rlock run job -- sh -c 'echo first >>"$0"; sleep 0.1' "$T/order"
  first=$PID
  wait_for_text 'waiting for job, on hold' "$T/first.err"
  start second rlock run job -- sh -c 'echo second >>"$0"' "$T/order"
  finish "$PID"
  exits 0
  begin=$(($(now_ms) - begin))
  ((begin >= 1000)) || fail "granted after $begin ms"
  finish "$first"
  exits 0
  same "$(<"$T/order")" $'first\nsecond'
}

@test "--end hands the lock to the first waiter at once; a second --end says that nothing is on hold: 1" {
  on_hold job --for 90d
  start waiter rlock run job -- echo ran
  wait_for_text 'on hold until' "$T/waiter.err"
  try hold job --end
  exits 0
  matches "$OUT" '^job: hold ended; it was on hold until [0-9-]+ [0-9:]+ by ann@ops1 \(disk swap\)$'
  finish "$PID"
  exits 0
  same "$(<"$T/waiter.out")" ran
  try hold job --end
  exits 1
  same "$OUT" ''
  same "$ERR" 'rlock: job is not on hold; nothing changed'
}

@test "whoever is behind a waiter that dies just after --end does not sleep on, as if the lock were on hold" {
  local first begin took
  try run job --min-hold 4s -- true
  exits 0
  on_hold job --for 90d
  start first rlock run job -- true
  first=$PID
  wait_for_text 'waiting for job, on hold' "$T/first.err"
  start second rlock run job -- true
  wait_for_text 'place 2 in the queue' "$T/second.err"
  try hold job --end
  exits 0
  begin=$(now_ms)
  kill -9 "$first"
  finish "$PID"
  exits 0
  took=$(($(now_ms) - begin))
  ((took < 20000)) || fail "granted after $took ms" # it would sleep for up to a minute
}

@test "what runs goes on: its renewals, the runs inside it and its release" {
  start run rlock run job --ttl 600ms -- sh -c 'while [ ! -e "$0" ]; do sleep 0.1; done; sleep 1
    rlock renew && rlock run job -n -- echo inside; exit 3' "$T/held"
  run=$PID
  wait_held job
  on_hold job --for 1h
  touch "$T/held"
  finish "$run"
  exits 3
  same "$(<"$T/run.out")" inside
  absent rlock:job
}

@test "a run that holds the lock can put it on hold for the time after its end, and is not told of itself" {
  try run job --first -- rlock hold job --for 1h
  exits 0
  matches "$OUT" '^job: on hold until '
  same "$ERR" ''
  try run job -n -- true
  exits 75
  try hold job --end
  # shellcheck disable=SC2016 # the shell's
  same "$(sh -c 'eval "$(rlock acquire job --output shell)"; rlock hold job --for 1h && rlock release' 2>&1 >/dev/null)" ''
  rlock log job --json | jq -e 'any(.[]; .end == "released")' || fail "$(rlock log job)"
}

@test "hold says who still holds the lock, and how to end that" {
  local held
  hold job
  held="rlock: job: still held by $(id -un)@$(uname -n) pid $HOLDER \"sleep 600\""
  on_hold job --for 1h
  same "$ERR" "$held; to make it give the lock up: rlock release job --force --fence $(fence job)"
  same "$(wc -l <"$T/out")" 1
  on_hold job --for 1h -q
  same "$ERR" ''
  try run cold --min-hold 1h -- true
  on_hold cold --for 1h
  same "$ERR" ''
  try acquire many --slots 3
  try acquire many --slots 3
  on_hold many --for 1h
  contains "$ERR" " and 1 more; to make the first give the lock up: rlock release many --force --fence $(fence many)"
}

@test "a waiter is told when a hold begins and when it ends, and gets the lock only after both" {
  hold job
  start waiter rlock run job -- echo ran
  waiter=$PID
  wait_for_text 'waiting for job, held by' "$T/waiter.err"
  on_hold job --for 1h
  wait_for_text 'waiting for job, on hold until' "$T/waiter.err"
  stop "$HOLDER"
  rlock run job -n -E 3 -- true || same $? 3
  rlock hold job --end
  finish "$waiter"
  exits 0
  same "$(<"$T/waiter.out")" ran
}

@test "a waiter is told when another hold replaces the one that it was told of, and of the same hold once" {
  on_hold job --for 1h
  start waiter rlock run job -- echo ran
  waiter=$PID
  wait_for_text 'by ann@ops1 (disk swap)' "$T/waiter.err"
  try hold job --for 2h --holder bob@ops2
  exits 0
  wait_for_text 'by bob@ops2' "$T/waiter.err"
  try hold job --end
  exits 0
  finish "$waiter"
  exits 0
  same "$(grep -c 'waiting for job, on hold until' "$T/waiter.err")" 2
}

@test "a run with --replace evicts nobody while the lock is on hold" {
  start holder rlock run job --replace -- sleep 600
  holder=$PID
  wait_held job
  on_hold job --for 1h
  start newer rlock run job --replace -- echo ran
  newer=$PID
  wait_for_text 'on hold until' "$T/newer.err"
  rlock status job --json | jq -e '.[0].holders[0].evicted_by == null and .[0].waiting == 1'
  kill -0 "$holder"
  rlock hold job --end
  finish "$newer"
  exits 0
  finish "$holder"
  exits 76
}

@test "a second hold replaces the first, says so, and may be shorter" {
  local first
  on_hold job --for 1d
  first=${OUT#job: }
  try hold job --for 1s --holder bob@ops2
  exits 0
  matches "$OUT" "^job: on hold until [0-9-]+ [0-9:]+ by bob@ops2; it was .*"
  contains "$OUT" "; it was $first"
  start waiter rlock run job -- true
  finish "$PID"
  exits 0
}

@test "several keys are held and ended by one command, a line for each" {
  on_hold a --for 1h b c
  same "$(cut -d' ' -f1-4 "$T/out")" $'a: on hold until\nb: on hold until\nc: on hold until'
  try hold a b c other --end
  exits 1
  same "$(cut -d' ' -f1-4 "$T/out")" $'a: hold ended; it\nb: hold ended; it\nc: hold ended; it'
  same "$ERR" 'rlock: other is not on hold; nothing changed'
}

# ends_at EXPECTED TIME: as `date` understands the first
ends_at() {
  try hold "until" --until "$2"
  exits 0
  contains "$OUT" "until: on hold until $(shown "$1" %F) by "
}

@test "--until takes the next such time of the local zone" {
  local soon later day
  export TZ=America/New_York
  soon=$(date -d '5 minutes' '+%F %R') later=$(date -d '5 minutes ago' +%H:%M) day=$(date -d '5 minutes ago' +%a)
  ends_at "$soon" "${soon#* }"
  ends_at "$(date -d '5 minutes ago' '+%F %R') 1 day" "$later"
  ends_at 'tomorrow 08:00' 'tomorrow 08:00'
  ends_at "$(date -d '5 minutes ago' '+%F %R') 1 week" "$day $later"
  ends_at "$(date -d '2 days' +%F) 08:00" "$(date -d '2 days' +%A) 08:00"
  ends_at "$(date -d '2 days' +%F) 08:00" "$(LC_ALL=C date -d '2 days' +%a | tr '[:upper:]' '[:lower:]') 08:00"
  ends_at "$(date -d '40 days' +%F) 08:00" "$(date -d '40 days' +%F) 08:00"
  ends_at "$(date -d '40 days' +%F) 00:00" "$(date -d '40 days' +%F)"
  ends_at "$(date -d '40 days' +%F)T08:00:00Z" "$(date -d '40 days' +%F)T08:00:00Z"
  ends_at "$(date -d '40 days' +%F)T08:00:00+05:00" "$(date -d '40 days' +%F)T08:00:00+05:00"
  ends_at "$(date -d '40 days' +%F)T08:00:00Z" "$(date -d '40 days' +%F)T08:00:00.250Z"
  ends_at "$(date -d '40 days' +%F) 08:00:00+05:00" "$(date -d '40 days' +%F) 08:00:00+05:00"
}

@test "a time that has passed, is too far away or is not a time is 64, in one line, and holds nothing" {
  local word
  for word in '2020-01-01 08:00' 2020-01-01 "$(date -d '1 minute ago' -u +%FT%TZ)"; do
    refuses 64 "--until: $word has passed" hold job --until "$word"
  done
  word=$(date -d '91 days' '+%F %R')
  refuses 64 "--until: $word is too far away; it must be within 90d" hold job --until "$word"
  for word in yesterday 2027-02-31 25:00 '2027-02-31 08:00' 2027-02-31T08:00:00Z 2027-02-01T08:00:00.Z 'someday 08:00' 'tom 08:00' '08:00 08:00' ''; do
    refuses 64 "--until: '$word' is not a time such as 08:00, 15:30, 'tomorrow 08:00', " hold job --until "$word"
  done
  for word in tomorrow mon; do refuses 64 "--until: '$word' lacks the time of day; write '$word 08:00'" hold job --until "$word"; done
  matches "$(rlock hold job --until 25:00 2>&1)" " or '2026-11-25 08:00'$"
  refuses 64 'at most 90d' hold job --for 91d
  refuses 64 'too short' hold job --for 0
  refuses 64 'for how long? Write --for D, --until TIME, or --end to end a hold' hold job
  refuses 64 'for how long? Write --for D, --until TIME, or --end to end a hold' hold job 2h-disk
  refuses 64 'for how long? Write --for 2h' hold job 2h
  refuses 64 'for how long? Write --for 30m' hold job other '30 minutes'
  refuses 64 "for how long? Write --until 'tomorrow 08:00'" hold job 'tomorrow 08:00'
  refuses 64 "for how long? Write --until '08:00'" hold job 08:00
  refuses 64 'no key' hold --for 1h
  refuses 64 'choose one' hold job --for 1h --end
  refuses 64 'choose one' hold job --for 1h --until 08:00
  absent '{rlock:job}:meta'
}

@test "hold takes no pattern, and a lock that looks like one by --key only" {
  refuses 64 'deploy-*: hold takes the name of each lock, not a pattern, ' hold job 'deploy-*' --for 1h
  refuses 64 'deploy-*: hold takes the name of each lock, not a pattern, ' hold 'deploy-*' --end
  try hold --key 'deploy-*' --for 1h
  exits 0
  same "$ERR" 'rlock: deploy-*: no run of it is known; check its name'
}

@test "a lock whose last run has the ID of --once is done, hold or not" {
  try run schema --once v42 -- true
  on_hold schema --for 1h
  try run schema --once v42 -- false
  exits 0
  contains "$ERR" 'done by'
}

@test "the key of another program is put on hold beside it, and is not touched" {
  cli SET rlock:job theirs >/dev/null
  on_hold job --for 1h
  try run job -n -- true
  exits 75
  contains "$ERR" 'on hold until'
  same "$(cli GET rlock:job)" theirs
  same "$(rlock status job --json | jq -c '.[0] | [.state, .hold.by]')" '["foreign","ann@ops1"]'
  cli DEL rlock:job >/dev/null
  try run job -n -- true
  exits 75
}

@test "status shows a hold, also where nothing runs; it is no holder, no run and no end" {
  local until metrics
  on_hold backup --for 1h
  until=$(rlock status backup --json | jq -r '.[0].hold.until')
  try status
  exits 0
  matches "$OUT" "
backup +hold +ann@ops1 +- +- +- +59m[0-9]+s +0 +- +until $(shown "$until" %a) \(disk swap\) +-$"
  try status backup
  exits 1
  try status backup --json
  query '.[0] | .state == "free" and .holders == [] and .last == null and .counters.acquired == 0 and
    (.hold | keys) == ["by", "note", "since", "until"] and .hold.by == "ann@ops1" and .hold.note == "disk swap"'
  metrics=$(rlock status --prometheus)
  contains "$metrics" 'rlock_on_hold{key="backup"} 1'
  contains "$metrics" 'rlock_held{key="backup"} 0'
  contains "$(script -qec 'rlock status backup' /dev/null)" "hold  until $(shown "$until" %F) by ann@ops1 (disk swap), since "
  rlock hold backup --end
  contains "$(rlock status --prometheus)" 'rlock_on_hold{key="backup"} 0'
  same "$(rlock status backup --json | jq -c '.[0].hold')" null
  absent '{rlock:backup}:hold'
  on_hold "a'b" --for 1h
  contains "$(script -qec "rlock status \"a'b\"" /dev/null)" "end hold  rlock hold 'a'\\''b' --end"
}

@test "status shows a holder and a hold in rows of their own" {
  hold job
  on_hold job --for 1h
  try status job
  exits 0
  same "$(awk 'NR > 1 { print $1, $2 }' "$T/out")" $'job hold\njob x'
}

@test "log has a line for the beginning and the end of a hold, and says who ended it" {
  try hold job --for 200ms --holder ann@ops1 --note first
  start waiter rlock run job -- true
  finish "$PID"
  on_hold job --for 1h
  rlock hold job --end --holder bob@ops2
  try log job
  exits 0
  matches "$(sed -n 2p "$T/out")" '^job +[0-9-]+ [0-9:]+ +- +- +on hold until [A-Z][a-z]{2} [0-9:]+ +ann@ops1 +- +first$'
  matches "$(sed -n 3p "$T/out")" '^job +[0-9-]+ [0-9:]+ +- +- +hold over +ann@ops1 +- +first$'
  matches "$(sed -n 4p "$T/out")" '^job .* 0 '
  matches "$(sed -n 5p "$T/out")" ' on hold until .* ann@ops1 +- +disk swap$'
  matches "$(sed -n 6p "$T/out")" ' hold ended by bob@ops2 +ann@ops1 +- +disk swap$'
  same "$(rlock log job --json | jq -c '[.[] | .event // .end]')" \
    '["hold","hold over","exited","hold","hold ended"]'
}

@test "a hold that replaces another comes after that one's end in the log, always" {
  local i # holds are known by random IDs, by which the two must not be ordered
  for i in {1..8}; do
    on_hold "job$i" --for 1h
    rlock hold "job$i" --for 2h --holder bob@ops2
    same "$(rlock log "job$i" --json | jq -c '[.[] | [.event, .by]]')" \
      '[["hold",null],["hold replaced","bob@ops2"],["hold",null]]'
  done
  matches "$(rlock log job1)" ' hold replaced by bob@ops2 +ann@ops1 '
}

@test "what is kept of a lock outlives its hold" {
  on_hold job --for 80d
  ((($(cli PTTL '{rlock:job}:meta') / 86400000) >= 80)) || fail "$(cli PTTL '{rlock:job}:meta')"
  rlock run job -n -E 0 -q -- true
  try hold job --for 1s
  start waiter rlock run job -- true
  finish "$PID"
  exits 0
}

@test "a server that is frozen may put the lock on hold when it thaws, and is not said to have done nothing" {
  on_hold other --for 1h # so that the server knows the script
  kill -STOP "$REDIS_PID"
  try hold job other --for 2h --redis-timeout 300ms
  kill -CONT "$REDIS_PID"
  exits 69
  matches "$ERR" '^rlock: job: .*no answer.*; it may be on hold all the same: rlock status job; rlock hold job --end ends that$'
  wait_until "$PATIENCE" exists '{rlock:job}:hold'
}

@test "a server that is frozen may release or renew a lock when it thaws, and is not said to have done nothing" {
  hold other # so that the server knows the scripts
  try acquire job
  local token=$OUT
  try renew job --token "$token"
  try release none --token "$token"
  kill -STOP "$REDIS_PID"
  try renew job --token "$token" --redis-timeout 300ms
  exits 69
  matches "$ERR" '^rlock: job: .*no answer.*; the lease may have been extended all the same$'
  try release job --force --redis-timeout 300ms
  exits 69
  contains "$ERR" '; it may be released all the same: rlock status job'
  kill -CONT "$REDIS_PID"
}

@test "a server that cannot be reached has put nothing on hold, and ended no hold" {
  stop "$REDIS_PID"
  try hold job --for 1h
  exits 69
  contains "$ERR" '; nothing was put on hold'
  try hold job --end
  exits 69
  contains "$ERR" '; no hold was ended'
}

@test "a hold that a server forgets is no obstacle" {
  on_hold job --for 1h
  cli FLUSHALL >/dev/null
  try run job -n -- true
  exits 0
}

@test "rlock check tries a hold, and its ACL line suffices for one" {
  local line words
  line=$(rlock check --json | jq -r '.acl[0]')
  read -ra words <<<"$line"
  cli "${words[@]}" >/dev/null
  RLOCK_PASSWORD=$(grep -oE '>[0-9a-f]+' <<<"$line" | tr -d '>')
  export RLOCK_PASSWORD RLOCK_USERNAME=rlock
  try check
  same "$(grep permissions "$T/out" | cut -d' ' -f1)" ok
  on_hold job --for 1h
  try hold job --end
  exits 0
}

describes() { [[ $(rlock __complete hold --end '') == *"$1"* ]]; } # TEXT
offered() { [[ $(rlock __complete hold "${@:2}" | cut -f 1 | xargs) == "$1" ]]; } # NAMES ARG...

@test "completion knows the options of hold, and after --end offers what is on hold" {
  rlock run free -- true
  on_hold held --for 1h
  contains "$(rlock __complete hold --)" $'--until=\t'
  wait_until "$PATIENCE" offered 'free held' '' # it waits 80 ms for Redis, which may be too short on a busy machine
  wait_until "$PATIENCE" offered held --end ''
  wait_until "$PATIENCE" describes 'by ann@ops1 (disk swap)'
}
